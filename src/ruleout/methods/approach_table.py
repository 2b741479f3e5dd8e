r"""Batch rules: FREE, NN and GA of Ishida et al. 2019, which correct the loss of a whole batch.

With :math:`m_c` the mean of :math:`-\log p` over the pairs (x, c) and :math:`\bar\pi_c` the share
of label c, the risk splits into one part per *ordinary* class j,

.. math:: L_j = \sum_c \bar\pi_c m_c[j] - (k-1) \bar\pi_j m_j[j],

or into one part per *ruled-out* class c, :math:`V_c = \bar\pi_c (\sum_j m_c[j] - (k-1) m_c[c])`.
Both sum to the same risk. NN and GA differ in which parts they correct. A class absent from the
batch has :math:`m_c = 0` and stays out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, TypeAlias

import torch
from torch import Tensor

from ruleout import losses
from ruleout.labels.errors import nearest
from ruleout.losses.functions import cce
from ruleout.losses.registry import Loss, as_tensors, rates_of, to_lead


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


Form: TypeAlias = Literal["whole", "pairs-before", "pairs-after"]

_PAIRS = ("ga", "nn", "free", "pc", "forward")

#: The eighteen rows of the paper's tables.
PAPER = (
    "log",
    "exp",
    "mae",
    "mse",
    "gce",
    "phuber",
    "cce",
    *(f"{name}-before" for name in _PAIRS),
    *(f"{name}-after" for name in _PAIRS),
    "clpl",
)


@dataclass(frozen=True)
class Approach:
    """A row of the table.

    Attributes
    ----------
    name
        The name in code, such as ``"ga-before"``.
    label
        The name in the paper's tables, such as ``"GA"``.
    family
        The group of rows: ``upper-bound``, ``bounded``, ``unbounded``, ``before-shuffle``,
        ``after-shuffle``, ``partial-label``.
    form
        How batches are made. ``whole``: examples with their sets. ``pairs-before``: the training
        set is decomposed into pairs (x, ruled-out class), then shuffled. ``pairs-after``: examples
        are shuffled, and the batch is decomposed.
    paper
        Where it was published.
    source
        The loss, or the rule for a whole batch.
    """

    name: str
    label: str
    family: str
    form: Form
    paper: str
    source: Loss | Rule

    @property
    def takes_rate(self) -> bool:
        """Whether the approach can learn from every answer, given the rate of each row."""
        return isinstance(self.source, Loss) and self.source.takes_rate

    def check_rate(self) -> None:
        """Raise, naming those that can, where the approach cannot learn from every answer."""
        if not self.takes_rate:
            able = ", ".join(name for name, row in _table().items() if row.takes_rate)
            raise ValueError(f"approach {self.name!r} cannot learn from every answer; use {able}")

    def batch_loss(
        self,
        logits: Tensor,
        excluded: Any,
        *,
        prior: Any = None,
        weight: Any = None,
        rate: Any = None,
    ) -> Tensor:
        """Return the scalar whose gradient training follows, one per stacked model.

        Parameters
        ----------
        logits
            ``[..., B, k]``.
        excluded
            ``[..., B, k]``: 1 where a class was ruled out. With ``pairs-before`` each row carries
            exactly one. Label sets and arrays are checked, tensors are trusted.
        prior
            ``[..., k]``: the shares of the ruled-out classes in the whole training set
            (:attr:`ruleout.LabelSets.shares`), read by FREE, NN and GA. None: the shares of this
            batch. Always hand it in when training GA, which otherwise learns the reverse. Arrays
            are checked, tensors are trusted.
        weight
            ``[..., B]``: weights of the rows, not negative. A weight of 2 counts as the row twice,
            and a row that rules nothing out does not count.
        rate
            ``[..., B]``: how likely a wrong class stays possible in each row, for sets that answers
            made (:meth:`ruleout.Answers.per_item`). None: as in sets drawn at random, 1 - s/(k-1).
            Approaches over pairs, and CLPL, have no place for it.

        Returns
        -------
        Tensor
            ``[...]``: a weighted mean over rows, or over pairs, unless a batch rule says otherwise.

        Examples
        --------
        >>> import torch
        >>> logits = torch.zeros(2, 4)
        >>> excluded = torch.tensor([[1, 1, 0, 0], [1, 0, 0, 0]])
        >>> approach("log").batch_loss(logits, excluded)
        tensor(0.9514)
        """
        scores, mask = as_tensors(logits, excluded)
        if self.form == "pairs-before" and not isinstance(excluded, Tensor):
            _check_single(mask)
        shares = None if prior is None else to_lead(prior, scores, -1, "prior")
        weights = None if weight is None else to_lead(weight, scores, -2, "weight")
        if shares is not None and not isinstance(prior, Tensor):
            _check_shares(shares)
        if rate is not None:
            self.check_rate()
            rate = rates_of(rate, scores)
        if isinstance(self.source, Rule):
            return self.source(scores, mask, shares, weights)
        if self.form == "whole" or (self.source.one is not None and self.form == "pairs-before"):
            return _over_rows(self.source.per_example(scores, mask, rate), mask, weights)
        return _over_pairs(self.source.matrix(scores), mask, weights)


def _check_single(mask: Tensor) -> None:
    most = int(mask.sum(-1).max()) if mask.numel() else 1
    if most > 1:
        raise ValueError(
            f"a row rules out {most} classes, but this approach takes one per row; "
            "decompose with sets.pairs(), or use the approach's -after form"
        )


def _check_shares(prior: Tensor) -> None:
    if (prior < 0).any() or ((prior.sum(-1) - 1).abs() > 1e-3).any():
        raise ValueError("prior must hold shares that sum to 1, as sets.shares gives them")


def _over_rows(values: Tensor, excluded: Tensor, weight: Tensor | None) -> Tensor:
    """Take the weighted mean over rows ``[..., B]``; a row that rules nothing out says nothing."""
    says = excluded.amax(-1)
    return _mean(values, says if weight is None else says * weight, (-1,))


def _over_pairs(values: Tensor, excluded: Tensor, weight: Tensor | None) -> Tensor:
    """Take the weighted mean over pairs ``[..., B, k]``."""
    return _mean(values, excluded if weight is None else excluded * weight.unsqueeze(-1), (-2, -1))


def _mean(values: Tensor, weight: Tensor, over: tuple[int, ...]) -> Tensor:
    """Take the weighted mean over the last dimensions; 0 where nothing has weight."""
    tiny = torch.finfo(values.dtype).tiny
    return (weight * values).sum(over) / weight.sum(over).clamp(min=tiny)


def _rows_of(source: Loss | Rule) -> Iterator[Approach]:
    name, label, paper = source.name, source.label, source.paper
    if isinstance(source, Loss) and source.kind != "single":
        yield Approach(name, label, source.family, "whole", paper, source)
    elif name in RULES and isinstance(source, Loss):
        if name != "free":  # the loss FREE is Eq. 3 for one example, the rule is the row
            raise ValueError(f"{name!r} is the name of a batch rule; rename your loss")
    else:
        yield Approach(f"{name}-before", label, "before-shuffle", "pairs-before", paper, source)
        yield Approach(f"{name}-after", label, "after-shuffle", "pairs-after", paper, source)


def _table() -> dict[str, Approach]:
    sources: list[Loss | Rule] = [*RULES.values(), *map(losses.get, losses.names())]
    rows = {row.name: row for source in sources for row in _rows_of(source)}
    return {name: rows.pop(name) for name in PAPER} | rows


def approaches(family: str | None = None) -> list[str]:
    """Return the names of all approaches, the eighteen of the paper first.

    >>> approaches(family="upper-bound")
    ['log', 'exp', 'log-text', 'exp-text']
    """
    table = _table()
    known = {row.family for row in table.values()}
    if family is not None and family not in known:
        say = f"the families are {', '.join(sorted(known))}"
        raise ValueError(f"unknown family {family!r}; {nearest(family, known, say)}")
    return [name for name, row in table.items() if family in (None, row.family)]


def approach(name: str, **options: Any) -> Approach:
    """Return the approach of that name; `options` go to its loss.

    >>> approach("ga-before").form
    'pairs-before'
    >>> approach("gce", q=0.5).name
    'gce'
    """
    table = _table()
    if name not in table:
        say = nearest(name, table, f"the approaches are {', '.join(table)}")
        if f"{name.lower()}-before" in table:
            say = f"did you mean '{name.lower()}-before' or '{name.lower()}-after'?"
        raise ValueError(f"unknown approach {name!r}; {say}")
    row = table[name]
    if not options:
        return row
    if isinstance(row.source, Rule):
        raise ValueError(f"approach {name!r} has no options")
    rows = _rows_of(row.source.with_options(**options))
    return next(other for other in rows if other.name == name)
