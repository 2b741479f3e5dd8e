"""The examples of the docs run, and print what the page says."""

from __future__ import annotations

import re
import runpy
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parent.parent
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))

pytestmark = pytest.mark.skipif(not EXAMPLES, reason="the examples are not part of this checkout")


def _gallery() -> dict[str, Any]:
    return runpy.run_path(str(ROOT / "docs" / "gallery.py"))


def test_every_example_is_in_the_gallery() -> None:
    assert sorted(_gallery()["NAMES"]) == [one.stem for one in EXAMPLES]


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda one: one.stem)
def test_the_page_shows_the_whole_example(example: Path) -> None:
    page = _gallery()["section"](example.stem)
    assert example.read_text().split('"""\n', 1)[1].strip() in page
    assert _said(_gallery(), example).strip() in page


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda one: one.stem)
def test_an_example_prints_what_the_page_says(example: Path) -> None:
    """`python docs/gallery.py` writes it; numbers may differ a little between machines."""
    gallery = _gallery()
    said, page = (_parts(text) for text in (gallery["run"](example.stem), _said(gallery, example)))
    assert said[0] == page[0]
    assert said[1] == pytest.approx(page[1], abs=4, rel=0.15)


def _said(gallery: dict[str, Any], example: Path) -> str:
    return str(gallery["output_of"](example.stem).read_text(encoding="utf-8"))


def _parts(text: str) -> tuple[str, list[float]]:
    """Return the words and the numbers."""
    number = r"\d+(?:\.\d+)?"
    return re.sub(rf" *{number}", " #", text), [float(one) for one in re.findall(number, text)]
