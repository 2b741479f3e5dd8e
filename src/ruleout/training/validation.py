"""Validation: everything a fit is given, checked before any training starts."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor, bfloat16
from torch.utils.data import DataLoader, Dataset, IterableDataset, SequentialSampler

from ruleout.labels import LabelSets
from ruleout.labels.errors import InputError, brief, nearest
from ruleout.training.batches import Trial
from ruleout.training.optimizers import OPTIMIZERS

if TYPE_CHECKING:
    from ruleout.training.stack import Run, Stopping
    from ruleout.training.watches import Watch

_AT_ONCE = "give all rows at once: an array, a tensor, a memory map or a sparse matrix"
_BLOCK = 64 << 20  # bytes looked at in one go
_FEW = 10  # different rows


def gather(x: Any, what: str = "x", *, pairs: bool = False) -> tuple[Any, Any]:
    """Return rows that come in batches as one array or Arrow table, with their labels in `pairs`.

    Batches come from a torch Dataset or DataLoader, whose rows may be pairs with a label, or from
    an iterable of Arrow record batches; anything else stays as it is, without labels.
    """
    if isinstance(x, Tensor):
        return (x.float() if x.dtype is bfloat16 else x).detach().cpu().numpy(), None
    if isinstance(x, Dataset | DataLoader):
        return _from_loader(x, f"{what} is a {type(x).__name__} and", pairs)
    arrow = sys.modules.get("pyarrow")
    stream = isinstance(x, (Iterator, arrow.RecordBatchReader) if arrow else Iterator)
    if stream or isinstance(x, list | tuple):
        parts = iter(x)
        first = next(parts, None)
        if arrow and isinstance(first, arrow.RecordBatch):
            try:
                return arrow.Table.from_batches([first, *parts]), None
            except (ValueError, TypeError):
                say = "give record batches alone, all with the same columns"
                raise InputError(f"the batches of {what} differ", say) from None
        if stream and first is None:
            raise InputError(f"{what} has no rows", "give at least one")
        if stream:
            raise InputError(f"{what} is a {type(x).__name__}", _AT_ONCE)
        try:
            if first is not None and np.ndim(first) > 1:
                return np.stack([np.asarray(one) for one in x]), None
        except ValueError:
            say = "make them alike first, images by resizing"
            raise InputError(f"the rows of {what} have several shapes", say) from None
    return x, None


def _from_loader(x: Any, said: str, pairs: bool) -> tuple[Any, Any]:
    loader = x if isinstance(x, DataLoader) else DataLoader(x, batch_size=1024)
    sampler = getattr(loader.batch_sampler, "sampler", loader.sampler)
    stream = isinstance(loader.dataset, IterableDataset)
    if stream and not hasattr(loader.dataset, "__len__"):
        raise InputError(f"{said} has no length", "give one with __len__, or an array")
    ordered = stream or isinstance(sampler, SequentialSampler)
    if not pairs and (loader.drop_last or not ordered):
        say = "read it in order and whole: shuffle=False, drop_last=False"
        raise InputError(f"{said} shuffles its rows or leaves some out", say)
    try:
        rows = [batch if isinstance(batch, list | tuple) else (batch,) for batch in loader]
        first = np.concatenate([np.asarray(parts[0]) for parts in rows])
        labels = [np.asarray(parts[1]) for parts in rows if len(parts) > 1] if pairs else []
    except (TypeError, RuntimeError, ValueError) as error:
        problem = f"{said} does not make one array ({' '.join(str(error).split())[:120]})"
        raise InputError(problem, "give tensors of one shape, and at least one row") from None
    if pairs and not labels:
        raise InputError(f"{said} has no labels", "give them as y, or pairs of a row and its label")
    return first, np.concatenate(labels) if labels else None


def check_features(x: Any, what: str = "x") -> Any:
    """Return `x` as an array, as a memory map or as CSR, which stay as they are; all is finite."""
    x = gather(x, what)[0]
    array = x.tocsr() if hasattr(x, "tocsr") else np.asanyarray(x)
    if array.dtype == object and hasattr(x, "to_numpy"):  # a DataFrame of pandas' own integers
        with suppress(TypeError, ValueError):
            array = np.asarray(x.to_numpy(dtype=float, na_value=np.nan))
    if array.dtype == object and array.ndim == 0:  # a generator
        raise InputError(f"{what} is a {type(x).__name__}", _AT_ONCE)
    if array.ndim < 2 or 0 in array.shape[1:]:
        raise InputError(f"{what} has shape {array.shape}", "give rows × features")
    if array.dtype.kind not in "fiub":
        raise InputError(f"{what} has dtype {array.dtype}", "give numbers")
    bad = first_not_finite(array)
    if bad is not None:
        row, column, value = bad
        remedy = "fill in or leave out missing values first"
        raise InputError(f"{what} holds {value}", remedy, row=row, column=column)
    return array


def as_shape(shape: Any) -> tuple[int, ...]:
    """Return the shape of an example: a number is that of a flat one."""
    found = np.ravel(shape).tolist() if isinstance(shape, int | np.generic | np.ndarray) else shape
    whole = isinstance(found, list | tuple) and all(isinstance(n, int | np.integer) for n in found)
    if not found or not whole:
        raise InputError(f"shape is {brief(shape)}", "give whole numbers, such as (3, 32, 32)")
    return tuple(map(int, found))


def check_shape(own: tuple[int, ...], shape: tuple[int, ...], what: str = "x") -> None:
    """Raise where rows have axes that are not those of an example as the model reads it."""
    told = f"{what} has rows of shape {tuple(own)}, and the model reads {tuple(shape)}"
    if prod(own) != prod(shape):
        raise InputError(told, "give as many numbers")
    axes = [[size for size in one if size != 1] for one in (own, shape)]
    if axes[0] != axes[1] and min(map(len, axes)) > 1:
        say = (
            "channels come first; np.moveaxis changes their order, and flat rows are taken as such"
        )
        raise InputError(told, say)


def first_not_finite(x: Any) -> tuple[int, int, float] | None:
    """Return row, column and value of what is not finite in an array (rows flat) or CSR matrix."""
    values = x.data if hasattr(x, "indptr") else x
    if values.dtype.kind != "f":
        return None
    step = max(1, _BLOCK // max(1, values[:1].nbytes))
    for start in range(0, len(values), step):
        block = values[start : start + step].reshape(len(values[start : start + step]), -1)
        with np.errstate(over="ignore", invalid="ignore"):
            if np.isfinite(block.sum(dtype=np.float64)):
                continue
        bad = np.argwhere(~np.isfinite(block))
        if not len(bad):  # the sum alone was too large
            continue
        row, column = start + int(bad[0, 0]), int(bad[0, 1])
        value = float(block[bad[0, 0], column])
        if hasattr(x, "indptr"):
            row, column = int(np.searchsorted(x.indptr, row, "right")) - 1, int(x.indices[row])
        return row, column, value
    return None


def as_trials(sets: Any, n: int, seed: int, x: Any = None) -> list[Trial]:
    """Return trials over `n` rows, all they hold checked, that know their seed: seed + place.

    Where `x` is given, label sets become trials whose groups keep its equal rows together.
    """
    if isinstance(sets, LabelSets | Trial):
        sets = [sets]
    if not isinstance(sets, Sequence) or not sets:
        remedy = "give LabelSets, or a list of them for trials"
        raise InputError(f"sets is a {type(sets).__name__}", remedy)
    alike = None if x is None or isinstance(sets[0], Trial) else together(x)
    trials = [one if isinstance(one, Trial) else Trial(one, groups=alike) for one in sets]
    for number, trial in enumerate(trials):
        _check_trial(trial, n, "" if len(trials) == 1 else f" of trial {number}")
        if trial.sets.classes != trials[0].sets.classes:
            remedy = "give all trials the same classes in the same order"
            raise InputError(f"the classes of trial {number} are not those of trial 0", remedy)
        for name, what in (("rate", "rates"), ("evidence", "evidence")):
            if (getattr(trial, name) is None) != (getattr(trials[0], name) is None):
                problem = f"some trials have {what} and some have none"
                raise InputError(problem, f"give {what} to all trials or to none")
        if trial.evidence is not None and len(trial.evidence) != len(trial.sets):
            problem = f"trial {number} has {len(trial.sets)} rows, evidence {len(trial.evidence)}"
            raise InputError(problem, "give evidence for each row")
    grouped = any(trial.groups is not None for trial in trials)
    kinds = {"rows": np.intp, "weight": float, "rate": float}
    for place, trial in enumerate(trials):
        given = {name: getattr(trial, name) for name in kinds}
        own: Any = {n: np.asarray(v, kinds[n]) for n, v in given.items() if v is not None}
        own["seed"] = check_seed(seed + place if trial.seed is None else trial.seed)
        if grouped:
            groups = range(len(trial.sets)) if trial.groups is None else trial.groups
            own["groups"] = group_numbers(groups, len(trial.sets))
        trials[place] = replace(trial, **own)
    return trials


def _check_trial(trial: Trial, n: int, which: str) -> None:
    if not isinstance(trial.sets, LabelSets):
        problem = f"the label sets{which} are a {type(trial.sets).__name__}"
        raise InputError(problem, "make them with ro.LabelSets(excluded, classes)")
    count = n if trial.rows is None else len(trial.rows)
    if len(trial.sets) != count:
        problem = f"x has {count} rows but the label sets{which} have {len(trial.sets)}"
        raise InputError(problem, "give one set for each row")
    if count == 0:
        raise InputError(f"there are no rows{which} to train on", "give at least one")
    if not trial.sets.sizes.any():
        raise InputError(f"the label sets{which} rule nothing out", "give at least one class")
    if trial.rows is not None:
        rows, remedy = np.asarray(trial.rows), f"give numbers from 0 to {n - 1}"
        if rows.dtype.kind not in "iu":
            raise InputError(f"the rows{which} are not whole numbers", remedy)
        if not 0 <= rows.min() <= rows.max() < n:
            raise InputError(f"the rows{which} go beyond x", remedy)
    if trial.weight is not None:
        weight = _per_row(trial.weight, count, f"weights{which}")
        if not np.isfinite(weight).all() or (weight < 0).any() or not weight.any():
            problem = f"the weights{which} are negative, not finite or all zero"
            raise InputError(problem, "give numbers above zero")
    if trial.rate is not None:
        check_rate(trial.rate, count, which)


def _per_row(values: Any, count: int, what: str) -> NDArray[np.float64]:
    found = np.asarray(values, float)
    if found.shape != (count,):
        raise InputError(f"the {what} have shape {found.shape}", f"give {count}, one for each row")
    return found


def group_numbers(groups: Any, n: int) -> NDArray[np.intp]:
    """Number the groups of `n` rows in the order in which they come."""
    found = np.asarray(groups)
    if found.shape != (n,):
        raise InputError(f"groups has shape {found.shape}", f"give {n}, one for each row")
    places: dict[Any, int] = {}
    for row, one in enumerate(found.tolist()):
        if one is None or one != one or one.__hash__ is None:
            raise InputError(f"the group is {brief(one)}", "name a group for each row", row=row)
        places.setdefault(one, len(places))
    return np.array([places[one] for one in found.tolist()], np.intp)


def together(x: Any, groups: Any = None, rows: Any = None) -> NDArray[np.intp] | None:
    """Number what stays on one side of every split; None where each row stands alone.

    Rows with equal features belong together, and rows of one group: a group is whatever is
    connected. Fewer than ten different rows are the values of a column, not repeats of a row, and
    equal ones then stand alone. `rows` chooses some of x.
    """
    from scipy.sparse import coo_array  # late, as the others: only splits need them
    from scipy.sparse.csgraph import connected_components

    from ruleout.datasets.tables import equal_groups, row_hashes

    codes = row_hashes(x) if rows is None else row_hashes(x)[rows]
    own = None if groups is None else group_numbers(groups, len(codes))
    order, starts = equal_groups(codes)
    if not len(starts) or len(codes) - len(order) + len(starts) < _FEW:
        return own
    own = np.arange(len(codes)) if own is None else own
    first = np.repeat(order[starts], np.diff(starts, append=len(order)))
    links = coo_array((np.ones(len(order)), (own[first], own[order])), (own.max() + 1,) * 2)
    return np.asarray(connected_components(links, directed=False)[1][own], np.intp)


def check_rate(rate: Any, count: int, which: str = "") -> None:
    found = _per_row(rate, count, f"rates{which}")
    if not ((found >= 0) & (found < 1)).all():
        remedy = "take them from answers.per_item()"
        raise InputError(f"the rates{which} are not probabilities below 1", remedy)


def check_seed(seed: Any) -> int:
    whole = isinstance(seed, (int, np.integer)) and not isinstance(seed, bool)
    if not whole or not 0 <= seed < 1 << 63:
        raise ValueError(f"a seed must be a whole number, zero or above, not {brief(seed)}")
    return int(seed)


def check_counts(**counts: int) -> None:
    for name, value in counts.items():
        if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < 1:
            raise ValueError(f"{name} must be a whole number of at least 1, not {brief(value)}")


def check_monitor(stopping: Stopping | None, watch: Mapping[str, Watch]) -> None:
    """Raise where early stopping looks at what is not measured."""
    if stopping is None:
        return
    check_counts(patience=stopping.patience)
    names = [f"{name}/{m}" for name, one in watch.items() for m in one.measures or ("accuracy",)]
    if stopping.monitor not in names:
        say = f"the watches measure {', '.join(names)}" if names else "give a watch"
        say = nearest(stopping.monitor, names, say)
        raise ValueError(f"stopping asks for {stopping.monitor!r}, which is not measured; {say}")


def check_start(run: Run) -> None:
    start, trials, models = run.start, len(run.trials), len(run.grid)
    if start is None:
        say = "start kept nothing to go on from; fit with moments=True, without stopping"
        raise ValueError(say)
    if not hasattr(start, "moments"):
        raise ValueError(f"start is {brief(start)}; give a GridFit, or its state")
    if start.shape != (trials, models):
        raise ValueError(
            f"start holds {start.shape[0]} × {start.shape[1]} models, this fit asks for "
            f"{trials} × {models}; go on with the same trials and grid"
        )
    known = {name: tuple(value.shape[2:]) for name, value in start.weights.items()}
    wanted = {name: tuple(value.shape) for name, value in run.modules[0].state_dict().items()}
    if known != wanted or len(start.moments) != OPTIMIZERS[run.optimizer].moments:
        raise ValueError("start is of another model or optimizer; go on with the same")
    if run.approach.memory is not None and start.memory is not None:
        rows, own = start.memory["target"].shape[2], run.rows_each
        if rows != own:
            problem = f"start remembers {rows} rows, this fit has {own}"
            raise ValueError(f"{problem}; go on with the same, or with memory=None in the state")
