"""Which item of the project a task of another program is about."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import PurePosixPath
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from ruleout.labels.classes import shown
from ruleout.labels.errors import InputError, brief
from ruleout.web.items.names import suggest
from ruleout.web.records import Item

__all__ = ["Matcher"]

_UPLOAD = re.compile("[0-9a-f]{8}-")  # what Label Studio puts before the name of an upload
_LONGEST = 4096  # characters of a path worth splitting up


class Matcher:
    """Finds items by name, by the end of a path, or by their text.

    Examples
    --------
    >>> matcher = Matcher([Item(name="pets/cat.png", kind="image", path="pets/cat.png")])
    >>> matcher.find({"image": "/data/upload/3/0a1b2c3d-cat.png"}, None, 0, False)
    'pets/cat.png'
    """

    def __init__(self, items: Sequence[Item]) -> None:
        self._names = {item.name for item in items}
        self._ends: dict[str, list[str]] = {}
        self._texts: dict[str, list[str]] = {}
        for item in items:
            if item.kind == "image":
                self._ends.setdefault(PurePosixPath(item.name).name, []).append(item.name)
            elif item.text is not None:
                self._texts.setdefault(item.text, []).append(item.name)

    def find(
        self, data: dict[str, Any], key: str | None, row: int, skip_unknown: bool
    ) -> str | None:
        """Return the name of the item that `data` is about; None if unknown and that is allowed."""
        if key is not None and key not in data:
            remedy = suggest(key, data, f"the keys are {shown(list(data))}")
            raise InputError(f"data has no key {key!r}", remedy, row=row)
        values = [data[key]] if key is not None else list(data.values())
        texts = [str(value) for value in values if isinstance(value, (str, int))]
        for text in texts:
            match = self._match(text, row)
            if match is not None:
                return match
        if skip_unknown:
            return None
        word = texts[0] if texts else ""
        remedy = suggest(PurePosixPath(word[-_LONGEST:]).name, self._names, "check the export")
        raise InputError(f"no item matches {brief(texts or values)}", remedy, row=row)

    def _match(self, text: str, row: int) -> str | None:
        for spelling in _spellings(text):
            if spelling in self._names:
                return spelling
        found = self._texts.get(text) or self._by_end(text)
        if len(found) > 1:
            problem = f"{brief(text)} may be any of {shown(found, 3)}"
            raise InputError(problem, "name items apart", row=row)
        return found[0] if found else None

    def _by_end(self, text: str) -> list[str]:
        """Return the images whose path shares the longest end with this one."""
        for spelling in _spellings(text):
            path = PurePosixPath(spelling)
            found = self._ends.get(path.name, [])
            if len(found) > 1:
                shared = [_shared(path, PurePosixPath(name)) for name in found]
                pairs = zip(found, shared, strict=True)
                found = [name for name, depth in pairs if depth == max(shared)]
            if found:
                return found
        return []


def _spellings(text: str) -> Iterator[str]:
    """Yield a value as it stands, then as the path of a URL, then without an upload's prefix."""
    yield text
    if len(text) > _LONGEST or "\n" in text:
        return
    try:
        parts = urlsplit(text)
    except ValueError:  # not even a broken URL
        return
    local = parse_qs(parts.query).get("d", []) if "local-files" in parts.path else []
    for path in (*local, unquote(parts.path).lstrip("/")):
        yield path
        folder, _, name = path.rpartition("/")
        if _UPLOAD.match(name):
            yield f"{folder}/{name[9:]}".lstrip("/")


def _shared(one: PurePosixPath, other: PurePosixPath) -> int:
    depth = 0
    for a, b in zip(reversed(one.parts), reversed(other.parts), strict=False):
        if a != b:
            break
        depth += 1
    return depth
