"""A hundred annotators at once: how long an answer takes, and whether every one of them is there.

    python benchmarks/labelling.py [--annotators 100] [--answers 200] [--items 100000] [--record]

The real service runs in a process of its own, on SQLite and on a PostgreSQL that waits for its
disk; the annotators are connections of another process on the same machine. An answer's time is
from sending it to having the receipt and the next question. Two paces:

- ``people``: each thinks for a second on average before answering.
- ``no pause``: each answers as soon as the last answer is acknowledged. With n annotators waiting
  all the time, the mean time is n divided by the answers per second, whatever the service does.

Then a large project is answered to the end at the store, fifty turns at a time.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
from common import record

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

from web.crowd import Told, all_at_work, crowd
from web.made import make_items
from web.served import served
from web.servers import programs, server

from ruleout.web import Reply, Settings, Store, Turn
from ruleout.web.entities import TurnRequest

WANTED = {"sqlite": 1000.0, "postgresql": 250.0}  # milliseconds, 95 of 100 answers
PACES = {"people": 1.0, "no pause": 0.0}  # seconds of thought


@contextmanager
def address(kind: str) -> Iterator[str]:
    """Yield the address of an empty, durable database."""
    if kind == "sqlite":
        with tempfile.TemporaryDirectory() as folder:
            yield f"sqlite:///{folder}/labels.sqlite"
        return
    binaries = programs()
    if binaries is None:
        raise SystemExit("install PostgreSQL first: apt-get install postgresql")
    with server(binaries) as running:
        yield running.database()


def measure(kind: str, think: float, annotators: int, answers: int) -> dict[str, Any]:
    """Let everybody label, check the log, and return the times."""
    told = Told()
    settings = Settings(classes=tuple("abcdefghij"), law="released")
    with (
        address(kind) as url,
        Store.create(url, settings, make_items(annotators * answers)) as store,
        served(url) as running,
    ):
        users = [store.add_user(f"user {n}") for n in range(annotators)]
        people = crowd(store, running.port, users, told, think=think, answers=answers)
        start = time.perf_counter()
        asyncio.run(all_at_work(people))
        seconds = time.perf_counter() - start
        _check(store, told, annotators, answers)
    ms = np.array(told.seconds) * 1e3
    return {
        "answers": len(told.acknowledged),
        "answers per second": round(len(ms) / seconds, 1),
        "median ms": round(float(np.median(ms)), 1),
        "p95 ms": round(float(np.percentile(ms, 95)), 1),
        "p99 ms": round(float(np.percentile(ms, 99)), 1),
        "wanted p95 ms": WANTED[kind],
    }


def grown(kind: str, items: int, together: int = 50) -> dict[str, Any]:
    """Answer every item of a large project at the store; return whether turns become slower."""
    settings = Settings(classes=tuple("abcdefghij"), law="released")
    with address(kind) as url, Store.create(url, settings, make_items(items)) as store:
        people = [store.add_user(f"user {n}").id for n in range(together)]
        turns = store.turns(
            [TurnRequest(user=user, hold=3, now=datetime.now(UTC)) for user in people]
        )
        seconds = []
        for turn in range(items // together):
            given = zip(people, turns, strict=True)
            wishes = [_wish(user, f"{user}-{turn}", of) for user, of in given]
            start = time.perf_counter()
            turns = store.turns(wishes)
            seconds.append(time.perf_counter() - start)
        assert store.progress().done == together * (items // together)
        assert store.check() == []
    tenth = len(seconds) // 10
    first, last = (float(np.mean(part)) * 1e3 for part in (seconds[:tenth], seconds[-tenth:]))
    return {
        f"ms for {together} turns, first tenth": round(first, 1),
        f"ms for {together} turns, last tenth": round(last, 1),
        "last / first": round(last / first, 2),
    }


def _wish(user: int, name: str, turn: Turn | BaseException) -> TurnRequest:
    assert isinstance(turn, Turn), turn
    reply = Reply(id=name, kind="no", question=turn.questions[0].id)
    return TurnRequest(user=user, hold=3, now=datetime.now(UTC), reply=reply)


def _check(store: Store, told: Told, annotators: int, answers: int) -> None:
    """Raise unless each item was given once, and each annotator's answers are all there."""
    rows = list(store.log())
    assert not told.refused, told.refused[:3]
    assert len(told.seconds) == len(told.acknowledged)  # no time of a request that was put off
    assert {row.id for row in rows} == told.acknowledged == told.sent
    assert all(row.counts for row in rows)
    assert len({row.item for row in rows}) == len(rows) == annotators * answers
    assert set(Counter(row.user for row in rows).values()) == {answers}
    assert store.check() == []


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--annotators", type=int, default=100)
    parser.add_argument("--answers", type=int, default=200)
    parser.add_argument("--items", type=int, default=100_000, help="of the large project; 0: none")
    parser.add_argument("--database", choices=[*WANTED], action="append")
    parser.add_argument("--record", action="store_true")
    asked = parser.parse_args()
    results: dict[str, Any] = {}
    for kind in asked.database or WANTED:
        for pace, think in PACES.items():
            found = measure(kind, think, asked.annotators, asked.answers)
            results[f"{kind}, {pace}"] = found
            print(f"{kind}, {pace}:", ", ".join(f"{k} {v}" for k, v in found.items()), flush=True)
        if asked.items:
            found = grown(kind, asked.items)
            results[f"{kind}, {asked.items:,} items"] = found
            print(f"{kind}, {asked.items:,} items:", found, flush=True)
    print("every answer is in the log once, no item was given to two people, the databases agree")
    if asked.record:
        record("labelling", "python benchmarks/labelling.py --record", results)


if __name__ == "__main__":
    main()
