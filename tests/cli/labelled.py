"""Labelling projects for the tests of ``ruleout label``."""

from __future__ import annotations

import struct
import zlib
from pathlib import Path
from typing import Any

from typer.testing import CliRunner

from ruleout.cli.label import label
from ruleout.web import Reply, Store, User
from ruleout.web.project import Project

CLASSES = ("cat", "dog", "fish", "bird")


def run(*words: object) -> Any:
    """Run ``ruleout label`` with these words."""
    return CliRunner().invoke(label, [str(word) for word in words])


def ran(*words: object) -> str:
    """Run ``ruleout label``, which must succeed, and return what it prints."""
    result = run(*words)
    assert result.exit_code == 0, result.output
    return str(result.stdout)


def png(shade: int = 0) -> bytes:
    """Make the smallest image of one shade."""
    body = (
        (b"IHDR", struct.pack(">2I5B", 1, 1, 8, 0, 0, 0, 0)),
        (b"IDAT", zlib.compress(bytes([0, shade]))),
        (b"IEND", b""),
    )
    parts = (
        struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))
        for name, data in body
    )
    return b"\x89PNG\r\n\x1a\n" + b"".join(parts)


def make_images(folder: Path, count: int = 6) -> Path:
    """Fill a folder with images."""
    folder.mkdir()
    for place in range(count):
        (folder / f"{place}.png").write_bytes(png(place))
    return folder


def make_project(folder: Path, *options: object, count: int = 6) -> Path:
    """Make a project of images in `folder`, with `ruleout label init`."""
    items = make_images(folder / "images", count)
    named = ("--items", items, "--classes", ",".join(CLASSES), "--lead", "Lea")
    ran("init", folder / "project", *named, *options)
    return folder / "project"


def answer_all(store: Store, user: User, kind: Any = "no", **more: Any) -> int:
    """Answer every question that the project has for somebody."""
    count = 0
    while questions := store.next(user, 1):
        reply = Reply(id=f"{user.name}-{count}", kind=kind, question=questions[0].id, **more)
        store.answer(user, reply)
        count += 1
    return count


def make_answered(folder: Path, *options: object, count: int = 6) -> Path:
    """Make a project in which Ann has answered "no" to everything."""
    place = make_project(folder, *options, count=count)
    with Project.open(place) as project:
        answer_all(project.store, project.store.add_user("Ann"))
    return place
