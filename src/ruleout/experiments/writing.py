"""Writing what ledgers hold: pages, tables, figures and data files."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

from ruleout import report
from ruleout.experiments import parquet
from ruleout.experiments.holdings import Holdings
from ruleout.experiments.pages import page
from ruleout.experiments.printed import Printed, printed, printed_for
from ruleout.experiments.records import Record
from ruleout.experiments.tabling import paper_tables
from ruleout.experiments.verdicts import difference, verdict
from ruleout.labels.atomic import atomic_write

__all__ = ["COLUMNS", "FORMATS", "accuracies", "write_report"]

#: What can be written.
FORMATS = ("html", "latex", "markdown", "csv", "parquet", "png", "pdf")

#: The columns of ``accuracy.csv``: the key of the paper's file, then ours.
COLUMNS = (
    "table", "dataset", "model", "sizes", "group", "approach",
    "mean", "std", "trials", "learning_rate", "weight_decay", "protocol", "chosen_by",
    "paper_mean", "paper_std", "difference", "verdict",
)  # fmt: skip


def write_report(
    held: Holdings, folder: str | Path, formats: Collection[str] = FORMATS
) -> list[Path]:
    """Write everything to a folder; return the files, the page first.

    - ``report.html``: the page;
    - ``NAME.tex``, ``NAME.md``, ``NAME.csv``: each table;
    - ``accuracy.csv``: cells beside the paper's, with the keys of the paper's own file; of
      further settings ``accuracy-SETTING.csv``;
    - ``ledger/*.parquet``: every trial and every configuration;
    - ``figure-1.png``, ``.pdf`` and ``figure-2``: accuracy by epoch of the unbiased losses.
    """
    place = Path(folder)
    place.mkdir(parents=True, exist_ok=True)
    made: list[Path] = []
    if "html" in formats:
        made.append(report.write(page(held), place / "report.html"))
    tables = paper_tables(held)
    forms = {"latex": ("tex", report.latex), "markdown": ("md", report.markdown),
             "csv": ("csv", report.csv)}  # fmt: skip
    for table in tables:
        for end, form in (forms[name] for name in forms if name in formats):
            made.append(_put(place / f"{table.cells.name}.{end}", form(table.cells)))
    if "csv" in formats:
        settings = list(dict.fromkeys(table.setting for table in tables))
        for setting in settings:
            records = [r for table in tables if table.setting == setting for r in table.records]
            end = f"-{setting}" if setting != settings[0] else ""
            made.append(_put(place / f"accuracy{end}.csv", accuracies(records)))
    if "parquet" in formats:
        made += parquet.write(held.records, place / "ledger")
    kinds = [kind for kind in ("png", "pdf") if kind in formats]
    if kinds:
        from ruleout.experiments.figures import draw  # late: matplotlib is an extra

        made += draw(held.records, place, kinds)
    return made


def _put(file: Path, content: str) -> Path:
    with atomic_write(file) as out:
        out.write(content.encode())
    return file


def accuracies(records: Sequence[Record]) -> str:
    """Return cells as CSV, spelt as in the paper's own file; means in percent.

    >>> accuracies([]).startswith("table,dataset,model,sizes,group,approach,mean,std,trials")
    True
    """
    out = io.StringIO()
    writer = csv.DictWriter(out, COLUMNS, lineterminator="\n")
    writer.writeheader()
    place = {one: number for number, one in enumerate(printed())}
    beside = [(found, r) for r in records if (found := printed_for(r.spec)) is not None]
    writer.writerows(_row(*both) for both in sorted(beside, key=lambda both: place[both[0]]))
    return out.getvalue()


def _row(found: Printed, record: Record) -> dict[str, Any]:
    spec = record.spec
    row = {name: getattr(found, name) for name in COLUMNS[:6]}
    gap = difference(record)
    settings = [record.configurations[int(c)] for c in record.chosen]
    return row | {
        "mean": _points(100 * record.mean),
        "std": _points(100 * record.std),
        "trials": spec.trials,
        **{n: _same([one[n] for one in settings]) for n in ("learning_rate", "weight_decay")},
        "protocol": spec.protocol,
        "chosen_by": spec.criterion + (" per trial" if spec.per_trial else ""),
        "paper_mean": f"{found.mean:.2f}",
        "paper_std": f"{found.std:.2f}",
        "difference": _points(math.nan if gap is None else gap),
        "verdict": verdict(record),
    }


def _points(value: float) -> str:
    return f"{value:.2f}" if math.isfinite(value) else ""


def _same(values: list[float]) -> str:
    return "|".join(f"{value:g}" for value in dict.fromkeys(values))
