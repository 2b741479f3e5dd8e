r"""Batch rules: FREE, NN and GA of Ishida et al. 2019, which correct the loss of a whole batch.

With :math:`m_c` the mean of :math:`-\log p` over the pairs (x, c) and :math:`\bar\pi_c` the share
of label c, the risk splits into one part per *ordinary* class j,

.. math:: L_j = \sum_c \bar\pi_c m_c[j] - (k-1) \bar\pi_j m_j[j],

or into one part per *ruled-out* class c, :math:`V_c = \bar\pi_c (\sum_j m_c[j] - (k-1) m_c[c])`.
Both sum to the same risk. NN and GA differ in which parts they correct. A class absent from the
batch has :math:`m_c = 0` and stays out.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from ruleout.losses.base import cce

__all__ = ["RULES", "Rule"]


class Batch(NamedTuple):
    """What every rule reads; leading dimensions are those of the stacked models."""

    loss: Tensor  # [..., B, k]: -log p
    pairs: Tensor  # [..., B, k]: the weight of each pair, 0 where a class was not ruled out
    counts: Tensor  # [..., k]: pairs per ruled-out class
    inverse: Tensor  # [..., k]: 1 / counts, 0 for an absent class
    prior: Tensor  # [..., k]: shares of the labels


def _batch(logits: Tensor, excluded: Tensor, prior: Tensor | None, weight: Tensor | None) -> Batch:
    pairs = excluded if weight is None else excluded * weight.unsqueeze(-1)
    counts = pairs.sum(-2)
    tiny = torch.finfo(logits.dtype).tiny
    inverse = (counts > 0) / counts.clamp(min=tiny)
    if prior is None:
        prior = counts / counts.sum(-1, keepdim=True).clamp(min=tiny)
    return Batch(cce(logits), pairs, counts, inverse, prior)


def _by_ordinary(b: Batch) -> Tensor:
    """Split the risk by ordinary class j, the form of the theorem (and of the code since 2022)."""
    return _parts(b, b.pairs * (b.prior * b.inverse).unsqueeze(-2))


def _by_ordinary_2019(b: Batch) -> Tensor:
    """Split it as the code of 2019–2022 did: the prior of j in place of that of c."""
    return b.prior * _parts(b, b.pairs * b.inverse.unsqueeze(-2))


def _parts(b: Batch, own: Tensor) -> Tensor:
    """Weigh each loss once: with two classes a part is then never negative by rounding."""
    k = b.loss.shape[-1]
    return ((own.sum(-1, keepdim=True) - (k - 1) * own) * b.loss).sum(-2)


def _by_excluded(b: Batch) -> Tensor:
    """Split it by ruled-out class c."""
    k = b.loss.shape[-1]
    free = b.loss.sum(-1, keepdim=True) - (k - 1) * b.loss
    return b.prior * b.inverse * (b.pairs * free).sum(-2)


def _free(parts: Tensor, _counts: Tensor) -> Tensor:
    return parts.sum(-1)


def _nn(parts: Tensor, _counts: Tensor) -> Tensor:
    return parts.clamp(min=0).sum(-1)


def _ga(parts: Tensor, counts: Tensor) -> Tensor:
    """Descend while all parts are non-negative, else ascend on the negative ones.

    A part that is zero by the formula (at s = k-1, say) comes out as plus or minus a few units in
    the last place; such a part is not negative.
    """
    scaled = counts * parts
    rounding = 32 * torch.finfo(parts.dtype).eps * scaled.abs().amax(-1)
    ascend = -scaled.clamp(max=0).sum(-1)
    return torch.where(scaled.amin(-1) < -rounding, ascend, parts.sum(-1))


@dataclass(frozen=True)
class Rule:
    """A batch rule: how the risk is split, and what is done with the parts."""

    name: str
    label: str
    paper: str
    split: Callable[[Batch], Tensor]
    correct: Callable[[Tensor, Tensor], Tensor]

    def __call__(
        self, logits: Tensor, excluded: Tensor, prior: Tensor | None, weight: Tensor | None
    ) -> Tensor:
        """Return the scalar of each stacked model, ``[...]``."""
        batch = _batch(logits, excluded, prior, weight)
        return self.correct(self.split(batch), batch.counts)


_ISHIDA = "Ishida et al. 2019"
_2019 = "Ishida et al. 2019, code of 2019–2022"
_CLAMP = "Ishida et al. 2019, corrected per ruled-out class"

RULES = {
    rule.name: rule
    for rule in (
        Rule("ga", "GA", _ISHIDA, _by_ordinary, _ga),
        Rule("nn", "NN", _ISHIDA, _by_ordinary, _nn),
        Rule("free", "FREE", _ISHIDA, _by_ordinary, _free),
        Rule("ga-2019", "GA (2019)", _2019, _by_ordinary_2019, _ga),
        Rule("nn-2019", "NN (2019)", _2019, _by_ordinary_2019, _nn),
        Rule("free-2019", "FREE (2019)", _2019, _by_ordinary_2019, _free),
        Rule("ga-by-excluded", "GA (by excluded)", _CLAMP, _by_excluded, _ga),
        Rule("nn-by-excluded", "NN (by excluded)", _CLAMP, _by_excluded, _nn),
    )
}
