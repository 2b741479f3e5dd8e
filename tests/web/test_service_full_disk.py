"""A full disk: an error, never a false acknowledgement; labelling goes on when there is room."""

from __future__ import annotations

import re
import resource
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx
from web.crowd import cookie_of
from web.disks import fill, may_mount, small_disk
from web.made import make_items
from web.served import Served, served
from web.servers import programs, server

from ruleout.web import Settings, Store

SETTINGS = Settings(classes=tuple("abcdef"))


class Annotator:
    """Answers over HTTP and keeps in mind what the server said."""

    def __init__(self, running: Served, cookie: str) -> None:
        self.acknowledged: set[str] = set()
        self.failed: set[str] = set()
        self._line = httpx.Client(base_url=f"http://127.0.0.1:{running.port}", timeout=30)
        self._line.headers["cookie"] = cookie
        page = self._line.get("/").text
        found = re.search('name="csrf" content="([^"]+)"', page)
        assert found is not None
        self._line.headers["x-csrf-token"] = found[1]

    def __enter__(self) -> Annotator:
        return self

    def __exit__(self, *_: object) -> None:
        self._line.close()

    def answers(self, count: int) -> int:
        """Answer and take back in turn until something fails; return how often it went well."""
        for done in range(count):
            undo = done % 2
            body: dict[str, Any] = {"kind": "undo"} if undo else {"kind": "no"}
            if not undo and (question := self._next()) is not None:
                body["question"] = question
            if not (undo or "question" in body) or not self._sent({"id": str(uuid4()), **body}):
                return done
        return count

    def _next(self) -> int | None:
        said = self._posted("/api/next", {"count": 1})
        return None if said is None else int(said["questions"][0]["id"])

    def _sent(self, body: dict[str, Any]) -> bool:
        said = self._posted("/api/answer", body)
        (self.failed if said is None else self.acknowledged).add(body["id"])
        return said is not None

    def _posted(self, path: str, body: dict[str, Any]) -> Any:
        try:
            response = self._line.post(path, json=body)
        except httpx.TransportError:
            return None
        assert response.status_code in (200, 503), response.text
        return response.json() if response.status_code == 200 else None


def _check(store: Store, annotator: Annotator) -> None:
    rows = {row.id for row in store.log()}
    assert annotator.acknowledged <= rows
    assert rows - annotator.acknowledged <= annotator.failed  # written, but the word was lost
    assert store.check() == []


def test_sqlite_that_may_not_grow_acknowledges_nothing(tmp_path: Path) -> None:
    """The server may write files up to a size, as on a disk with so much room."""
    url = f"sqlite:///{tmp_path / 'project.sqlite'}"
    with Store.create(url, SETTINGS, make_items(200)) as store:
        cookie = cookie_of(store, store.add_user("Ann"))
    room = (tmp_path / "project.sqlite").stat().st_size + 20_000

    def limited() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (room, room))

    with served(url, preexec_fn=limited) as running, Annotator(running, cookie) as annotator:
        assert 0 < annotator.answers(3000) < 3000
    with Store.open(url) as store:
        _check(store, annotator)


@contextmanager
def _on(kind: str, disk: Path) -> Iterator[str]:
    if kind == "sqlite":
        yield f"sqlite:///{disk / 'project.sqlite'}"
        return
    binaries = programs()
    assert binaries is not None
    with server(binaries, folder=disk, wal_recycle="off", min_wal_size="32MB") as running:
        yield running.database()


def _full_and_free(kind: str, disk: Path) -> None:
    with _on(kind, disk) as url, Store.create(url, SETTINGS, make_items(200)) as store:
        cookie = cookie_of(store, store.add_user("Ann"))
        with served(url) as running, Annotator(running, cookie) as annotator:
            assert annotator.answers(6) == 6
            filler = fill(disk)
            assert annotator.answers(20_000) < 20_000
            health = f"http://127.0.0.1:{running.port}/health"
            if kind == "sqlite":  # of PostgreSQL's disk nothing is known here
                assert httpx.get(health).status_code == 503
            filler.unlink()
            assert httpx.get(health).status_code == 200
            until = time.monotonic() + 60
            while not annotator.answers(6) and time.monotonic() < until:
                time.sleep(0.1)
            assert annotator.answers(6) == 6
        _check(store, annotator)


def test_labelling_goes_on_when_a_full_disk_has_room_again() -> None:
    with tempfile.TemporaryDirectory(prefix="ruleout-disk-") as place:
        folder = Path(place)
        folder.chmod(0o755)  # PostgreSQL runs as a user of its own
        if not may_mount(folder / "try"):
            return  # then only the limit of the test above stands for a full disk
        for kind, megabytes in (("sqlite", 4), ("postgresql", 120)):
            with small_disk(folder / kind, megabytes) as disk:
                _full_and_free(kind, disk)
