"""Ordinary losses as per-class matrices: entry y is the loss if class y were the label.

They enter the paper's tables through the unbiased estimator, Eq. 10. Options may be tensors that
broadcast against the logits, one value per stacked model.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.nn.functional import elu

from ruleout.losses.registry import register
from ruleout.losses.space import log_softmax, softmax

__all__ = ["cce", "gce", "mae", "mse", "phuber", "zero_one"]

_ROOT = math.sqrt(2)

# Each returns the least upper bound (Appendix D) and the least Lipschitz constant in the logits.


def _mae_bounds() -> tuple[float, float]:
    return 2.0, 1 / _ROOT


def _mse_bounds() -> tuple[float, float]:
    return 2.0, 16 * _ROOT / 27


def _gce_bounds(q: float = 0.7) -> tuple[float, float]:
    if not 0 < q <= 1:
        raise ValueError(f"gce needs 0 < q <= 1, got q={q}")
    return 1 / q, _ROOT * (q / (1 + q)) ** q / (1 + q)


def _phuber_bounds(tau: float = 10.0) -> tuple[float, float]:
    if not 0 < tau < math.inf:
        raise ValueError(f"phuber needs tau > 0, got tau={tau}")
    return math.log(tau) + 1, _ROOT * (1 - 1 / tau) if tau >= 2 else _ROOT * tau / 4


def _cce_bounds() -> tuple[float, float]:
    return math.inf, _ROOT


@register(
    "mae",
    kind="base",
    family="bounded",
    paper="Feng et al. 2020, Section 4.3",
    bounds=_mae_bounds,
)
def mae(logits: Tensor) -> Tensor:
    r"""Mean absolute error, :math:`2 - 2p_y`. Symmetric: the classes sum to :math:`2k-2`."""
    return 2 - 2 * softmax(logits)


@register(
    "mse",
    kind="base",
    family="bounded",
    paper="Feng et al. 2020, Section 4.3",
    bounds=_mse_bounds,
)
def mse(logits: Tensor) -> Tensor:
    r"""Mean square error, :math:`1 - 2p_y + \sum_j p_j^2`."""
    p = softmax(logits)
    return 1 - 2 * p + (p * p).sum(-1, keepdim=True)


@register(
    "gce",
    kind="base",
    family="bounded",
    paper="Zhang and Sabuncu 2018",
    bounds=_gce_bounds,
)
def gce(logits: Tensor, *, q: float | Tensor = 0.7) -> Tensor:
    r"""Generalised cross entropy, :math:`(1 - p_y^q)/q` with :math:`0 < q \le 1`."""
    return -torch.expm1(q * log_softmax(logits)) / q


@register(
    "phuber",
    kind="base",
    family="bounded",
    paper="Menon et al. 2020",
    label="PHuber-CE",
    bounds=_phuber_bounds,
)
def phuber(logits: Tensor, *, tau: float | Tensor = 10.0) -> Tensor:
    r"""Partially Huberised cross entropy: :math:`-\log p_y`, continued linearly below 1/τ.

    :math:`-\log p_y` if :math:`p_y \ge 1/\tau`, else :math:`-\tau p_y + \log\tau + 1`; with the
    exponential linear unit this is :math:`\log\tau - \mathrm{ELU}(\log p_y + \log\tau)`.
    """
    kink = tau.log() if isinstance(tau, Tensor) else math.log(tau)
    return kink - elu(log_softmax(logits) + kink)


@register(
    "cce",
    kind="base",
    family="unbounded",
    paper="Feng et al. 2020, Section 4.3",
    bounds=_cce_bounds,
)
def cce(logits: Tensor) -> Tensor:
    r"""Categorical cross entropy, :math:`-\log p_y`; unbounded."""
    return -log_softmax(logits)


def zero_one(logits: Tensor) -> Tensor:
    """0-1 loss: 0 for the predicted class, 1 for the others. No gradient, so no approach.

    In the unbiased estimator it costs 0 if the prediction is a candidate and (k-1)/s if it was
    ruled out: an estimate of the error rate that needs no true label.

    >>> zero_one(torch.tensor([[0.1, 0.7, 0.2]]))
    tensor([[1., 0., 1.]])
    """
    return torch.ones_like(logits).scatter_(-1, logits.argmax(-1, keepdim=True), 0.0)
