"""What commands share: options for data, reading it, and errors as one sentence."""

from __future__ import annotations

import csv
import errno
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from ruleout.datasets import Table
    from ruleout.estimator import RuleOutClassifier
    from ruleout.learning import Review


_EXCLUDED = typer.Option(
    "--excluded",
    metavar="COLUMN",
    help="The column of what was ruled out: class names separated by |, or lists.",
)
_LABEL = typer.Option("--label", metavar="COLUMN", help="The column of the true labels.")

Data = Annotated[
    Path,
    typer.Argument(
        metavar="DATA", help=".csv, .tsv, .parquet, .jsonl, .npz, or a folder of images."
    ),
]
DataOrProject = Annotated[
    Path,
    typer.Argument(
        metavar="DATA",
        help=".csv, .tsv, .parquet, .jsonl, .npz, a folder of images, or a labelling project.",
    ),
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
    typer.Option("--ignore", metavar="A,B,…", help="These columns are no features."),
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
FeaturesFrom = Annotated[
    Path | None,
    typer.Option(
        "--features-from",
        metavar="FILE",
        help="For a labelling project: take features from this table, whose column 'item' names "
        "the items, instead of from images or cells.",
    ),
]
Unlabelled = Annotated[
    bool, typer.Option("--unlabelled", help="Accept rows that rule nothing out.")
]


@contextmanager
def friendly() -> Iterator[None]:
    """Turn what is wrong with the input into one sentence and exit code 1; also a decorator.

    Usage errors keep their exit code 2, and a reader that closes the pipe is no error.

    Examples
    --------
    >>> @friendly()
    ... def read() -> None:
    ...     raise ValueError("a.csv: the file is empty; fill it in")
    >>> try:
    ...     read()  # prints "ruleout: a.csv: the file is empty; fill it in" to stderr
    ... except typer.Exit as end:
    ...     print(end.exit_code)
    1
    """
    try:
        yield
    except BrokenPipeError:
        raise typer.Exit(0) from None
    except (ValueError, OSError, MemoryError) as error:
        typer.echo(f"ruleout: {_sentence(error)}", err=True)
        raise typer.Exit(1) from None


def _sentence(error: Exception) -> str:
    if isinstance(error, MemoryError):
        return "there is not enough memory for this; give fewer rows or smaller images"
    if isinstance(error, OSError) and error.strerror:
        where = f"{error.filename}: " if error.filename else ""
        remedies = {
            errno.ENOSPC: "free some space",
            errno.EDQUOT: "free some space",
            errno.EACCES: "check the permissions",
            errno.EPERM: "check the permissions",
            errno.EROFS: "write somewhere else",
            errno.ENOENT: "check the name",
        }
        text = error.strerror[0].lower() + error.strerror[1:]
        return f"{where}{text}; {remedies.get(error.errno or 0, 'check the file')}"
    text = " ".join(str(error).split()) or type(error).__name__
    return text.replace("pass unlabelled=True", "give --unlabelled")


#: Modules of the extra ``label``.
_EXTRA = {"alembic", "argon2", "pydantic", "sqlalchemy", "starlette", "uvicorn"}


@contextmanager
def labelling() -> Iterator[None]:
    """Say in one sentence what is wrong, as `friendly`; an absent extra and database included."""
    with friendly(), _sentences():
        yield


@contextmanager
def _sentences() -> Iterator[None]:
    try:
        yield
    except ModuleNotFoundError as error:
        name = (error.name or "").split(".")[0]
        if name not in _EXTRA:
            raise
        problem = f"labelling needs the package {name}, which is absent"
        raise ValueError(f"{problem}; run pip install 'ruleout[label]'") from None
    except RuntimeError as error:
        from ruleout.web import UnavailableError  # late: it loads SQLAlchemy

        if not isinstance(error, UnavailableError):
            raise
        raise ValueError(str(error)) from None


def tell(notes: Sequence[str]) -> None:
    """Print notes where they do not mix with results."""
    for note in notes:
        typer.echo(f"Note: {note}", err=True)


@contextmanager
def as_notes() -> Iterator[None]:
    """Print warnings as notes, without the lines of code they come from."""
    with warnings.catch_warnings():
        warnings.simplefilter("default")
        warnings.showwarning = lambda message, *_, **__: tell([str(message)])
        yield


def open_table(
    data: Path,
    *,
    features: Sequence[str] | None = None,
    ignore: Sequence[str] | None = None,
    classes: str | None = None,
    size: str | None = None,
    **options: Any,
) -> Table:
    """Read a table from options as the command line gives them, and print its notes.

    `options` go to :func:`ruleout.datasets.read_table` as they are.
    """
    from ruleout.datasets import read_table  # late: numpy is enough for --help

    table = read_table(
        data,
        features=parse_names(features) if features else None,
        ignore=parse_names(ignore or ()),
        classes=parse_classes(classes),
        size=parse_size(size),
        **options,
    )
    tell(table.notes)
    return table


def note_single(table: Table) -> None:
    """Say that single classes, which true labels look like, are taken as ruled out."""
    sets = table.sets
    if sets is not None and len(sets.classes) > 2 and (sets.sizes == 1).all():
        tell(["every row rules out exactly one class; true labels belong into --label"])


def check_folder(place: Path) -> None:
    """Raise where a folder cannot be made; nothing is made yet."""
    while not place.exists() and place != place.parent:
        place = place.parent
    if not place.is_dir():
        from ruleout.labels.errors import InputError  # late: numpy is not needed for --help

        raise InputError("this is a file", "name a folder with --out", file=place)


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


How = Annotated[
    str | None,
    typer.Option(
        "--how",
        metavar="intersection|answers|no",
        help="For a labelling project: learn from what all answers leave possible (the default), "
        'from every yes and no by the unbiased risk, or from "no" alone as in the paper.',
    ),
]


def is_project(data: Path, *columns: str | None) -> bool:
    """Tell a labelling project from a folder of images; whoever names a label column means that."""
    return not any(columns) and (data.expanduser() / "project.json").is_file()


def needs_column(data: Path, options: str) -> Exception:
    """Return what is wrong where no column was named and the data are no project."""
    if not data.expanduser().exists():
        return ValueError(f"{data}: there is no such file or folder; check the path")
    return typer.BadParameter(
        "give one of the two; a labelling project alone needs neither", param_hint=options
    )


def check_options(
    project: bool, *, of_projects: Mapping[str, Any], of_tables: Mapping[str, Any]
) -> None:
    """Refuse an option that was given and belongs to the other kind of data."""
    kind = "tables and image folders" if project else "labelling projects"
    for option, value in (of_tables if project else of_projects).items():
        if value:
            raise typer.BadParameter(f"this is for {kind}; leave it out", param_hint=option)


def open_lesson(
    data: Path,
    how: str | None,
    source: Path | None,
    *,
    features: Sequence[str] | None,
    ignore: Sequence[str] | None,
    size: str | None,
) -> tuple[Table, Any, Any]:
    """Read what a project teaches: rows, what is known about them, and weights; print the notes."""
    with labelling(), ExitStack() as stack:
        from ruleout.learning.training_data import USUAL, read_lesson
        from ruleout.web.project import Project

        found = read_lesson(
            stack.enter_context(Project.open(data)),
            how or USUAL,  # type: ignore[arg-type]  # checked there
            source,
            features=parse_names(features) if features else None,
            ignore=parse_names(ignore or ()),
            size=parse_size(size),
        )
    tell(found.notes)
    return found.table, found.target, found.weight


def open_items(
    model: Path,
    data: Path,
    device: str,
    source: Path | None,
    *,
    features: Sequence[str] | None,
    ignore: Sequence[str] | None,
) -> tuple[RuleOutClassifier, Review]:
    """Load a model, and read all items of a project as it was trained on them."""
    from ruleout.cli.predict import load_model

    clf, reading, wanted = load_model(model, device, features)
    with labelling(), ExitStack() as stack:
        from ruleout.estimator.inputs import known_target
        from ruleout.learning import read_review
        from ruleout.web.project import Project

        project = stack.enter_context(Project.open(data))
        found = read_review(
            project, source, reading=reading, features=wanted, ignore=parse_names(ignore or ())
        )
        known_target(found.sets, clf.classes_)  # raises for other classes
    tell(found.table.notes)
    return clf, found
