"""``ruleout label import``: answers that were given elsewhere."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ruleout.cli.common import tell
from ruleout.cli.label.common import Place, labelling

if TYPE_CHECKING:
    from ruleout.web import Store
    from ruleout.web.importing import Imported

__all__ = ["bring"]


class Origin(StrEnum):
    """What a file comes from."""

    label_studio = "label-studio"
    csv = "csv"


class Meaning(StrEnum):
    """What a choice in Label Studio says."""

    which = "which"
    candidates = "candidates"
    excluded = "excluded"


@labelling()
def bring(
    project: Place,
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE",
            help="JSON of Label Studio; or a table (.csv, .tsv, .jsonl, .parquet) with columns "
            "item, annotator, kind, and proposed, excluded or which.",
        ),
    ],
    origin: Annotated[
        Origin | None,
        typer.Option("--from", help="Where the file comes from. By default its suffix says so."),
    ] = None,
    meaning: Annotated[
        Meaning,
        typer.Option(
            "--meaning",
            help="Of a choice in Label Studio: it is this class, it is one of these, or it is "
            "none of these.",
        ),
    ] = Meaning.which,
    control: Annotated[
        str | None,
        typer.Option(
            "--control",
            metavar="NAME",
            help="The choices in Label Studio that hold the classes, where there are several.",
        ),
    ] = None,
    key: Annotated[
        str | None,
        typer.Option(
            "--key",
            metavar="KEY",
            help="Where in a task's data the item is. By default the first value that matches.",
        ),
    ] = None,
    skip_unknown: Annotated[
        bool,
        typer.Option("--skip-unknown", help="Leave out tasks of Label Studio that match no item."),
    ] = False,
) -> None:
    """Add earlier answers to a project: all of a file, or nothing.

    A file that is imported twice brings its answers once. Who answered gets a closed account:
    `users PROJECT open NAME`, then `invite`, lets them in.
    """
    from ruleout.web.project import Project  # late: it loads SQLAlchemy

    with Project.open(project) as opened:
        found = _read(opened.store, file, origin, meaning, control, key, skip_unknown)
        brought = opened.store.bring(found.answers)
    tell(found.notes)
    known = f", {brought.known:,} were there before" if brought.known else ""
    typer.echo(f"{brought.added:,} answers added{known}.")
    if brought.users:
        typer.echo(f"New people: {', '.join(brought.users)}")


def _read(
    store: Store,
    file: Path,
    origin: Origin | None,
    meaning: Meaning,
    control: str | None,
    key: str | None,
    skip_unknown: bool,
) -> Imported:
    from ruleout.labels.errors import InputError
    from ruleout.web.importing import read_answers, read_label_studio

    items, classes = [item for _, item in store.items()], store.settings.classes
    if origin is None:
        origin = Origin.label_studio if file.suffix.lower() == ".json" else Origin.csv
    if origin is Origin.csv:
        return read_answers(file, [item.name for item in items], classes)
    try:
        return read_label_studio(
            file, items, classes, meaning=meaning.value, control=control, key=key,
            skip_unknown=skip_unknown,
        )  # fmt: skip
    except InputError as error:  # its remedies speak of Python
        error.remedy = error.remedy.replace("meaning=...", "--meaning")
        error.remedy = error.remedy.replace("control=...", "--control")
        raise
