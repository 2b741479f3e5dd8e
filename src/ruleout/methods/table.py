"""Approaches: which batches, which loss. Every registered loss is a row without further ado."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, TypeAlias

import torch
from torch import Tensor

from ruleout import losses
from ruleout.labels.errors import nearest
from ruleout.losses.registry import Loss, as_tensors
from ruleout.methods.rules import RULES, Rule

__all__ = ["PAPER", "Approach", "Form", "approach", "approaches"]

Form: TypeAlias = Literal["whole", "pairs-before", "pairs-after"]
Scalar: TypeAlias = Callable[[Tensor, Tensor, Tensor | None, Tensor | None], Tensor]

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
    name, label
        The name in code (``"ga-before"``), and the one in the paper's tables (``"GA"``).
    family
        The group of rows: ``upper-bound``, ``bounded``, ``unbounded``, ``before-shuffle``,
        ``after-shuffle``, ``partial-label``.
    form
        How batches are made. ``whole``: examples with their sets. ``pairs-before``: the training
        set is decomposed into pairs (x, ruled-out class), then shuffled. ``pairs-after``: examples
        are shuffled, and the batch is decomposed.
    paper
        Where it was published.
    """

    name: str
    label: str
    family: str
    form: Form
    paper: str
    scalar: Scalar

    def batch_loss(
        self, logits: Tensor, excluded: Any, *, prior: Any = None, weight: Any = None
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
            batch. Hand it in when training GA: the noise of a batch's own shares makes parts of
            the risk negative, and GA then ascends all the time.
        weight
            ``[..., B]``: weights of the rows. A weight of 2 counts as the row twice, and a row that
            rules nothing out does not count.

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
        tensors = as_tensors(logits, excluded)
        if self.form == "pairs-before" and not isinstance(excluded, Tensor):
            _check_single(tensors[1])
        b, k = logits.shape[-2:]
        shares = None if prior is None else _check_last(prior, k, "prior", "k").to(logits)
        weights = None if weight is None else _check_last(weight, b, "weight", "B").to(logits)
        if shares is not None and shares.device.type == "cpu":
            _check_shares(shares)
        return self.scalar(*tensors, shares, weights)


def _check_single(mask: Tensor) -> None:
    sizes = mask.sum(-1)
    if (sizes > 1).any():
        raise ValueError(
            f"a row rules out {int(sizes.max())} classes, but this approach takes one per row; "
            "decompose with sets.pairs(), or use the approach's -after form"
        )


def _check_last(values: Any, size: int, what: str, letter: str) -> Tensor:
    tensor = torch.as_tensor(values)
    if tensor.ndim == 0 or tensor.shape[-1] != size:
        raise ValueError(f"{what} is {tuple(tensor.shape)}, but must end in [{letter}] = [{size}]")
    return tensor


def _check_shares(prior: Tensor) -> None:
    if (prior < 0).any() or ((prior.sum(-1) - 1).abs() > 1e-3).any():
        raise ValueError("prior must hold shares that sum to 1, as sets.shares gives them")


def _mean(values: Tensor, weight: Tensor, over: tuple[int, ...]) -> Tensor:
    """Take the weighted mean over the last dimensions; 0 where nothing has weight."""
    weight = weight.expand_as(values)
    tiny = torch.finfo(values.dtype).tiny
    return (weight * values).sum(over) / weight.sum(over).clamp(min=tiny)


def _over_rows(
    loss: Loss, logits: Tensor, excluded: Tensor, _prior: Tensor | None, weight: Tensor | None
) -> Tensor:
    says = excluded.amax(-1)  # a row that rules nothing out says nothing
    weight = says if weight is None else says * weight
    return _mean(loss.per_example(logits, excluded), weight, (-1,))


def _over_pairs(
    loss: Loss, logits: Tensor, excluded: Tensor, _prior: Tensor | None, weight: Tensor | None
) -> Tensor:
    pairs = excluded if weight is None else excluded * weight.unsqueeze(-1)
    return _mean(loss.matrix(logits), pairs, (-2, -1))


def _rows_of(loss: Loss) -> Iterator[Approach]:
    if loss.kind != "single":
        scalar = partial(_over_rows, loss)
        yield Approach(loss.name, loss.label, loss.family, "whole", loss.paper, scalar)
    elif loss.name == "free":
        return  # the batch rule FREE is the row; the loss is Eq. 3 for one example
    else:
        if loss.name in RULES:
            raise ValueError(f"{loss.name!r} is the name of a batch rule; rename your loss")
        before, after = partial(_over_rows, loss), partial(_over_pairs, loss)
        yield from _decomposed(loss.name, loss.label, loss.paper, before, after)


def _rows_of_rule(rule: Rule) -> Iterator[Approach]:
    yield from _decomposed(rule.name, rule.label, rule.paper, rule, rule)


def _decomposed(
    name: str, label: str, paper: str, before: Scalar, after: Scalar
) -> Iterator[Approach]:
    yield Approach(f"{name}-before", label, "before-shuffle", "pairs-before", paper, before)
    yield Approach(f"{name}-after", label, "after-shuffle", "pairs-after", paper, after)


def _table() -> dict[str, Approach]:
    rows = {row.name: row for rule in RULES.values() for row in _rows_of_rule(rule)}
    rows |= {row.name: row for name in losses.names() for row in _rows_of(losses.get(name))}
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
    if not options:
        return table[name]
    base = name.removesuffix("-before").removesuffix("-after")
    if base in RULES:
        raise ValueError(f"approach {name!r} has no options")
    rows = _rows_of(losses.get(base if base in losses.names() else name, **options))
    return next(row for row in rows if row.name == name)
