"""``ruleout check``: what is in the data, before anything is trained on it."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING

import typer
from rich.markup import escape

from ruleout.cli import shared_options as options
from ruleout.cli.common import Source, Terminal, friendly, verdict

if TYPE_CHECKING:
    from ruleout.datasets import Findings, Table

_STYLES = {"fine": "green", "note": "cyan", "warning": "bold yellow"}


@friendly()
@Source.from_options(*options.LEARNING, "error_rate", data=options.Data)
def check(source: Source, as_json: options.AsJson = False) -> None:
    """Look for what is wrong with data before training on it.

    Are sets chosen at random? Do equal rows contradict each other? Do sets list true labels?

    Exit code 0: the data can be used, even with warnings. 1: they cannot.
    """
    from ruleout.datasets.data_checks import Inspection

    source = source.need_sets()
    rows, seen = 0, None
    whole = {"wide": None} if source.known or source.annotator or source.item else {}
    for table in source.batches(featureless=True, **whole):
        assert table.sets is not None  # asked for above
        rows, seen = rows + len(table), seen or Inspection(table.sets.classes)
        seen.add(table.sets, table.x, table.labels, truth=table.truth())
    assert seen is not None  # a file without rows is an error
    said = source.heard(table).evidence  # people and true classes come in one batch
    lines = table.source.is_file() and not source.skip_bad_rows  # else lines are not known
    found = seen.findings(table.features, table.source if lines else None)
    if as_json:
        names = ("sha256", "shape", "features", "classes", "notes")
        told = {name: getattr(table, name) for name in names}
        about = {"source": str(table.source), "rows": rows, "findings": found.to_dicts()}
        about["assumption"] = asdict(verdict(found, said))
        typer.echo(json.dumps(about | told))
    else:
        _print(table, rows, found)
        Terminal().print(verdict(found, said).message, highlight=False)


def _print(table: Table, rows: int, found: Findings) -> None:
    from rich.table import Table as Grid

    grid = Grid(title=escape(table.described(rows)), title_justify="left", show_lines=False)
    for column in ("", "what", "finding"):
        grid.add_column(column, overflow="fold")
    for item in found:
        grid.add_row(f"[{_STYLES[item.level]}]{item.level}[/]", item.name, escape(item.message))
    console = Terminal()
    console.print(grid)
    many = len(found.warnings)
    verdict = "No warnings." if not many else f"{many} warning{'s' if many > 1 else ''}."
    usable = "The data can be used." if table.x.size else "There are no features to train on."
    console.print(f"{usable} {verdict}", highlight=False)
