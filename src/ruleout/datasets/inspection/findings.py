"""What an inspection says."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

__all__ = ["Finding", "Findings", "Level"]

Level = Literal["fine", "note", "warning"]


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at.

    Parameters
    ----------
    level
        ``fine``: as it should be; ``note``: worth knowing; ``warning``: worth mending.
    name
        What was looked at.
    message
        Sentences to read.
    numbers
        The same for programs, as plain JSON.
    """

    level: Level
    name: str
    message: str
    numbers: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Findings:
    """All findings, in the order of the inspection.

    Examples
    --------
    >>> found = Findings((Finding("fine", "sizes", "All rule out 2."),))
    >>> found["sizes"].message, len(found), found.warnings
    ('All rule out 2.', 1, ())
    """

    items: tuple[Finding, ...]

    def __iter__(self) -> Iterator[Finding]:
        return iter(self.items)

    def __len__(self) -> int:
        return len(self.items)

    def __contains__(self, name: object) -> bool:
        return any(item.name == name for item in self.items)

    def __getitem__(self, name: str) -> Finding:
        for item in self.items:
            if item.name == name:
                return item
        raise KeyError(name)

    @property
    def warnings(self) -> tuple[Finding, ...]:
        """The findings that are worth mending."""
        return tuple(item for item in self.items if item.level == "warning")

    def to_dicts(self) -> list[dict[str, Any]]:
        """Return plain JSON, one object per finding."""
        return [
            {
                "level": item.level,
                "name": item.name,
                "message": item.message,
                "numbers": dict(item.numbers),
            }
            for item in self.items
        ]
