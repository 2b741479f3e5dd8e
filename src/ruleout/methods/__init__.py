"""Approaches: rows of a table, each a batch form and a loss.

The room is called `methods` because ``ruleout.approaches`` is the function that lists them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal, NamedTuple, TypeAlias

import torch
from torch import Tensor
from torch.nn.functional import logsigmoid

from ruleout import losses
from ruleout.labels.classes import unknown_name
from ruleout.labels.errors import nearest
from ruleout.losses.functions import as_transition, cce, once
from ruleout.losses.loss_registry import (
    Loss,
    Memory,
    as_tensors,
    check_excluded,
    rates_of,
    to_lead,
)

__all__ = ["PAPER", "Approach", "Rule", "approach", "approaches", "forget_rule", "register_rule"]


Form: TypeAlias = Literal["whole", "pairs-before", "pairs-after"]

_PAIRS = ("ga", "nn", "free", "pc", "forward")

#: The eighteen rows of the paper's tables.
PAPER = (
    *("log", "exp", "mae", "mse", "gce", "phuber", "cce"),
    *(f"{name}-before" for name in _PAIRS),
    *(f"{name}-after" for name in _PAIRS),
    "clpl",
)


class Rule(Loss):
    r"""A rule that corrects the loss of a whole batch: FREE, NN and GA of Ishida et al. 2019.

    With :math:`m_c` the mean of :math:`-\log p` over the pairs (x, c) and :math:`\bar\pi_c` the
    share of label c, the risk splits into one part per *ordinary* class j,

    .. math:: L_j = \sum_c \bar\pi_c m_c[j] - (k-1) \bar\pi_j m_j[j],

    or into one part per *ruled-out* class c, :math:`V_c = \bar\pi_c (\sum_j m_c[j] - (k-1)
    m_c[c])`. Both sum to the same risk. NN and GA differ in which parts they correct. A class that
    is absent from the batch has :math:`m_c = 0` and stays out. With the option `transition`, Q as
    in :func:`~ruleout.losses.functions.forward`, and :math:`U = Q^{-1}` the parts are

    .. math:: L_j = \sum_c \bar\pi_c U_{cj} m_c[j], \qquad V_c = \bar\pi_c \sum_j U_{cj} m_c[j].

    A loss whose rows are ``name-before`` and ``name-after``, and whose function is ``(logits,
    excluded, prior, weight) → [...]``, one number per stacked model: `excluded` ``[..., B, k]`` is
    0 and 1 in the dtype of the logits, `prior` ``[..., k]`` the shares of the labels, or None,
    `weight` ``[..., B]`` that of the rows, or None. Leading dimensions are those of the stacked
    models: no Python ``if`` on a tensor. Keyword arguments are its options.
    """

    def __reduce__(self) -> Any:
        return partial(_rule, self.name, **self.options), ()


_RULES: dict[str, Rule] = {}


def _rule(name: str, **options: Any) -> Loss:
    return _RULES[name].with_options(**options)


def register_rule(
    name: str, *, paper: str, label: str | None = None, family: str = "decomposed"
) -> Callable[[Callable[..., Tensor]], Callable[..., Tensor]]:
    """Enter a batch rule (see :class:`Rule`); its function is returned unchanged.

    >>> @register_rule("log-mean", paper="this example")
    ... def log_mean(logits, excluded, prior, weight):
    ...     return (excluded * logits.log_softmax(-1)).mean((-2, -1))
    >>> approach("log-mean-after").form
    'pairs-after'
    >>> forget_rule("log-mean")
    """
    if name in _RULES or (name != "free" and name in losses.names()):  # FREE is also Eq. 3
        raise ValueError(f"{name!r} is registered already; choose another name")

    def enter(function: Callable[..., Tensor]) -> Callable[..., Tensor]:
        _RULES[name] = Rule(name, "batch", family, paper, label or name.upper(), function)
        return function

    return enter


def forget_rule(name: str) -> None:
    """Take a batch rule out of the registry."""
    del _RULES[name]


class _Batch(NamedTuple):
    loss: Tensor  # [..., B, k]: -log p
    pairs: Tensor  # [..., B, k]: the weight of each pair, 0 where a class was not ruled out
    counts: Tensor  # [..., k]: pairs per ruled-out class
    inverse: Tensor  # [..., k]: 1 / counts, 0 for an absent class
    prior: Tensor  # [..., k]: shares of the labels
    transition: Tensor | None  # [k, k]: how likely each class is ruled out; None: all wrong alike


def _counted(excluded: Tensor, weight: Tensor | None) -> tuple[Tensor, Tensor, Tensor]:
    """Return the weight of each pair, how many there are of each class, and the inverse of that."""
    pairs = excluded if weight is None else excluded * weight.unsqueeze(-1)
    counts = pairs.sum(-2)
    return pairs, counts, (counts > 0) / counts.clamp(min=torch.finfo(counts.dtype).tiny)


def _correction(
    split: Callable[[_Batch], Tensor], correct: Callable[[Tensor, Tensor], Tensor]
) -> Callable[..., Tensor]:
    def corrected(
        logits: Tensor,
        excluded: Tensor,
        prior: Tensor | None,
        weight: Tensor | None,
        *,
        transition: Any = None,
    ) -> Tensor:
        pairs, counts, inverse = _counted(excluded, weight)
        if prior is None:
            tiny = torch.finfo(logits.dtype).tiny
            prior = counts / counts.sum(-1, keepdim=True).clamp(min=tiny)
        q = None if transition is None else as_transition(transition, logits)
        return correct(split(_Batch(cce(logits), pairs, counts, inverse, prior, q)), counts)

    return corrected


def _by_ordinary(b: _Batch) -> Tensor:
    """Split the risk by ordinary class j, the form of the theorem (and of the code since 2022)."""
    return _parts(b, b.pairs * (b.prior * b.inverse).unsqueeze(-2))


def _by_ordinary_2019(b: _Batch) -> Tensor:
    """Split it as the code of 2019–2022 did: the prior of j in place of that of c."""
    return b.prior * _parts(b, b.pairs * b.inverse.unsqueeze(-2))


def _parts(b: _Batch, own: Tensor) -> Tensor:
    """Weigh each loss once: with two classes a part is then never negative by rounding."""
    k = b.loss.shape[-1]
    if b.transition is not None:
        return ((own @ once(b.transition, _inverse)) * b.loss).sum(-2)
    return ((own.sum(-1, keepdim=True) - (k - 1) * own) * b.loss).sum(-2)


def _by_excluded(b: _Batch) -> Tensor:
    """Split it by ruled-out class c."""
    k = b.loss.shape[-1]
    free = b.loss.sum(-1, keepdim=True) - (k - 1) * b.loss
    if b.transition is not None:
        free = b.loss @ once(b.transition, _inverse).mT
    return b.prior * b.inverse * (b.pairs * free).sum(-2)


def _inverse(q: Tensor) -> Tensor:
    """Return what turns losses of classes ruled out into ordinary ones: the mean over Q is 1."""
    if torch.linalg.matrix_rank(q, rtol=_SINGULAR) < len(q):
        say = "the transition matrix has no inverse, so it does not tell classes apart"
        raise ValueError(f"{say}; use the approach forward")
    inverse: Tensor = torch.linalg.inv(q)
    return inverse


_SINGULAR = 1e-6  # of the largest singular value: less are roundings of entries in float32


def _ga(parts: Tensor, counts: Tensor) -> Tensor:
    """Descend while all parts are non-negative, else ascend on the negative ones.

    A part that is zero by the formula (at s = k-1, say) comes out as plus or minus a few units in
    the last place; such a part is not negative.
    """
    scaled = counts * parts
    rounding = 32 * torch.finfo(parts.dtype).eps * scaled.abs().amax(-1)
    ascend = -scaled.clamp(max=0).sum(-1)
    return torch.where(scaled.amin(-1) < -rounding, ascend, parts.sum(-1))


_ISHIDA = "Ishida et al. 2019"
_CORRECTIONS: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "ga": _ga,
    "nn": lambda parts, _: parts.clamp(min=0).sum(-1),
    "free": lambda parts, _: parts.sum(-1),
}
for _suffix, _label, _paper, _split in (
    ("", "", _ISHIDA, _by_ordinary),
    ("-2019", " (2019)", f"{_ISHIDA}, code of 2019–2022", _by_ordinary_2019),
    ("-by-excluded", " (by excluded)", f"{_ISHIDA}, corrected per ruled-out class", _by_excluded),
):
    for _name, _correct in _CORRECTIONS.items():
        if (_name, _suffix) != ("free", "-by-excluded"):  # which would be FREE again
            register_rule(f"{_name}{_suffix}", paper=_paper, label=f"{_name.upper()}{_label}")(
                _correction(_split, _correct)
            )


@register_rule("scarce", paper="Wang et al. 2024", family="surrogate")
def scarce(
    logits: Tensor,
    excluded: Tensor,
    prior: Tensor | None,
    weight: Tensor | None,
    *,
    class_prior: Any = None,
) -> Tensor:
    r"""SCARCE: one classifier for each class, from rows that rule it out and from all rows.

    .. math:: \sum_c (1 - \pi_c) \overline{\ell(-f_c)}^{N_c}
       + \left| \overline{\ell(f_c)} - (1 - \pi_c) \overline{\ell(f_c)}^{N_c} \right|

    with the logistic loss, :math:`N_c` the rows that rule c out, and :math:`\pi_c` how frequent c
    is: `class_prior`, ``[k]``; None: all alike. A mean over no rows is 0. It asks for no transition
    matrix: how often c is ruled out may depend on c, but not on the row, if that is not c.
    """
    del prior  # of what was ruled out
    pairs, _, inverse = _counted(excluded, weight)
    rows = (excluded.amax(-1) > 0).to(logits)  # a row that rules nothing out does not count
    rows = rows if weight is None else rows * weight
    share = rows / rows.sum(-1, keepdim=True).clamp(min=torch.finfo(logits.dtype).tiny)
    rest: Any = 1 - 1 / logits.shape[-1]
    if class_prior is not None:
        shares = to_lead(class_prior, logits, -1, "class_prior")
        if shares.device.type == "cpu":
            _check_shares(shares, "class_prior", "how frequent each class is")
        rest = 1 - shares
    no, yes = -logsigmoid(-logits), -logsigmoid(logits)
    wrong, right = ((pairs * part).sum(-2) * inverse * rest for part in (no, yes))
    every = (share.unsqueeze(-1) * yes).sum(-2)
    found: Tensor = (wrong + (every - right).abs()).sum(-1)
    return found


@dataclass(frozen=True)
class Approach:
    """A row of the table."""

    name: str  #: in code, such as ``"ga-before"``
    label: str  #: in the paper's tables, such as ``"GA"``
    #: the group of rows: ``upper-bound``, ``bounded``, ``unbounded``, ``before-shuffle``,
    #: ``after-shuffle``, ``partial-label``, ``noise-aware``, ``surrogate``, ``progressive``
    family: str
    #: how batches are made. ``whole``: examples with their sets. ``pairs-before``: the training
    #: set is decomposed into pairs (x, ruled-out class), then shuffled. ``pairs-after``: examples
    #: are shuffled, and the batch is decomposed
    form: Form
    paper: str  #: where it was published
    source: Loss  #: the loss, or the :class:`Rule` for a whole batch

    @property
    def options(self) -> dict[str, Any]:
        """The values that were given for options of the loss."""
        return dict(self.source.options)

    @property
    def option_names(self) -> list[str]:
        return self.source.option_names

    @property
    def memory(self) -> Memory | None:
        """What it remembers of every row from epoch to epoch, if anything."""
        return self.source.memory

    def with_options(self, **options: Any) -> Approach:
        """Return the approach with further options of its loss; those it has stay."""
        return replace(self, source=self.source.with_options(**options)) if options else self

    def named(self, name: str, label: str | None = None) -> Approach:
        """Return the approach under another name, to compare it with itself under other options.

        >>> approach("gce", q=0.3).named("gce-0.3", "GCE (q = 0.3)").label
        'GCE (q = 0.3)'
        """
        return replace(self, name=name, label=label or name)

    @property
    def takes_rate(self) -> bool:
        """Whether the approach can learn from every answer, given the rate of each row."""
        return self.source.takes_rate

    @property
    def graded(self) -> Approach | None:
        """The approach where what was said may be wrong; None where it has no such form."""
        source = self.source
        if source.graded is None:
            return None
        return replace(self, source=replace(source, function=source.graded, options={}))

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
        target: Any = None,
    ) -> Tensor:
        """Return the scalar whose gradient training follows, one per stacked model: ``[...]``.

        A weighted mean over rows, or over pairs, unless a batch rule says otherwise.

        Parameters
        ----------
        logits
            ``[..., B, k]``.
        excluded
            ``[..., B, k]``: 1 where a class was ruled out, not in all of a row. With
            ``pairs-before`` each row carries exactly one. Tensors on a GPU are trusted.
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
        target
            ``[..., B, k]``: what an approach remembers of these rows (:attr:`memory`). None: what
            it begins with.

        Examples
        --------
        >>> import torch
        >>> logits = torch.zeros(2, 4)
        >>> excluded = torch.tensor([[1, 1, 0, 0], [1, 0, 0, 0]])
        >>> approach("log").batch_loss(logits, excluded)
        tensor(0.9514)
        """
        scores, mask = as_tensors(logits, excluded)
        check_excluded(mask, self.form == "pairs-before")
        shares = None if prior is None else to_lead(prior, scores, -1, "prior")
        if shares is not None and not isinstance(prior, Tensor):
            _check_shares(shares, "prior", "as sets.shares gives them")
        weights = None if weight is None else to_lead(weight, scores, -2, "weight")
        if rate is not None:
            self.check_rate()
            rate = rates_of(rate, scores)
        if target is not None:
            if self.memory is None:
                raise ValueError(f"approach {self.name!r} remembers nothing; leave target out")
            target = torch.as_tensor(target).to(scores)
            if target.shape[-2:] != scores.shape[-2:]:
                told = f"target is {tuple(target.shape)}, but the logits are {tuple(scores.shape)}"
                raise ValueError(f"{told}; both end in [B, k]")
        return self.trusted_loss(scores, mask, shares, weights, rate, target)

    def trusted_loss(
        self,
        logits: Tensor,
        excluded: Tensor,
        prior: Tensor | None = None,
        weight: Tensor | None = None,
        rate: Tensor | None = None,
        target: Tensor | None = None,
    ) -> Tensor:
        """Return :meth:`batch_loss` of tensors that all fit, without a look at them."""
        source = self.source
        if isinstance(source, Rule):
            return source.function(logits, excluded, prior, weight, **source.options)
        if self.form == "whole" or (source.one is not None and self.form == "pairs-before"):
            says = (excluded.amax(-1) > 0).to(logits)  # a row that rules nothing out says nothing
            values = source.per_example(logits, excluded, rate, target)
            if self.memory is not None and self.memory.unlabelled and target is not None:
                return _sum_by_told(values, says, weight)
            return _mean(values, says if weight is None else says * weight, (-1,))
        pairs = excluded if weight is None else excluded * weight.unsqueeze(-1)
        return _mean(source.matrix(logits), pairs, (-2, -1))


def _check_shares(shares: Tensor, what: str, say: str) -> None:
    if not ((shares >= 0).all() and ((shares.sum(-1) - 1).abs() <= 1e-3).all()):
        raise ValueError(f"{what} must hold shares that sum to 1, {say}")


def _mean(values: Tensor, weight: Tensor, over: tuple[int, ...]) -> Tensor:
    """Take the weighted mean over the last dimensions; 0 where nothing has weight."""
    tiny = torch.finfo(values.dtype).tiny
    return (weight * values).sum(over) / weight.sum(over).clamp(min=tiny)


def _sum_by_told(values: Tensor, says: Tensor, weight: Tensor | None) -> Tensor:
    """Take the mean of rows that say something, with as much of every other row added."""
    own = torch.ones_like(says) if weight is None else weight
    told = (own * says).sum(-1)
    tiny = torch.finfo(values.dtype).tiny
    return (own * values).sum(-1) / torch.where(told > 0, told, own.sum(-1)).clamp(min=tiny)


def _rows_of(source: Loss) -> Iterator[Approach]:
    name, label, family, paper = source.name, source.label, source.family, source.paper
    if source.kind in ("whole", "base"):
        yield Approach(name, label, family, "whole", paper, source)
    elif source.kind == "single" and name in _RULES:
        if name != "free":  # the loss FREE is Eq. 3 for one example, the rule is the row
            raise ValueError(f"{name!r} is the name of a batch rule; rename your loss")
    else:
        for form in ("before", "after"):
            group = f"{form}-shuffle" if family == "decomposed" else family
            yield Approach(f"{name}-{form}", label, group, f"pairs-{form}", paper, source)  # type: ignore[arg-type]


def _table() -> dict[str, Approach]:
    sources: list[Loss] = [*_RULES.values(), *map(losses.get, losses.names())]
    rows = {row.name: row for source in sources for row in _rows_of(source)}
    return {name: rows.pop(name) for name in PAPER} | rows


def approaches(family: str | None = None) -> list[str]:
    """Return the names of all approaches, the eighteen of the paper first.

    >>> approaches(family="upper-bound")
    ['log', 'exp', 'log-text', 'exp-text']
    """
    table = _table()
    known = sorted({row.family for row in table.values()})
    if family is not None and family not in known:
        raise unknown_name("family", family, known, "families")
    return [name for name, row in table.items() if family in (None, row.family)]


def approach(name: str | Approach, **options: Any) -> Approach:
    """Return the approach of that name; `options` go to its loss.

    An approach is returned as it is, or with further options.

    >>> approach("ga-before").form
    'pairs-before'
    """
    if isinstance(name, Approach):
        return name.with_options(**options)
    table = _table()
    if name not in table:
        say = nearest(name, table, f"the approaches are {', '.join(table)}")
        if f"{name.lower()}-before" in table:
            say = f"did you mean '{name.lower()}-before' or '{name.lower()}-after'?"
        raise ValueError(f"unknown approach {name!r}; {say}")
    return table[name].with_options(**options)
