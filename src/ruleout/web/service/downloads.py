"""Downloads: written to a file that is gone once it was sent."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import BinaryIO

from ruleout.web.answer_log import How, known
from ruleout.web.project_export import write_contradictions, write_log, write_sets
from ruleout.web.service.problems import ProblemError
from ruleout.web.store import Store

__all__ = ["download"]


def download(store: Store, name: str) -> tuple[BinaryIO, int]:
    """Return an open file with its size; on disk it has no name any more."""
    write = _WRITERS.get(name)
    if write is None:
        names = ", ".join(_WRITERS)
        raise ProblemError("unknown", f"there is no such download; take one of {names}")
    with TemporaryDirectory(prefix="ruleout-", ignore_cleanup_errors=True) as folder:
        path = Path(folder, name)
        write(store, path)
        return path.open("rb"), path.stat().st_size


def _sets(how: How) -> Callable[[Store, Path], None]:
    def write(store: Store, path: Path) -> None:
        found = known(store.log(), _names(store), store.settings.classes, how)
        write_sets(found.sets, found.items, path)

    return write


def _log(store: Store, path: Path) -> None:
    write_log(store.log(), store.settings.classes, path)


def _contradictions(store: Store, path: Path) -> None:
    classes = store.settings.classes
    found = known(store.log(), _names(store), classes, "intersection")
    write_contradictions(found.contradictions, classes, path)


def _names(store: Store) -> list[str]:
    return [item.name for _, item in store.items()]


_WRITERS: dict[str, Callable[[Store, Path], None]] = {
    "sets.csv": _sets("no"),
    "sets-intersection.csv": _sets("intersection"),
    "log.csv": _log,
    "contradictions.csv": _contradictions,
}
