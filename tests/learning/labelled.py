"""Projects of digits, labelled by simulated annotators."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

import ruleout as ro
from ruleout.web.entities import Kind, Reply, Settings, TurnRequest
from ruleout.web.items import Found, read_items
from ruleout.web.project import Project

NAMES = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
_X, _Y = ro.datasets.load("digits").train


def digits(n: int, skip: int = 0) -> tuple[Any, Any]:
    return _X[skip : skip + n], _Y[skip : skip + n]


def write_images(folder: Path, x: Any) -> Path:
    """Write each digit as a PNG file; its name does not tell the class."""
    folder.mkdir()
    for row, pixels in enumerate(np.rint(255 * x.reshape(-1, 8, 8)).astype(np.uint8)):
        Image.fromarray(pixels).save(folder / f"{row:04}.png")
    return folder


def write_rows(file: Path, x: Any, more: Sequence[str] = ()) -> Path:
    """Write each digit as a row of 64 numbers; `more` is a column of text."""
    with file.open("w", newline="") as stream:
        lines = csv.writer(stream)
        lines.writerow([*(f"p{i}" for i in range(64)), *(["more"] if more else [])])
        lines.writerows([*row, *more[i : i + 1]] for i, row in enumerate(x.tolist()))
    return file


def make(
    folder: Path,
    source: Path,
    y: Any,
    *,
    gold: int = 0,
    text: str | None = None,
    name: str | None = None,
    **settings: Any,
) -> tuple[Project, dict[str, int]]:
    """Make a project; the class of the last `gold` items is known. Also return the truth."""
    found = read_items(source, NAMES, text=text, name=name)
    truth = {item.name: int(code) for item, code in zip(found.items, y, strict=True)}
    known = {item.name for item in found.items[len(truth) - gold :]}
    items = tuple(
        replace(item, gold=truth[item.name]) if item.name in known else item for item in found.items
    )
    given = {"classes": NAMES, "rounds": 2, **settings}
    made = Found(items=items, root=found.root)
    return Project.create(folder, Settings(**given), made, source), truth


def annotate(
    project: Project,
    truth: dict[str, int],
    *,
    people: int = 2,
    error: float = 0.0,
    most: int = -1,
    first: int = 0,
) -> None:
    """Let people answer all they are asked, wrong in a share of cases; `most` questions each."""
    names = {number: item.name for number, item in project.store.items()}
    for number in range(first, first + people):
        random = np.random.default_rng([number, 7])
        user = project.store.add_user(f"annotator {number}")
        left = most
        while left and (questions := project.store.next(user, 20)):
            replies = []
            for question in questions[: left if left > 0 else None]:
                is_in = truth[names[question.item]] in question.proposed
                kind: Kind = "yes" if is_in != (random.random() < error) else "no"
                replies.append(Reply(id=f"{number}-{question.id}", kind=kind, question=question.id))
            left -= len(replies)
            now = datetime.now(UTC)
            project.store.turns(
                [TurnRequest(user=user.id, hold=0, now=now, reply=reply) for reply in replies]
            )
