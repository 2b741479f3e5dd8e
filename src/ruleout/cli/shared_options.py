"""Options that several commands have, and how their text is read."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

_TABLES = ".csv, .tsv, .parquet, .jsonl, .npz"
_EXCLUDED = typer.Option(
    "--excluded",
    metavar="COLUMN",
    help="The column of what was ruled out: class names separated by |, or lists.",
)
_LABEL = typer.Option("--label", metavar="COLUMN", help="The column of the true labels.")

Data = Annotated[Path, typer.Argument(metavar="DATA", help=f"{_TABLES}, or a folder of images.")]
DataOrProject = Annotated[
    Path,
    typer.Argument(metavar="DATA", help=f"{_TABLES}, a folder of images, or a labelling project."),
]
Excluded = Annotated[str | None, _EXCLUDED]
ExcludedNeeded = Annotated[str, _EXCLUDED]
Label = Annotated[str | None, _LABEL]
LabelNeeded = Annotated[str, _LABEL]
Features = Annotated[
    list[str] | None,
    typer.Option(
        "--features",
        metavar="A,B,…",
        help="Exactly these columns are features. By default all that hold numbers.",
    ),
]
Ignore = Annotated[
    list[str] | None,
    typer.Option("--ignore", metavar="A,B,…", help="These columns are not features."),
]
ClassList = Annotated[
    str | None,
    typer.Option(
        "--classes",
        metavar="A,B,…",
        help="All class names, their number, or a text file with one name per line. "
        "By default those in the data.",
    ),
]
LabelsFile = Annotated[
    Path | None,
    typer.Option(
        "--labels-file",
        metavar="FILE",
        help="For a folder of images: the table whose column 'file' names them. "
        "By default labels.csv in the folder.",
    ),
]
Size = Annotated[
    str | None,
    typer.Option("--size", metavar="HxW", help="Resize images to this height and width."),
]
Unlabelled = Annotated[
    bool, typer.Option("--unlabelled", help="Accept rows that rule nothing out.")
]
How = Annotated[
    str | None,
    typer.Option(
        "--how",
        metavar="intersection|answers|no",
        help="For a labelling project: learn from what all answers leave possible (the default), "
        'from every yes and no by the unbiased risk, or from "no" alone as in the paper.',
    ),
]
FeaturesFrom = Annotated[
    Path | None,
    typer.Option(
        "--features-from",
        metavar="FILE",
        help="For a labelling project: take features from this table, whose column 'item' names "
        "the items, instead of from images or cells.",
    ),
]
Model = Annotated[Path, typer.Argument(metavar="MODEL", help="A folder that ruleout fit wrote.")]
Device = Annotated[str, typer.Option("--device", help="cpu or cuda.")]
Precision = Annotated[str, typer.Option(help="float32, float64, tf32 or bf16.")]
SeedOfTable = Annotated[int, typer.Option(min=0, help="The same seed gives the same table.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON for programs.")]


def parse_names(values: Sequence[str]) -> list[str]:
    """Split options that may be repeated, or hold several names with commas.

    >>> parse_names(["age,weight", '"a,b"'])
    ['age', 'weight', 'a,b']
    """
    return [name for row in csv.reader(values) for name in row]


def parse_classes(text: str | None) -> int | list[str] | None:
    """Read ``10``, ``cat,dog``, ``cat|dog``, or the name of a file with one name per line.

    >>> parse_classes("10"), parse_classes("cat,dog")
    (10, ['cat', 'dog'])
    """
    if text is None:
        return None
    if text.isascii() and text.isdigit():
        return int(text)
    if Path(text).is_file():
        try:
            lines = Path(text).read_text(encoding="utf-8-sig").splitlines()
        except UnicodeDecodeError:
            raise ValueError(f"{text}: this is not UTF-8 text; give one class per line") from None
        return [line.strip() for line in lines if line.strip()]
    if "|" in text:
        from ruleout.labels.row_files import split  # late: it loads pyarrow

        return split(text)
    return [name.strip() for name in parse_names([text])]


def parse_size(text: str | None) -> tuple[int, int] | None:
    """Read ``28x32`` or ``28``.

    >>> parse_size("28x32"), parse_size("28")
    ((28, 32), (28, 28))
    """
    if text is None:
        return None
    parts = text.lower().replace("×", "x").split("x")
    if len(parts) > 2 or not all(part.isascii() and part.isdigit() for part in parts):
        raise typer.BadParameter(f"{text!r} is not a size; write --size 28x28")
    return int(parts[0]), int(parts[-1])
