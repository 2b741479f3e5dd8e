"""Losses for one ruled-out class: ``logits → [..., B, k]``, entry c for "it is not c".

A set is decomposed into its pairs (x, c); both decompositions take the mean over pairs.
"""

from __future__ import annotations

import math
from typing import Any, Literal

import torch
from torch import Tensor
from torch.nn.functional import hardtanh, logsigmoid
from torch.utils.checkpoint import checkpoint

from ruleout.losses.base import cce
from ruleout.losses.registry import register
from ruleout.losses.space import log_complement, log_odds

__all__ = ["forward", "free", "ova", "ova_ramp", "pc", "pc_ramp"]

Binary = Literal["sigmoid", "ramp"]

_COMPARISONS = 1 << 23  # of PC, made at a time; a GPU takes 8 times as many


@register("free", kind="single", family="decomposed", paper="Ishida et al. 2019")
def free(logits: Tensor) -> Tensor:
    r"""FREE for one example (Eq. 3), :math:`\sum_y \ell_y - (k-1)\ell_c` with cross entropy."""
    loss = cce(logits)
    return loss.sum(-1, keepdim=True) - (logits.shape[-1] - 1) * loss


def _binary(margin: Tensor, binary: Binary) -> Tensor:
    """Binary loss with l(u) + l(-u) = 1: sigmoid 1/(1+e^u), or ramp ½ max(0, min(2, 1-u))."""
    if binary not in ("sigmoid", "ramp"):
        raise ValueError(f"the binary loss is 'sigmoid' or 'ramp', not {binary!r}")
    return (-margin).sigmoid() if binary == "sigmoid" else (1 + hardtanh(-margin)) / 2


def _pairwise(logits: Tensor, ruled_out: Tensor, binary: Binary) -> Tensor:
    """Compare all classes with the ruled-out one, ``[..., 1]``; scale and constant as released."""
    k = logits.shape[-1]
    return (k - 1) * _binary(logits - ruled_out, binary).sum(-1) - k * (k - 1) / 2 + (k - 1)


def _pc_one(logits: Tensor, excluded: Tensor, *, binary: Binary = "sigmoid") -> Tensor:
    """PC of rows that rule out exactly one class: k comparisons instead of k²."""
    return _pairwise(logits, (logits * excluded).sum(-1, keepdim=True), binary)


@register("pc", kind="single", family="decomposed", paper="Ishida et al. 2017", one=_pc_one)
def pc(logits: Tensor, *, binary: Binary = "sigmoid") -> Tensor:
    r"""Pairwise comparison, :math:`(k-1)\sum_j \ell(f_j - f_c) - \frac{k(k-1)}{2} + (k-1)`.

    j runs over all classes, c included, as in the authors' code. All c take k² comparisons per
    example; past some millions they are made block by block and once more for the gradient, so
    that memory stays small.
    """
    limit = _COMPARISONS * (1 if logits.device.type == "cpu" else 8)
    block = max(1, limit // max(logits.numel(), 1))
    if block >= logits.shape[-1]:
        return _pairwise(logits.unsqueeze(-2), logits.unsqueeze(-1), binary)
    blocks = [
        checkpoint(
            _pairwise,
            logits.unsqueeze(-2),
            part.unsqueeze(-1),
            binary,
            use_reentrant=False,
            preserve_rng_state=False,
        )
        for part in logits.split(block, -1)  # type: ignore[no-untyped-call]
    ]
    return torch.cat(blocks, -1)


def _pc_ramp_one(logits: Tensor, excluded: Tensor) -> Tensor:
    return _pc_one(logits, excluded, binary="ramp")


@register(
    "pc-ramp",
    kind="single",
    family="decomposed",
    paper="Ishida et al. 2017",
    label="PC (ramp)",
    one=_pc_ramp_one,
)
def pc_ramp(logits: Tensor) -> Tensor:
    """Pairwise comparison with the ramp loss."""
    return pc(logits, binary="ramp")


@register("ova", kind="single", family="decomposed", paper="Ishida et al. 2017")
def ova(logits: Tensor, *, binary: Binary = "sigmoid") -> Tensor:
    r"""One versus all, :math:`\frac{1}{k-1}\sum_{y \ne c} \ell(f_y) + \ell(-f_c)`, as printed.

    :math:`k-1` times its mean, less :math:`k-2`, is the ordinary one-versus-all risk.
    """
    yes, no = _binary(logits, binary), _binary(-logits, binary)
    return (yes.sum(-1, keepdim=True) - yes) / (logits.shape[-1] - 1) + no


@register(
    "ova-ramp", kind="single", family="decomposed", paper="Ishida et al. 2017", label="OVA (ramp)"
)
def ova_ramp(logits: Tensor) -> Tensor:
    """One versus all with the ramp loss."""
    return ova(logits, binary="ramp")


def _forward_one(logits: Tensor, excluded: Tensor, *, transition: Any = None) -> Tensor:
    """Forward of rows that rule out exactly one class, one number instead of k."""
    if transition is None:
        return math.log(logits.shape[-1] - 1) - logsigmoid(log_odds(logits, excluded))
    return (forward(logits, transition=transition) * excluded).sum(-1)


@register(
    "forward",
    kind="single",
    family="decomposed",
    paper="Yu et al. 2018",
    label="Forward",
    one=_forward_one,
)
def forward(logits: Tensor, *, transition: Any = None) -> Tensor:
    r"""Forward correction, :math:`-\log (p^\top Q)_c`.

    ``transition`` is Q, ``[k, k]``: row y holds how likely each class is ruled out when y is true.
    By default every wrong class is equally likely. The product with a given Q is an ordinary matrix
    product: on a GPU it follows torch's TF32 setting.
    """
    k = logits.shape[-1]
    if transition is None:
        return math.log(k - 1) - log_complement(logits)
    return logits.logsumexp(-1, keepdim=True) - _log_mixed(logits, _checked(transition, logits))


def _log_mixed(logits: Tensor, q: Tensor) -> Tensor:
    """Return the log of exp(logits) @ q, the largest logit kept apart from the others."""
    limits = torch.finfo(logits.dtype)
    with torch.no_grad():
        top = logits.argmax(-1, keepdim=True)
        second = logits.scatter(-1, top, limits.min).amax(-1, keepdim=True)
    best = logits.gather(-1, top)
    rivals = (logits.scatter(-1, top, second) - second).exp().scatter(-1, top, 0.0)
    others = second + (rivals @ q).clamp(min=limits.tiny).log()
    return torch.logaddexp(best + q.log().clamp(min=limits.min / 4)[top.squeeze(-1)], others)


def _checked(transition: Any, logits: Tensor) -> Tensor:
    q = torch.as_tensor(transition).to(logits)
    k = logits.shape[-1]
    if q.shape != (k, k):
        raise ValueError(f"the transition matrix is {tuple(q.shape)}, but there are {k} classes")
    if q.device.type == "cpu" and ((q < 0).any() or ((q.sum(-1) - 1).abs() > 1e-4).any()):
        raise ValueError("each row of the transition matrix must hold probabilities that sum to 1")
    return q
