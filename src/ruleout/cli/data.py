"""``ruleout data``: which data sets there are, and how their files get here."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from ruleout.cli.common import friendly

if TYPE_CHECKING:
    from ruleout.datasets.registry import Stock

data = typer.Typer(
    help="List well-known data sets, and download them.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)


@data.command(name="list")
@friendly()
def show() -> None:
    """List the data sets, and whether their files are here."""
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    from ruleout.datasets import data_root, survey

    grid = Table(box=None, header_style="bold", pad_edge=False)
    for column in ("name", "rows", "features", "classes", "here", "where"):
        number = column in ("rows", "features", "classes")
        grid.add_column(column, justify="right" if number else "left", overflow="fold")
    for one in survey():
        rows = " + ".join(f"{count:,}" for count in one.rows if count)
        numbers = (rows, f"{one.features:,}", str(one.classes))
        grid.add_row(one.name, *numbers, _here(one), escape(one.where))
    console = Console()
    console.print(grid, highlight=False)
    console.print(f"\nThe data folder is {escape(str(data_root()))}", highlight=False)


@data.command()
def fetch(
    names: Annotated[
        list[str], typer.Argument(metavar="NAME", help="Data sets of 'ruleout data list', or all.")
    ],
) -> None:
    """Download absent files of data sets, and check the content of all.

    The folder is $RULEOUT_DATA, else ruleout in your cache folder.
    """
    failed = False
    for name in _known(names):
        try:
            _fetch(name)
        except typer.Exit as end:  # its sentence is printed; the others may still succeed
            failed |= end.exit_code != 0
    if failed:
        raise typer.Exit(1)


@friendly()
def _known(names: list[str]) -> list[str]:
    """Return each name once, before anything is downloaded."""
    from ruleout.datasets import names as every
    from ruleout.datasets.registry import find

    for name in names:
        if name != "all":
            find(name)
    return list(dict.fromkeys(every() if "all" in names else names))


@friendly()
def _fetch(name: str) -> None:
    from ruleout.datasets import fetch as get

    one = get(name)
    if one.folder is None:
        typer.echo(f"{name}: {one.where}")
    else:
        count = f"{len(one.files)} file{'s' if len(one.files) > 1 else ''}"
        typer.echo(f"{name}: {count} in {one.folder}, checked")


def _here(one: Stock) -> str:
    if one.files and not one.present:
        return f"{len(one.files)} of {one.wanted} files"
    return "yes" if one.present else "no"
