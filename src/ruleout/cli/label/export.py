"""``ruleout label export``: label sets to train on, and every answer."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ruleout.cli.common import tell
from ruleout.cli.label.common import Place, labelling

if TYPE_CHECKING:
    from ruleout.web.project_export import Bundle

__all__ = ["export"]


class How(StrEnum):
    """Which answers make a set."""

    no = "no"
    intersection = "intersection"


class Form(StrEnum):
    """How files are written."""

    csv = "csv"
    jsonl = "jsonl"
    parquet = "parquet"
    npz = "npz"


@labelling()
def export(
    project: Place,
    out: Annotated[Path, typer.Option("--out", metavar="FOLDER", help="A new folder.")],
    how: Annotated[
        How,
        typer.Option(
            "--how",
            help="no: what 'no' and rule-out answers rule out, as in the paper; intersection: "
            "what all answers leave possible.",
        ),
    ] = How.no,
    form: Annotated[
        Form, typer.Option("--format", help="Of the files; with npz, tables are CSV.")
    ] = Form.csv,
    unlabelled: Annotated[
        bool,
        typer.Option("--unlabelled", help="Give items without an answer an empty row as well."),
    ] = False,
) -> None:
    """Write label sets, items, contradictions and the answer log to a new folder.

    Items whose answers leave no class are in a list of their own, and in no set.
    """
    from ruleout.web.project import Project
    from ruleout.web.project_export import write_bundle  # late: it loads SQLAlchemy

    with Project.open(project) as opened:
        bundle = write_bundle(
            opened.store, out, how=how.value, form=form.value, unlabelled=unlabelled
        )
    _print(bundle, out)


def _print(bundle: Bundle, out: Path) -> None:
    found = bundle.known
    if found.contradictions:
        from ruleout.labels.classes import shown

        names = shown([one.item for one in found.contradictions], 5)
        count = len(found.contradictions)
        tell([f"the answers about {count:,} item(s) leave no class, such as {names}"])
    typer.echo(repr(found.sets))
    typer.echo(
        f"{len(found.unlabelled):,} unlabelled, {len(found.contradictions):,} contradicting, "
        f"{len(found.tests):,} only asked as tests; {bundle.answers:,} answers in the log."
    )
    for name in bundle.files:
        typer.echo(f"Written: {out / name}")
