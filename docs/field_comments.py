"""Fields of classes are described by the comments beside them; here they become parameters.

A dataclass says of each field what it is where the field is written, after ``#:``. The API page
shows that as the list of parameters, below what the class itself says.
"""

from __future__ import annotations

from collections.abc import Collection
from inspect import get_annotations
from typing import Any

from sphinx.application import Sphinx
from sphinx.pycode import ModuleAnalyzer


def described(kind: type) -> dict[str, str]:
    """Return what the comments say of the fields of a class, in the order of the file."""
    notes = ModuleAnalyzer.for_module(kind.__module__).find_attr_docs()
    own = {
        name: " ".join(text).strip() for (of, name), text in notes.items() if of == kind.__name__
    }
    return {name: own[name] for name in get_annotations(kind) if name in own}


def _show(_app: Sphinx, what: str, _name: str, thing: Any, how: Any, lines: list[str]) -> None:
    if what == "class" and isinstance(how.get("members") or (), Collection):  # else all are shown
        found = described(thing)
        lines += ["", *(f":param {name}: {text}" for name, text in found.items())] if found else []


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("autodoc-process-docstring", _show)
    return {"parallel_read_safe": True}
