"""The command reference in cli.md, from ``--help`` of every command.

python docs/commands.py      # writes it anew; a test fails while it is out of date
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import typer

from ruleout.cli import app

PAGE = Path(__file__).parent / "cli.md"
START, END = "<!-- commands: written by docs/commands.py -->", "<!-- end of commands -->"
WIDTH = 88


def commands() -> dict[str, typer.core.TyperCommand]:
    """Return every command by name, set to plain text."""
    found = dict(typer.main.get_command(app).commands)
    for command in found.values():
        command.rich_markup_mode = None
    return found


def help_of(name: str, command: typer.core.TyperCommand) -> str:
    context = command.context_class(
        command, info_name=f"ruleout {name}", terminal_width=WIDTH, max_content_width=WIDTH
    )
    return command.get_help(context)


def undocumented() -> Iterator[str]:
    """Yield options and arguments without a word of help."""
    for name, command in commands().items():
        for parameter in command.params:
            if not getattr(parameter, "help", None):
                yield f"ruleout {name} {max(parameter.opts, key=len)}"


def reference() -> str:
    parts = [
        f"### {name}\n\n```text\n{help_of(name, one)}\n```" for name, one in commands().items()
    ]
    return "\n\n".join([START, *parts, END])


def renewed(page: str) -> str:
    """Return a page with its reference as it should be."""
    inside = re.compile(f"{re.escape(START)}.*{re.escape(END)}", re.DOTALL)
    return inside.sub(lambda _: reference(), page)


if __name__ == "__main__":
    PAGE.write_text(renewed(PAGE.read_text()))
