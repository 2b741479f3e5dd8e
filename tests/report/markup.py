"""How the tests read a page: with the parsers of the standard library, and strictly."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import lru_cache
from html.parser import HTMLParser
from xml.etree import ElementTree

VOID = {"meta", "link", "br", "img", "input", "hr"}


@dataclass
class Element:
    """A tag with what stands inside it."""

    name: str
    attributes: dict[str, str]
    pieces: list[str] = field(default_factory=list)

    @property
    def text(self) -> str:
        """All text inside."""
        return "".join(self.pieces)


@dataclass
class Page(HTMLParser):
    """Elements in order; an assertion fails where a tag is not closed in its turn."""

    elements: list[Element] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[Element] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Open an element."""
        element = Element(tag, {name: value or "" for name, value in attrs})
        assert len(attrs) == len(element.attributes), f"an attribute twice in {tag}"
        self.elements.append(element)
        if tag not in VOID:
            self.open.append(element)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note an element that closes itself."""
        self.elements.append(Element(tag, {name: value or "" for name, value in attrs}))

    def handle_endtag(self, tag: str) -> None:
        """Close the element opened last."""
        assert self.open, f"</{tag}> closes nothing"
        assert self.open.pop().name == tag

    def handle_data(self, data: str) -> None:
        """Give text to all that is open."""
        for element in self.open:
            element.pieces.append(data)

    def all(self, name: str, kind: str = "") -> list[Element]:
        """Return the elements of that name, and of that class if one is given."""
        return [
            element
            for element in self.elements
            if element.name == name
            and (not kind or kind in element.attributes.get("class", "").split())
        ]


@lru_cache(8)
def read(page: str) -> Page:
    """Read a whole page; every tag must be closed. Who reads it does not change it."""
    reader = Page()
    reader.feed(page)
    reader.close()
    assert not reader.open
    return reader


def pictures(page: str) -> list[ElementTree.Element]:
    """Return every picture of a page, read as XML."""
    return [ElementTree.fromstring(text) for text in svgs(page)]


def svgs(page: str) -> list[str]:
    """Return every picture of a page, with the smaller ones inside it."""
    found, depth, start = [], 0, 0
    for each in re.finditer(r"<svg\b|</svg>", page):
        if each[0] != "</svg>":
            start = start if depth else each.start()
            depth += 1
        elif depth := depth - 1:
            continue
        else:
            found.append(page[start : each.end()])
    return found
