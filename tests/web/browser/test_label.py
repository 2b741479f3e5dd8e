"""Labelling by keyboard and mouse: what is seen is what is recorded, once."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from playwright.sync_api import BrowserContext, Page, expect
from web.browser import hands
from web.browser.site import DIGITS, PASSWORD, Site

from ruleout.web import Reply

Serve = Callable[..., Site]
Label = Callable[..., Page]


def _key(what: hands.Shown) -> str:
    return "yn"[what.item % 2]


@pytest.mark.parametrize("n", [20, pytest.param(60, marks=pytest.mark.slow)])
def test_who_is_invited_joins_and_labels_at_full_speed(
    serve: Serve, url: str, context: Callable[..., BrowserContext], n: int
) -> None:
    """A row for each item, with the answer that was given to what was seen; on both databases."""
    site = serve(n, url=url)
    page = context().new_page()
    page.goto(site.invite("Ann"))
    page.get_by_label("Password", exact=True).fill(PASSWORD)
    page.get_by_label("The password again").fill(PASSWORD)
    page.get_by_role("button", name="Begin").click()
    page.wait_for_selector("[data-question]")
    seen = hands.label(page, n, _key)
    expect(page.get_by_role("heading", name="All questions are answered")).to_be_visible()
    rows = list(site.store.log())
    assert len(rows) == len(seen) == n
    for row in rows:
        assert row.counts
        assert row.kind == {"y": "yes", "n": "no"}[_key(seen[row.item])]
        assert [DIGITS[code] for code in row.proposed] == seen[row.item].names
    assert site.store.check() == []


def test_blind_hammering_answers_no_question_twice(serve: Serve, label: Label) -> None:
    """Keys that come when nothing is shown yet are nobody's answer."""
    site = serve(20)
    page = label(site)
    end = time.monotonic() + 30
    while len(list(site.store.log())) <= 3 and time.monotonic() < end:  # more than came at first
        for _ in range(20):
            page.keyboard.press("y")
    hands.all_sent(page)
    rows = list(site.store.log())
    assert all(row.counts for row in rows)
    assert len({row.item for row in rows}) == len(rows) > 3


def test_skip_is_recorded_and_the_next_item_comes(serve: Serve, label: Label) -> None:
    site = serve(5)
    page = label(site)
    first = hands.shown(page)
    page.keyboard.press("s")
    hands.shown(page, unlike=first.question)
    hands.all_sent(page)
    assert [(row.item, row.kind) for row in site.store.log()] == [(first.item, "skip")]


@pytest.mark.parametrize("way", ["key", "button"])
def test_which_one_is_asked_after_yes(serve: Serve, label: Label, way: str) -> None:
    site = serve(5, ask_which=True, law="fixed:3", cap=3)
    page = label(site)
    first = hands.shown(page)
    page.keyboard.press("y")
    expect(page.get_by_role("heading", name="Which one?")).to_be_visible()
    if way == "key":
        page.keyboard.press("2")
    else:
        page.get_by_role("button", name=first.names[1], exact=True).click()
    hands.shown(page, unlike=first.question)
    hands.all_sent(page)
    rows = [(row.item, row.kind, row.which) for row in site.store.log()]
    assert rows == [
        (first.item, "yes", None),
        (first.item, "which", DIGITS.index(first.names[1])),
    ]


@pytest.mark.parametrize("key", ["Escape", "s"])
def test_not_knowing_which_leaves_the_yes_alone(serve: Serve, label: Label, key: str) -> None:
    site = serve(5, ask_which=True, law="fixed:3", cap=3)
    page = label(site)
    first = hands.shown(page)
    page.keyboard.press("y")
    expect(page.get_by_role("heading", name="Which one?")).to_be_visible()
    page.keyboard.press(key)
    hands.shown(page, unlike=first.question)
    hands.all_sent(page)
    assert [row.kind for row in site.store.log()] == ["yes"]


def test_undo_takes_the_which_back_with_its_yes(serve: Serve, label: Label) -> None:
    site = serve(5, ask_which=True, law="fixed:3", cap=3)
    page = label(site)
    first = hands.shown(page)
    page.keyboard.press("y")
    expect(page.get_by_role("heading", name="Which one?")).to_be_visible()
    page.keyboard.press("1")
    hands.shown(page, unlike=first.question)
    page.keyboard.press("u")
    page.wait_for_selector(f"[data-question='{first.question}']")
    page.keyboard.press("n")
    hands.shown(page, unlike=first.question)
    hands.all_sent(page)
    assert [row.kind for row in site.store.log() if row.counts] == ["no"]


def test_classes_are_clicked_away(serve: Serve, label: Label) -> None:
    """Number keys, clicks and Enter; at least one and at most all but one."""
    site = serve(5, mode="rule-out", cap=None)
    page = label(site)
    first = hands.shown(page)
    send = page.get_by_role("button", name="Rule out")
    expect(send).to_be_disabled()
    page.keyboard.press("Enter")  # nothing is ruled out yet
    for key in "1344":  # the last takes the third back
        page.keyboard.press(key)
    page.get_by_text("nine", exact=True).click()
    page.keyboard.press("Enter")
    hands.shown(page, unlike=first.question)
    for name in DIGITS:
        page.get_by_text(name, exact=True).click()
    expect(page.get_by_text("One class must be left over.")).to_be_visible()
    expect(send).to_be_disabled()
    page.keyboard.press("Enter")
    page.get_by_text("two", exact=True).click()
    send.click()
    hands.all_sent(page)
    rows = [row.excluded for row in site.store.log()]
    assert rows == [(0, 2, 9), (0, 1, 3, 4, 5, 6, 7, 8, 9)]


def test_one_of_thousands_of_classes_is_found_by_typing(serve: Serve, label: Label) -> None:
    """Search minds no accents; what is ruled out stays in sight; few nodes are made."""
    names = (*(f"species {n}" for n in range(3000)), "Écureuil roux", "écureuil gris")
    site = serve(5, mode="rule-out", cap=None, classes=names)
    page = label(site)
    first = hands.shown(page)
    assert page.locator("#classes li").count() <= 100
    expect(page.get_by_text("and 2,902 more")).to_be_visible()
    page.keyboard.press("/")
    page.keyboard.type("ECUREUIL")
    assert hands.shown(page).names == ["Écureuil roux", "écureuil gris"]
    page.keyboard.press("Escape")
    page.keyboard.press("2")
    page.keyboard.press("/")
    page.keyboard.type("species 2999")
    page.get_by_label("species 2999").check(force=True)
    page.get_by_label("Find a class").fill("")
    ruled_out = page.get_by_role("list", name="Ruled out so far").get_by_role("button")
    expect(ruled_out).to_have_count(2)
    page.get_by_role("button", name="Rule out 2 of 3002").click()
    hands.shown(page, unlike=first.question)
    expect(ruled_out).to_have_count(0)
    hands.all_sent(page)
    assert [row.excluded for row in site.store.log()] == [(2999, 3001)]


def test_answers_are_taken_back_and_given_again(serve: Serve, label: Label) -> None:
    """Undo adds rows and deletes none; the questions come back in turn."""
    site = serve(14)
    page = label(site)
    before = hands.label(page, 10, lambda _: "y")
    order = list(before)
    for item in reversed(order):
        page.keyboard.press("u")
        page.wait_for_selector(f"[data-question='{before[item].question}']")
        assert hands.shown(page) == before[item]
    hands.all_sent(page)
    assert site.counted() == []
    after = hands.label(page, 10, lambda _: "n")
    hands.all_sent(page)
    assert list(after) == order
    assert {row.item: row.kind for row in site.counted()} == dict.fromkeys(order, "no")
    assert len(list(site.store.log())) == 30


def test_undo_works_after_a_reload(serve: Serve, label: Label) -> None:
    site = serve(5)
    page = label(site)
    first = hands.shown(page)
    page.keyboard.press("y")
    hands.shown(page, unlike=first.question)
    hands.all_sent(page)
    page.reload()
    hands.shown(page)
    page.keyboard.press("u")
    page.wait_for_selector(f"[data-question='{first.question}']")
    hands.all_sent(page)
    assert site.counted() == []


def test_held_keys_and_combinations_answer_nothing(serve: Serve, label: Label) -> None:
    site = serve(9)
    page = label(site)
    for key in ("Control+y", "Alt+n", "Meta+s", "Control+Shift+u", "x", "1", "Enter"):
        page.keyboard.press(key)
    first = hands.shown(page)
    page.keyboard.down("y")
    second = hands.shown(page, unlike=first.question)
    page.keyboard.down("y")  # without a keyup in between this is a repeat
    page.keyboard.up("y")
    page.get_by_role("button", name="No").focus()
    page.keyboard.down("Enter")
    third = hands.shown(page, unlike=second.question)
    page.keyboard.down("Enter")
    page.keyboard.up("Enter")
    page.wait_for_timeout(100)
    assert hands.shown(page) == third
    hands.all_sent(page)
    assert [row.kind for row in site.store.log()] == ["yes", "no"]


def test_keys_in_the_search_field_and_in_the_help_answer_nothing(
    serve: Serve, label: Label
) -> None:
    site = serve(5, classes=tuple(f"class {n}" for n in range(40)), law="fixed:20", cap=20)
    page = label(site)
    page.keyboard.press("/")
    page.keyboard.type("ynsu1")
    expect(page.get_by_label("Find a class")).to_have_value("ynsu1")
    page.keyboard.press("Escape")
    page.keyboard.press("?")
    dialog = page.get_by_role("dialog", name="How to label")
    expect(dialog).to_be_visible()
    for key in "ynsu?":
        page.keyboard.press(key)
    page.keyboard.press("Escape")
    expect(dialog).to_be_hidden()
    page.wait_for_timeout(100)
    assert list(site.store.log()) == []
    page.keyboard.press("n")
    hands.all_sent(page)
    assert [row.kind for row in site.store.log()] == ["no"]


def test_single_keys_can_be_switched_off(serve: Serve, label: Label) -> None:
    """Who dictates to their browser would answer by accident."""
    site = serve(5)
    page = label(site)
    page.keyboard.press("?")
    page.get_by_label("Answer with single keys").uncheck()
    page.get_by_role("button", name="Close").click()
    page.keyboard.press("y")
    page.get_by_role("button", name="No").click()
    hands.all_sent(page)
    assert [row.kind for row in site.store.log()] == ["no"]


def test_a_double_click_answers_once(serve: Serve, label: Label) -> None:
    site = serve(9)
    page = label(site)
    first = hands.shown(page)
    page.get_by_role("button", name="Yes").dblclick(delay=10)
    hands.shown(page, unlike=first.question)
    page.wait_for_timeout(100)
    hands.all_sent(page)
    assert len(list(site.store.log())) == 1


def test_every_answer_can_be_given_by_tab_and_enter(serve: Serve, label: Label) -> None:
    """Where a button goes away, focus moves on to the question, not to the top of the page."""
    site = serve(5, ask_which=True, law="fixed:3", cap=3)
    page = label(site)
    first = hands.shown(page)
    page.get_by_role("button", name="Yes").focus()
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Which one?")).to_be_focused()
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    hands.shown(page, unlike=first.question)
    hands.all_sent(page)
    rows = [(row.kind, row.which) for row in site.store.log()]
    assert rows == [("yes", None), ("which", DIGITS.index(first.names[0]))]


def test_an_image_that_cannot_be_loaded_can_be_skipped(
    serve: Serve, label: Label, tmp_path: Any
) -> None:
    site = serve(1)
    (tmp_path / "images" / "0.png").unlink()
    page = label(site, wait=False)
    expect(page.get_by_role("heading", name="This item cannot be shown")).to_be_visible()
    page.keyboard.press("y")
    expect(page.get_by_role("button", name="Yes")).to_be_disabled()
    page.keyboard.press("s")
    hands.all_sent(page)
    assert [row.kind for row in site.store.log()] == ["skip"]


def test_progress_is_shown(serve: Serve, label: Label) -> None:
    site = serve(30)
    page = label(site)
    hands.label(page, 12, lambda _: "n")
    expect(page.locator("#pace")).to_contain_text("12 of 30 answers")
    expect(page.locator("#pace")).to_contain_text("12 by you")
    expect(page.locator("#pace")).to_contain_text("per hour")
    expect(page.locator("#pace")).to_contain_text("less than a minute left")
    assert page.locator("progress").get_attribute("value") == "12"


def test_a_lead_who_only_looks_holds_no_question(
    serve: Serve, context: Callable[..., BrowserContext]
) -> None:
    site = serve(1)
    profile = context()
    profile.add_cookies([site.session("Lea", "lead")])  # type: ignore[list-item]
    page = profile.new_page()
    page.goto(site.address)
    expect(page.get_by_role("heading", name="Ready to label?")).to_be_visible()
    expect(page.locator("#pace")).to_contain_text("0 of 1 answers")
    ann = site.store.add_user("Ann")
    question = site.store.next(ann, 1)[0]
    page.get_by_role("button", name="Start labelling").click()
    expect(page.get_by_role("heading", name="Nothing to ask at the moment")).to_be_visible()
    site.store.answer(ann, Reply(id="a", kind="skip", question=question.id))
    page.evaluate("dispatchEvent(new Event('online'))")
    hands.shown(page)
    page.keyboard.press("n")
    expect(page.get_by_role("heading", name="All questions are answered")).to_be_visible()


def test_a_tab_that_nobody_looks_at_lets_its_questions_go(
    serve: Serve, context: Callable[..., BrowserContext]
) -> None:
    site = serve(5)
    profile = context()
    profile.add_cookies([site.session("Ann")])  # type: ignore[list-item]
    profile.clock.install()
    page = profile.new_page()
    page.goto(site.address)
    hands.shown(page)
    page.clock.fast_forward("09:50")
    hands.shown(page)  # reading takes a while
    page.clock.fast_forward("00:30")
    expect(page.get_by_role("heading", name="Are you still there?")).to_be_visible()
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.clock.fast_forward("30:00")
    page.evaluate("dispatchEvent(new Event('online'))")
    page.wait_for_timeout(200)
    assert asked == []
    page.keyboard.press("Enter")
    hands.shown(page)
    page.keyboard.press("n")
    hands.all_sent(page)
    assert len(site.counted()) == 1


def test_an_open_page_learns_of_a_class_that_is_added(serve: Serve, label: Label) -> None:
    site = serve(8, mode="rule-out", cap=None)
    page = label(site)
    first = hands.shown(page)
    settings = site.store.settings
    site.store.grow(replace(settings, classes=(*settings.classes, "a new one")))
    page.keyboard.press("1")
    page.keyboard.press("Enter")
    second = hands.shown(page, unlike=first.question)  # was there before the receipt came
    hands.all_sent(page)
    page.keyboard.press("1")
    page.keyboard.press("Enter")
    third = hands.shown(page, unlike=second.question)
    assert (len(first.names), third.names[-1]) == (10, "a new one")
