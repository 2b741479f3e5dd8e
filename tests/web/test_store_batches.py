"""Batches: one trip to the disk for all who wait, and each for himself where one fails."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pytest
from sqlalchemy import event
from sqlalchemy.exc import OperationalError
from web.made import at, make_items, said

from ruleout.web import RefusedError, Settings, Store, UnavailableError
from ruleout.web.batches import MOST, Batches, Job


def _run(jobs: Sequence[Job[Any]]) -> None:
    for job in jobs:
        job.run()


class Slow:
    """Runs batches, the first only when told to."""

    def __init__(self) -> None:
        self.go, self.begun = Event(), Event()
        self.sizes: list[int] = []
        self.order: list[Any] = []

    def __call__(self, jobs: Sequence[Job[Any]]) -> None:
        """Run them."""
        self.begun.set()
        assert self.go.wait(30)
        self.sizes.append(len(jobs))
        _run(jobs)


def _crowd(batches: Batches, slow: Slow, count: int) -> list[int]:
    """Send one job ahead and `count` after it, in order, while the first is being done."""
    found: list[int] = []

    def do(number: int) -> None:
        found.append(batches.do(lambda: slow.order.append(number) or number))  # type: ignore[func-returns-value]

    threads = [Thread(target=do, args=(number,)) for number in range(count + 1)]
    for number, thread in enumerate(threads):
        thread.start()
        assert slow.begun.wait(30)
        while len(batches._waiting) < number:
            pass
    slow.go.set()
    for thread in threads:
        thread.join(30)
    return found


def test_who_waits_shares_a_batch_in_the_order_of_arrival() -> None:
    slow = Slow()
    assert sorted(_crowd(Batches(slow), slow, 10)) == list(range(11))
    assert slow.sizes == [1, 10]
    assert slow.order == list(range(11))


def test_a_batch_has_a_largest_size() -> None:
    slow = Slow()
    _crowd(Batches(slow), slow, MOST + 5)
    assert slow.sizes == [1, MOST, 5]


def test_every_thread_gets_what_its_own_work_returned() -> None:
    batches = Batches(_run)
    with ThreadPoolExecutor(16) as threads:
        found = list(threads.map(lambda n: batches.do(lambda: n * n), range(2000)))
    assert found == [n * n for n in range(2000)]


class Interrupted(Job[None]):
    """A job of somebody who presses Ctrl-C while waiting."""

    def wait(self) -> None:
        """Be interrupted."""
        raise KeyboardInterrupt


@pytest.mark.parametrize("told", [False, True])
def test_who_gives_up_waiting_leaves_the_line_moving(told: bool) -> None:
    batches = Batches(_run)
    leader, other = Job(lambda: None), Interrupted(lambda: None)
    assert batches._join(leader)
    assert not batches._join(other)
    if told:  # the leader is done and has just handed over
        batches._waiting.popleft()
        batches._hand_over()
    with pytest.raises(KeyboardInterrupt):
        batches._sleep(other)
    if not told:
        batches._lead()
    assert batches.do(lambda: "next") == "next"


# ---------------------------------------------------------------------- on SQLite


def _held_up(store: Store, works: list[Any]) -> list[Any]:
    """Have the works wait for a writer, so that they share a transaction; return what came."""

    def tried(work: Any) -> Any:
        try:
            return work()
        except (RefusedError, UnavailableError) as error:
            return error

    with ThreadPoolExecutor(len(works) + 1) as threads:
        with store._database.writing():
            leader = threads.submit(store.next, 1, 1, at(0))
            while not store._database._batches._led or store._database._batches._waiting:
                pass
            sent = [threads.submit(tried, work) for work in works]
            while len(store._database._batches._waiting) < len(works):
                pass
        leader.result(30)
        return [one.result(30) for one in sent]


@pytest.fixture
def store(tmp_path: Path) -> Any:
    """A project in SQLite of three people, each with an open question."""
    url = f"sqlite:///{tmp_path / 'a.sqlite'}"
    with Store.create(url, Settings(classes=tuple("abcdef")), make_items(30)) as made:
        for name in ("Ann", "Bob", "Cem"):
            made.next(made.add_user(name), 1, at(0))
        yield made


def _turns(store: Store) -> list[Any]:
    replies = [said("no", store.next(user, 1, at(0))[0].id) for user in store.users()]
    return [lambda r=reply, u=user: store.turn(u, r, 1, at(0))
            for reply, user in zip(replies, store.users(), strict=True)]  # fmt: skip


def test_answers_that_wait_together_are_committed_together(store: Store) -> None:
    turns = _turns(store)
    commits: list[Any] = []
    event.listen(store._database.engine, "commit", commits.append)
    found = _held_up(store, turns)
    assert [turn.receipt.status for turn in found] == ["recorded"] * 3
    assert len(commits) == 3  # who held them up, who led, and all the others
    assert len(list(store.log())) == 3


def test_one_that_is_refused_leaves_the_others_alone(store: Store) -> None:
    first, second, third = _turns(store)
    wrong = lambda: store.turn(1, said("no", 10**6), 1, at(0))  # noqa: E731
    found = _held_up(store, [first, wrong, second, wrong, third])
    assert [isinstance(one, RefusedError) for one in found] == [False, True, False, True, False]
    assert len(list(store.log())) == 3
    assert store.check() == []


def test_a_commit_that_fails_gives_nobody_a_receipt(store: Store) -> None:
    turns = _turns(store)
    count = iter(range(100))

    def broken(_: object) -> None:
        if next(count) == 2:
            raise OperationalError("COMMIT", {}, Exception("disk I/O error"))

    event.listen(store._database.engine, "commit", broken)
    found = _held_up(store, turns)
    assert all(isinstance(one, UnavailableError) for one in found)
    assert list(store.log()) == []
    assert [turn().receipt.status for turn in turns] == ["recorded"] * 3
