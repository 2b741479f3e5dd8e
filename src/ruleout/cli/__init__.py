"""The command line. One small file per command: parse, call, print."""

from __future__ import annotations

from typing import Annotated

import typer

from ruleout import __version__
from ruleout.cli.demo import demo

__all__ = ["app"]

app = typer.Typer(
    help="Learn classifiers from what things are not.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
app.command()(demo)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"ruleout {__version__}")
        raise typer.Exit


@app.callback()
def main(
    version: Annotated[  # read by its callback
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Learn classifiers from what things are not."""
