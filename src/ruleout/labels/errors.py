"""Errors about what users hand in: what is wrong, where, and how to fix it."""

from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import numpy as np


class InputError(ValueError):
    """Input that cannot be used: what is wrong, where, and how to fix it.

    ``row`` counts from 0, as in ``sets[row]``, and may be all rows that cannot be used; ``line``
    counts from 1, as editors do. ``argument`` is what the remedy ends with, as in
    ``"unlabelled=True"``; commands show the option of that name instead. Of several faults in one
    column that of the lowest ``rank`` is told.

    >>> str(InputError("unknown class 'catt'", "did you mean 'cat'?", row=3))
    "row 3: unknown class 'catt'; did you mean 'cat'?"
    """

    SHOWN = 5  # rows that a sentence names

    def __init__(
        self,
        problem: str,
        remedy: str,
        *,
        file: str | Path | None = None,
        row: int | Sequence[int] | None = None,
        column: object = None,
        line: int | None = None,
        argument: str = "",
        rank: int = 0,
    ) -> None:
        self.problem, self.remedy, self.argument, self.rank = problem, remedy, argument, rank
        self.file, self.column = file, column
        self.rows: Sequence[int] = [row] if isinstance(row, int) else row or []
        self.lines: Sequence[int] = [] if line is None else [line]  # of the first rows
        super().__init__(problem, remedy)

    @property
    def row(self) -> int | None:
        """The first row that cannot be used."""
        return self.rows[0] if self.rows else None

    @property
    def line(self) -> int | None:
        """The line of that row in a text file."""
        return self.lines[0] if self.lines else None

    def __str__(self) -> str:
        what, places = ("line", self.lines) if self.lines else ("row", self.rows)
        where = [] if self.file is None else [str(self.file)]
        where += [f"{what} {places[0]}"] if places else []
        where += [] if self.column is None else [f"column {self.column!r}"]
        sentence = f"{self.problem}; {self.remedy}" + f" {self.argument}" * bool(self.argument)
        if len(self.rows) > 1:
            more = ", …" if len(self.rows) > self.SHOWN else ""
            listed = ", ".join(str(place) for place in places[: self.SHOWN])
            sentence += f" ({len(self.rows):,} rows: {what}s {listed}{more})"
        return f"{', '.join(where)}: {sentence}" if where else sentence


class LabelError(InputError):
    """Label sets that cannot be used; every road into :class:`~ruleout.LabelSets` raises it."""


class DataError(InputError):
    """A data file that cannot be used; by default the remedy is to fetch it again.

    >>> str(DataError("the file is empty", file="a.gz"))
    'a.gz: the file is empty; delete it and load again'
    """

    def __init__(
        self, problem: str, remedy: str = "delete it and load again", **where: Any
    ) -> None:
        super().__init__(problem, remedy, **where)


def brief(value: object, most: int = 60) -> str:
    """Show a value that may be hostile or huge in a few characters."""
    try:
        text = repr(value.item() if isinstance(value, np.generic) else value)
    except Exception:  # a number of too many digits, or an object whose repr raises
        return f"a {type(value).__name__}"
    return text if len(text) <= most else f"{text[:most]}…"


def counted(many: int, one: str, several: str = "") -> str:
    """Say how many: ``several`` is by default ``one`` with an s.

    >>> counted(1, "row"), counted(1200, "row rules", "rows rule")
    ('1 row', '1,200 rows rule')
    """
    return f"{many:,} {one if many == 1 else several or one + 's'}"


def nearest(word: object, known: Iterable[object], say: str) -> str:
    """Suggest the known word closest to `word`, or fall back to the sentence `say`."""
    names = {str(name).lower(): str(name) for name in known}
    match = get_close_matches(str(word).lower(), names, n=1)
    return f"did you mean {names[match[0]]!r}?" if match else say
