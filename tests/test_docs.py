"""The docs keep up with the code."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

import ruleout as ro

ROOT = Path(__file__).parent.parent
API = ROOT / "docs" / "api.rst"

pytestmark = pytest.mark.skipif(not API.exists(), reason="the docs are not part of this checkout")


@pytest.mark.parametrize(
    "name", [n for n in ro.__all__ if n not in ("__version__", "labels", "losses")]
)
def test_every_public_name_is_documented(name: str) -> None:
    assert f"ruleout.{name}" in API.read_text()


@pytest.mark.parametrize("name", ro.losses.names())
def test_every_loss_is_documented(name: str) -> None:
    function = ro.losses.get(name).function
    module = sys.modules[function.__module__]
    assert function.__name__ in module.__all__
    assert f"automodule:: {module.__name__}" in API.read_text()
    assert function.__doc__


def test_readme_names_the_two_commands() -> None:
    text = (ROOT / "README.md").read_text()
    assert "make demo" in text
    assert "make test" in text
    recipes = (ROOT / "Makefile").read_text()
    assert "\ndemo:" in recipes
    assert "\ntest:" in recipes
