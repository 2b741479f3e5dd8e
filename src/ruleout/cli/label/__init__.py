"""``ruleout label``: people rule classes out, and every answer counts."""

from __future__ import annotations

import typer

from ruleout.cli.label.bring import bring
from ruleout.cli.label.export import export
from ruleout.cli.label.init import init
from ruleout.cli.label.plan import plan
from ruleout.cli.label.serve import serve
from ruleout.cli.label.status import status
from ruleout.cli.label.users import users

__all__ = ["label"]

label = typer.Typer(
    help="Label with a team: make a project, serve its page, export the answers.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
for command in (init, serve, users, status, export, plan):
    label.command()(command)
label.command(name="import")(bring)  # "import" is a word of Python's own
