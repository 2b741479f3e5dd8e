"""``ruleout data``: which data sets there are, and how their files get here."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from ruleout.cli.common import friendly, show_rows

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
    from ruleout.datasets import data_root, survey

    numbers = ("rows", "features", "classes")
    rows = []
    for one in survey():
        count = " + ".join(f"{part:,}" for part in one.rows if part)
        rows.append([one.name, count, f"{one.features:,}", one.classes, _here(one), one.where])
    show_rows(("name", *numbers, "here", "where"), rows, right=numbers)
    typer.echo(f"\nThe data folder is {data_root()}")


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
