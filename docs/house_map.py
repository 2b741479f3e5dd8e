"""The map in house.md: every file of every room, with the first sentence of its docstring.

python docs/house_map.py     # writes it anew; a test fails while it is out of date
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

PAGE = Path(__file__).parent / "house.md"
ROOT = Path(__file__).parent.parent / "src" / "ruleout"
START, END = "<!-- map: written by docs/house_map.py -->", "<!-- end of map -->"


def rooms() -> list[Path]:
    return sorted(one for one in ROOT.iterdir() if (one / "__init__.py").exists())


def first_line(file: Path) -> str:
    """Return what the docstring of a file begins with.

    >>> first_line(Path(__file__))
    'The map in house.md: every file of every room, with the first sentence of its docstring.'
    """
    return (ast.get_docstring(ast.parse(file.read_text(encoding="utf-8"))) or "").partition("\n")[0]


def _rows(room: Path) -> Iterator[str]:
    for file in sorted(room.rglob("*.py")):
        place = file.relative_to(room)
        if place.name != "__init__.py":
            yield f"| `{place}` | {first_line(file)} |"


def document() -> str:
    parts = []
    for room in rooms():
        head = f"### {room.name}\n\n{first_line(room / '__init__.py')}\n"
        rows = list(_rows(room))
        table = ["| file | what is in it |", "|---|---|", *rows] if rows else []
        parts.append("\n".join([head, *table]).rstrip())
    alone = [f"| `{one.name}` | {first_line(one)} |" for one in sorted(ROOT.glob("*.py"))]
    beside = "\n".join(["### beside them\n", "| file | what is in it |", "|---|---|", *alone])
    return "\n\n".join([START, *parts, beside, END])


def renewed(page: str) -> str:
    before, rest = page.split(START)
    return before + document() + rest.split(END)[1]


if __name__ == "__main__":
    PAGE.write_text(renewed(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
