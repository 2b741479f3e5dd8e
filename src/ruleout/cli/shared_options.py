"""Options that several commands have, and what ``--help`` says of options."""

from collections.abc import Callable
from importlib.resources import files
from inspect import signature
from pathlib import Path
from tomllib import loads
from typing import Annotated, Any

import typer

#: Options that say what data are, as several commands have them together.
SETS = ("excluded", "candidates")
ANSWERS = ("error_rate", "annotator", "item", "known")
COLUMNS = ("features", "ignore", "features_from", "labels_file", "separator")
LEARNING = (
    *(*SETS, "annotator", "item", "known", "label", *COLUMNS, "text", "weight", "group"),
    *("classes", "size", "unlabelled", "skip_bad_rows"),
)

#: What stands for the values of an option, if anything does, and a sentence.
HELP: dict[str, Any] = loads(files("ruleout.cli").joinpath("options.toml").read_text("utf-8"))

#: Kinds of options, with what stands for them in the help.
Names = Annotated[list[str] | None, "A,B,…"]
File = Annotated[Path | None, "FILE"]

_TABLES = ".csv, .tsv, .parquet, .jsonl, .npz"
Data = Annotated[Path, typer.Argument(metavar="DATA", help=f"{_TABLES}, or a folder of images.")]
DataOrProject = Annotated[
    Path,
    typer.Argument(metavar="DATA", help=f"{_TABLES}, a folder of images, or a labelling project."),
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

    Both may also stand in ``options.toml``, under the command's module and name. A metavar in
    brackets is that of an argument, which may be left out. What is annotated with an option or an
    argument of typer's own keeps that.
    """
    own = signature(command, eval_str=True)
    made = dict(own.parameters)
    texts = HELP.get(command.__module__.rpartition(".")[2], {}).get(command.__name__, {})
    for name, one in made.items():
        inside = getattr(one.annotation, "__metadata__", ())
        told = texts.get(name, inside)
        if told and isinstance(told[-1], str):
            metavar = told[0] if len(told) > 1 else None
            option = typer.Option(flag(name), metavar=metavar, help=told[-1])
            if (metavar or "").startswith("["):
                option = typer.Argument(metavar=metavar, help=told[-1])
            kind = one.annotation.__origin__ if inside else one.annotation
            made[name] = one.replace(annotation=Annotated[kind, option])
    command.__signature__ = own.replace(parameters=[*made.values()])  # type: ignore[attr-defined]
    return command
