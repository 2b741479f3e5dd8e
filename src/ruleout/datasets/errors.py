"""The one error for data files that are missing, damaged or not what they should be."""

from __future__ import annotations

from pathlib import Path

from ruleout.labels.errors import InputError

__all__ = ["DataError"]


class DataError(InputError):
    """A data file that cannot be used; by default the remedy is to fetch it again.

    Examples
    --------
    >>> str(DataError("the file is empty", file="a.gz"))
    'a.gz: the file is empty; delete it and load again'
    """

    def __init__(
        self,
        problem: str,
        remedy: str = "delete it and load again",
        *,
        file: str | Path | None = None,
        row: int | None = None,
        column: object = None,
        line: int | None = None,
    ) -> None:
        super().__init__(problem, remedy, file=file, row=row, column=column, line=line)
