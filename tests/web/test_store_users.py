"""People and their names, which strangers typed."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest
from web.made import Make, said

from ruleout.web import RefusedError, User


def test_people_are_added_listed_found_and_disabled(make: Make) -> None:
    store = make()
    ann, bob = store.add_user("Ann", "lead"), store.add_user("Bob")
    assert store.users() == [ann, bob]
    assert (ann.role, bob.role) == ("lead", "annotator")
    assert store.user("Bob") == bob
    assert store.disable("Bob") == store.user("Bob")
    assert [user.disabled for user in store.users()] == [False, True]
    assert store.disable("Bob", disabled=False) == bob


def test_who_is_disabled_may_neither_ask_nor_answer(make: Make) -> None:
    store = make()
    ann = store.add_user("Ann")
    question = store.next(ann)[0]
    store.disable("Ann")
    with pytest.raises(RefusedError, match="closed"):
        store.next(ann)
    with pytest.raises(RefusedError, match="closed"):
        store.answer(ann, said("no", question.id))


@pytest.mark.parametrize("number", [0, -1, 77, 2**40, 10**30])
def test_nobody_may_act_as_a_user_who_is_not_there(make: Make, number: int) -> None:
    with pytest.raises(RefusedError, match="no user"):
        make().next(number)


@pytest.mark.parametrize(
    "name",
    ["", " ", "a" * 65, "a\0b", "a\nb", "\x1b[31mred", "a\u202eb", "zero\u200bwidth", "\udcff",
     " led", "trailed ", "a\u2028b", "\ue000"],
)  # fmt: skip
def test_a_name_with_what_cannot_be_seen_is_refused(make: Make, name: str) -> None:
    store = make()
    with pytest.raises(RefusedError, match="the name"):
        store.add_user(name)
    with pytest.raises(RefusedError, match="the name"):
        store.user(name)
    assert store.users() == []


@pytest.mark.parametrize(
    "name", ["<script>alert(1)</script>", "'; DROP TABLE users; --", "=cmd|' /C calc'!A0",
             "李小龍", "Zoë", "../../etc/passwd", "%s%n{0}", "a" * 64],
)  # fmt: skip
def test_a_hostile_name_is_only_a_name(make: Make, name: str) -> None:
    store = make()
    made = store.add_user(name)
    assert store.user(name) == made == User(id=made.id, name=name, role="annotator")


def test_names_that_look_alike_are_refused(make: Make) -> None:
    store = make()
    store.add_user("Zoë Fisher")
    for name in ("Zoë Fisher", "zoë fisher", "Zoe\u0308 Fisher", "Zoë ﬁsher", "Ｚoë Fisher"):
        with pytest.raises(RefusedError, match="taken") as refused:
            store.add_user(name)
        assert refused.value.reason == "conflict"
    assert store.user("Zoe\u0308 Fisher").name == "Zoë Fisher"


def test_a_name_that_is_not_there_is_refused(make: Make) -> None:
    with pytest.raises(RefusedError, match="no user 'Ann'"):
        make().user("Ann")


def test_an_unknown_role_is_refused(make: Make) -> None:
    with pytest.raises(RefusedError, match="no role"):
        make().add_user("Ann", "king")  # type: ignore[arg-type]


def test_a_name_added_by_many_at_once_is_added_once(make: Make) -> None:
    store = make()

    def add(_: int) -> bool:
        try:
            return bool(store.add_user("Ann"))
        except RefusedError:
            return False

    with ThreadPoolExecutor(8) as threads:
        assert sum(threads.map(add, range(8))) == 1


def test_names_that_differ_in_what_cannot_be_seen_are_refused(make: Make) -> None:
    store = make()
    store.add_user("Ann Lee")
    for name in ("Ann  Lee", "Ann\u00a0Lee", "Ann Lee\u3164", "Ann\ufe0f Lee", "A\u034fnn Lee"):
        with pytest.raises(RefusedError, match="taken"):
            store.add_user(name)
    for name in ("\u3164", "\u2800\u2800", "\ufe0f"):
        with pytest.raises(RefusedError, match="cannot be seen"):
            store.add_user(name)
