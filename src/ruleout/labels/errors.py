"""Errors about what users hand in: what is wrong, where, and how to mend it."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from pathlib import Path

import numpy as np

__all__ = ["InputError", "LabelError", "brief", "nearest"]


class InputError(ValueError):
    """Input that cannot be used: what is wrong, where, and how to mend it.

    Parameters
    ----------
    problem
        What is wrong, as the start of a sentence.
    remedy
        What the reader can do about it.
    file, row, column, line
        Where it is. ``row`` counts from 0, as in ``sets[row]``; ``line`` counts from 1, as
        editors do.

    Examples
    --------
    >>> str(InputError("unknown class 'catt'", "did you mean 'cat'?", row=3))
    "row 3: unknown class 'catt'; did you mean 'cat'?"
    """

    def __init__(
        self,
        problem: str,
        remedy: str,
        *,
        file: str | Path | None = None,
        row: int | None = None,
        column: object = None,
        line: int | None = None,
    ) -> None:
        self.problem, self.remedy = problem, remedy
        self.file, self.row, self.column, self.line = file, row, column, line
        super().__init__(problem, remedy)

    def __str__(self) -> str:
        line = "" if self.line is None else f"line {self.line}"
        row = "" if self.row is None else f"row {self.row}"
        if row and line:
            row, line = f"{row} ({line})", ""
        column = "" if self.column is None else f"column {self.column!r}"
        file = "" if self.file is None else str(self.file)
        where = ", ".join(part for part in (file, row, line, column) if part)
        return (
            f"{where}: {self.problem}; {self.remedy}" if where else f"{self.problem}; {self.remedy}"
        )


class LabelError(InputError):
    """Label sets that cannot be used; every road into :class:`~ruleout.LabelSets` raises it."""


def brief(value: object, most: int = 60) -> str:
    """Show a value that may be hostile or huge in a few characters.

    >>> brief("cat")
    "'cat'"
    """
    try:
        text = repr(value.item() if isinstance(value, np.generic) else value)
    except Exception:  # a number of too many digits, or an object whose repr raises
        return f"a {type(value).__name__}"
    return text if len(text) <= most else f"{text[:most]}…"


def nearest(word: object, known: Iterable[object], say: str) -> str:
    """Suggest the known word closest to `word`, or fall back to the sentence `say`."""
    names = {str(name).lower(): str(name) for name in known}
    match = get_close_matches(str(word).lower(), names, n=1)
    return f"did you mean {names[match[0]]!r}?" if match else say
