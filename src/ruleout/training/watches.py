"""Watches: what is measured on which rows while a grid trains."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ruleout.labels import LabelSets
from ruleout.labels.errors import InputError
from ruleout.training.batches import Features
from ruleout.training.nets import Net
from ruleout.training.validation import check_features, check_rate, check_shape, group_numbers

#: ``(logits [..., n, k], target) → [..., n]``: one value per row, of which the mean is reported.
#: Where the watch has rates, they come third.
Measure: TypeAlias = Callable[..., Tensor]


def hits(logits: Tensor, labels: Tensor) -> Tensor:
    """Return 1 where the largest logit is that of the label, else 0."""
    return (logits.argmax(-1) == labels).to(logits.dtype)


@dataclass(frozen=True, eq=False)
class Watch:
    """Rows on which every model is measured at the end of an epoch.

    A list, of targets, rows or rates, holds one for each trial.
    """

    #: what is known about the rows: label sets, or true labels (positions among the classes) for
    #: analysis, or numbers ``[n, k]``
    target: Any
    #: functions ``(logits, target) → [..., n]`` by name. For true labels the default is
    #: ``{"accuracy": hits}``; for label sets name criteria:
    #: ``{"accuracy": ro.criterion("accuracy").values}``
    measures: Mapping[str, Measure] | None = None
    x: Any = None  #: the rows; None means those of the training data
    rows: Any = None  #: which of them; None means all
    rate: Any = None  #: where answers made the sets: how likely a wrong class stays possible
    weight: Any = None  #: of each row; None: all that say something count alike
    groups: Any = None  #: the number of each row's group, over which standard errors are then taken


class Watcher:
    """A watch made ready for some trials (given by number): its rows lie on the device."""

    def __init__(
        self, name: str, watch: Watch, trials: Sequence[int], rows: Features, classes: Sequence[Any]
    ) -> None:
        self.name, self.features, self.classes = name, rows, classes
        given = (watch.target, watch.rows, watch.rate, watch.weight, watch.groups)
        told = [self._of(one, trials) for one in given]
        self.targets, self.rows, self.rates, self.weights, groups = told
        self.measures = dict(watch.measures or {"accuracy": hits})
        self._known: dict[int, list[Tensor]] = {}
        if watch.measures is None and isinstance(self.targets[0], LabelSets):
            raise ValueError(
                f"watch {name!r} holds label sets but no measures; "
                'give measures={"accuracy": ro.criterion("accuracy").values}'
            )
        self.targets = [self._checked(target) for target in self.targets]
        for target, chosen, rate in zip(self.targets, self.rows, self.rates, strict=True):
            if chosen is not None:
                say = "names rows that are not there"
                self._check_places(np.asarray(chosen), "iu", rows.n, say)
            if rate is not None:
                check_rate(rate, len(target), f" of watch {name!r}")
            count = rows.n if chosen is None else len(chosen)
            if len(target) != count or count == 0:
                problem = f"watch {name!r} has {count} rows but {len(target)} targets"
                raise InputError(problem, "give one target for each row, and at least one row")
        count = len(self.targets[0])
        self.groups = None if watch.groups is None else [group_numbers(g, count) for g in groups]
        if len({len(target) for target in self.targets}) > 1:
            remedy = "give every trial the same number of rows"
            raise InputError(f"the trials of watch {name!r} differ in length", remedy)

    def _of(self, given: Any, trials: Sequence[int]) -> list[Any]:
        """Return what was given for each trial; a list of lists or arrays holds one for each."""
        listed = isinstance(given, (list, tuple)) and len(given) > 0
        if not listed or not hasattr(given[0], "__len__") or isinstance(given[0], str):
            return [given for _ in trials]
        if max(trials) >= len(given):
            problem = f"watch {self.name!r} lists {len(given)} trials"
            raise InputError(problem, "give one entry for each trial")
        return [given[t] for t in trials]

    def _checked(self, target: Any) -> Any:
        """Return label sets of the same classes, or labels as positions among them."""
        if isinstance(target, LabelSets):
            if target.classes != self.classes:
                problem = f"the classes of watch {self.name!r} are not those of the training data"
                raise InputError(problem, "give the same classes in the same order")
            return target
        labels, say = np.asarray(target), "holds labels that are not positions of classes"
        if labels.dtype.kind == "f" and labels.shape[1:] == (len(self.classes),):
            return labels
        self._check_places(labels, "iub", len(self.classes), say)
        return labels

    def _check_places(self, found: NDArray[Any], kinds: str, n: int, say: str) -> None:
        if found.dtype.kind not in kinds or (
            found.size and not 0 <= found.min() <= found.max() < n
        ):
            remedy = f"give whole numbers from 0 to {n - 1}"
            raise InputError(f"watch {self.name!r} {say}", remedy)

    def measure(self, net: Net, most: int) -> dict[str, tuple[Tensor, Tensor]]:
        """Return for each measure the mean ``[T, C]`` and its standard error."""
        sums: dict[str, Tensor] = {}
        kept: dict[str, list[Tensor]] = {name: [] for name in self.measures}
        for start in range(0, len(self.targets[0]), most):
            piece = slice(start, start + most)
            logits = net.logits(self._rows(piece))
            known = self._target(piece, logits)
            says = self._weight(piece, known[0], logits)
            for name, values in self.measures.items():
                value = values(logits, *known)
                weight = says.expand_as(value)
                if self.groups is not None:
                    kept[name].append(torch.stack([value, weight]))
                    continue
                found = _sums(value, weight)
                sums[name] = sums[name] + found if name in sums else found
        if self.groups is not None:
            groups = torch.from_numpy(np.stack(self.groups)).unsqueeze(1).to(logits.device)
            both = {name: torch.cat(parts, -1).unbind() for name, parts in kept.items()}
            sums = {name: _sums(*by_group(v, w, groups)) for name, (v, w) in both.items()}
        return {f"{self.name}/{name}": _mean(*parts) for name, parts in sums.items()}

    def _weight(self, piece: slice, known: Tensor, logits: Tensor) -> Tensor:
        if self.weights[0] is not None:
            parts = np.stack([np.asarray(one, float)[piece] for one in self.weights])
            return torch.from_numpy(parts).to(logits).unsqueeze(1)
        sets = isinstance(self.targets[0], LabelSets)
        return known.amax(-1) if sets else torch.ones_like(logits[..., 0])

    def _rows(self, piece: slice) -> Tensor:
        if all(rows is None for rows in self.rows):
            return self.features.slice(piece)
        every = np.arange(self.features.n)
        rows = [(every if rows is None else np.asarray(rows))[piece] for rows in self.rows]
        return self.features.take(torch.from_numpy(np.stack(rows)).to(self.features.device))

    def _target(self, piece: slice, logits: Tensor) -> list[Tensor]:
        """Return ``[T, 1, n, k]`` of 0 and 1, or labels ``[T, 1, n]``; then rates, if any."""
        if piece.start in self._known:
            return self._known[piece.start]
        alike = all(target is self.targets[0] for target in self.targets)
        targets = self.targets[:1] if alike else self.targets
        found = [torch.stack([as_target(one[piece], logits) for one in targets]).unsqueeze(1)]
        if self.rates[0] is not None:
            rates = np.stack([np.asarray(rate, float)[piece] for rate in self.rates])
            found.append(torch.from_numpy(rates).to(logits).unsqueeze(1))
        held = sum(one.nbytes for known in self._known.values() for one in known)
        if held + sum(one.nbytes for one in found) < _KEEP:
            self._known[piece.start] = found
        return found


_KEEP = 256 << 20  # bytes of targets held ready on the device


def as_target(known: Any, logits: Tensor) -> Tensor:
    """Return label sets as 0 and 1 like the logits, and so numbers; labels as positions."""
    if isinstance(known, LabelSets):
        return torch.from_numpy(known.excluded).to(logits)
    like = logits.dtype if known.dtype.kind == "f" else torch.int64
    return torch.from_numpy(known).to(logits.device, like)


def by_group(values: Tensor, says: Tensor, groups: Tensor) -> tuple[Tensor, Tensor]:
    r"""Reduce rows ``[..., n]`` to one value for each group ``[..., G]``, and 1 where it counts.

    With m the mean of all n rows that say something, the value of a group that has the sum
    :math:`S_g` of :math:`n_g` rows is :math:`m + (S_g - m n_g) G / n`. The mean of these is m, and
    its standard error allows for rows that are alike within a group (Liang and Zeger 1986).
    """
    size = (*values.shape[:-1], int(groups.max()) + 1)
    rows = (says.double(), (says * values).double())
    place = groups.expand(values.shape)
    count, total = (one.new_zeros(size).scatter_add_(-1, place, one) for one in rows)
    n, heard = count.sum(-1, keepdim=True), (count > 0).double()
    mean = total.sum(-1, keepdim=True) / n
    return mean + (total - mean * count) * heard.sum(-1, keepdim=True) / n, heard


def _sums(value: Tensor, weight: Tensor) -> Tensor:
    parts = torch.stack([weight, weight.square(), weight * value, weight * value.square()])
    return parts.sum(-1, dtype=torch.float64)  # [4, T, C]


def _mean(weight: Tensor, square: Tensor, total: Tensor, squares: Tensor) -> tuple[Tensor, Tensor]:
    mean, count = total / weight, weight.square() / square  # as many rows as if they counted alike
    spread = (squares / weight - mean.square()).clamp(min=0)
    error = (spread / (count - 1).clamp(min=1)).sqrt()
    return mean, torch.where(count > 1, error, torch.inf)


def features_of(name: str, watch: Watch, like: Features) -> Features:
    """Bring the rows of a watch to the device, in the form of the training data."""
    if watch.x is None:
        return like
    x = check_features(watch.x, f"x of watch {name!r}")
    made = Features(x, like.shape, like.numbers)
    if made.d != like.d:
        problem = f"x of watch {name!r} has {made.d} features, the training data {like.d}"
        raise InputError(problem, "give the same features in the same order")
    check_shape(x.shape[1:], like.shape or like.x.shape[1:], f"x of watch {name!r}")
    return made
