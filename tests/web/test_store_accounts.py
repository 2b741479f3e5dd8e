"""Invites, passwords and sessions."""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime

import pytest
from sqlalchemy import event, select
from web.made import Make, at

from ruleout.web import RefusedError, Store, User
from ruleout.web.schema import invites, sessions

HOUR, DAY = 3600, 86_400


def accepted(store: Store, name: str = "Ann") -> User:
    """Let somebody in."""
    return store.accept(store.invite(name, now=at(0)), f"hash of {name}", at(1))


def session(store: Store, token: str, now: datetime | None = None) -> User | None:
    """Use a session as the service does: each use makes it last longer."""
    user, until = store.sessions([token], now)[0]
    if until is not None:
        store.lengthen(token, until)
    return user


def test_an_invite_adds_who_is_absent_and_lets_them_choose_a_password_once(make: Make) -> None:
    store = make()
    token = store.invite("Ann", "lead", now=at(0))
    ann = store.user("Ann")
    assert (ann.role, store.password("Ann")) == ("lead", (ann, None))
    assert store.invited(token, at(1)) == store.invited(token, at(2)) == ann
    assert store.accept(token, "hash", at(3)) == ann
    assert store.password("Ann") == (ann, "hash")
    assert store.invited(token, at(4)) is None
    with pytest.raises(RefusedError, match="has been used") as refused:
        store.accept(token, "other", at(4))
    assert refused.value.reason == "unknown"
    assert store.password("Ann") == (ann, "hash")


def test_an_invite_accepted_by_many_at_once_is_accepted_once(make: Make) -> None:
    store = make()
    token = store.invite("Ann")

    def accept(n: int) -> str | None:
        try:
            store.accept(token, str(n))
        except RefusedError:
            return None
        return str(n)

    with ThreadPoolExecutor(8) as threads:
        found = {one for one in threads.map(accept, range(8)) if one}
    assert len(found) == 1
    assert store.password("Ann") == (store.user("Ann"), found.pop())


def test_a_new_invite_ends_the_one_before(make: Make) -> None:
    store = make()
    first, second = store.invite("Ann"), store.invite("Ann")
    assert store.invited(first) is None
    assert store.invited(second) == store.user("Ann")


def test_an_invite_expires(make: Make) -> None:
    store = make()
    token = store.invite("Ann", days=7, now=at(0))
    assert store.invited(token, at(7 * DAY - 1)) is not None
    assert store.invited(token, at(7 * DAY)) is None
    for moment in (at(7 * DAY), at(8 * DAY)):
        with pytest.raises(RefusedError, match="has expired"):
            store.accept(token, "hash", moment)
    assert store.password("Ann") == (store.user("Ann"), None)


def test_a_reset_password_ends_every_session(make: Make) -> None:
    store = make()
    ann = accepted(store)
    token = store.begin(ann, hours=1, now=at(2))
    anew = store.invite("Ann", now=at(3))
    assert session(store, token, at(4)) == ann
    store.accept(anew, "new", at(5))
    assert session(store, token, at(6)) is None


@pytest.mark.parametrize("days", [0, -1, 400, float("nan"), float("inf")])
def test_an_invite_for_no_time_or_for_ever_is_refused(make: Make, days: float) -> None:
    store = make()
    with pytest.raises(RefusedError, match="choose from 1 to 366 days"):
        store.invite("Ann", days=days)
    assert store.users() == []


def test_who_may_not_be_invited(make: Make) -> None:
    store = make()
    store.add_user("Ann")
    with pytest.raises(RefusedError, match="has the role 'annotator'") as refused:
        store.invite("Ann", "lead")
    assert refused.value.reason == "conflict"
    with pytest.raises(RefusedError, match="looks like one"):
        store.invite("ANN")
    store.disable("Ann")
    with pytest.raises(RefusedError, match="closed"):
        store.invite("Ann")


def test_the_database_does_not_know_a_token(make: Make) -> None:
    store = make()
    ann = store.add_user("Ann")
    told = [store.invite("Ann"), store.begin(ann, hours=1)]
    assert all(re.fullmatch(r"[\w-]{43}", token) for token in told)
    with store._database.reading() as db:
        kept = [*db.execute(select(invites.c.token)), *db.execute(select(sessions.c.token))]
    assert len(kept) == 2
    assert all(re.fullmatch("[0-9a-f]{64}", row.token) for row in kept)
    assert all(session(store, row.token) is None for row in kept)


# ---------------------------------------------------------------------- passwords


@pytest.mark.parametrize(
    "typed", ["Zoë Fisher", "zoË FISHER", "Zoe\u0308 Fisher", "Zoë ﬁsher", "Ｚoë Fisher",
              " Zoë Fisher "],
)  # fmt: skip
def test_a_login_takes_a_name_however_it_is_typed(make: Make, typed: str) -> None:
    store = make()
    zoe = accepted(store, "Zoë Fisher")
    assert store.password(typed) == (zoe, "hash of Zoë Fisher")


@pytest.mark.parametrize("typed", ["", "Bob", "Ann\0", "\udcff", "a" * 1000, "%", "' OR 1=1 --"])
def test_a_name_that_nobody_has_has_no_password(make: Make, typed: str) -> None:
    store = make()
    accepted(store)
    assert store.password(typed) is None


def test_a_hash_may_be_replaced(make: Make) -> None:
    store = make()
    ann, bob = accepted(store), accepted(store, "Bob")
    store.rehash(ann, "stronger", before="hash of Ann")
    assert store.password("Ann") == (ann, "stronger")
    assert store.password("Bob") == (bob, "hash of Bob")


# ---------------------------------------------------------------------- sessions


def test_a_session_lasts_from_its_last_use(make: Make) -> None:
    store = make()
    ann = store.add_user("Ann")
    token = store.begin(ann, hours=1, now=at(0))
    assert session(store, token, at(HOUR - 1)) == ann
    assert session(store, token, at(2 * HOUR - 2)) == ann
    assert session(store, token, at(3 * HOUR - 2)) is None


def test_a_session_ends_after_thirty_days_however_often_it_is_used(make: Make) -> None:
    store = make()
    ann = store.add_user("Ann")
    token = store.begin(ann, hours=48, now=at(0))
    for day in range(30):
        assert session(store, token, at(day * DAY)) == ann
    assert session(store, token, at(30 * DAY - 1)) == ann
    assert session(store, token, at(30 * DAY)) is None


def test_a_session_in_use_is_written_once_a_minute(make: Make) -> None:
    store = make()
    token = store.begin(store.add_user("Ann"), hours=1, now=at(0))
    seen: list[str] = []
    event.listen(
        store._database.engine, "before_cursor_execute", lambda _c, _k, sql, *_: seen.append(sql)
    )
    for second in range(0, 180, 10):
        session(store, token, at(second))
    writes = [sql for sql in seen if sql.startswith("UPDATE")]
    reads = [sql for sql in seen if sql.startswith("SELECT")]
    assert (len(writes), len(reads)) == (2, 18)


@pytest.mark.parametrize("token", ["", "x", "\0", "\udcff", "a" * 100_000, "' OR 1=1 --"])
def test_a_token_that_was_never_given_opens_nothing(make: Make, token: str) -> None:
    store = make()
    store.begin(store.add_user("Ann"), hours=1)
    assert session(store, token) is None
    assert store.invited(token) is None
    with pytest.raises(RefusedError, match="used, or has expired"):
        store.accept(token, "hash")
    store.end(token)


def test_an_invite_is_no_session_and_a_session_no_invite(make: Make) -> None:
    store = make()
    ann = store.add_user("Ann")
    assert session(store, store.invite("Ann")) is None
    assert store.invited(store.begin(ann, hours=1)) is None


def test_sessions_end_one_by_one_and_all_at_once(make: Make) -> None:
    store = make()
    ann, bob = store.add_user("Ann"), store.add_user("Bob")
    one, two, three = (store.begin(ann, hours=1) for _ in range(3))
    other, link = store.begin(bob, hours=1), store.invite("Ann")
    store.end(one)
    assert [session(store, token) for token in (one, two, three)] == [None, ann, ann]
    store.accept(link, "hash")
    assert [session(store, token) for token in (two, three, other)] == [None, None, bob]


def test_who_is_disabled_is_out_at_once_and_stays_out(make: Make) -> None:
    store = make()
    ann = accepted(store)
    token, link = store.begin(ann, hours=1), store.invite("Ann")
    store.disable("Ann")
    assert (session(store, token), store.invited(link)) == (None, None)
    with pytest.raises(RefusedError, match="closed"):
        store.begin(ann, hours=1)
    with pytest.raises(RefusedError, match="used, or has expired"):
        store.accept(link, "hash")
    store.disable("Ann", disabled=False)
    assert (session(store, token), store.invited(link)) == (None, None)
    assert session(store, store.begin(ann, hours=1)) == ann


def test_what_has_expired_is_swept_out(make: Make) -> None:
    store = make()
    ann = store.add_user("Ann")
    for n in range(5):
        store.begin(ann, hours=1, now=at(n))
        store.invite(f"user {n}", days=1, now=at(n))
    store.begin(ann, hours=1, now=at(2 * DAY))
    with store._database.reading() as db:
        assert len(db.execute(select(sessions)).all()) == 1
        assert db.execute(select(invites)).all() == []


@pytest.mark.parametrize("hours", [0, -1, 0.0001, 24 * 31])
def test_a_session_of_no_length_or_too_long_is_refused(make: Make, hours: float) -> None:
    store = make()
    ann = store.add_user("Ann")
    with pytest.raises(ValueError, match="1 second to 30 days"):
        store.begin(ann, hours=hours)


def test_many_log_in_at_once_and_sweep_the_same_sessions_out(make: Make) -> None:
    store = make()
    people = [store.add_user(f"user {n}") for n in range(8)]
    for n in range(40):
        store.begin(people[n % 8], hours=1, now=at(-DAY))

    def come(user: User) -> bool:
        tokens = [store.begin(user, hours=1, now=at(0)) for _ in range(5)]
        return all(session(store, token, at(300)) == user for token in tokens)

    with ThreadPoolExecutor(8) as threads:
        assert all(threads.map(come, people))
    with store._database.reading() as db:
        assert len(db.execute(select(sessions)).all()) == 40
