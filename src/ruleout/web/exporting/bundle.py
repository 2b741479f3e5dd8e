"""A whole export: label sets, items, contradictions, the log, and a file that says what is what."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal, TypeAlias

import pyarrow as pa

from ruleout.labels.atomic import atomic_write
from ruleout.web.exporting.cells import write_rows
from ruleout.web.exporting.known import How, Known, known
from ruleout.web.exporting.log import write_contradictions, write_log
from ruleout.web.exporting.sets import write_sets
from ruleout.web.exporting.weights import Reliability, reliabilities, weights
from ruleout.web.making import whole_folder
from ruleout.web.records import Item, LogRow
from ruleout.web.store import Store

__all__ = ["ABOUT", "Bundle", "Form", "write_bundle"]

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
