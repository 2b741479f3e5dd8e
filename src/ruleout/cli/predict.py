"""``ruleout predict``: classes and probabilities for the rows of a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ruleout.cli.common import (
    DataOrProject,
    Features,
    FeaturesFrom,
    Ignore,
    LabelsFile,
    check_options,
    friendly,
    is_project,
    open_items,
    parse_names,
    tell,
)

if TYPE_CHECKING:
    import pyarrow as pa

    from ruleout.datasets import Table
    from ruleout.estimator import RuleOutClassifier

__all__ = ["Device", "Model", "Out", "answer", "check_out", "load_model", "open_rows", "predict"]

Model = Annotated[Path, typer.Argument(metavar="MODEL", help="A folder that ruleout fit wrote.")]
Device = Annotated[str, typer.Option("--device", help="cpu or cuda.")]
Out = Annotated[
    Path | None,
    typer.Option(
        "--out",
        metavar="FILE",
        help=".csv, .tsv, .parquet or .jsonl. Without it the first rows are printed.",
    ),
]
_SUFFIXES = (".csv", ".tsv", ".parquet", ".jsonl")
_SHOWN = 10  # rows that are printed


@friendly()
def predict(
    model: Model,
    data: DataOrProject,
    out: Out = None,
    probabilities: Annotated[
        bool, typer.Option("--probabilities", help="Also one column for each class.")
    ] = False,
    features: Features = None,
    ignore: Ignore = None,
    labels_file: LabelsFile = None,
    features_from: FeaturesFrom = None,
    device: Device = "cpu",
) -> None:
    """Predict the class of each row, with its probability.

    Rows are read as they were for training: the same columns, the same image size.
    """
    check_out(out, data)
    project, chosen = is_project(data), {"features": features, "ignore": ignore}
    check_options(
        project,
        of_projects={"--features-from": features_from},
        of_tables={"--labels-file": labels_file},
    )
    if project:
        clf, items = open_items(model, data, device, features_from, **chosen)
        table = items.table
    else:
        clf, table = open_rows(model, data, device, labels_file=labels_file, **chosen)
    found = clf.predict_proba(table.x)
    columns: dict[str, Any] = {
        "prediction": clf.classes_[found.argmax(1)],
        "probability": found.max(1),
    }
    if probabilities:
        columns |= {f"p({name})": found[:, place] for place, name in enumerate(clf.classes_)}
    answer(table, columns, out, "item" if project else "file")


def open_rows(
    model: Path,
    data: Path,
    device: str,
    *,
    features: list[str] | None,
    ignore: list[str] | None,
    **options: Any,
) -> tuple[RuleOutClassifier, Table]:
    """Load a model, and read rows as it was trained on them."""
    from ruleout.datasets import read_table

    clf, reading, wanted = load_model(model, device, features)
    if any(options.get(name) for name in ("excluded", "label")):
        options["classes"] = clf.classes_.tolist()
    table = read_table(
        data, reading=reading, features=wanted, ignore=parse_names(ignore or ()), **options
    )
    tell(table.notes)
    return clf, table


def load_model(
    model: Path, device: str, features: Sequence[str] | None
) -> tuple[RuleOutClassifier, Mapping[str, Any] | None, list[str] | None]:
    """Load a model; also return how its rows were read, and which columns to take."""
    from ruleout.estimator import load

    clf = load(model, device=None if device == "cpu" else device)
    reading = clf.reading_ or None
    names = clf.__dict__.pop("feature_names_in_", None)  # columns are picked by name here
    wanted = parse_names(features) if features else None
    if wanted is None and reading is None and names is not None:
        wanted = names.tolist()
    return clf, reading, wanted


def check_out(out: Path | None, data: Path) -> None:
    """Raise before any work if the answer could not be written."""
    if out is None:
        return
    if out.suffix.lower() not in _SUFFIXES:
        raise ValueError(f"{out}: unknown file type; use {', '.join(_SUFFIXES)}")
    if out.exists() and data.exists() and out.samefile(data):
        raise ValueError(f"{out}: this file is to be read and written; give another name")


def answer(table: Table, columns: dict[str, Any], out: Path | None, named: str = "file") -> None:
    """Write columns to a file, or print the first rows; `named` is the column of row names.

    Names of items come from strangers: no spreadsheet is to take them for a formula.
    """
    import pyarrow as pa

    names = {} if table.row_names is None else {named: list(table.row_names)}
    if named == "item" and out is not None and out.suffix.lower() in (".csv", ".tsv"):
        from ruleout.web.spreadsheet import inert

        names, columns = (
            {name: [inert(v) if isinstance(v, str) else v for v in values]
             for name, values in part.items()}
            for part in (names, columns)
        )  # fmt: skip
    found = pa.table({**names, **columns})
    if out is None:
        _show(found)
        return
    _write(found, out)
    typer.echo(f"Written: {out} ({len(table):,} rows)")


def _write(found: pa.Table, out: Path) -> None:
    import json

    from pyarrow import csv, parquet

    from ruleout.labels.atomic import atomic_write

    suffix = out.suffix.lower()
    with atomic_write(out.expanduser()) as stream:
        if suffix == ".parquet":
            parquet.write_table(found, stream)
        elif suffix == ".jsonl":
            for batch in found.to_batches(max_chunksize=8192):
                for row in batch.to_pylist():
                    stream.write(json.dumps(row).encode() + b"\n")
        else:
            rules = csv.WriteOptions(delimiter="\t" if suffix == ".tsv" else ",")
            csv.write_csv(found, stream, rules)


def _show(found: pa.Table) -> None:
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table as Grid

    grid = Grid()
    for name in ("row", *found.column_names):
        grid.add_column(escape(name))
    for row, values in enumerate(found.slice(0, _SHOWN).to_pylist()):
        cells = [f"{one:.4f}" if isinstance(one, float) else str(one) for one in values.values()]
        grid.add_row(str(row), *map(escape, cells))
    Console().print(grid)
    if len(found) > _SHOWN:
        typer.echo(f"{len(found) - _SHOWN:,} more rows: write them with --out FILE.")
