"""Names that people can read and files can hold."""

import unicodedata
from collections.abc import Callable, Iterable
from itertools import islice
from pathlib import Path
from typing import Any

from ruleout.labels.errors import InputError, brief, nearest

LONGEST = 500  # characters of a name
_COMPARED = 20_000  # names that a mistyped one is compared with: more would take seconds

#: Characters that turn the direction of what follows: a name could show as another.
_TURNING = frozenset("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")


def fault(name: str, longest: int = LONGEST) -> str | None:
    if len(name) > longest:
        return f"{len(name):,} characters, more than {longest}"
    if any("\ud800" <= letter <= "\udfff" for letter in name):
        return "bytes that are not UTF-8"
    if any(unicodedata.category(letter) in ("Cc", "Zl", "Zp") for letter in name):
        return "a control character"
    if not _TURNING.isdisjoint(name):
        return "a character that turns the direction of writing"
    return None


def check_name(name: str, what: str, remedy: str, *, longest: int = LONGEST, **where: Any) -> str:
    if not name.strip():
        raise InputError(f"the {what} is blank", remedy, **where)
    problem = fault(name, longest)
    if problem is not None:
        raise InputError(f"the {what} {_safe(name)} holds {problem}", remedy, **where)
    return name


def _safe(name: str) -> str:
    """Show a hostile name so that it cannot act on a terminal either."""
    return brief(name.encode("ascii", "backslashreplace").decode())


def unique(what: str, remedy: str, file: Path | None) -> Callable[..., None]:
    """Return a function that raises when it meets a name twice, however accents are written."""
    seen: set[str] = set()

    def meet(name: str, **where: Any) -> None:
        key = unicodedata.normalize("NFC", name)
        if key in seen:
            raise InputError(f"the {what} {_safe(name)} appears twice", remedy, file=file, **where)
        seen.add(key)

    return meet


def suggest(word: object, known: Iterable[object], say: str) -> str:
    """Suggest the known name closest to a mistyped one, in bounded time."""
    return nearest(str(word)[:LONGEST], islice(known, _COMPARED), say)
