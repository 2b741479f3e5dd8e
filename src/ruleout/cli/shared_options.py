"""Options that several commands have."""

from collections.abc import Callable
from inspect import signature
from pathlib import Path
from typing import Annotated

import typer

#: Options that say what data are, as several commands have them together.
SETS = ("excluded", "candidates", "votes", "answer")
ANSWERS = ("error_rate", "annotator", "item", "known")
COLUMNS = ("features", "ignore", "features_from", "labels_file", "separator")
LEARNING = (
    *(*SETS, "annotator", "item", "known", "label", *COLUMNS, "text", "weight", "group"),
    *("classes", "size", "unlabelled", "skip_bad_rows"),
)

#: Kinds of options, with what stands for them in the help.
Column = Annotated[str | None, "COLUMN"]
Names = Annotated[list[str] | None, "A,B,…"]
File = Annotated[Path | None, "FILE"]

_TABLES = (
    ".csv, .tsv, .parquet, .jsonl, .json, .npz, .mat, the name of a board of 'ruleout data list', "
    "a folder of images"
)
Data = Annotated[Path, typer.Argument(metavar="DATA", help=f"{_TABLES}.")]
DataOrProject = Annotated[
    Path, typer.Argument(metavar="DATA", help=f"{_TABLES}, or a labelling project.")
]
FeaturesFrom = Annotated[
    File,
    "For a labelling project: take features from this table, whose column 'item' names the items, "
    "instead of from images or cells.",
]
Model = Annotated[Path, typer.Argument(metavar="MODEL", help="A folder that ruleout fit wrote.")]
Device = Annotated[str, "cpu or cuda."]
Precision = Annotated[str, "float32, float64, tf32 or bf16."]
SeedOfTable = Annotated[int, typer.Option(min=0, help="The same seed gives the same table.")]
EarlyStopping = Annotated[bool, "Choose the number of epochs, too."]
Scale = Annotated[
    bool | None,
    typer.Option(
        "--scale/--no-scale",
        help="Scale columns inside the model; by default where their sizes differ 100 times.",
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON for programs.")]


def flag(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def declared(command: Callable[..., None]) -> Callable[..., None]:
    """Make options of what a command takes as ``Annotated[kind, metavar, help]``, or help alone.

    A metavar in brackets is that of an argument, which may be left out. What is annotated with an
    option or an argument of typer's own keeps that.
    """
    own = signature(command, eval_str=True)
    made = dict(own.parameters)
    for name, one in made.items():
        told = getattr(one.annotation, "__metadata__", ())
        if told and isinstance(told[-1], str):
            metavar = told[0] if len(told) > 1 else None
            option = typer.Option(flag(name), metavar=metavar, help=told[-1])
            if (metavar or "").startswith("["):
                option = typer.Argument(metavar=metavar, help=told[-1])
            made[name] = one.replace(annotation=Annotated[one.annotation.__origin__, option])
    command.__signature__ = own.replace(parameters=[*made.values()])  # type: ignore[attr-defined]
    return command
