"""Running specs: one, or many by several processes that share a ledger; how long that takes."""

import contextlib
import json
import multiprocessing
import os
import shutil
import signal
import threading
import time
import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray

from ruleout.datasets import Dataset, load
from ruleout.datasets.registry import REGISTRY, find
from ruleout.estimator import RuleOutClassifier
from ruleout.experiments.ledger import Ledger, Record
from ruleout.experiments.specs import GRIDS, HALVING, Spec, protocol
from ruleout.labels import size_law
from ruleout.labels.atomic import write_text
from ruleout.labels.errors import InputError
from ruleout.labels.origins import Transition, Uniform, named_origin
from ruleout.methods import approach, approaches
from ruleout.models import build
from ruleout.selection import Search, criterion, refit_chosen, search, set_aside, split
from ruleout.training import GridFit, Trial, Watch, configurations, estimate_seconds, fit_grid


def run(
    spec: Spec,
    *,
    device: str | None = None,
    progress: Callable[[int, int], None] | None = None,
    checkpoint: str | Path | None = None,
) -> Record:
    """Compute one cell: a whole grid for all trials, then the chosen configuration.

    `device` is as for :func:`ruleout.fit_grid`; `progress` is called with (epochs done, epochs in
    all) while the grid trains. `checkpoint` is a folder of this cell alone, from which a run that
    was killed goes on.

    >>> grid = '{"learning_rate": [0.01, 1e-6]}'
    >>> spec = Spec(dataset="digits", approach="log", trials=2, epochs=12, grid=grid)
    >>> found = run(spec)
    >>> found.configuration["learning_rate"], found.accuracy.shape, found.curves["test"].shape
    (0.01, (2,), (2, 12))
    """
    began = time.perf_counter()
    folder = None if checkpoint is None else Path(checkpoint)
    if spec.approach == "auto":
        return _run_auto(spec, device, folder)
    data, stages = prepare(spec), _Stages(folder)
    options = _options(spec, data, device)
    stages.seconds["prepare"] = time.perf_counter() - began
    trials = data.trials
    if not protocol(spec.protocol).refit:
        trials = [set_aside(trial, spec.share)[0] for trial in trials]
    often = {"every": max(1, spec.epochs // _POINTS), "tail": spec.average}
    watch = {"test": data.test, "train": data.train}
    last = options | often | {"watch": watch, "moments": False}
    if not spec.searching:
        final = stages.train("refit", fit_grid, data.x, trials, grid=spec.values, **last)
        chosen, none = np.zeros(spec.trials, np.intp), np.empty((0, 1))
        found = Search(final, criterion(spec.criterion), none, none, chosen, None, (), none)
        return _record(spec, found, chosen, final, stages.seconds)
    own = ("criterion", "share", "per_trial", "average")
    choosing: dict[str, Any] = {name: getattr(spec, name) for name in own}
    choosing |= {"grid": spec.values, "every": spec.epochs, "tail": spec.average, "refit": False}
    choosing |= {"watch": {"test": data.test}, "progress": progress}
    way = _halve if spec.grid == "halving" else search
    searching = data.trials[: spec.searching]
    found = stages.train("search", way, data.x, searching, **choosing, **options)
    chosen = np.resize(found.chosen, spec.trials)  # trials that did not search take the same
    final = stages.train("refit", refit_chosen, data.x, trials, chosen, found.grid, **last)
    return _record(spec, found, chosen, final, stages.seconds)


_POINTS = 50  # of a learning curve: measuring a module on all rows takes a third of an epoch


@dataclass
class _Stages:
    """The trainings of a task, and how long each took, in processes that were killed, too."""

    folder: Path | None
    seconds: dict[str, float] = field(default_factory=dict)

    def train(
        self, name: str, fit: Callable[..., Any], *given: Any, progress: Any = None, **how: Any
    ) -> Any:
        """Train, or go on with what a killed process began."""
        file = None if self.folder is None else self.folder / f"{name}.seconds"
        before = float(file.read_text()) if file is not None and file.exists() else 0.0
        began = time.perf_counter()

        def tell(done: int, every: int) -> None:
            self.seconds[name] = before + time.perf_counter() - began
            if file is not None:
                write_text(file, str(self.seconds[name]))
            if progress is not None:
                progress(done, every)

        checkpoint = None if self.folder is None else self.folder / name
        found = fit(*given, progress=tell, checkpoint=checkpoint, **how)
        self.seconds[name] = before + time.perf_counter() - began
        return found


def _halve(x: Any, trials: list[Trial], *, checkpoint: Path | None, **how: Any) -> Search:
    """Search in rounds of fewer and fewer configurations, the best, for more and more epochs.

    Each round goes on from the one before, and is judged by its last third, at most as many epochs
    as whole runs are.
    """
    left, rounds = configurations(how.pop("grid")), list[dict[str, Any]]()
    epochs, average = how.pop("epochs"), how.pop("average")
    done, start = 0, None
    for part in HALVING:
        some = max(-(-epochs // part), done + 1)
        last = min(average, -(-some // 3), some - done)
        folder = None if checkpoint is None else checkpoint / f"round-{len(rounds)}"
        told = {"epochs": some - done, "every": some, "average": last, "tail": last}
        going = {"start": start, "moments": part != HALVING[-1], "checkpoint": folder}
        found = search(x, trials, grid=left, **how | told | going)
        if part == HALVING[-1]:
            break
        means = found.estimates.mean(0) * (1 if found.criterion.higher_is_better else -1)
        scores = [float(one) if np.isfinite(one) else None for one in means]
        rounds.append({"epochs": some, "configurations": left, "scores": scores})
        best, state = _better(scores), found.grid.state
        left, done, start = [left[place] for place in best], some, state and state.of(best)
    record = {**found.grid.record, "rounds": rounds}
    return replace(found, grid=replace(found.grid, record=record))


def _better(scores: list[float | None]) -> list[int]:
    """Return the places of the best third, in the order of the grid; the diverged last."""
    known = np.array([-np.inf if one is None else one for one in scores])
    best: list[int] = np.sort(np.argsort(-known, kind="stable")[: len(scores) // 3]).tolist()
    return best


#: What a record keeps of how a grid was trained.
_TOLD = (
    "approach",
    "device",
    "device_name",
    "threads",
    "stack",
    "versions",
    "data",
    "code",
    "rounds",
)


def _record(
    spec: Spec, found: Search, chosen: NDArray[np.intp], final: GridFit, times: dict[str, float]
) -> Record:
    names = {"test": "test/accuracy", "train": "train/accuracy", "loss": "loss"}
    how = {name: found.grid.record[name] for name in _TOLD if name in found.grid.record}
    tried = [*(one["configurations"] for one in how.get("rounds", ())), found.grid.configurations]
    seconds = sum(times.values())
    return Record(
        spec=spec,
        configurations=found.grid.configurations,
        chosen=chosen,
        estimates=found.estimates,
        errors=found.errors,
        tests=found.grid.history["test/accuracy"][: spec.searching, :, -spec.average :].mean(-1),
        accuracy=final.history["test/accuracy"][:, 0, -spec.average :].mean(-1),
        epochs=final.epochs,
        curves={n: final.history[h][:, 0].astype(np.float32) for n, h in names.items()},
        about={
            **how,
            "models": spec.searching * sum(map(len, tried)),
            "diverged": int((found.grid.diverged[: spec.searching] > 0).sum()),
            "diverged_final": int((final.diverged > 0).sum()),
            "seconds": seconds,
            "grid_seconds": seconds - times["refit"],
        },
    )


# Approaches share splits, sets and batch order, so that tests of significance can be paired.
_TRAINING, _SPLIT, _SETS = range(3)  # what random numbers are for


class Prepared(NamedTuple):
    """What the trials of a spec train on and are measured on."""

    x: NDArray[np.float32]
    trials: list[Trial]
    test: Watch
    train: Watch
    shape: tuple[int, ...]


def stream(seed: int, trial: int, purpose: int) -> int:
    """Return a seed of its own for each trial and purpose."""
    return int(np.random.SeedSequence([seed, trial, purpose]).generate_state(1)[0])


def prepare(spec: Spec) -> Prepared:
    """Load the data of a spec, split them and draw label sets; the last few are remembered."""
    return _prepared(spec.dataset, spec.law, spec.features, spec.trials, spec.test_share, spec.seed)


def _run_auto(spec: Spec, device: str | None, folder: Path | None) -> Record:
    """Let `auto` choose in every trial, and measure what it made; there are no curves to follow.

    Trials that are over lie in `folder`: a process that is killed loses only the one under way.
    """
    made = list[dict[str, Any]]()
    for t in range(spec.trials):
        file = None if folder is None else folder / f"auto-{t}.json"
        if file is not None and file.exists():
            made.append(json.loads(file.read_text()))
            continue
        made.append(_auto_trial(spec, t, device))
        if file is not None:
            file.parent.mkdir(parents=True, exist_ok=True)
            write_text(file, json.dumps(made[-1]))
    curves = {n: np.array([[one[n]] for one in made], np.float32) for n in ("test", "train")}
    counts = {"models": spec.trials, "diverged": 0, "diverged_final": 0, "grid_seconds": 0.0}
    times = {"seconds": sum(one["seconds"] for one in made)}
    none = np.empty((0, 1))
    return Record(
        spec=spec, configurations=[{"approach": "auto"}], chosen=np.zeros(spec.trials, np.intp),
        estimates=none, errors=none, tests=none, accuracy=np.array([one["test"] for one in made]),
        epochs=np.array([spec.epochs]), curves=curves,
        about=made[-1]["told"] | counts | times | {"why": [one["why"] for one in made]},
    )  # fmt: skip


def _auto_trial(spec: Spec, t: int, device: str | None) -> dict[str, Any]:
    began, data = time.perf_counter(), prepare(spec)
    trial = data.trials[t]
    clf = RuleOutClassifier(
        approach="auto", model=spec.model, shape=data.shape, device=device,
        precision=spec.precision, random_state=int(trial.seed or 0),
    ).fit(data.x if trial.rows is None else data.x[trial.rows], trial.sets)  # fmt: skip
    found: dict[str, Any] = {"why": clf.auto_}
    for name, watch in (("test", data.test), ("train", data.train)):
        x, y = (data.x if watch.x is None else watch.x), watch.target
        x, y = (x, y) if watch.rows is None else (x[watch.rows[t]], y[t])
        found[name] = float(np.mean(clf.predict(x) == clf.classes_[y]))
    told = {name: clf.record_[name] for name in _TOLD if name in clf.record_}
    return found | {"told": told, "seconds": time.perf_counter() - began}


def _options(spec: Spec, data: Prepared, device: str | None) -> dict[str, Any]:
    """Return what :func:`ruleout.fit_grid` is told of every training of a spec."""
    names = ("model", "epochs", "batch_size", "precision", "seed")
    told = {"approach": spec.runs, "shape": data.shape, "device": device}
    return told | {name: getattr(spec, name) for name in names}


@lru_cache(maxsize=1)
def _prepared(
    dataset: str, law: str, features: str, trials: int, test_share: float, seed: int
) -> Prepared:
    data = _loaded(dataset)
    n = len(data.y_train)
    if data.test is None:
        parts = [split(n, test_share, seed=stream(seed, t, _SPLIT)) for t in range(trials)]
    else:
        parts = [(np.arange(n), np.arange(0))] * trials
    if features == "standardised":
        data, parts = _standardised(data, parts)
    k, sets, origin = len(data.classes), data.sets, _origin(data, law)
    made = []
    for t, (rows, _) in enumerate(parts):
        if origin is None:
            assert sets is not None  # as it was seen there
            own = sets[rows % n]
        else:
            own = origin.draw(data.y_train[rows], k, stream(seed, t, _SETS))
        made.append(Trial(own, rows, seed=stream(seed, t, _TRAINING)))
    train = Watch([data.y_train[rows] for rows, _ in parts], rows=[rows for rows, _ in parts])
    if data.test is not None:
        test = Watch(data.test[1], x=data.test[0])
    else:
        test = Watch([data.y_train[rows] for _, rows in parts], rows=[rows for _, rows in parts])
    return Prepared(data.x_train, made, test, train, data.shape)


def _origin(data: Dataset, law: str) -> Uniform | Transition | None:
    """Return how sets are drawn; None: the data come with them."""
    if law != "given":
        return named_origin(law, len(data.classes))
    if data.sets is None:
        raise InputError(f"{data.name} comes without sets", "name a law by which to draw them")
    return None


def check_specs(specs: Sequence[Spec]) -> None:
    """Load all data sets, and raise where a law or a model does not fit one, before all else."""
    for name in dict.fromkeys(spec.dataset for spec in specs):
        own, data = [spec for spec in specs if spec.dataset == name], load(name)
        for spec in {(one.model, one.law): one for one in own}.values():
            try:
                _origin(data, spec.law)
                build(spec.model, data.shape, len(data.classes), seed=0)
            except ValueError as error:
                raise ValueError(f"{spec} cannot be computed: {error}") from None


#: Data sets that the driver of a cluster sent along, which are not read from files then.
SENT: dict[str, Dataset] = {}


@lru_cache(maxsize=1)
def _loaded(name: str) -> Dataset:
    return SENT[name] if name in SENT else load(name)


def _standardised(data: Dataset, parts: list[Any]) -> tuple[Dataset, list[Any]]:
    """Scale features by the training rows of each trial, which so gets a copy of its own."""
    x, n = data.x_train, len(data.y_train)
    if data.test is not None:
        return replace(data, x_train=_scaled(x, x), x_test=_scaled(data.test[0], x)), parts
    copies = np.concatenate([_scaled(x, x[train]) for train, _ in parts])
    moved = [(train + t * n, test + t * n) for t, (train, test) in enumerate(parts)]
    return replace(data, x_train=copies, y_train=np.tile(data.y_train, len(parts))), moved


def _scaled(x: NDArray[np.float32], like: NDArray[np.float32]) -> NDArray[np.float32]:
    """Scale features by mean and standard deviation of some rows; a constant one is not divided."""
    mean, std = like.mean(0, dtype=np.float64), like.std(0, dtype=np.float64)
    return np.asarray((x - mean) / np.where(std > 0, std, 1.0), np.float32)


#: What computes a record: ``(spec, device=...)``.
Run: TypeAlias = Callable[..., Record]

PAUSE = 0.2  # seconds between looks at what others do


def work(
    ledger: Ledger, specs: Sequence[Spec], *, device: str | None = None, compute: Run = run
) -> Iterator[Spec]:
    """Do tasks one after another until none is left to claim; yield each when it is over.

    A task that raises is written down with its error, tried again after the others, and given up
    after :data:`~ruleout.experiments.ledger.RETRIES` retries. Where it took the GPU along, or the
    GPU it, this process can do no other: the error says so.
    """
    ledger.add(specs)
    left = ledger.open(specs)
    while left:
        spec = left.pop(0)
        with ledger.claim(spec) as mine:
            if not mine or spec not in ledger.open([spec]):  # somebody finished it meanwhile
                continue
            found = attempt(spec, device, compute)
            settle(ledger, spec, found)
        if isinstance(found, str) and _lost():
            problem = f"this process lost its GPU during {spec}: {found}"
            raise InputError(problem, "start again: what is recorded stays")
        yield spec
        left = ledger.open(specs)


def attempt(spec: Spec, device: str | None, compute: Run) -> Record | str:
    """Return the record of a task, or what went wrong: it is told, and the others go on."""
    try:
        return compute(spec, device=device)
    except Exception as error:
        text = " ".join(f"{type(error).__name__}: {error}".split())
        last = traceback.extract_tb(error.__traceback__)[-1]
        return f"{text[:500]} ({Path(last.filename).name}, line {last.lineno})"


def _lost() -> bool:
    """Say whether this process can no longer use its GPU, as after an illegal access to memory.

    Under NVIDIA's multi-process service it is enough that another process was killed.
    """
    if not torch.cuda.is_initialized():  # type: ignore[no-untyped-call]
        return False
    try:
        torch.cuda.synchronize()
    except RuntimeError:
        return True
    return False


def settle(ledger: Ledger, spec: Spec, found: Record | str) -> None:
    """Write down what came of a task."""
    if isinstance(found, str):
        ledger.fail(spec, found)
    else:
        ledger.write(found)


def going_on(compute: Run, checkpoints: str | Path | None) -> Run:
    """Return what computes tasks with a folder for each, where there is one for them."""
    return compute if checkpoints is None else partial(_go_on, compute, Path(checkpoints))


def _go_on(compute: Run, checkpoints: Path, spec: Spec, *, device: str | None) -> Record:
    return compute(spec, device=device, checkpoint=checkpoints / spec.key)


def tidy(ledger: Ledger, checkpoints: str | Path | None) -> None:
    """Remove the folders of tasks that are recorded."""
    if checkpoints is not None and Path(checkpoints).is_dir():
        for name in ledger.done().intersection(os.listdir(checkpoints)):
            shutil.rmtree(Path(checkpoints, name), ignore_errors=True)


def drive(
    path: str | Path,
    specs: Sequence[Spec],
    *,
    device: str | None = None,
    workers: int = 1,
    compute: Run = run,
    seen: Callable[[Ledger], None] | None = None,
    checkpoints: str | Path | None = None,
    modules: Iterable[str] = (),
) -> None:
    """Work through tasks with several processes, and wait for those that others have claimed.

    `path` is that of the ledger, `device` is as for :func:`ruleout.fit_grid`. One worker is this
    process; for several, data sets and losses of your own must be registered by a module that
    others can import, not by a script: name it in `modules` if their functions are from elsewhere.
    `compute`, which makes a record, is a function of a module. `seen` is called with the ledger now
    and then, to show progress. `checkpoints` is a folder in which tasks under way have one each,
    until they are recorded: see :func:`run`.
    """
    with Ledger(path) as ledger:
        ledger.add(specs)

        def watch(ledger: Ledger) -> None:
            tidy(ledger, checkpoints)
            if seen is not None:
                seen(ledger)

        watch(ledger)
        how: dict[str, Any] = {"device": device, "compute": going_on(compute, checkpoints)}
        known = registering(modules)
        with _helpers(workers, known, str(path), list(specs), **how) as alive:
            while left := ledger.open(specs):
                if workers == 1:
                    for _ in work(ledger, specs, **how):
                        watch(ledger)
                elif not alive() and not {spec.key for spec in left} & ledger.claimed():
                    problem = f"all workers ended, but {len(left)} tasks are left"
                    say = "start again, with fewer workers if the memory is short"
                    raise InputError(problem, say)
                watch(ledger)
                time.sleep(PAUSE)
        watch(ledger)


@contextlib.contextmanager
def _helpers(
    count: int, modules: list[str], *given: Any, **how: Any
) -> Iterator[Callable[[], bool]]:
    """Start processes that work; they are ended when the block is left, and end with this one."""
    if count == 1:
        yield lambda: False
        return
    made = multiprocessing.get_context("spawn")  # a fork of a process with threads can hang
    threads = max(1, torch.get_num_threads() // count)
    told = (os.getpid(), threads, modules, *given)
    helpers = [
        made.Process(target=_helper, args=told, kwargs=how, daemon=True) for _ in range(count)
    ]
    for helper in helpers:
        helper.start()
    try:
        yield lambda: any(helper.is_alive() for helper in helpers)
    finally:
        for helper in helpers:
            helper.terminate()
        for helper in helpers:
            helper.join()


def registering(modules: Iterable[str] = ()) -> list[str]:
    """Return `modules`, and those of a user's own data sets and losses, as workers import them."""
    own = [entry.loader for entry in REGISTRY.values() if hasattr(entry, "loader")]
    own += [approach(name).source.function for name in approaches()]
    found = dict.fromkeys([*modules, *(getattr(one, "__module__", "ruleout.") for one in own)])
    return [one for one in found if one != "__main__" and not one.startswith("ruleout.")]


def _helper(parent: int, threads: int, modules: list[str], *given: Any, **how: Any) -> None:
    """Work in a process of its own, which ends with its parent and leaves Ctrl-C to it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for module in modules:
        import_module(module)
    threading.Thread(target=_end_with, args=(parent,), daemon=True).start()
    torch.set_num_threads(threads)
    try:
        drive(*given, **how)
    except InputError as error:
        raise SystemExit(f"ruleout: {error}") from None


def _end_with(parent: int) -> None:
    """End this process when the one that started it is gone."""
    while os.getppid() == parent:
        time.sleep(PAUSE)
    os._exit(1)


_OF_AUTO = 60  # models that take about as long as one trial of auto, which differs with the rows
_BESIDES = 1.25  # training the choice and measuring, on top of the grid


def count_models(spec: Spec) -> int:
    """Return how many models a task trains: the grid, and the choice, for every trial.

    Of successive halving, so many as take as long.

    >>> count_models(Spec(dataset="digits", approach="log"))
    185
    >>> count_models(Spec(dataset="digits", approach="log", search_trials=1))
    41
    >>> count_models(Spec(dataset="digits", approach="log", trials=1, grid="halving"))
    2
    """
    if spec.approach == "auto":
        return _OF_AUTO * spec.trials
    grid = len(configurations(spec.values))
    if spec.grid == "halving":
        shares = [0.0, *(1 / part for part in HALVING)]  # of the epochs, after each round
        grid = round(sum(grid // 3**n * (b - a) for n, (a, b) in enumerate(pairwise(shares))))
    return spec.searching * grid + spec.trials


def cost(spec: Spec) -> float:
    """Return the work of a task in units that only compare: more for more and wider rows.

    Approaches that decompose before shuffling walk over pairs instead of rows; PC after shuffling
    makes k comparisons where others make one.
    """
    entry = find(spec.dataset)
    rows, k = float(entry.rows[0]), len(entry.classes)
    width = entry.features + 60.0  # besides the product, a step works on logits
    if spec.approach == "auto":  # folds of several approaches, and a committee
        width *= 3
    elif approach(spec.runs).form == "pairs-before" and spec.law != "given":
        rows *= float(np.arange(1, k) @ size_law(named_origin(spec.law, k).law, k))
    elif spec.approach.startswith("pc"):
        width += 20.0 * k
    return rows * spec.epochs * count_models(spec) * k * width


def estimate(
    ledger: Ledger, specs: Sequence[Spec], device: str | None = None, workers: int = 1
) -> float:
    """Return about how many seconds so many workers will take, at least those of the longest task.

    What the ledger has timed on such a device tells; for other data sets a few steps are timed.
    """
    rates: dict[tuple[str, str, int], list[float]] = {}  # seconds per unit of cost
    wanted = {(spec.dataset, spec.model, spec.epochs) for spec in specs}
    every = [one for one in ledger.specs() if (one.dataset, one.model, one.epochs) in wanted]
    for record in ledger.records([one.key for one in every]):
        spec = record.spec
        if record.about.get("device") == (device or "cpu"):
            times = rates.setdefault((spec.dataset, spec.model, spec.epochs), [])
            times.append(record.seconds / cost(spec))
    times = [0.0]
    for spec in specs:
        kind = spec.dataset, spec.model, spec.epochs
        if kind not in rates:
            rates[kind] = [_probe(spec, device, workers)]
        times.append(median(rates[kind]) * cost(spec))
    return max(sum(times) / workers, *times)


def _probe(spec: Spec, device: str | None, workers: int) -> float:
    """Time a few steps, with the threads that one of so many workers has; return their rate."""
    whole = "paper" if spec.grid in GRIDS else spec.grid
    plain = replace(spec, approach="log", grid=whole)
    data = prepare(plain)
    told = _options(plain, data, device)
    threads = torch.get_num_threads()
    torch.set_num_threads(max(1, threads // workers))
    try:
        every = estimate_seconds(data.x, data.trials[: plain.searching], grid=plain.values, **told)
    finally:
        torch.set_num_threads(threads)
    return _BESIDES * every / cost(plain)
