"""A project as files: label sets, items, contradictions, the log, days, and what is what.

Every file is written in one place, so that a download of the team page equals that of an export.
"""

import json
import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from pathlib import Path, PurePosixPath
from typing import Any, Literal, TypeAlias

import numpy as np
import pyarrow as pa

from ruleout.labels import LabelSets
from ruleout.labels.atomic import atomic_write, write_text
from ruleout.labels.errors import InputError
from ruleout.labels.files import npz_arrays
from ruleout.labels.row_files import COLUMN
from ruleout.web.answer_log import How, in_force
from ruleout.web.entities import LogRow
from ruleout.web.error_rates import FORMS, error_rates, weights
from ruleout.web.project import whole_folder
from ruleout.web.spreadsheet import inert, write_rows
from ruleout.web.store import Store
from ruleout.web.team.annotators import WorkDay, work_days

Form: TypeAlias = Literal["csv", "jsonl", "parquet", "npz"]

#: The file that says what the others are.
ABOUT = "about.json"


class Export:
    """What a project knew at one moment, to be written file by file."""

    def __init__(self, store: Store, how: How = "no", *, unlabelled: bool = False) -> None:
        self.log, self.how = store.answer_log(), how
        self.settings, self.items = store.settings, [item for _, item in store.items()]
        self.known = self.log.known(how, unlabelled=unlabelled)
        self.rates = error_rates(self.log)

    def write_sets(self, path: Path) -> None:
        """Write label sets; the column of names is ``file`` where items are images."""
        row_weights = weights(self.log, self.known.sets, self.known.items, self.rates)
        column = "file" if self.items[0].kind == "image" else "item"
        write_sets(self.known.sets, self.known.items, path, weights=row_weights, column=column)

    def write_items(self, path: Path) -> None:
        state = dict.fromkeys(self.log.items, "labelled")
        state |= dict.fromkeys(self.known.unlabelled, "unlabelled")
        state |= dict.fromkeys(self.known.tests, "test")
        state |= dict.fromkeys(self.known.contradictions, "contradicting")
        fields = [(name, pa.string()) for name in ("item", "kind", "state", "sha256")]
        rows = [[one.name, one.kind, state[one.name], one.sha256] for one in self.items]
        write_rows(path, pa.schema(fields), rows)

    def write_days(self, path: Path) -> None:
        kinds = (pa.string(), pa.string(), pa.int64(), pa.float64())
        days = work_days(self.log, timedelta(seconds=self.settings.lease_seconds))
        rows = [[one.annotator, str(one.day), one.answers, round(one.hours, 3)] for one in days]
        write_rows(path, pa.schema(list(zip(WorkDay._fields, kinds, strict=True))), rows)

    def write_contradictions(self, path: Path) -> None:
        wrong = (row for one in self.log.contradictions() for row in one.answers)
        write_log(wrong, self.settings.classes, path)

    def write_decisions(self, path: Path) -> None:
        names, force = self.settings.classes, in_force(self.log.decisions)
        rows = [
            [one.item, None if one.which is None else names[one.which],
             [str(number) for number in one.voids], one.by, one.at, one in force]
            for one in self.log.decisions
        ]  # fmt: skip
        write_rows(path, _DECISIONS, rows)

    def write_log(self, path: Path) -> None:
        write_log(self.log, self.settings.classes, path)

    def write_about(self, path: Path, files: dict[str, str]) -> None:
        found, rates = self.known, self.rates
        own = {
            user: {form: e for form, e, m in zip(FORMS, errors, measured, strict=True) if m}
            for user, errors, measured in zip(
                self.log.users, rates.own.tolist(), rates.measured, strict=True
            )
            if measured.any()
        }
        content = {
            "made": datetime.now(UTC).isoformat(timespec="seconds"),
            "how": self.how,
            "counts": {
                "labelled": int((found.sets.sizes > 0).sum()),
                "unlabelled": len(found.unlabelled),
                "contradicting": len(found.contradictions),
                "tests": len(found.tests),
                "answers": len(self.log),
            },
            "settings": asdict(self.settings),
            "error_rates": {
                "team": dict(zip(FORMS, rates.team.tolist(), strict=True)),
                "annotators": own,
            },
            "files": files,
        }
        write_text(path, json.dumps(content, indent=2) + "\n")


def write_bundle(
    store: Store,
    folder: str | Path,
    *,
    how: How = "no",
    form: Form = "csv",
    unlabelled: bool = False,
) -> tuple[Export, list[str]]:
    """Write everything that a project knows into a new folder, whole or not at all.

    Return what was written, and the names of the files. NPZ holds arrays alone, so with ``npz`` the
    other tables are CSV.
    """
    export, table = Export(store, how, unlabelled=unlabelled), "csv" if form == "npz" else form
    some = '"no" and rule-out answers rule out' if how == "no" else "all answers rule out together"
    files = {
        f"sets.{form}": f"what {some}, one row per labelled item, and the weight of each",
        f"items.{table}": "every item, and whether it is labelled",
        f"contradictions.{table}": "answers that leave no class of an item, or deny the known one",
        f"log.{table}": "every answer, also late ones and those that were taken back",
        f"decisions.{table}": "what leads decided about contradictions; the last in force counts",
        f"days.{table}": "how many questions everybody answered each day, and for how many hours",
    }
    writers = (
        export.write_sets, export.write_items, export.write_contradictions, export.write_log,
        export.write_decisions, export.write_days,
    )  # fmt: skip
    with whole_folder(folder) as part:
        for name, write in zip(files, writers, strict=True):
            write(part / name)
        export.write_about(part / ABOUT, files)
    return export, [*files, ABOUT]


#: Files that can be had one by one, and what they are made from.
DOWNLOADS: dict[str, tuple[How, Callable[[Export, Path], None]]] = {
    "sets.csv": ("no", Export.write_sets),
    "sets-intersection.csv": ("intersection", Export.write_sets),
    "log.csv": ("no", Export.write_log),
    "contradictions.csv": ("no", Export.write_contradictions),
}


def write_sets(
    sets: LabelSets,
    items: Sequence[str],
    path: str | Path,
    *,
    weights: Sequence[float] | np.ndarray[Any, Any] | None = None,
    column: str = "item",
) -> None:
    """Write label sets with a column of item names, and one of weights if given.

    The suffix says how: ``.csv``, ``.jsonl``, ``.parquet`` or ``.npz``. The file appears whole or
    not at all, and ``LabelSets.read`` reads it. `column` is what the column of names is called (an
    array of an NPZ file is always ``item``); ``file`` makes it the label file of a folder of
    images, as ``ruleout fit FOLDER --labels-file FILE`` takes it.
    """
    if len(items) != len(sets) or (weights is not None and len(weights) != len(sets)):
        raise InputError(f"{len(sets)} rows but {len(items)} items", "give one name per row")
    file, names = Path(os.path.realpath(path)), list(items)
    trust = {} if weights is None else {"weight": np.asarray(weights, np.float64)}
    kind = file.suffix.lower()
    if kind == ".npz":
        arrays: dict[str, Any] = {"item": np.array(names, np.str_), **trust, **npz_arrays(sets)}
        with atomic_write(file) as out:
            np.savez(out, **arrays)
        return
    if column == "file" and kind == ".csv":  # not a formula and still a path: ./=1+1.png
        names = [name if inert(name) == name else f"./{PurePosixPath(name)}" for name in names]
    fields = [(column, pa.string()), (COLUMN, pa.list_(pa.string()))]
    fields += [(name, pa.float64()) for name in trust]
    lists = ([str(one) for one in row] for row in sets)
    rows = list(zip(names, lists, *(one.tolist() for one in trust.values()), strict=True))
    write_rows(file, pa.schema(fields), rows, [str(name) for name in sets.classes])


_TIME = pa.timestamp("us", "UTC")
_NAMES = pa.list_(pa.string())
_DECISIONS = pa.schema(
    [("item", pa.string()), ("class", pa.string()), ("left_out", _NAMES), ("by", pa.string()),
     ("time", _TIME), ("in_force", pa.bool_())]
)  # fmt: skip

#: The columns of the log. Those of :func:`ruleout.web.importing.read_answers` have its names.
_COLUMNS = (
    "number item annotator kind proposed excluded which round mode law seed gold counts late id "
    "undoes took_ms time received"
)
_KINDS = dict.fromkeys(("number", "round", "took_ms"), pa.int64())
_KINDS |= dict.fromkeys(("gold", "counts", "late"), pa.bool_())
_KINDS |= {"proposed": _NAMES, "excluded": _NAMES, "time": _TIME, "received": _TIME}
#: All others are text, seeds too, which may have more than 64 bits.
_LOG = pa.schema([(name, _KINDS.get(name, pa.string())) for name in _COLUMNS.split()])


def write_log(rows: Iterable[LogRow], classes: Sequence[str], path: str | Path) -> None:
    """Write rows of the log, counted or not, as CSV, JSONL or Parquet by suffix.

    Classes are written by name. In CSV, texts that a spreadsheet would compute begin with an
    apostrophe, and yes and no stand for true and false.
    """
    cells = []
    for row in rows:
        proposed, excluded = (
            [classes[code] for code in codes] for codes in (row.proposed, row.excluded)
        )
        which = None if row.which is None else classes[row.which]
        cells.append([
            row.number, row.item_name, row.user_name, row.kind, proposed, excluded, which,
            row.round, row.mode, row.law, str(row.seed), row.gold, row.counts, row.late, row.id,
            row.undoes, row.took_ms, row.sent, row.received,
        ])  # fmt: skip
    write_rows(path, _LOG, cells, classes)
