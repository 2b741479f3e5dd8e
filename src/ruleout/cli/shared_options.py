"""Options that several commands have."""

from pathlib import Path
from typing import Annotated

import typer

#: Options that say what data are, as several commands have them together.
SETS = ("excluded", "candidates")
COLUMNS = ("features", "ignore", "labels_file", "separator")
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
Excluded = Annotated[
    str | None,
    typer.Option(
        "--excluded",
        metavar="COLUMN",
        help="The column of what was ruled out: class names separated by |, or lists.",
    ),
]
Candidates = Annotated[
    str | None,
    typer.Option(
        "--candidates",
        metavar="COLUMN",
        help="Instead of --excluded: the column of what each row may still be.",
    ),
]
SkipBadRows = Annotated[
    bool,
    typer.Option(
        "--skip-bad-rows", help="Leave out rows that cannot be used, and say how many and why."
    ),
]
Label = Annotated[
    str | None, typer.Option("--label", metavar="COLUMN", help="The column of the true labels.")
]
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
Text = Annotated[
    list[str] | None,
    typer.Option(
        "--text",
        metavar="A,B,…",
        help="Columns of text: the tf-idf of their 2,000 most frequent words are features.",
    ),
]
Weight = Annotated[
    str | None,
    typer.Option("--weight", metavar="COLUMN", help="The column of what each row weighs."),
]
Group = Annotated[
    str | None,
    typer.Option(
        "--group",
        metavar="COLUMN",
        help="The column of what each row belongs to, such as a patient: rows of one group are "
        "held out together, or not at all.",
    ),
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
Separator = Annotated[
    str | None,
    typer.Option(
        "--separator",
        metavar="CHARACTER",
        help="What separates the cells of CSV and TSV files; a tab is written tab. "
        "By default the file shows it.",
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
EarlyStopping = Annotated[
    bool, typer.Option("--early-stopping", help="Choose the number of epochs, too.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON for programs.")]
