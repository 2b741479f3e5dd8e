"""The command line. One file per command: parse, call, print."""

import sys
from io import TextIOWrapper
from typing import Annotated, cast

import typer

from ruleout import __version__
from ruleout.cli.check import check
from ruleout.cli.common import PLUGINS
from ruleout.cli.compare import compare
from ruleout.cli.data import data
from ruleout.cli.demo import demo
from ruleout.cli.doctor import doctor
from ruleout.cli.draw import draw
from ruleout.cli.evaluate import evaluate
from ruleout.cli.export import export
from ruleout.cli.fit import fit
from ruleout.cli.label import label
from ruleout.cli.paper import paper
from ruleout.cli.predict import predict, resolve
from ruleout.cli.report import report
from ruleout.cli.shared_options import declared

__all__ = ["app"]

app = typer.Typer(
    help="Learn classifiers from what things are not.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
for command in (demo, check, fit, predict, evaluate, resolve, export, compare, draw):
    app.command()(declared(command))
for command in (paper, report, doctor):
    app.command()(declared(command))
app.add_typer(data, name="data")
app.add_typer(label, name="label")


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"ruleout {__version__}")
        raise typer.Exit


@app.callback()
@declared
def main(
    _version: Annotated[  # read by its callback
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version."),
    ] = False,
    plugin: Annotated[
        list[str] | None,
        "MODULE",
        "Import this module first: losses, rules and data sets that it registers are known to the "
        "command. May be given several times.",
    ] = None,
) -> None:
    """Learn classifiers from what things are not."""
    PLUGINS[:] = plugin or []
    for stream in (sys.stdout, sys.stderr):  # what an old terminal cannot show becomes a ?
        cast("TextIOWrapper", stream).reconfigure(errors="replace")
