"""Approaches: which batches, which loss. Every registered loss is a row without further ado."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import torch
from torch import Tensor

from ruleout import losses
from ruleout.labels.errors import nearest
from ruleout.losses.registry import Loss, as_tensors, rates_of, to_lead
from ruleout.methods.rules import RULES, Rule

__all__ = ["PAPER", "Approach", "Form", "approach", "approaches"]

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
