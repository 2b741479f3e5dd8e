"""The command reference in cli.md, from ``--help`` of every command.

python docs/commands.py      # writes it anew; a test fails while it is out of date
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer

from ruleout.cli import app

PAGE = Path(__file__).parent / "cli.md"
START, END = "<!-- commands: written by docs/commands.py -->", "<!-- end of commands -->"
WIDTH = 88


def commands() -> dict[str, typer.core.TyperCommand]:
    """Return every command by name, those of groups too, set to plain text."""
    found = dict(_leaves(typer.main.get_command(app)))
    for command in found.values():
        command.rich_markup_mode = None
    return found


def _leaves(group: Any, before: str = "") -> Iterator[tuple[str, typer.core.TyperCommand]]:
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from _leaves(command, f"{before}{name} ")
        else:
            yield f"{before}{name}", command


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
