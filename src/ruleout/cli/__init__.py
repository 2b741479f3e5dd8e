"""The command line. One small file per command: parse, call, print."""

import typer

app = typer.Typer()
