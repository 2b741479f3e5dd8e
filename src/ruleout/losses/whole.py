"""Losses that read each set as a whole: ``(logits, excluded) → [..., B]``.

`excluded` arrives as 0 and 1 in the dtype of the logits. Where a loss takes `rate`, ``[..., B]``,
it is how likely a wrong class stays possible; None: as in a set drawn at random, 1 - s/(k-1).
"""

from __future__ import annotations

from typing import Any, Literal

from torch import Tensor
from torch.nn.functional import logsigmoid, relu

from ruleout.losses.registry import register, unbiased
from ruleout.losses.space import log_odds, scale

__all__ = ["answered", "clpl", "exp", "exp_text", "log", "log_text"]

_FENG = "Feng et al. 2020, after Eq. 12"


@register("log", family="upper-bound", paper=_FENG)
def log(logits: Tensor, excluded: Tensor, *, rate: Tensor | None = None) -> Tensor:
    r"""LOG, :math:`\frac{k-1}{s} (-\log z)`, z the probability left on the candidates.

    The weight is that of the authors' code; the text has twice as much (:func:`log_text`).
    """
    return scale(excluded, rate) * -logsigmoid(log_odds(logits, excluded))


@register("exp", family="upper-bound", paper=_FENG)
def exp(logits: Tensor, excluded: Tensor, *, rate: Tensor | None = None) -> Tensor:
    r"""EXP, :math:`\frac{k-1}{s} \exp(-z)`; weight as in the authors' code."""
    return scale(excluded, rate) * (-log_odds(logits, excluded).sigmoid()).exp()


@register("log-text", family="upper-bound", paper=_FENG, label="LOG (text)")
def log_text(logits: Tensor, excluded: Tensor, *, rate: Tensor | None = None) -> Tensor:
    r"""LOG as printed, :math:`\frac{2(k-1)}{s} (-\log z)`."""
    return 2 * log(logits, excluded, rate=rate)


@register("exp-text", family="upper-bound", paper=_FENG, label="EXP (text)")
def exp_text(logits: Tensor, excluded: Tensor, *, rate: Tensor | None = None) -> Tensor:
    r"""EXP as printed, :math:`\frac{2(k-1)}{s} \exp(-z)`."""
    return 2 * exp(logits, excluded, rate=rate)


@register("clpl", family="partial-label", paper="Cour et al. 2011")
def clpl(
    logits: Tensor,
    excluded: Tensor,
    *,
    psi: Literal["squared-hinge", "logistic"] = "squared-hinge",
) -> Tensor:
    r"""Convex partial-label loss, :math:`\Psi(\bar f) + \sum_{y \in \bar Y} \Psi(-f_y)`.

    :math:`\bar f` is the mean logit of the candidates. :math:`\Psi(u) = \max(0, 1-u)^2`, or
    :math:`\log(1 + e^{-u})` for ``psi="logistic"``. Convex in
    the logits, so meant for linear models.
    """
    if psi not in ("squared-hinge", "logistic"):
        raise ValueError(f"clpl knows psi='squared-hinge' and psi='logistic', not {psi!r}")
    left = 1 - excluded
    mean = (logits * left).sum(-1) / left.sum(-1).clamp(min=1)
    return _psi(mean, psi) + (_psi(-logits, psi) * excluded).sum(-1)


def _psi(margin: Tensor, psi: str) -> Tensor:
    return relu(1 - margin).square() if psi == "squared-hinge" else -logsigmoid(margin)


def answered(matrix: Tensor, excluded: Any, rate: Any) -> Tensor:
    r"""Unbiased risk from every answer, "yes" as well as "no".

    .. math:: \sum_y \ell_y \frac{1(y \in Z) - q}{1 - q}

    Z is what the answers about an example leave possible; a wrong class lies in it with
    probability q, the true one always. With S uniform of its size, the mean is the loss of the
    true label.

    Parameters
    ----------
    matrix
        ``[..., B, k]``: the loss if class y were the label.
    excluded
        ``[..., B, k]``: 1 for the classes outside Z, from :meth:`ruleout.Answers.per_item`.
    rate
        ``[..., B]``: q, for several answers the product of theirs.

    Returns
    -------
    Tensor
        ``[..., B]``.
    """
    return unbiased(matrix, excluded, rate)
