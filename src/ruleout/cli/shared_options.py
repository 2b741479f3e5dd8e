"""Options that several commands have."""

from pathlib import Path
from typing import Annotated

import typer

#: Options that say what data are, as several commands have them together.
SETS = ("excluded", "candidates")
COLUMNS = ("features", "ignore", "features_from", "labels_file", "separator")
LEARNING = (
    *(*SETS, "label", *COLUMNS, "text", "weight", "group"),
    *("classes", "size", "unlabelled", "skip_bad_rows"),
)

_TABLES = ".csv, .tsv, .parquet, .jsonl, .npz"
Data = Annotated[Path, typer.Argument(metavar="DATA", help=f"{_TABLES}, or a folder of images.")]
DataOrProject = Annotated[
    Path,
    typer.Argument(metavar="DATA", help=f"{_TABLES}, a folder of images, or a labelling project."),
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
EarlyStopping = Annotated[
    bool, typer.Option("--early-stopping", help="Choose the number of epochs, too.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON for programs.")]
