"""What ``--help`` says of options lies in options.toml: each text belongs to an option."""

from dataclasses import fields
from importlib import import_module
from inspect import signature
from typing import Any

import pytest
import typer

from ruleout.cli import app
from ruleout.cli.common import Source
from ruleout.cli.shared_options import HELP

COMMANDS = [(module, name) for module, told in HELP.items() if module != "shared" for name in told]


@pytest.mark.parametrize(("module", "name"), COMMANDS)
def test_every_text_belongs_to_an_option(module: str, name: str) -> None:
    command = getattr(import_module(f"ruleout.cli.{module}"), name)
    assert HELP[module][name].keys() <= signature(command).parameters.keys()


def test_shared_texts_are_those_of_a_source() -> None:
    assert HELP["shared"].keys() == {one.name for one in fields(Source)} - {"data"}


def test_every_option_says_what_it_is() -> None:
    def silent(command: Any, path: str) -> list[str]:
        found = [f"{path} {one.name}" for one in command.params if not one.help]
        for name, inner in getattr(command, "commands", {}).items():
            found += silent(inner, f"{path} {name}")
        return found

    assert silent(typer.main.get_command(app), "ruleout") == []
