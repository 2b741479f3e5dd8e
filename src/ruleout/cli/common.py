"""What commands share: errors as one sentence, notes, progress, and the one way to open data."""

from __future__ import annotations

import csv
import errno
import os
import re
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import cache, partial, wraps
from importlib import import_module
from importlib.metadata import entry_points
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias, get_type_hints

import numpy as np
import typer
from rich.console import Console
from rich.markup import escape

from ruleout.cli import shared_options as options
from ruleout.labels import Evidence, LabelSets
from ruleout.labels.errors import DataError, counted
from ruleout.labels.origins import LABELS, may_err, says
from ruleout.labels.row_files import split

if TYPE_CHECKING:
    from ruleout.datasets import Finding, Findings, Table
    from ruleout.estimator import RuleOutClassifier
    from ruleout.learning import Review
    from ruleout.web.project import Project


#: Packages of the extra ``label``.
_EXTRA = {"argon2", "pydantic", "sqlalchemy", "starlette", "uvicorn"}
_REMEDIES = {
    errno.ENOSPC: "free some space",
    errno.EDQUOT: "free some space",
    errno.EACCES: "check the permissions",
    errno.EPERM: "check the permissions",
    errno.EROFS: "write somewhere else",
    errno.ENOENT: "check the name",
}


@contextmanager
def friendly() -> Iterator[None]:
    """Turn what is wrong with the input into one sentence and exit code 1; also a decorator.

    Usage errors keep their exit code 2, and a reader that closes the pipe is not an error.
    """
    try:
        _load_plugins(tuple(PLUGINS))
        yield
    except BrokenPipeError:
        raise typer.Exit(0) from None
    except (ValueError, OSError, MemoryError, ModuleNotFoundError, RuntimeError) as error:
        sentence = _sentence(error)
        if sentence is None:
            raise
        typer.echo(f"ruleout: {sentence}", err=True)
        raise typer.Exit(1) from None


def _sentence(error: Exception) -> str | None:
    """Say what is wrong with the input; None where it is not the input that is at fault."""
    if isinstance(error, MemoryError):
        return "there is not enough memory for this; give fewer rows or smaller images"
    if isinstance(error, ModuleNotFoundError):
        name = (error.name or "").split(".")[0]
        problem = f"labelling needs the package {name}, which is not installed"
        return f"{problem}; run pip install 'ruleout[label]'" if name in _EXTRA else None
    if isinstance(error, RuntimeError):
        web = sys.modules.get("ruleout.web")
        return str(error) if web and isinstance(error, web.UnavailableError) else None
    if isinstance(error, OSError) and error.strerror:
        where = f"{error.filename}: " if error.filename else ""
        text = error.strerror[0].lower() + error.strerror[1:]
        return f"{where}{text}; {_REMEDIES.get(error.errno or 0, 'check the file')}"
    if getattr(error, "argument", None):  # of a function: here it is an option
        error.argument = f"--{error.argument.partition('=')[0].replace('_', '-')}"  # type: ignore[attr-defined]
    return " ".join(str(error).split()) or type(error).__name__


#: The modules after ``--plugin``, which are imported when a command runs: not for ``--help``.
PLUGINS: list[str] = []


@cache
def _load_plugins(modules: tuple[str, ...]) -> list[str]:
    """Import what registers losses, rules and data sets of a user's own; return the modules.

    First the installed packages that name a module under the entry point ``ruleout.plugins``, then
    `modules`, which may lie in the current folder.
    """
    points = list(entry_points(group="ruleout.plugins"))
    loaders: dict[str, Callable[[], object]] = {point.name: point.load for point in points}
    loaders |= {name: partial(import_module, name) for name in modules}
    if modules:
        sys.path.insert(0, os.getcwd())
    for name, load in loaders.items():
        try:
            load()
        except Exception as error:  # whatever a stranger's module raises
            said = " ".join(f"{type(error).__name__}: {error}".split())
            remedy = "fix it, or leave it out"
            if name.endswith(".py"):  # a file's name is not its module's
                remedy = f"say --plugin {Path(name).stem} in the folder of that file"
            raise ValueError(f"the plugin {name!r} does not load ({said}); {remedy}") from None
    return [*(point.module for point in points), *modules]


def plugins() -> list[str]:
    """Return the modules that were imported for a user's own losses, rules and data sets."""
    return _load_plugins(tuple(PLUGINS))


def open_project(folder: Path) -> Project:
    from ruleout.web.project import Project  # late: it loads SQLAlchemy

    return Project.open(folder)


def tell(notes: Sequence[str]) -> None:
    """Print notes where they do not mix with results."""
    for note in notes:
        typer.echo(f"Note: {note}", err=True)


def assumed(target: Any, table: Table) -> Finding | None:
    """Say what an accuracy estimated from sets or answers assumes; None of other targets."""
    from ruleout.datasets.data_checks import Inspection
    from ruleout.estimator.inputs import per_row

    rows, said = table.raw or table, target if isinstance(target, Evidence) else None
    plain = said is None or table.sets is None  # in a table sets are as they were read
    sets = per_row(target, len(table))[0] if plain else rows.sets
    if not isinstance(sets, LabelSets):
        return None
    seen = Inspection(sets.classes).add(sets, rows.x, truth=rows.truth())
    return verdict(seen.findings(), said)


def verdict(found: Findings, said: Evidence | None) -> Finding:
    """Say what an accuracy rests on: true labels that correct it, or else an assumption."""
    from ruleout.datasets import Finding

    truth = None if said is None else said.truth
    known = np.flatnonzero([] if truth is None else truth >= 0)
    many, numbers = counted(len(known), "true label"), {"labels": len(known)}
    enough = len(known) >= LABELS  # fewer correct nothing, so it does not matter which they are
    if enough and "known rows" in found and found["known rows"].level == "warning":
        message = f"No accuracy is estimated from {many}. {found['known rows'].message} "
        message += "Name the classes of rows drawn at random, or judge without --known."
        return Finding("warning", "assumption", message, {**numbers, "why": []})
    if said is None or not said.corrected:
        return found.assumption(mistakes=may_err(said))
    message = f"It is that of {many} alone, and holds if their rows are a random part of all."
    if np.isfinite(said.unaided.right[known]).any():
        message = (
            f"It rests on {many}, which correct what was ruled out: if their rows are a random "
            "part of all, it does not matter how sets came about."
        )
    return Finding("fine", "assumption", message, numbers)


#: Why there is no accuracy, though no test rejects what it assumes.
UNKNOWN = "so much may be wrong that nothing follows, or fewer sets are wrong than was said"


@contextmanager
def as_notes() -> Iterator[None]:
    """Print warnings as notes, without the lines of code they come from."""
    with warnings.catch_warnings():
        warnings.simplefilter("default")
        warnings.showwarning = lambda message, *_, **__: tell([str(message)])
        yield


def _tell_repeats(table: Table) -> None:
    from ruleout.datasets.tables import row_hashes
    from ruleout.training.validation import together

    alike = together(table.x)
    if alike is not None:
        many = int((np.bincount(alike)[alike] > 1).sum())
        tell([f"{many:,} rows equal others: they train, choose or judge together."])
    elif table.groups is None and (different := len(np.unique(row_hashes(table.x)))) < len(table):
        say = f"only {different} rows are different: equal ones count as examples that happen to be"
        say += " alike. Where they are the same thing, accuracies are far too good; name what"
        tell([f"{say} belongs together with --group."])


def scaling(table: Table, asked: bool | None) -> bool:
    """Decide whether columns are scaled: as asked, else where raw ones would lose; say so."""
    from ruleout.datasets.tables import Scaling

    problem = Scaling.of(table.x).problem(table.features) if table.features else None
    if problem is not None:
        done = "raw ones lose, so leave out --no-scale"
        tell([f"{problem}: {done if asked is False else 'they are scaled inside the model'}."])
    return problem is not None if asked is None else asked


def parse_names(values: Sequence[str]) -> list[str]:
    """Split options that may be repeated, or hold several names with commas."""
    return [name for row in csv.reader(values) for name in row]


def parse_classes(text: str | None) -> int | list[str] | None:
    """Read ``10``, ``cat,dog``, ``cat|dog``, or the name of a file with one name per line."""
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
        return split(text)
    return [name.strip() for name in parse_names([text])]


def parse_size(text: str | None) -> tuple[int, int] | None:
    """Read ``28x32`` or ``28``."""
    if text is None:
        return None
    parts = text.lower().replace("×", "x").split("x")
    if len(parts) > 2 or not all(part.isascii() and part.isdigit() for part in parts):
        raise typer.BadParameter(f"{text!r} is not a size; write --size 28x28")
    return int(parts[0]), int(parts[-1])


def parse_rate(text: str) -> float | tuple[int, int]:
    """Read ``0.05``, or ``3/30``: how many of how many were wrong."""
    try:
        wrong, slash, asked = text.partition("/")
        return (int(wrong), int(asked)) if slash else float(text)
    except ValueError:
        problem = f"{text!r} is not a rate; write --error-rate 0.05, or 3/30"
        raise typer.BadParameter(problem) from None


class Terminal(Console):
    """Where results are printed. Whoever reads them may stop, as ``head`` does."""

    def on_broken_pipe(self) -> None:
        with suppress(SystemExit):  # 1, as if that were an error
            super().on_broken_pipe()
        raise BrokenPipeError


#: What terminals take for commands; names of classes and items come from strangers.
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def _spelled(found: re.Match[str]) -> str:
    return repr(found[0])[1:-1]


def show_rows(
    columns: Sequence[str],
    rows: Iterable[Sequence[object]],
    right: Sequence[str] = (),
    *,
    framed: bool = False,
) -> None:
    """Print a table, some columns set right; without a frame, a file gets each row on one line."""
    from rich.table import Table

    bare: Any = {"box": None, "header_style": "bold", "pad_edge": False}
    grid = Table(show_header=any(columns), **({} if framed else bare))
    for place, column in enumerate(columns):
        style = None if any(columns) or place else "bold"
        side: Any = "right" if column in right else "left"
        told: Any = {"overflow": "ellipsis" if framed else "fold", "style": style}
        grid.add_column(escape(column), justify=side, **told)
    for row in rows:
        grid.add_row(*(escape(_CONTROL.sub(_spelled, str(cell))) for cell in row))
    console = Terminal()
    if not console.is_terminal and not framed:
        console.width = 1000
    console.print(grid, highlight=False)


def check_folder(place: Path, option: str = "--out") -> None:
    """Raise where a folder cannot be made; nothing is made yet."""
    while not place.exists() and place != place.parent:
        place = place.parent
    if not place.is_dir():
        raise ValueError(f"{place}: this is a file; name a folder with {option}")
    if not os.access(place, os.W_OK):
        raise ValueError(f"{place}: nothing can be written there; name another with {option}")


def expecting(device: str) -> Callable[[float], None]:
    """Return a function that says how long training will take, where that is more than a minute."""

    def call(seconds: float) -> None:
        if seconds > 60:
            from ruleout.report.number_format import duration

            typer.echo(f"This will take about {duration(seconds)} on {device}.", err=True)

    return call


Progress: TypeAlias = Callable[[str, float, float], None]


@contextmanager
def watching(
    line: Callable[[str, float, float], str] | None = None, *, whole: bool = False
) -> Iterator[tuple[Progress, Callable[[str], None]]]:
    """Show progress, one bar for each stage, or a single one where all count towards the `whole`.

    Yield what is called with a stage, how much of it is done and how much there is, and what prints
    a line. `line` writes what is printed where there is no terminal: for each stage of the whole,
    or for each quarter of a stage.
    """
    console = Console(stderr=True)

    def say(text: str) -> None:
        console.print(text, highlight=False, soft_wrap=True, markup=False)

    if not console.is_terminal:
        seen: set[Any] = set()

        def tell(stage: str, done: float, total: float) -> None:
            key = stage if whole else (stage, int(4 * done / total))
            if line is not None and key not in seen:
                say(line(stage, done, total))
            seen.add(key)

        yield tell, say
        return
    from rich import progress as rich

    left = rich.TimeRemainingColumn(elapsed_when_finished=True)
    columns = ("{task.description:<16}", rich.BarColumn(None), "{task.percentage:3.0f} %", left)
    with rich.Progress(*columns, console=console, transient=True) as bar:
        tasks: dict[str, Any] = {}

        def show(stage: str, done: float, total: float) -> None:
            key = "" if whole else stage
            if key not in tasks:
                tasks[key] = bar.add_task(stage)
            bar.update(tasks[key], completed=done, total=total, description=stage)

        yield show, say


Command: TypeAlias = Callable[..., None]


@dataclass(frozen=True)
class Source:
    """A table, a folder of images or a labelling project, as the options of a command name it."""

    data: Path
    excluded: Annotated[
        options.Column, "The column of what was ruled out: class names separated by |, or lists."
    ] = None
    candidates: Annotated[
        options.Column,
        "Instead of --excluded: the column of what each row may still be. By default "
        "partial_target in a .mat file.",
    ] = None
    votes: Annotated[
        options.Names,
        "Instead of both: a column for each class, or in .npz and .mat an array, of 1 (may be this "
        "class), -1 (is not) and 0 (unknown; in a row with a 1: is not).",
    ] = None
    answer: Annotated[
        options.Column,
        "The column of what was answered about --candidates: accept, reject (which rules them out) "
        "or ignore. Then features come from --features, --text or --features-from alone.",
    ] = None
    error_rate: Annotated[
        str | None,
        "RATE",
        "How often what was ruled out is wrong: 0.05, or 3/30, so many of as many questions whose "
        "answer is known.",
    ] = None
    annotator: Annotated[
        options.Column,
        "The column of who ruled it out, where rows are answers of several people: all answers "
        "about an item count, each as its author is wrong by what the others say.",
    ] = None
    item: Annotated[
        options.Column,
        "The column of what each answer is about. By default 'item' with --features-from, else "
        "rows with equal features are about one item.",
    ] = None
    label: Annotated[options.Column, "The column of the true labels."] = None
    known: Annotated[
        options.Column,
        "The column of the true class of some rows, else empty. They teach it, and need no set. "
        "From 30 on, drawn at random, they correct the choice and the accuracy, however sets came "
        "about.",
    ] = None
    features: Annotated[
        options.Names, "Exactly these columns are features. By default all that hold numbers."
    ] = None
    ignore: Annotated[options.Names, "These columns are not features."] = None
    text: Annotated[
        options.Names,
        "Columns of text: the tf-idf of their 2,000 most frequent words are features.",
    ] = None
    weight: Annotated[options.Column, "The column of what each row weighs."] = None
    group: Annotated[
        options.Column,
        "The column of what each row belongs to, such as a patient: rows of one group are held out "
        "together, or not at all.",
    ] = None
    classes: Annotated[
        str | None,
        "A,B,…",
        "All class names, their number, or a text file with one name per line. By default those in "
        "the data.",
    ] = None
    labels_file: Annotated[
        options.File,
        "For a folder of images: the table whose column 'file' names them. By default labels.csv "
        "in the folder.",
    ] = None
    separator: Annotated[
        str | None,
        "CHARACTER",
        "What separates the cells of CSV and TSV files; a tab is written tab. By default the file "
        "shows it.",
    ] = None
    size: Annotated[str | None, "HxW", "Resize images to this height and width."] = None
    unlabelled: Annotated[bool, "Accept rows that rule nothing out, as with --known."] = False
    skip_bad_rows: Annotated[
        bool, None, "Leave out rows that cannot be used, and say how many and why."
    ] = False
    how: Annotated[
        str | None,
        "intersection|answers|no",
        "For a labelling project: learn from what all answers leave possible (the default), from "
        'every yes and no by the unbiased risk, or from "no" alone as in the paper.',
    ] = None
    features_from: Annotated[
        options.File,
        "Take features from this table, whose column 'item' names the items of a labelling project "
        "or the rows of a table that has such a column, too.",
    ] = None

    def __post_init__(self) -> None:
        """Find a board by its name, and refuse options that belong to the other kind of data."""
        if not self.data.suffix and len(self.data.parts) == 1 and not self.data.exists():
            from ruleout.datasets.registry import board_file

            object.__setattr__(self, "data", board_file(str(self.data)) or self.data)
        kind, wrong = "labelling projects", ["how"]
        if self.project:
            kind = "tables and image folders"
            kept = ("label", "features", "ignore", "features_from", "text", "size")
            wrong = [name for name in options.LEARNING if name not in kept]
        elif not (self.sets or self.is_board):
            kind = "what was ruled out, or for labelling projects"
            wrong = [*options.ANSWERS, "how"]
        for name in wrong:
            if getattr(self, name):
                say = f"this is for {kind}; leave it out"
                raise typer.BadParameter(say, param_hint=options.flag(name))

    @classmethod
    def from_options(
        cls, *names: str, data: Any = options.DataOrProject
    ) -> Callable[[Command], Command]:
        """Give a command DATA and these options of a source, which it gets as its `source`."""

        def decorate(command: Command) -> Command:
            own = dict(signature(command, eval_str=True).parameters)
            place, kinds = [*own].index("source"), get_type_hints(cls, include_extras=True)
            del own["source"]
            shown = [one.replace(kind=Parameter.KEYWORD_ONLY) for one in own.values()]
            shown.insert(place, Parameter("data", Parameter.KEYWORD_ONLY, annotation=data))
            for name in reversed(names):
                told: Any = {"annotation": kinds[name], "default": getattr(cls, name)}
                shown.insert(place + 1, Parameter(name, Parameter.KEYWORD_ONLY, **told))

            @wraps(command)
            def call(**given: Any) -> None:
                source = cls(**{name: given.pop(name) for name in ("data", *names)})
                command(source=source, **given)

            call.__signature__ = Signature(shown)  # type: ignore[attr-defined]  # for typer
            return call

        return decorate

    @property
    def sets(self) -> bool:
        """Whether an option says where sets are."""
        return bool(self.excluded or self.candidates or self.votes)

    @property
    def is_board(self) -> bool:
        """Whether it is a .mat file, which says itself what the candidates are."""
        return self.data.suffix.lower() == ".mat"

    def with_board(self) -> Source:
        """Return it with the candidates of a .mat file, where no option says where sets are."""
        from ruleout.datasets.tables import BOARD

        return replace(self, candidates=BOARD) if self.is_board and not self.sets else self

    @property
    def project(self) -> bool:
        """Whether it is a project; whoever names a column means a folder of images."""
        found = Path(os.path.expanduser(self.data), "project.json").is_file()
        return found and not (self.sets or self.label)

    @property
    def row_name(self) -> str:
        """What a column of the names of rows is called."""
        return "item" if self.project or self.features_from or self.item else "file"

    def need_column(self, options: str, given: bool) -> Source:
        """Raise where no column was `given` and folders do not name the classes of images."""
        place = Path(os.path.expanduser(self.data))
        if self.project or given:
            return self
        if not place.exists():
            raise ValueError(f"{self.data}: there is no such file or folder; check the path")
        unnamed = not (self.sets or self.label or self.labels_file)
        if unnamed and any(place.glob("*/*")) and not (place / "labels.csv").exists():
            return replace(self, label="folder")
        say = "give one; only a labelling project and class folders of images need none"
        if self.label and self.sets:
            say = "give one of them alone: learn from what was ruled out, or from true labels"
        raise typer.BadParameter(say, param_hint=options)

    def need_sets(self) -> Source:
        """Raise where neither a column nor the file says what was ruled out."""
        if not (self.sets or self.is_board or self.project):
            problem = "name the column of what was ruled out, or of candidates"
            raise typer.BadParameter(problem, param_hint="--excluded")
        return self.with_board()

    @property
    def asked(self) -> dict[str, Any]:
        """What the options ask of ``read_table``."""
        told = {name: getattr(self, name) for name in options.LEARNING}
        told |= {"classes": parse_classes(self.classes), "votes": parse_names(self.votes or ())}
        return told | self._columns

    @property
    def _columns(self) -> dict[str, Any]:
        return {
            "features": parse_names(self.features) if self.features else None,
            "ignore": parse_names(self.ignore or ()),
            "text": parse_names(self.text or ()),
            "size": parse_size(self.size),
        }

    def batches(self, **more: Any) -> Iterator[Table]:
        """Read a table or images a batch of rows at a time, and print the notes in the end.

        `more` goes to ``read_batches``.
        """
        from ruleout.datasets import read_batches

        for table in read_batches(self.data, **(self.asked | more)):
            tell(table.notes)
            yield table

    def heard(self, table: Table) -> Table:
        """Return a table with what its sets say of every class, where some of them are wrong."""
        asked = self.error_rate or self.annotator or self.item or self.known
        if table.sets is None or not asked:
            return table
        found = table.heard(parse_rate(self.error_rate or "0"))
        tell(found.notes[len(table.notes) :])
        return found

    def training_table(self) -> Table:
        """Read a table to learn from; single classes, which true labels look like, get a note."""
        table = next(self.batches(wide=None))
        weight = None if self.annotator or self.item else table.weight  # items have one for all
        heavy = () if weight is None else weight.nonzero()[0]
        if 0 < len(heavy) < len(table):
            left = len(table) - len(heavy)
            tell([f"{left:,} of {len(table):,} rows weigh nothing: left out."])
            table = table.part(heavy)
        table = self.heard(table)
        sets = table.sets
        if sets is not None and not says(table.evidence or sets).any():
            column = self.candidates or self.excluded
            say = "give at least one row with a ruled-out class, or --known of some"
            raise DataError("no row says anything", say, column=column, file=table.source)
        if sets is not None and len(sets.classes) > 2 and (sets.sizes == 1).all():
            tell(["every row rules out exactly one class; true labels belong in --label"])
        _tell_repeats(table)
        return table

    def training_data(
        self, graded: bool = True, unlabelled: bool = False
    ) -> tuple[Table, Any, Any]:
        """Return rows, what is known about them, and their weights.

        `graded` says whether the approach has a place for answers of a project that may be wrong,
        `unlabelled` whether it has one for items about which nobody was asked.
        """
        if not self.project:
            table = self.training_table()
            said = table.sets if table.evidence is None else table.evidence
            return table, table.labels if self.label else said, table.weight
        from ruleout.learning.training_data import USUAL, read_lesson

        with open_project(self.data) as project:
            how: Any = self.how or USUAL  # checked there
            told = {"graded": graded, "unlabelled": unlabelled} | self._columns
            found = read_lesson(project, how, self.features_from, **told)
        tell(found.notes)
        _tell_repeats(found.table)
        return found.table, found.target, found.weight

    def with_model(
        self, model: Path, device: str
    ) -> tuple[RuleOutClassifier, Iterator[Table], Review | None]:
        """Load a model, and read rows, or the items of a project, as it was trained on them.

        Rows come in batches, as they are read.
        """
        from ruleout.estimator import load

        clf = load(model, device=None if device == "cpu" else device)
        told: dict[str, Any] = {"reading": clf.reading_ or None}
        names = clf.__dict__.pop("feature_names_in_", None)  # columns are picked by name here
        if not self.features and not clf.reading_ and names is not None:
            told["features"] = names.tolist()
        if not self.project:
            classes = clf.classes_.tolist()
            named = self.sets or self.label
            whole = self.error_rate or self.known  # such rows are judged together
            wide = None if whole else len(classes)
            told |= {"wide": wide, "classes": classes if named else None}
            return clf, map(self.heard, self.batches(**told)), None
        from ruleout.estimator.inputs import known_target
        from ruleout.learning import read_review

        with open_project(self.data) as project:
            found = read_review(project, self.features_from, **(self._columns | told))
            known_target(found.sets, clf.classes_)  # raises for other classes
        tell(found.table.notes)
        return clf, iter([found.table]), found
