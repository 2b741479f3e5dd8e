"""The one registry: a loss enters by decoration, and everything else reads it from here."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from hashlib import sha256
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
import torch
from torch import Tensor

from ruleout.labels.classes import find_name
from ruleout.labels.errors import nearest
from ruleout.losses.log_space import align, scale

Kind: TypeAlias = Literal["whole", "single", "base", "batch"]

_LOSSES: dict[str, Loss] = {}


class Seen(NamedTuple):
    """What an approach that remembers knows of all n rows at the end of an epoch."""

    logits: Tensor  #: ``[..., n, k]``: those of each row when it was visited last
    excluded: Tensor  #: ``[..., n, k]``: 1 where a class was ruled out, like the logits
    target: Tensor  #: ``[..., n, k]``: what the epoch learned from
    epoch: int  #: that has ended, from 1
    #: what else the approach keeps, ``[..., n or 1, *]`` in the dtype of the logits; empty at first
    kept: dict[str, Tensor]


@dataclass(frozen=True)
class Memory:
    """What an approach remembers of every row: a target ``[..., n, k]``, new after each epoch.

    The loss reads it as the keyword ``target``, without a gradient.
    """

    #: the first target, from what was ruled out, and the next, from :class:`Seen`; their keyword
    #: arguments are options of the loss
    start: Callable[..., Tensor]
    revise: Callable[..., Tensor]
    after: bool = False  #: whether logits are looked at after the step, not before
    #: whether rows that rule nothing out learn from their target, too; else they do not count
    unlabelled: bool = False


@dataclass(frozen=True, eq=False)
class Loss:
    """A loss of one of three kinds, and what is known about it.

    - ``"whole"``: a function ``(logits, excluded) → [..., B]`` of the whole set; with a keyword
      ``rate`` it also learns from every answer;
    - ``"base"``: a function ``logits → [..., B, k]``, the ordinary loss for each label, used
      through the unbiased estimator;
    - ``"single"``: a function ``logits → [..., B, k]``, the loss if class c is the one ruled out,
      used through a decomposition.
    """

    name: str  #: in code
    kind: Kind
    #: the group of rows in a table; a single-label loss of the family ``"decomposed"`` appears in
    #: ``before-shuffle`` and ``after-shuffle``
    family: str
    paper: str  #: where it was published
    label: str  #: the name in the paper's tables
    function: Callable[..., Tensor]  #: the mathematics
    #: for a single-label loss whose matrix is dear: ``(logits, excluded) → [..., B]`` for rows
    #: that rule out exactly one class
    one: Callable[..., Tensor] | None = None
    bounds: Callable[..., tuple[float, float]] | None = None
    #: where what was said may be wrong: ``(logits, costs) → [..., B]``, the costs as
    #: :attr:`ruleout.labels.origins.Evidence.costs` has them
    graded: Callable[..., Tensor] | None = None
    memory: Memory | None = None  #: where the loss learns from a target that it remembers
    #: values for the keyword arguments of the function
    options: Mapping[str, Any] = field(default_factory=dict)

    def __eq__(self, other: object) -> bool:
        """Compare names, functions and options, which may be arrays."""
        if not isinstance(other, Loss):
            return NotImplemented
        own, its = self.options, other.options
        alike = (self.name, self.function, own.keys()) == (other.name, other.function, its.keys())
        return alike and all(np.array_equal(own[key], its[key]) for key in own)

    def __hash__(self) -> int:
        return hash(self.name)

    def __reduce__(self) -> Any:
        return partial(get, self.name, **self.options), ()

    def __call__(self, logits: Tensor, excluded: Any = None) -> Tensor:
        """Return the loss per example, ``[..., B]``; of a single-label loss ``[..., B, k]``.

        A single-label loss answers for every class, so it does not need `excluded`. Of logits in
        float16, whose largest number losses pass, it is float32.
        """
        if self.kind == "single" and excluded is None:
            return self.matrix(_wide(logits))
        logits, mask = as_tensors(logits, excluded)
        check_excluded(mask)
        return self.matrix(logits) if self.kind == "single" else self.per_example(logits, mask)

    def matrix(self, logits: Tensor) -> Tensor:
        """Return the loss of every class, ``[..., B, k]`` (kinds ``base`` and ``single``)."""
        if self.kind == "whole":
            raise TypeError(f"loss {self.name!r} is one number per example, not one per class")
        return self.function(logits, **self.options)

    def start(self, excluded: Tensor) -> Tensor:
        """Return the first target; only of a loss that remembers."""
        assert self.memory is not None
        return self.memory.start(excluded, **self._told_to(self.memory.start))

    def revise(self, seen: Seen) -> Tensor:
        """Return the target of the next epoch; only of a loss that remembers."""
        assert self.memory is not None
        return self.memory.revise(seen, **self._told_to(self.memory.revise))

    @cached_property
    def code(self) -> str | None:
        """A hash of the text of its functions, by which a changed loss is known.

        None of those that ship, and where there is no text, as of what was typed at a prompt.
        """
        made = (self.memory.start, self.memory.revise) if self.memory else ()
        every = [one for one in (self.function, self.one, self.graded, *made) if one is not None]
        own = [f for f in every if not getattr(f, "__module__", "").startswith("ruleout.")]
        try:
            texts = [inspect.getsource(one) for one in own]
        except (OSError, TypeError):
            return None
        return sha256("".join(texts).encode()).hexdigest() if own else None

    @cached_property
    def _told(self) -> dict[str, Any]:
        return self._told_to(self.function)

    def _told_to(self, function: Callable[..., Any]) -> dict[str, Any]:
        """Return the options that a function of the loss takes."""
        known = _defaults(function)
        return {name: value for name, value in self.options.items() if name in known}

    @property
    def takes_rate(self) -> bool:
        """Whether the loss can learn from every answer, given the rate of each row."""
        own = "rate" in inspect.signature(self.function).parameters
        return self.kind == "base" or (self.kind == "whole" and own)

    def per_example(
        self,
        logits: Tensor,
        excluded: Tensor,
        rate: Tensor | None = None,
        target: Tensor | None = None,
    ) -> Tensor:
        """Return ``[..., B]`` for `excluded` of 0 and 1 in the dtype of the logits.

        `rate`, ``[..., B]``, is how likely a wrong class stays possible in each row, where that
        does not follow from the size of its set. `target`, ``[..., B, k]``, is what a loss
        remembers of these rows; None: what it begins with.
        """
        if rate is not None and not self.takes_rate:
            able = ", ".join(name for name, loss in _LOSSES.items() if loss.takes_rate)
            raise ValueError(f"loss {self.name!r} cannot learn from every answer; use {able}")
        if self.kind == "whole":
            given = {"rate": rate, "target": target}
            known = {name: value for name, value in given.items() if value is not None}
            return self.function(logits, excluded, **self._told, **known)
        if self.kind == "base":
            return unbiased(self.matrix(logits), excluded, rate)
        if self.one is not None:
            return self.one(logits, excluded, **self.options)
        return (self.matrix(logits) * excluded).sum(-1)

    @property
    def bound(self) -> float:
        """Least upper bound of a base loss (Appendix D); infinite if there is none."""
        return self._bounds()[0]

    @property
    def lipschitz(self) -> float:
        """Least Lipschitz constant of a base loss in the logits, Euclidean norm."""
        return self._bounds()[1]

    def _bounds(self) -> tuple[float, float]:
        if self.bounds is None:
            say = f"no bounds are recorded for loss {self.name!r}; base losses have them"
            raise ValueError(say)
        return self.bounds(**self.options)

    @property
    def option_names(self) -> list[str]:
        remembering = (self.memory.start, self.memory.revise) if self.memory else ()
        known = set[str]().union(*map(_defaults, (self.function, *remembering)))
        return sorted(known - {"rate", "target"})

    def with_options(self, **options: Any) -> Loss:
        """Return the same loss with other values for its keyword arguments."""
        if not options:
            return self
        known = self.option_names
        for name in options:
            if name not in known:
                say = f"its options are {known}" if known else "it has no options"
                say = nearest(name, known, say)
                raise ValueError(f"loss {self.name!r} has no option {name!r}; {say}")
        changed = replace(self, options={**self.options, **options})
        if self.bounds is not None and not any(isinstance(v, Tensor) for v in options.values()):
            changed._bounds()  # raises for values that make no sense
        return changed


def _defaults(function: Callable[..., Any]) -> set[str]:
    """Return the names of the arguments that have a default; of a function in C, none."""
    try:
        every = inspect.signature(function).parameters.values()
    except ValueError:
        return set()
    return {one.name for one in every if one.default is not one.empty}


def register(
    name: str,
    *,
    kind: Kind = "whole",
    family: str,
    paper: str,
    label: str | None = None,
    one: Callable[..., Tensor] | None = None,
    bounds: Callable[..., tuple[float, float]] | None = None,
    graded: Callable[..., Tensor] | None = None,
    memory: Memory | None = None,
) -> Callable[[Callable[..., Tensor]], Callable[..., Tensor]]:
    """Enter a loss into the registry; the function itself is returned unchanged.

    >>> @register("half-log", family="upper-bound", paper="this example")
    ... def half_log(logits, excluded):
    ...     return get("log").function(logits, excluded) / 2
    >>> get("half-log")(torch.zeros(1, 4), torch.tensor([[1, 1, 0, 0]]))
    tensor([0.5199])
    >>> forget("half-log")
    """
    if kind not in ("whole", "base", "single"):
        raise ValueError(f"unknown kind {kind!r}; a loss is 'whole', 'base' or 'single'")
    if memory is not None and kind != "whole":
        raise ValueError(f"a loss of kind {kind!r} cannot remember; register it as 'whole'")
    if name.endswith(("-before", "-after")):
        raise ValueError(f"the name {name!r} ends like an approach over pairs; choose another name")

    def enter(function: Callable[..., Tensor]) -> Callable[..., Tensor]:
        if name in _LOSSES:
            raise ValueError(f"a loss named {name!r} is registered already; choose another name")
        shown = label or name.upper()
        told = (function, one, bounds, graded, memory)
        _LOSSES[name] = Loss(name, kind, family, paper, shown, *told)
        return function

    return enter


def forget(name: str) -> None:
    """Take a loss out of the registry."""
    get(name)  # raises for an unknown name
    del _LOSSES[name]


def get(name: str, **options: Any) -> Loss:
    """Return the loss of that name, with other `options` if asked.

    >>> get("gce", q=0.5).bound
    2.0
    """
    return find_name("loss", name, _LOSSES, "losses").with_options(**options)


def names() -> list[str]:
    """Return the names of all registered losses."""
    return list(_LOSSES)


def unbiased(matrix: Tensor, excluded: Any, rate: Any = None) -> Tensor:
    r"""Return the unbiased estimate of an ordinary loss from what was ruled out (Eq. 10).

    .. math::
       \sum_{y \notin \bar Y} \ell_y - \frac{k-1-s}{s} \sum_{y \in \bar Y} \ell_y
       = \sum_y \ell_y \frac{1(y \notin \bar Y) - q}{1 - q}, \quad q = 1 - \frac{s}{k-1}

    The right-hand side holds for whatever leaves the true class possible always and a wrong one
    with probability q, so for answers with their own q, too.

    `matrix` ``[..., B, k]`` is the loss if class y were the label, `excluded` ``[..., B, k]`` is 1
    where a class was ruled out, `rate` ``[..., B]`` is q, None where it follows from the size of
    the set; arrays are checked, tensors are trusted. The mean of the result ``[..., B]`` over every
    possible set is the loss of the true label (Theorem 3).

    >>> unbiased(torch.tensor([[1.0, 2.0, 3.0]]), torch.tensor([[1, 0, 0]]))
    tensor([4.])
    """
    matrix, mask = as_tensors(matrix, excluded)
    q = None if rate is None else rates_of(rate, matrix)
    return ((1 - mask * scale(mask, q).unsqueeze(-1)) * matrix).sum(-1)


def rates_of(rate: Any, logits: Tensor) -> Tensor:
    found = to_lead(rate, logits, -2, "rate")
    if not isinstance(rate, Tensor) and not ((found >= 0) & (found < 1)).all():
        raise ValueError("a rate is a probability below 1; answers.per_item() gives them")
    return found


def as_tensors(logits: Tensor, excluded: Any) -> tuple[Tensor, Tensor]:
    """Check the shapes; bring `excluded` to 0 and 1, like `logits`; both share what leads."""
    if not isinstance(logits, Tensor) or not logits.is_floating_point():
        raise TypeError("logits must be a floating-point torch tensor [..., B, k]")
    if excluded is None:
        raise TypeError("this loss needs excluded: [..., B, k], 1 where a class was ruled out")
    mask = excluded
    if not isinstance(mask, Tensor):
        array = np.asarray(mask)
        if array.dtype != np.bool_ and not np.isin(array, (0, 1)).all():
            raise ValueError(_NOT_BINARY)
        mask = torch.from_numpy(array.astype(np.bool_))
    if logits.ndim < 2 or mask.ndim < 2 or logits.shape[-2:] != mask.shape[-2:]:
        raise ValueError(
            f"logits {tuple(logits.shape)} and excluded {tuple(mask.shape)} "
            "must both end in [B, k] of the same size"
        )
    logits = _wide(logits)
    if mask.ndim > 2:
        logits, mask = align(logits, mask)
    return logits, mask.to(logits)


def _wide(logits: Tensor) -> Tensor:
    return logits.float() if logits.dtype is torch.float16 else logits


_NOT_BINARY = "excluded holds values other than 0 and 1; 1 means ruled out"


def check_excluded(mask: Tensor, single: bool = False) -> None:
    """Raise where `mask` is not of 0 and 1, or a row rules out all classes, or more than one.

    What lies on a GPU is trusted, since to look at it would stall the GPU, and so is what is traced
    or mapped (`torch.compile`, `torch.vmap`), where nobody can look.
    """
    if mask.device.type != "cpu" or not mask.numel():
        return
    try:
        binary = bool(((mask == 0) | (mask == 1)).all())
        most = int(mask.sum(-1).max())
    except RuntimeError:
        return
    if not binary:
        raise ValueError(_NOT_BINARY)
    if single and most > 1:
        raise ValueError(
            f"a row rules out {most} classes, but this approach takes one per row; "
            "decompose with sets.pairs(), or use the approach's -after form"
        )
    if most == mask.shape[-1]:
        raise ValueError("a row rules out every class; leave at least one possible")


def to_lead(values: Any, logits: Tensor, last: int, what: str) -> Tensor:
    """Bring `values` to a tensor like `logits`, whose last dimension is that of `logits[last]`."""
    tensor = values if isinstance(values, Tensor) else torch.from_numpy(np.array(values, float))
    wanted = (*logits.shape[:-2], logits.shape[last])
    short = tensor.ndim == 0 or tensor.ndim > len(wanted) or tensor.shape[-1] != wanted[-1]
    pairs = zip(reversed(tensor.shape), reversed(wanted), strict=False)
    if short or any(a not in (1, b) for a, b in pairs):
        raise ValueError(f"{what} is {tuple(tensor.shape)}, but must fit {wanted}")
    return tensor.to(logits)
