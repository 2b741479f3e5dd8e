"""``ruleout data``: which data sets there are, and how their files get here."""

from typing import Annotated

import typer

from ruleout.cli.common import friendly, show_rows

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
        some = f"{len(one.files)} of {one.wanted} files" if one.files else "no"
        here = "yes" if one.present else some
        rows.append([one.name, count, f"{one.features:,}", one.classes, here, one.where])
    show_rows(("name", *numbers, "here", "where"), rows, right=numbers)
    typer.echo(f"\nThe data folder is {data_root()}")


@data.command()
def fetch(
    names: Annotated[
        list[str],
        typer.Argument(
            metavar="NAME",
            help="Data sets of 'ruleout data list', or all that need no unpacking by hand.",
        ),
    ],
) -> None:
    """Download absent files of data sets, and check the content of all.

    The folder is $RULEOUT_DATA, else ruleout in your cache folder.
    """
    from ruleout.datasets import fetch as get
    from ruleout.datasets import names as every
    from ruleout.datasets.registry import find

    asked, failed = [name for name in names if name != "all"], False
    with friendly():  # before anything is downloaded
        for name in asked:
            find(name)
    if "all" in names:
        easy = (name for name in every() if not any(one.by_hand for one in find(name).files))
        asked = [*easy, *asked]
    for name in dict.fromkeys(asked):
        try:
            with friendly():
                one = get(name)
                count = f"{len(one.files)} file{'s' if len(one.files) > 1 else ''}"
                told = one.where if one.folder is None else f"{count} in {one.folder}, checked"
                typer.echo(f"{name}: {told}")
        except typer.Exit as end:  # its sentence is printed; the others may still succeed
            failed |= end.exit_code != 0
    if failed:
        raise typer.Exit(1)
