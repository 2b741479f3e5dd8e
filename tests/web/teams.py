"""Whole projects labelled by simulated teams, written straight into the tables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sqlalchemy import bindparam, insert, update

from ruleout.labels import propose
from ruleout.report.svg import fill
from ruleout.web import Item, Settings, Store, User
from ruleout.web.proposals import capped_law
from ruleout.web.schema import answers, questions, slots

START = datetime(2026, 3, 2, 8, tzinfo=UTC)
CLASSES = ("cat", "dog", "horse", "deer", "bird", "frog", "ship", "truck")


class Member(NamedTuple):
    """Somebody with error rates that are known."""

    name: str
    sensitivity: float = 0.95
    specificity: float = 0.95


#: Twelve people: nine who are good, one who is careless, two who toss a coin.
TEAM = (
    *(Member(name) for name in ["Ada", "Bea", "Cem", "Dai", "Eva", "Finn", "Gita", "Hugo", "Ines"]),
    Member("Jonas", 0.75, 0.85),
    Member("Coin", 0.5, 0.5),
    Member("Dice", 0.5, 0.5),
)


@contextmanager
def project(
    folder: Path,
    items: int = 40,
    classes: Sequence[str] = CLASSES,
    known: int = 0,
    names: Sequence[str] | None = None,
    **settings: Any,
) -> Iterator[Store]:
    """Make a project; the first `known` items are of a known class."""
    called = names or [f"photos/{n:05d}.jpg" for n in range(items)]
    made = [
        Item(name=name, kind="image", gold=n % len(classes) if n < known else None)
        for n, name in enumerate(called)
    ]
    asked = Settings(classes=tuple(classes), **settings)
    with Store.create(f"sqlite:///{folder / 'project.sqlite'}", asked, made) as store:
        yield store


LEAD = User(id=1, name="Maria", role="lead")


def page(view: Any, **more: Any) -> str:
    """Render the team page as the service does."""
    given = {"title": "Team", "project": "Wildlife", "user": LEAD, "csrf": "a-token"}
    said = {"invite": None, "invited": None, "problem": None}
    return str(fill("team.html", "web/pages", **{**given, **said, "view": view, **more}))


def truth_of(store: Store, seed: int = 0) -> list[int]:
    """Return a class for every item, that which is known where one is."""
    rng, k = np.random.default_rng(seed), len(store.settings.classes)
    drawn = rng.integers(0, k, sum(1 for _ in store.items())).tolist()
    items = [item for _, item in store.items()]
    return [y if one.gold is None else one.gold for y, one in zip(drawn, items, strict=True)]


def label(
    store: Store, team: Sequence[Member] = TEAM, share: float = 1.0, seed: int = 1
) -> list[int]:
    """Let the team answer every round of a share of the items, and all tests; return the truth."""
    rng, truth, k = np.random.default_rng(seed), truth_of(store), len(store.settings.classes)
    users = [store.add_user(one.name, now=START) for one in team]
    numbers, items = zip(*store.items(), strict=True)
    tests = [n for n, one in enumerate(items) if one.gold is not None and store.settings.gold_rate]
    others = [n for n in range(int(share * len(items))) if n not in set(tests)]
    plan = [(n, r, (n + r) % len(team)) for r in range(store.settings.rounds) for n in others]
    plan += [(n, at, at) for n in tests for at in range(len(team))]
    order = rng.permutation(len(plan))
    law = capped_law(store.settings.law, k, store.settings.cap)
    sets = propose(len(plan), k, law, rng).excluded
    asked, said, when = [], [], START
    is_test = set(tests)
    for number, place in enumerate(order.tolist(), 1):
        item, round_, who = plan[place]
        gold, mask = item in is_test, sets[place]
        if gold and rng.random() < 0.5 and 1 < mask.sum() < k - 1:  # both polarities
            mask = mask.copy()
            other = int(rng.choice(np.flatnonzero(mask != mask[truth[item]])))
            mask[[truth[item], other]] = mask[[other, truth[item]]]
        holds = bool(mask[truth[item]])
        right = team[who].sensitivity if holds else team[who].specificity
        kind = "yes" if holds == bool(rng.random() < right) else "no"
        when += timedelta(seconds=float(rng.exponential(2.0)))
        proposed = tuple(int(code) for code in np.flatnonzero(mask))
        person = users[who].id
        asked.append({
            "id": number, "item": numbers[item], "user": person, "round": round_, "mode": "propose",
            "proposed": proposed, "size": len(proposed), "law": store.settings.law,
            "seed": number, "gold": gold, "given": when,
        })  # fmt: skip
        said.append({
            "number": number, "id": f"made-{number}", "user": person, "question": number,
            "kind": kind, "excluded": (), "which": None, "undoes": None, "late": False,
            "status": "recorded", "took_ms": int(rng.lognormal(7.3, 0.5)), "sent": when,
            "received": when, "content": "",
        })  # fmt: skip
    _write(store, asked, said)
    return truth


def _write(store: Store, asked: list[dict[str, Any]], said: list[dict[str, Any]]) -> None:
    """Write questions, answers, and who holds which slot."""
    hold = update(slots).where(
        slots.c.item == bindparam("i"), slots.c.round == bindparam("r")
    ).values(
        question=bindparam("q"), holder=bindparam("h"), expires=bindparam("e"),
        answer=bindparam("q"),
    )  # fmt: skip
    held = [
        {"i": one["item"], "r": one["round"], "q": one["id"], "h": one["user"], "e": one["given"]}
        for one in asked
        if one["round"] < store.settings.rounds
    ]
    with store._database.writing() as db:
        db.execute(insert(questions), asked)
        db.execute(insert(answers), said)
        db.execute(hold, held)
