"""Label sets on disk with the names of their items, readable by ``LabelSets.read``."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath
from typing import Any, Literal, TypeAlias

import numpy as np
import pyarrow as pa

from ruleout.labels import LabelSets
from ruleout.labels.atomic import atomic_write
from ruleout.labels.errors import InputError
from ruleout.labels.row_files import COLUMN
from ruleout.web.answer_log import Contradiction, How, Known, known
from ruleout.web.entities import Item, LogRow
from ruleout.web.project import whole_folder
from ruleout.web.reliability import Reliability, reliabilities, weights
from ruleout.web.spreadsheet import FORMULA, write_rows
from ruleout.web.store import Store


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
    not at all, and ``LabelSets.read`` reads it.

    Parameters
    ----------
    sets, items
        From :func:`known`.
    weights
        From :func:`weights`, into the column ``weight``.
    column
        What the column of names is called (an array of an NPZ file is always ``item``). ``file``
        makes it the label file of a folder of images, as ``ruleout fit FOLDER --labels-file FILE``
        takes it.
    """
    if len(items) != len(sets) or (weights is not None and len(weights) != len(sets)):
        raise InputError(f"{len(sets)} rows but {len(items)} items", "give one name per row")
    trust = None if weights is None else [float(weight) for weight in weights]
    file = Path(os.path.realpath(path))
    if file.suffix.lower() == ".npz":
        _npz(sets, items, file, trust)
        return
    safe = column == "file" and file.suffix.lower() == ".csv"
    names = [_path(item) if safe else item for item in items]
    fields = [(column, pa.string()), (COLUMN, pa.list_(pa.string()))]
    columns: list[Sequence[Any]] = [names, [list(map(str, row)) for row in sets]]
    if trust is not None:
        fields.append(("weight", pa.float64()))
        columns.append(trust)
    rows = list(zip(*columns, strict=True))
    write_rows(file, pa.schema(fields), rows, [str(name) for name in sets.classes])


def _path(name: str) -> str:
    """Write a path so that it is no formula and still a path: ``./=1+1.png``."""
    return f"./{PurePosixPath(name)}" if name.startswith(FORMULA) else name


def _npz(sets: LabelSets, items: Sequence[str], file: Path, weights: list[float] | None) -> None:
    meta = json.dumps({"format": "ruleout.LabelSets", "version": 1, "classes": sets.classes})
    arrays: dict[str, Any] = {"item": np.array(list(items), np.str_)}
    if weights is not None:
        arrays["weight"] = np.array(weights)
    arrays |= {"packed": sets.packed, "meta": np.frombuffer(meta.encode(), np.uint8)}
    with atomic_write(file) as out:
        np.savez(out, **arrays)


_TIME = pa.timestamp("us", "UTC")
_NAMES = pa.list_(pa.string())

#: The columns of the log. Those of :func:`ruleout.web.importing.read_answers` have its names.
LOG = pa.schema(
    [
        ("number", pa.int64()),
        ("item", pa.string()),
        ("annotator", pa.string()),
        ("kind", pa.string()),
        ("proposed", _NAMES),
        ("excluded", _NAMES),
        ("which", pa.string()),
        ("round", pa.int64()),
        ("mode", pa.string()),
        ("law", pa.string()),
        ("seed", pa.string()),  # seeds may have more than 64 bits
        ("gold", pa.bool_()),
        ("counts", pa.bool_()),
        ("late", pa.bool_()),
        ("id", pa.string()),
        ("undoes", pa.string()),
        ("took_ms", pa.int64()),
        ("time", _TIME),
        ("received", _TIME),
    ]
)


def write_log(rows: Iterable[LogRow], classes: Sequence[str], path: str | Path) -> None:
    """Write every row of the log, counted or not, as CSV, JSONL or Parquet by suffix.

    Classes are written by name. In CSV, texts that a spreadsheet would compute begin with an
    apostrophe, and yes and no stand for true and false.
    """
    write_rows(path, LOG, [_cells(row, classes) for row in rows], classes)


def _cells(row: LogRow, classes: Sequence[str]) -> list[Any]:
    return [
        row.number,
        row.item_name,
        row.user_name,
        row.kind,
        [classes[code] for code in row.proposed],
        [classes[code] for code in row.excluded],
        None if row.which is None else classes[row.which],
        row.round,
        row.mode,
        row.law,
        str(row.seed),
        row.gold,
        row.counts,
        row.late,
        row.id,
        row.undoes,
        row.took_ms,
        row.sent,
        row.received,
    ]


def write_contradictions(
    contradictions: Iterable[Contradiction], classes: Sequence[str], path: str | Path
) -> None:
    """Write the answers of contradicting items, one row per answer, with the log's columns."""
    write_log((row for one in contradictions for row in one.answers), classes, path)


def write_names(names: Iterable[str], path: str | Path, column: str = "item") -> None:
    """Write a list of items, such as those of which nothing is known."""
    write_rows(path, pa.schema([(column, pa.string())]), [[name] for name in names])


Form: TypeAlias = Literal["csv", "jsonl", "parquet", "npz"]

#: The file that says what the others are.
ABOUT = "about.json"

_ITEMS = pa.schema(
    [("item", pa.string()), ("kind", pa.string()), ("state", pa.string()), ("sha256", pa.string())]
)
_SETS = {
    "no": 'what "no" and rule-out answers rule out',
    "intersection": "what all answers rule out together",
}


@dataclass(frozen=True, kw_only=True)
class Bundle:
    """What was written: the sets, how many answers the log has, what each file is."""

    known: Known
    answers: int
    files: dict[str, str]


def write_bundle(
    store: Store,
    folder: str | Path,
    *,
    how: How = "no",
    form: Form = "csv",
    unlabelled: bool = False,
) -> Bundle:
    """Write everything that a project knows into a new folder, whole or not at all.

    ======================= ================================================================
    ``sets.FORM``           ``LabelSets.read`` reads it: item, what is ruled out, and a weight
    ``items.FORM``          every item, and whether it is labelled
    ``contradictions.FORM`` the answers about items for which no class is left
    ``log.FORM``            every answer ever given, also those that do not count
    ``about.json``          classes, settings, counts, error rates, what each file is
    ======================= ================================================================

    NPZ holds arrays alone, so with ``npz`` the other tables are CSV. The column of names in the
    sets is called ``file`` where the items are images, as label files of folders have it.
    """
    items, log = [item for _, item in store.items()], list(store.log())
    classes = store.settings.classes
    found = known(log, [item.name for item in items], classes, how, unlabelled=unlabelled)
    trust = _reliability(log, items, len(classes))
    table = "csv" if form == "npz" else form
    files = {
        f"sets.{form}": f"{_SETS[how]}, one row per labelled item, and the weight of each",
        f"items.{table}": "every item, and whether it is labelled",
        f"contradictions.{table}": "answers about items for which they leave no class",
        f"log.{table}": "every answer, also late ones and those that were taken back",
    }
    with whole_folder(folder) as part:
        sets, listed, wrong, every = (part / name for name in files)
        column = "file" if items[0].kind == "image" else "item"
        row_weights = weights(log, found.sets, found.items, trust)
        write_sets(found.sets, found.items, sets, weights=row_weights, column=column)
        write_rows(listed, _ITEMS, _states(items, found))
        write_contradictions(found.contradictions, classes, wrong)
        write_log(log, classes, every)
        _write(part / ABOUT, _about(store, found, how, len(log), trust, files))
    return Bundle(known=found, answers=len(log), files={**files, ABOUT: "what is what"})


def _reliability(log: list[LogRow], items: list[Item], k: int) -> Reliability:
    gold = {item.name: item.gold for item in items if item.gold is not None}
    return reliabilities(log, gold, k)


def _states(items: list[Item], found: Known) -> list[list[str]]:
    state = dict.fromkeys((item.name for item in items), "labelled")
    state |= dict.fromkeys(found.unlabelled, "unlabelled")
    state |= dict.fromkeys(found.tests, "test")
    state |= {one.item: "contradicting" for one in found.contradictions}
    return [[item.name, item.kind, state[item.name], item.sha256] for item in items]


def _about(
    store: Store, found: Known, how: How, answers: int, trust: Reliability, files: dict[str, str]
) -> dict[str, Any]:
    own: dict[str, dict[str, float]] = {}
    for (user, form), error in trust.own.items():
        own.setdefault(user, {})[form] = error
    return {
        "made": datetime.now(UTC).isoformat(timespec="seconds"),
        "how": how,
        "counts": {
            "labelled": int((found.sets.sizes > 0).sum()),
            "unlabelled": len(found.unlabelled),
            "contradicting": len(found.contradictions),
            "tests": len(found.tests),
            "answers": answers,
        },
        "settings": asdict(store.settings),
        "error_rates": {"team": dict(trust.team), "annotators": own},
        "files": files,
    }


def _write(file: Path, content: dict[str, Any]) -> None:
    with atomic_write(file) as out:
        out.write(json.dumps(content, indent=2).encode() + b"\n")
