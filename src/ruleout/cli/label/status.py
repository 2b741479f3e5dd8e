"""``ruleout label status``: how far a project is, who did it, and whether it is sound."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from ruleout.cli.common import tell
from ruleout.cli.label.common import Place, in_time, labelling, show

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rich.table import Table

    from ruleout.web import LogRow, Progress
    from ruleout.web.project import Project

__all__ = ["status"]


@labelling()
def status(project: Place) -> None:
    """Say how far a project is, who did what, and whether its database is sound.

    Exit code 1: the database is damaged, and a sentence says how.
    """
    from ruleout.web.project import Project  # late: it loads SQLAlchemy

    with Project.open(project) as opened:
        log = list(opened.store.log())
        show(_totals(opened, log))
        if log:
            typer.echo()
            show(_people(log))
        _check(opened)


def _totals(opened: Project, log: list[LogRow]) -> Table:
    from rich.markup import escape
    from rich.table import Table

    done, settings = opened.store.progress(), opened.store.settings
    wrong = _contradictions(opened, log)
    rows = {
        "project": escape(str(opened.folder)),
        "items": f"{done.items:,} from {escape(str(opened.source))}",
        "asks": f"{settings.mode}, {len(settings.classes)} classes, law {escape(settings.law)}"
        + ("" if settings.cap is None else f", at most {settings.cap}"),
        "done": f"{done.done:,} of {done.items:,} items, {_share(done)}",
        "answers": f"{done.given:,} of {done.wanted:,} wanted; {done.answers:,} with tests, "
        f"{done.skips:,} skipped",
        "pace": "unknown yet" if done.per_hour is None else f"{done.per_hour:,.0f} an hour",
        "time left": in_time(done.seconds_left),
        "contradictions": f"{wrong:,}",
    }
    grid = Table(box=None, show_header=False, pad_edge=False)
    grid.add_column(style="bold")
    grid.add_column(overflow="fold")
    for name, text in rows.items():
        grid.add_row(name, text)
    return grid


def _contradictions(opened: Project, log: Iterable[LogRow]) -> int:
    from ruleout.web.answer_log import known

    names = [item.name for _, item in opened.store.items()]
    found = known(log, names, opened.store.settings.classes, "intersection")
    return len(found.contradictions)


def _share(done: Progress) -> str:
    return f"{100 * done.given / done.wanted:.0f} %" if done.wanted else "0 %"


def _people(log: list[LogRow]) -> Table:
    from rich.markup import escape
    from rich.table import Table

    from ruleout.web.team import annotators

    grid = Table(box=None, header_style="bold", pad_edge=False)
    grid.add_column("annotator", overflow="fold")
    for column in ("answers", "yes", "no", "ruled out", "skipped", "late", "undone", "seconds"):
        grid.add_column(column, justify="right")
    for one in annotators(log):
        kinds = [one.kinds.get(kind, 0) for kind in ("yes", "no", "excluded", "skip")]
        counts = (f"{count:,}" for count in (one.answers, *kinds, one.late, one.undone))
        median = "" if one.median_seconds is None else f"{one.median_seconds:.1f}"
        grid.add_row(escape(one.name), *counts, median)
    return grid


def _check(opened: Project) -> None:
    from ruleout.labels.errors import InputError

    try:
        _ = opened.images
    except InputError as error:
        tell([str(error)])
    damage = opened.store.check()
    for line in damage:
        typer.echo(f"ruleout: {opened.folder}: {line}; restore a backup", err=True)
    if damage:
        raise typer.Exit(1)
    typer.echo("\nThe database is sound.")
