"""``ruleout predict`` and ``ruleout resolve``: classes and probabilities for rows."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import numpy as np
import typer

from ruleout.cli import shared_options as options
from ruleout.cli.common import Source, friendly, open_project, show_rows, tell, watching
from ruleout.labels.atomic import atomic_write
from ruleout.labels.errors import counted
from ruleout.labels.row_files import SUFFIXES, check_out

if TYPE_CHECKING:
    import pyarrow as pa

    from ruleout.datasets import Table
    from ruleout.estimator import RuleOutClassifier
    from ruleout.learning.training_data import Review

Out = Annotated[
    options.File, ".csv, .tsv, .parquet or .jsonl. Without it the first rows are printed."
]
Answer: TypeAlias = "tuple[Table, dict[str, Any]]"  # rows, and columns about them
_SHOWN = 10  # rows that are printed


@friendly()
@Source.from_options(*options.COLUMNS)
def predict(
    model: options.Model,
    source: Source,
    out: Out = None,
    probabilities: Annotated[bool, "Also one column for each class."] = False,
    device: options.Device = "cpu",
) -> None:
    """Predict the class of each row, with its probability.

    Rows are read as they were for training: the same columns, the same image size.
    """
    _check_out(out, source.data)
    clf, tables, _ = source.with_model(model, device)

    def predicted() -> Iterator[Answer]:
        for table in tables:
            found = clf.predict_proba(table.x)
            columns = {"prediction": clf.classes_[found.argmax(1)], "probability": found.max(1)}
            if probabilities:
                columns |= {f"p({name})": found[:, at] for at, name in enumerate(clf.classes_)}
            yield table, columns

    _answer(predicted(), out, source.row_name)


@friendly()
@Source.from_options(
    *options.SETS, *options.ANSWERS, *options.COLUMNS, "unlabelled", "skip_bad_rows"
)
def resolve(
    model: options.Model, source: Source, out: Out = None, device: options.Device = "cpu"
) -> None:
    """Name the most likely class that was not ruled out, with its probability.

    'probability' is that by the model and by what was ruled out, 'before' by the model alone. Rows
    that trained the model are named by models of its settings that did not see them, fresh rows by
    those of the folds that chose its settings.

    Of a labelling project every item is named, by all answers about it. Where gold questions, or
    agreement, tell how often people err, a class that was ruled out by mistake can still be named.
    """
    _check_out(out, source.data)
    source = source.need_sets()
    clf, tables, items = source.with_model(model, device)
    told = {} if items is None else _said(clf, source, items)
    rows, sure, alone = 0, 0, 0

    def resolved() -> Iterator[Answer]:
        nonlocal rows, sure, alone
        for table in tables:
            sets = table.sets if items is None else items.sets
            assert sets is not None  # asked for
            said = sets if table.evidence is None else table.evidence
            sets = sets if table.evidence is None else table.evidence.sets
            own = told or {"sets": said, "sample_weight": table.weight, "groups": table.groups}
            with watching(lambda stage, n, m: f"{stage}: epoch {n} of {m}") as (progress, _):
                found = clf.resolve(table.x, progress=progress, **own)
            left = len(sets.classes) - sets.sizes
            rows, alone = rows + len(sets), alone + int((left == 1).sum())
            sure += int((found.probability >= 0.95).sum())
            columns = {"resolved": found.labels, "probability": found.probability}
            yield table, columns | {"before": found.before, "candidates": left}

    _answer(resolved(), out, source.row_name)
    if source.skip_bad_rows and source.row_name == "file":  # which rows of a table do not have
        tell(["Rows that were left out are missing here, too: --item names those that are left."])
    if out is not None:
        typer.echo(
            f"{sure:,} of {counted(rows, 'row')} at 0.95 or above; {alone:,} had one class left."
        )


def _said(clf: RuleOutClassifier, source: Source, items: Review) -> dict[str, Any]:
    """Return what was said about the items of a project, and which of them trained the model."""
    from ruleout.learning.training_data import contradiction_notes, read_lesson
    from ruleout.methods import approach as find_approach

    told: dict[str, Any] = {"likelihood": items.evidence and items.evidence.cases()}
    if items.evidence is None:
        tell(contradiction_notes(items.contradictions, "they count as not asked about"))
        tell(["No gold question was answered: answers count as never wrong."])
        told["likelihood"] = np.where(items.sets.excluded, -np.inf, 0.0)
    if clf.reading_.get("project") != items.table.reading["project"]:
        return told
    with open_project(source.data) as project:
        graded = clf.approach == "auto" or find_approach(clf.approach).graded is not None
        given = {"source": source.features_from, "reading": clf.reading_, "graded": graded}
        given["unlabelled"] = clf.learns_unlabelled
        lesson = read_lesson(project, clf.reading_["how"], **given)
    place = {name: row for row, name in enumerate(items.table.row_names or ())}
    rows = np.array([place[name] for name in lesson.table.row_names or ()])
    return told | {"sets": lesson.target, "sample_weight": lesson.weight, "cross": rows}


def _check_out(out: Path | None, data: Path) -> None:
    """Raise before any work if the answer could not be written."""
    if out is not None:
        check_out(out, SUFFIXES, data)


def _answer(answers: Iterator[Answer], out: Path | None, named: str) -> None:
    """Write answers to a file as they come, or print the first rows.

    `named` is the column of row names. Names of items come from strangers: no spreadsheet is to
    take them for a formula.
    """
    found = (_columns(*answer, out, named) for answer in answers)
    if out is not None:
        typer.echo(f"Written: {out} ({counted(_write(found, out), 'row')})")
        return
    first, rows = next(found), []
    more = len(first) + sum(map(len, found)) - _SHOWN  # read before anything is shown
    for row, values in enumerate(first.slice(0, _SHOWN).to_pylist()):
        cells = (f"{one:.4f}" if isinstance(one, float) else one for one in values.values())
        rows.append((row, *cells))
    show_rows(("row", *first.column_names), rows, framed=True)
    if more > 0:
        typer.echo(f"{more:,} more rows: write them with --out FILE.")


def _columns(table: Table, columns: dict[str, Any], out: Path | None, named: str) -> pa.Table:
    import pyarrow as pa

    held: dict[str, Any] = {} if table.row_names is None else {named: list(table.row_names)}
    held |= columns
    if named == "item" and out is not None and out.suffix.lower() in (".csv", ".tsv"):
        from ruleout.web.spreadsheet import inert

        for name, values in held.items():
            held[name] = [inert(value) if isinstance(value, str) else value for value in values]
    return pa.table(held)


def _write(found: Iterator[pa.Table], out: Path) -> int:
    """Write tables below each other, whole or not at all; return how many rows they have."""
    from pyarrow import csv, parquet

    suffix, rows = out.suffix.lower(), 0
    with atomic_write(out) as stream, ExitStack() as opened:
        writer: Any = None
        for part in found:
            rows += len(part)
            if suffix == ".jsonl":
                stream.writelines(json.dumps(row).encode() + b"\n" for row in part.to_pylist())
                continue
            if writer is None and suffix == ".parquet":
                writer = opened.enter_context(parquet.ParquetWriter(stream, part.schema))
            elif writer is None:
                rules = csv.WriteOptions(delimiter="\t" if suffix == ".tsv" else ",")
                made = csv.CSVWriter(stream, part.schema, write_options=rules)
                writer = opened.enter_context(made)
            writer.write_table(part)
    return rows
