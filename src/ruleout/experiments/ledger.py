"""The ledger: one SQLite file, or PostgreSQL, that holds the record of every spec once.

A record is written in one transaction, so it is there whole or not at all, also after kill -9 or
with several drivers at work. Which task is being worked on is not an entry but a lock (on a file,
or of a session), so a killed driver leaves nothing to clean up. The same records can be kept as
Parquet files.
"""

from __future__ import annotations

import fcntl
import json
import os
import sqlite3
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import asdict, dataclass, field, fields
from importlib.resources import files
from pathlib import Path
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from ruleout.experiments.specs import Spec
from ruleout.labels.atomic import atomic_write
from ruleout.labels.errors import InputError
from ruleout.labels.journal import PATIENCE, keep_a_journal


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Record:
    """The result of one cell: T trials, of which S searched a grid of C configurations.

    After successive halving these are the configurations of the last round, and ``about["rounds"]``
    holds those before.
    """

    spec: Spec  #: what was run
    configurations: list[dict[str, Any]]  #: the grid
    chosen: NDArray[np.intp]  #: ``[T]``: the number of each trial's configuration
    #: ``[S, C]``: the criterion on the rows set aside; NaN where training diverged
    estimates: NDArray[np.float64]
    errors: NDArray[np.float64]  #: ``[S, C]``: its standard errors
    #: ``[S, C]``: the accuracy on the test rows of what was trained to choose from. It chose
    #: nothing; it shows what a choice by true labels would have given
    tests: NDArray[np.float64]
    #: ``[T]``: the accuracy on the test rows of what was chosen, the mean of the last epochs: the
    #: number that tables report
    accuracy: NDArray[np.float64]
    epochs: NDArray[np.intp]  #: ``[E]``: the epochs of the curves
    #: ``[T, E]`` by name: ``test`` and ``train`` accuracy (with true labels), and ``loss``
    curves: Mapping[str, NDArray[np.float32]]
    #: how it was computed: device, versions, seconds, hash of the data
    about: Mapping[str, Any] = field(default_factory=dict)

    @property
    def mean(self) -> float:
        """The mean accuracy over trials."""
        return float(self.accuracy.mean())

    @property
    def std(self) -> float:
        """The standard deviation over trials (n-1); NaN for one trial."""
        return float(self.accuracy.std(ddof=1)) if len(self.accuracy) > 1 else float("nan")

    @property
    def configuration(self) -> dict[str, Any]:
        """The chosen configuration, that of the first trial where they differ."""
        return self.configurations[int(self.chosen[0])]

    @property
    def estimate(self) -> float:
        """The criterion of what was chosen, mean over the trials that searched; NaN without any."""
        own = [values[chosen] for values, chosen in zip(self.estimates, self.chosen, strict=False)]
        return float(np.mean(own)) if own else float("nan")

    @property
    def oracle(self) -> tuple[float, dict[str, Any]]:
        """The best mean test accuracy that any one configuration had before choosing, and which.

        True labels decide here, so it is an upper end for judging the choice, never a result; NaN
        where nothing was searched.
        """
        if not len(self.estimates):
            return float("nan"), self.configuration
        means = np.where(np.isfinite(self.estimates.mean(0)), self.tests.mean(0), -np.inf)
        best = int(np.argmax(means))
        return float(means[best]), self.configurations[best]

    @property
    def seconds(self) -> float:
        """How long it took."""
        return float(self.about.get("seconds", float("nan")))

    def __repr__(self) -> str:
        return f"Record({self.spec}: {100 * self.mean:.2f} ± {100 * self.std:.2f})"


#: How often a task that failed is tried again.
RETRIES = 3

SCHEMA = 1
SIGN = int.from_bytes(b"rule")  # in the header of the file: this database is a ledger


@dataclass(frozen=True)
class Failure:
    """A task that failed: how often, and what it said last."""

    spec: Spec
    times: int
    error: str

    @property
    def given_up(self) -> bool:
        """Whether it is not tried again."""
        return self.times > RETRIES


class MissingLedgerError(InputError):
    """There is no ledger where one was to be read."""

    def __init__(self, path: str | Path) -> None:
        say = "run `ruleout paper` first, or check the name"
        super().__init__("there is no such ledger", say, file=path)


def is_url(path: str | Path) -> bool:
    """Return whether a ledger lies in PostgreSQL, not in a file."""
    return str(path).startswith(("postgresql://", "postgres://", "postgresql+psycopg://"))


class Ledger(AbstractContextManager["Ledger"]):
    """A ledger, an SQLite file that is made if it is absent; not with ``make=False``.

    ``postgresql://USER@HOST/DATABASE`` opens one that any number of machines work on.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder, Ledger(f"{folder}/a.sqlite") as ledger:
    ...     ledger.add([Spec(dataset="digits", approach="log")])
    ...     len(ledger.open()), len(ledger.records())
    (1, 0)
    """

    path: Path | str  #: the file, or the address without its password
    _database: Any
    _failure: type[Exception] = sqlite3.OperationalError
    _suspect = "the disk and the permissions"

    def __new__(cls, path: str | Path, **_: bool) -> Ledger:
        """Return one that speaks to PostgreSQL where `path` is an address."""
        try:
            if is_url(path):
                from ruleout.experiments.shared_ledger import SharedLedger as cls  # noqa: N813
        except ImportError:
            say = "run pip install 'ruleout[postgres]'"
            raise InputError("PostgreSQL needs psycopg, which is absent", say) from None
        return super().__new__(cls)

    def __init__(self, path: str | Path, *, make: bool = True) -> None:
        self.path = Path(path)
        if self.path.is_dir():  # so is "", of which SQLite would make a new one each time
            raise InputError("this is a folder", "name a file", file=self.path)
        if not make and not self.path.exists():
            raise MissingLedgerError(path)
        if not make and self.path.is_file() and not self.path.stat().st_size:
            raise InputError("the file is empty", "name a file that ruleout made", file=path)
        read_only = not make and not self._writable()
        name = f"{Path(path).absolute().as_uri()}?immutable=1" if read_only else str(path)
        with self._told():
            self._database = sqlite3.connect(
                name, timeout=PATIENCE, isolation_level=None, uri=read_only
            )
        try:
            with self._told():
                self._check()
                if not read_only:
                    self._open()
        except BaseException as error:
            self._database.close()
            if not isinstance(error, sqlite3.DatabaseError):
                raise
            problem = f"this is not a ledger ({error})"
            raise InputError(problem, "name a file that ruleout made", file=path) from None

    def _writable(self) -> bool:
        """Return whether SQLite can keep its journal, or has one that must be read."""
        file, log = Path(self.path).absolute(), Path(f"{self.path}-wal")
        free = os.access(file, os.W_OK) and os.access(file.parent, os.W_OK)
        return free or (log.exists() and log.stat().st_size > 0)

    def _check(self) -> None:
        """Raise for a database that is not ours, or newer, before anything is changed in it."""
        used = self._rows("SELECT name FROM sqlite_master LIMIT 1")  # first: others may make it now
        sign, schema = (self._rows(f"PRAGMA {n}")[0][0] for n in ("application_id", "user_version"))
        if used and sign != SIGN:
            raise InputError("this database is not a ledger", "name another file", file=self.path)
        self._check_schema(schema)

    def _check_schema(self, schema: int) -> None:
        if schema > SCHEMA:
            problem = f"the ledger has schema {schema}, newer than {SCHEMA}"
            raise InputError(problem, "update ruleout", file=self.path)

    def _open(self) -> None:
        keep_a_journal(self._database.execute)
        self._database.execute("PRAGMA synchronous = FULL")  # what is acknowledged is on disk
        self._database.execute("PRAGMA foreign_keys = ON")
        with self._writing():
            if self._rows("PRAGMA user_version")[0][0] < SCHEMA:
                for statement in statements("ledger.sql"):
                    self._database.execute(statement)
                self._database.execute(f"PRAGMA application_id = {SIGN}")
                self._database.execute(f"PRAGMA user_version = {SCHEMA}")

    def add(self, specs: Sequence[Spec]) -> None:
        """Add tasks; those that are there stay as they are."""
        with self._writing():
            self._many(
                "INSERT INTO tasks (key, spec) VALUES (?, ?) ON CONFLICT DO NOTHING",
                [(spec.key, spec.to_json()) for spec in specs],
            )

    @contextmanager
    def claim(self, spec: Spec) -> Iterator[bool]:
        """Claim a task while the block runs; False where another process has it.

        The claim is a lock on a file, which the kernel lets go when its process ends, however.
        """
        handle = _locked(self._claims / spec.key)
        if handle is None:
            yield False
            return
        try:
            yield True
        finally:
            (self._claims / spec.key).unlink(missing_ok=True)  # while it is locked: see _locked
            os.close(handle)
            with suppress(OSError):  # others have claims there
                self._claims.rmdir()

    def claimed(self) -> set[str]:
        """Return the keys of the tasks that are being worked on just now, by any process."""
        try:
            names = os.listdir(self._claims)
        except FileNotFoundError:  # the folder goes with the last claim
            return set()
        return {name for name in names if not _free(self._claims / name)}

    @property
    def _claims(self) -> Path:
        return Path(f"{self.path}-claims")

    def open(self, specs: Sequence[Spec] | None = None) -> list[Spec]:
        """Return the tasks still to do: neither recorded nor given up; those that failed last."""
        wanted = self.specs() if specs is None else specs
        done, times = self.done(), {key: n for key, n, *_ in self._failed()}
        left = [one for one in wanted if one.key not in done and times.get(one.key, 0) <= RETRIES]
        return sorted(left, key=lambda one: times.get(one.key, 0))

    def specs(self) -> list[Spec]:
        """Return every task, in the order of adding."""
        found = self._rows("SELECT spec FROM tasks ORDER BY rowid")
        with self._reading():
            return [Spec.from_json(spec) for (spec,) in found]

    def done(self) -> set[str]:
        """Return the keys of what has been recorded."""
        return {key for (key,) in self._rows("SELECT key FROM records")}

    def fail(self, spec: Spec, error: str) -> None:
        """Write down that a task failed."""
        # Names of files can hold half characters, and texts of PostgreSQL no zero.
        text = error.encode(errors="replace").decode().replace("\0", "?")
        with self._writing():
            self._rows("INSERT INTO failures (key, error) VALUES (?, ?)", spec.key, text)

    def forgive(self, specs: Sequence[Spec]) -> None:
        """Try tasks that were given up again; what happened stays written down."""
        with self._writing():
            for spec in specs:
                self._rows("UPDATE failures SET forgiven = 1 WHERE key = ?", spec.key)

    def failures(self) -> list[Failure]:
        """Return the tasks that failed and were not recorded since."""
        found, done = self._failed(), self.done()
        with self._reading():
            return [Failure(Spec.from_json(s), n, said) for k, n, said, s in found if k not in done]

    def _failed(self) -> list[tuple[str, int, str, str]]:
        """Return key, number of failures, the error of the last one, and the spec."""
        return self._rows(
            "SELECT key, times, error, spec FROM failures JOIN (SELECT max(id) AS id,"
            " count(*) AS times FROM failures WHERE forgiven = 0 GROUP BY key) AS last USING (id)"
            " JOIN tasks USING (key) ORDER BY id"
        )

    def write(self, record: Record) -> None:
        """Write a record; one that is there already stays."""
        key = record.spec.key
        self.add([record.spec])
        with self._writing():
            if self._rows("SELECT 1 FROM records WHERE key = ?", key):
                return
            grid, about = json.dumps(record.configurations), dict(record.about)
            ((number,),) = self._rows(
                "INSERT INTO records (key, configurations, epochs, about) VALUES (?, ?, ?, ?)"
                " RETURNING id",
                *(key, grid, _blob(record.epochs, "<i4"), json.dumps(about, sort_keys=True)),
            )
            for table, rows in ((name, own) for name, own in _rows_of(record).items() if own):
                marks = ", ".join("?" * (1 + len(rows[0])))
                numbered = [(number, *row) for row in rows]
                self._many(f"INSERT INTO {table} VALUES ({marks})", numbered)

    def records(self, keys: Collection[str] | None = None) -> list[Record]:
        """Return what has been recorded, in the order of the tasks."""
        if keys is not None and not keys:
            return []
        found = self._rows(
            "SELECT key, id, spec, configurations, epochs, about FROM records"
            " JOIN tasks USING (key) ORDER BY tasks.rowid"
        )
        with self._reading():
            return [self._record(*row) for row in found if keys is None or row[0] in keys]

    def take(self, other: Ledger) -> int:
        """Copy the records of another ledger that are not here; return how many there were."""
        missing = other.done() - self.done()
        for record in other.records(missing):
            self.write(record)
        return len(missing)

    def _record(
        self, key: str, number: int, spec: str, grid: str, epochs: bytes, about: str
    ) -> Record:
        def part(columns: str, table: str, order: str) -> list[Any]:
            query = f"SELECT {columns} FROM {table} WHERE record = ? ORDER BY {order}"
            return self._rows(query, number)

        curves = part("name, points", "curves", "name, trial")
        return _assembled(
            key,
            Spec.from_json(spec),
            json.loads(grid),
            np.frombuffer(epochs, "<i4"),
            json.loads(about),
            part("accuracy, chosen", "trials", "trial"),
            part("estimate, error, test", "configurations", "trial, configuration"),
            [(name, np.frombuffer(points, "<f4")) for name, points in curves],
        )

    @contextmanager
    def _writing(self) -> Iterator[None]:
        """Everything inside, or nothing; other writers wait."""
        with self._told():
            self._database.execute("BEGIN IMMEDIATE")
            try:
                yield
                self._database.execute("COMMIT")
            except BaseException:
                if self._database.in_transaction:
                    self._database.execute("ROLLBACK")
                raise

    @contextmanager
    def _told(self) -> Iterator[None]:
        """Say in a sentence what the database says, such as of a full disk or a lost server."""
        try:
            yield
        except self._failure as error:
            problem = f"the ledger cannot be used ({' '.join(str(error).split())})"
            say = f"check {self._suspect}, then run the same command again"
            raise InputError(problem, say, file=self.path) from None
        except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
            if getattr(error, "sqlite_errorcode", 0) == sqlite3.SQLITE_NOTADB:
                raise
            raise self._damaged(str(error)) from None

    @contextmanager
    def _reading(self) -> Iterator[None]:
        """Say of which ledger it is that something cannot be read."""
        try:
            yield
        except InputError as error:
            error.file = error.file or self.path
            raise
        except (ValueError, TypeError, KeyError) as error:
            raise self._damaged(f"{type(error).__name__}: {error}") from None

    def _damaged(self, why: str) -> InputError:
        say = "go back to a copy, or save what can be read with `sqlite3 FILE .recover`"
        return InputError(f"the ledger is damaged ({why})", say, file=self.path)

    def _rows(self, query: str, *values: Any) -> list[Any]:
        with self._told():
            return list(self._database.execute(query, values))

    def _many(self, query: str, rows: Sequence[Sequence[Any]]) -> None:  # a seam: tests kill here
        self._database.executemany(query, rows)

    def close(self) -> None:
        self._database.close()

    def __exit__(self, *_: object) -> None:
        self.close()


def _assembled(
    key: str,
    spec: Spec,
    grid: list[dict[str, Any]],
    epochs: Any,
    about: Mapping[str, Any],
    trials: Sequence[tuple[float, int]],  # accuracy and choice
    tried: Sequence[tuple[float, float, float]],  # estimate, error and test; None becomes NaN
    curves: Sequence[tuple[str, NDArray[np.float32]]],  # trial by trial
) -> Record:
    """Put a record together from the rows in which SQLite and Parquet hold it, if all are there."""
    lines: dict[str, list[NDArray[np.float32]]] = {}
    table = np.array(tried, float).reshape(-1, len(grid), 3)
    for name, points in curves:
        lines.setdefault(name, []).append(points)
    if spec.key != key:
        raise ValueError(
            "a key is not that of its settings, which a newer version may have written"
        )
    if len(table) != spec.searching or len(trials) != spec.trials:
        raise ValueError("trials or configurations are missing")
    if not all(0 <= chosen < len(grid) for _, chosen in trials):
        raise ValueError("a choice lies outside the grid")
    if any([len(one) for one in own] != [len(epochs)] * len(trials) for own in lines.values()):
        raise ValueError("a curve is not that of its epochs")
    if not isinstance(about, dict):
        raise TypeError("what is told about a record has no names")
    return Record(
        spec=spec,
        configurations=grid,
        chosen=np.array([chosen for _, chosen in trials], np.intp),
        estimates=table[..., 0],
        errors=table[..., 1],
        tests=table[..., 2],
        accuracy=np.array([accuracy for accuracy, _ in trials], float),
        epochs=np.array(epochs, np.intp),
        curves={name: np.stack(found) for name, found in lines.items()},
        about=about,
    )


def statements(name: str) -> list[str]:
    """Return the statements of a file that ships, those that make the tables."""
    text = files("ruleout.experiments").joinpath(name).read_text("utf-8")
    return [statement for statement in text.split(";") if statement.strip()]


def _blob(values: Any, kind: str) -> bytes:
    return np.ascontiguousarray(values, np.dtype(kind)).tobytes()


def _rows_of(record: Record) -> dict[str, list[tuple[Any, ...]]]:
    """Return the rows of each table that hold a record, without its number; NaN becomes NULL."""
    both = zip(record.accuracy.tolist(), record.chosen.tolist(), strict=True)
    tables = (record.estimates, record.errors, record.tests)
    return {
        "trials": [(t, *row) for t, row in enumerate(both)],
        "configurations": [
            (*place, *(float(table[place]) for table in tables))
            for place in np.ndindex(record.estimates.shape)
        ],
        "curves": [
            (name, t, _blob(line, "<f4"))
            for name, lines in record.curves.items()
            for t, line in enumerate(lines)
        ],
    }


def _free(file: Path) -> bool:
    try:
        with file.open("rb") as handle:
            fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except (FileNotFoundError, BlockingIOError) as error:
        return isinstance(error, FileNotFoundError)
    return True


def _locked(file: Path) -> int | None:
    """Return a handle that holds the lock, None where another has it.

    A file that was removed between opening and locking is nobody's; then a new one is made.
    """
    while True:
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
            handle = os.open(file, os.O_RDWR | os.O_CREAT, 0o644)
        except FileNotFoundError:  # the folder was removed meanwhile
            continue
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(handle)
            return None
        with suppress(FileNotFoundError):
            if os.stat(file).st_ino == os.fstat(handle).st_ino:
                return handle
        os.close(handle)


_FILES = ("cells", "trials", "configurations", "curves")


def write_parquet(
    records: Sequence[Record], folder: str | Path, *, curves: bool = True
) -> list[Path]:
    """Write records to a folder; the same records always give the same files.

    - ``cells.parquet``: a row for each spec, with all its settings and how it was computed;
    - ``trials.parquet``: the accuracy and the choice of each trial;
    - ``configurations.parquet``: the criterion of every configuration in each trial;
    - ``curves.parquet``: accuracy and loss by epoch.

    Without curves, which are most of it, figures cannot be drawn from the folder.
    """
    place = Path(folder)
    place.mkdir(parents=True, exist_ok=True)
    made = []
    for name, table in zip(_FILES, _tables(records, curves), strict=True):
        made.append(place / f"{name}.parquet")
        with atomic_write(made[-1]) as out:
            pq.write_table(table, out, compression="zstd", compression_level=19)
    return made


def _tables(records: Sequence[Record], drawn: bool) -> list[pa.Table]:
    cells, trials, tried, curves = [], [], [], []
    for r in records:
        key = r.spec.key
        texts = {"configurations": json.dumps(r.configurations), "about": json.dumps(dict(r.about))}
        cells.append({"key": key} | asdict(r.spec) | texts | {"epochs_kept": r.epochs.tolist()})
        for t, accuracy in enumerate(r.accuracy):
            own = {"key": key, "trial": t}
            trials.append(own | {"accuracy": accuracy, "chosen": int(r.chosen[t])})
            for c, setting in enumerate(r.configurations if t < len(r.estimates) else ()):
                values = {"estimate": r.estimates, "error": r.errors, "test": r.tests}
                told = own | {"configuration": c} | setting
                tried.append(told | {name: table[t, c] for name, table in values.items()})
            for name, lines in r.curves.items() if drawn else ():
                curves.append(own | {"name": name, "points": lines[t]})
    points = pa.schema(
        [("key", pa.string()), ("trial", pa.int64()), ("name", pa.string()),
         ("points", pa.list_(pa.float32()))]
    )  # fmt: skip
    made = [pa.Table.from_pylist(rows) for rows in (cells, trials, tried)]
    return [*made, pa.Table.from_pylist(curves, points)]


def read_parquet(folder: str | Path) -> list[Record]:
    """Read what :func:`write_parquet` wrote."""
    place = Path(folder)
    cells, *tables = (_parquet_rows(place / f"{name}.parquet") for name in _FILES)
    parts: list[dict[str, list[Any]]] = [{}, {}, {}]
    try:
        for part, rows in zip(parts, tables, strict=True):
            for row in sorted(rows, key=lambda row: (row["trial"], row.get("configuration", 0))):
                part.setdefault(row["key"], []).append(row)
        return [_from_rows(one, *(part.get(one["key"], []) for part in parts)) for one in cells]
    except (KeyError, TypeError, ValueError) as error:
        problem = f"these files are not a ledger ({type(error).__name__}: {error})"
        raise InputError(problem, "name a folder that `ruleout report` wrote", file=place) from None


def _parquet_rows(file: Path) -> list[dict[str, Any]]:
    if not file.is_file():
        say = "name a ledger, or the folder of its Parquet files"
        raise InputError("the file is missing", say, file=file)
    try:
        return cast("list[dict[str, Any]]", pq.read_table(file).to_pylist())
    except (pa.ArrowException, OSError) as error:
        raise InputError(f"this is not Parquet ({error})", "write it again", file=file) from None


def _from_rows(cell: dict[str, Any], trials: Any, tried: Any, curves: Any) -> Record:
    cell.setdefault("search_trials", 0)  # files of before do not have it
    spec = Spec(**{one.name: cell[one.name] for one in fields(Spec)})
    return _assembled(
        cell["key"],
        spec,
        json.loads(cell["configurations"]),
        cell["epochs_kept"],
        json.loads(cell["about"]),
        [(row["accuracy"], row["chosen"]) for row in trials],
        [(row["estimate"], row["error"], row["test"]) for row in tried],
        [(row["name"], np.array(row["points"], np.float32)) for row in curves],
    )


@dataclass(frozen=True)
class Holdings:
    """The tasks of one ledger or several, each once, and what came of them."""

    specs: tuple[Spec, ...]
    records: tuple[Record, ...]
    failures: tuple[Failure, ...] = ()

    def only(self, specs: Sequence[Spec]) -> Holdings:
        """Return what concerns these tasks."""
        keys = {spec.key for spec in specs}
        return Holdings(
            tuple(spec for spec in self.specs if spec.key in keys),
            tuple(record for record in self.records if record.spec.key in keys),
            tuple(one for one in self.failures if one.spec.key in keys),
        )


def gather(*ledgers: str | Path) -> Holdings:
    """Read ledgers: files, addresses of PostgreSQL, folders that :func:`write_parquet` made.

    A task that several ledgers hold counts once; the first record found is taken.
    """
    parts = [_held(one) for one in ledgers]
    specs = {spec.key: spec for part in parts for spec in part.specs}
    records = {r.spec.key: r for part in reversed(parts) for r in part.records}
    failures = {f.spec.key: f for part in parts for f in part.failures if f.spec.key not in records}
    return Holdings(
        tuple(specs.values()),
        tuple(records[key] for key in specs if key in records),
        tuple(failures.values()),
    )


def _held(path: str | Path) -> Holdings:
    if not is_url(path) and Path(path).is_dir():
        found = read_parquet(path)
        return Holdings(tuple(one.spec for one in found), tuple(found))
    with Ledger(path, make=False) as ledger:
        return Holdings(tuple(ledger.specs()), tuple(ledger.records()), tuple(ledger.failures()))
