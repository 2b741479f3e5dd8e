"""Asking and answering over HTTP: replays, other people's things, and what is never told."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
from web.service.client import Client
from web.service.conftest import MakeSite
from web.service.site import PNG, Site

from ruleout.web import Item


def questions(client: Client, count: int = 3) -> list[dict[str, Any]]:
    response = client.api("/api/next", {"count": count})
    assert response.status_code == 200
    return list(response.json()["questions"])


def no(question: dict[str, Any], name: str, **more: Any) -> dict[str, Any]:
    return {"id": name, "kind": "no", "question": question["id"], **more}


def test_a_question_has_what_the_page_needs_and_no_more(site: Site) -> None:
    ann = site.login()
    first = questions(ann)[0]
    assert sorted(first) == ["expires", "id", "item", "mode", "proposed"]
    assert sorted(first["item"]) == ["cells", "id", "image", "kind", "text"]
    assert first["item"]["image"] == f"/items/{first['item']['id']}"
    assert questions(ann)[0] == first


def test_nothing_that_tells_the_class_reaches_an_annotator(make_site: MakeSite) -> None:
    names = [f"class-name-{n}.png" for n in range(5)]
    items = [Item(name=name, kind="image", path=name, gold=1) for name in names]
    site = make_site(items=items, settings={"gold_rate": 0.5, "seed": 123456789})
    ann = site.login()
    asked = ann.api("/api/next", {"count": 5})
    told = asked.text + ann.get("/api/project").text + ann.get("/api/progress").text
    told += ann.api("/api/answer", no(asked.json()["questions"][0], "a", hold=3)).text
    for secret in ("class-name", "gold", "law", "seed", "123456789", "sha256"):
        assert secret not in told


def test_rows_are_sent_as_names_and_texts(make_site: MakeSite) -> None:
    cells = {"a": 1, "b": None, "c": True, "d": "x", "e": 2**60, "f": 0.5}
    site = make_site(items=[Item(name="1", kind="row", cells=cells)])
    item = questions(site.login())[0]["item"]
    shown = [["a", "1"], ["b", ""], ["c", "true"], ["d", "x"], ["e", str(2**60)], ["f", "0.5"]]
    assert item["cells"] == shown
    assert (item["image"], item["text"]) == (None, None)


def test_an_answer_brings_the_next_questions(any_site: Site) -> None:
    ann = any_site.login()
    held = questions(ann)
    told = ann.api("/api/answer", no(held[0], "a", hold=3, took_ms=900)).json()
    assert told["receipt"]["status"] == "recorded"
    assert [one["id"] for one in told["questions"]][:2] == [one["id"] for one in held[1:]]
    assert len(told["questions"]) == 3
    assert ann.get("/api/progress").json()["answers"] == 1


def test_every_answer_ten_times_in_any_order_is_one_row(any_site: Site) -> None:
    ann = any_site.login()
    held = questions(ann, 6)
    told = [no(one, f"reply-{n}", hold=2) for n, one in enumerate(held)]
    every = told * 10
    Random(0).shuffle(every)
    seen: dict[str, Any] = {}
    for body in every:
        response = ann.api("/api/answer", body)
        assert response.status_code == 200
        receipt = response.json()["receipt"]
        assert seen.setdefault(body["id"], receipt) == receipt
    assert sorted(row.id for row in any_site.store.log()) == sorted(body["id"] for body in told)
    undo = {"id": "u", "kind": "undo", "undoes": "reply-3"}
    receipts = [ann.api("/api/answer", undo).json()["receipt"] for _ in range(10)]
    assert all(one == receipts[0] for one in receipts)
    assert len(list(any_site.store.log())) == len(told) + 1


def test_the_same_answer_at_the_same_time_is_one_row(any_site: Site) -> None:
    ann = any_site.login()
    first = questions(ann)[0]
    headers = {"x-csrf-token": ann.csrf}
    request = ("POST", "/api/answer", {"json": no(first, "a", hold=3), "headers": headers})
    told = ann.together(*[request] * 10)
    assert {response.status_code for response in told} == {200}
    assert len({str(response.json()["receipt"]) for response in told}) == 1
    assert len(list(any_site.store.log())) == 1


def test_forms_ten_times_make_one_user(any_site: Site) -> None:
    lead = any_site.login("Lea", "lead")
    for _ in range(10):
        assert lead.form("/team/invite", name="New", role="annotator").status_code == 200
        assert lead.form("/team/disable", name="Lea", disabled="0").status_code == 303
    assert [user.name for user in any_site.store.users()] == ["Lea", "New"]


def test_nobody_answers_for_another(any_site: Site) -> None:
    ann, bob = any_site.login("Ann"), any_site.login("Bob")
    hers = questions(ann, 2)
    response = bob.api("/api/answer", no(hers[0], "b"))
    assert (response.status_code, response.json()["reason"]) == (403, "foreign")
    assert ann.api("/api/answer", no(hers[0], "a")).status_code == 200
    undone = bob.api("/api/answer", {"id": "u", "kind": "undo", "undoes": "a"})
    assert (undone.status_code, undone.json()["reason"]) == (404, "unknown")
    stolen = bob.api("/api/answer", no(questions(bob)[0], "a"))
    assert (stolen.status_code, stolen.json()["reason"]) == (409, "conflict")
    assert [row.user_name for row in any_site.store.log() if row.counts] == ["Ann"]


def test_an_image_is_for_who_was_asked_about_it(any_site: Site) -> None:
    ann, bob, lead = any_site.login("Ann"), any_site.login("Bob"), any_site.login("Lea", "lead")
    mine = questions(ann, 1)[0]["item"]
    assert ann.get(mine["image"]).content == PNG
    assert bob.get(mine["image"]).status_code == 404
    assert lead.get(mine["image"]).status_code == 200
    others = [n for n in range(1, 11) if n != mine["id"]]
    assert {ann.get(f"/items/{n}").status_code for n in others} == {404}
    ann.api("/api/answer", {"id": "s", "kind": "skip", "question": questions(ann, 1)[0]["id"]})
    assert ann.get(mine["image"]).status_code == 200


def test_what_is_absent_reads_as_what_is_forbidden(site: Site) -> None:
    """Else numbers would tell how many items there are."""
    ann = site.login()
    mine = questions(ann, 1)[0]["item"]["id"]
    other = 1 if mine != 1 else 2
    there, absent = ann.get(f"/items/{other}"), ann.get("/items/99")
    assert there.status_code == absent.status_code == 404
    assert there.json()["error"].replace(str(other), "99") == absent.json()["error"]


@pytest.mark.parametrize("more", [{"took_ms": -5}, {"took_ms": 2**40}, {"sent": "yesterday"},
                                  {"sent": "0001-01-01T00:00:00+14:00"},
                                  {"sent": "+010000-01-01T00:00:00Z"}])  # fmt: skip
def test_a_clock_that_is_wrong_loses_no_answer(any_site: Site, more: dict[str, Any]) -> None:
    ann = any_site.login()
    response = ann.api("/api/answer", no(questions(ann)[0], "a", **more))
    assert response.json()["receipt"]["status"] == "recorded"
