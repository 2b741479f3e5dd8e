"""Answers survive lost connections, ended logins, reloads and second tabs; each arrives once."""

from __future__ import annotations

from collections.abc import Callable

from playwright.sync_api import Page, Route, expect
from sqlalchemy import delete
from web.browser import hands
from web.browser.site import PASSWORD, Site

from ruleout.web.schema import sessions

Serve = Callable[..., Site]
Label = Callable[..., Page]

# A tab shows another question than this one, or has none left; it may be about to paint one.
ANOTHER = """(q) => work.dataset.state === "done"
  || (work.dataset.question && work.dataset.question !== String(q))"""


def _answer(page: Page, keys: str) -> list[int]:
    """Press the keys, each at a question of its own; return the items."""
    items, last = [], None
    for key in keys:
        what = hands.shown(page, unlike=last)
        items.append(what.item)
        last = what.question
        page.keyboard.press(key)
    return items


def _unsent(page: Page, words: str) -> None:
    expect(page.locator("#unsent")).to_have_text(words)


def _until(page: Page, sent: list[str], count: int) -> None:
    for _ in range(500):
        if len(sent) >= count:
            return
        page.wait_for_timeout(10)
    raise AssertionError(f"sent {len(sent)} times, not {count}")


def _send_now(page: Page) -> None:
    page.get_by_role("button", name="Try now").click()
    hands.all_sent(page)


def test_answers_without_a_connection_are_kept_and_sent_later(serve: Serve, label: Label) -> None:
    """The three questions held can be answered; then the page waits."""
    site = serve(9)
    page = label(site)
    hands.shown(page)
    page.wait_for_timeout(300)  # the two images to come are loaded
    page.context.set_offline(True)
    items = _answer(page, "yns")
    _unsent(page, "3 answers not sent yet.")
    expect(page.get_by_text("There is no connection.")).to_be_visible()
    expect(page.get_by_role("heading", name="Waiting for more")).to_be_visible()
    page.context.set_offline(False)
    hands.all_sent(page)
    hands.shown(page)
    expect(page.locator("#notice")).to_be_hidden()
    rows = [(row.item, row.kind) for row in site.store.log()]
    assert rows == list(zip(items, ["yes", "no", "skip"], strict=True))


def test_unsent_answers_survive_a_server_that_stops_and_a_reload(
    serve: Serve, label: Label
) -> None:
    """After the reload, what has been answered is not asked again."""
    site = serve(9)
    page = label(site)
    page.wait_for_timeout(300)
    site.stop()
    items = _answer(page, "yn")
    _unsent(page, "2 answers not sent yet.")
    page.route("**/api/answer", lambda route: route.abort())  # before it can send one again
    site.start()
    page.reload()
    _unsent(page, "2 answers not sent yet.")
    page.unroute("**/api/answer")
    _send_now(page)
    assert hands.shown(page).item not in items
    assert [(row.item, row.kind) for row in site.store.log()] == list(
        zip(items, ["yes", "no"], strict=True)
    )


def test_an_answer_whose_acknowledgement_was_lost_is_one_row(serve: Serve, label: Label) -> None:
    site = serve(5)
    page = label(site)
    failed: list[str] = []

    def lose_the_first(route: Route) -> None:
        if failed:
            route.continue_()
            return
        failed.append(route.request.url)
        route.fetch()  # the service has recorded it
        route.abort()

    page.route("**/api/answer", lose_the_first)
    page.keyboard.press("y")
    _unsent(page, "1 answer not sent yet.")
    _send_now(page)
    assert [row.kind for row in site.store.log()] == ["yes"]


def test_what_only_looks_like_an_acknowledgement_is_none(serve: Serve, label: Label) -> None:
    """A login page of a hotel answers 200, too."""
    site = serve(5)
    page = label(site)
    bodies = ["<h1>Welcome</h1>", '{"welcome": true}', '{"receipt": {"id": "another"}}']
    sent: list[str] = []

    def welcome(route: Route) -> None:
        sent.append(bodies[len(sent) % 3])
        route.fulfill(status=200, body=sent[-1])

    page.route("**/api/answer", welcome)
    page.keyboard.press("y")
    for number in (1, 2, 3):
        _unsent(page, "1 answer not sent yet.")
        page.get_by_role("button", name="Try now").click()
        _until(page, sent, number + 1)
    assert list(site.store.log()) == []
    page.unroute("**/api/answer")
    _send_now(page)
    assert [row.kind for row in site.store.log()] == ["yes"]


def _end_sessions(site: Site) -> None:
    with site.store._database.writing() as db:
        db.execute(delete(sessions))


def test_after_an_ended_login_the_answers_wait_for_the_next(serve: Serve, label: Label) -> None:
    site = serve(9)
    page = label(site)
    page.wait_for_timeout(300)
    _end_sessions(site)
    items = _answer(page, "yn")
    _unsent(page, "2 answers not sent yet.")
    page.get_by_role("link", name="Log in again").click()
    page.get_by_label("Name").fill("Ann")
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Log in").click()
    hands.shown(page)
    hands.all_sent(page)
    rows = [(row.item, row.kind) for row in site.store.log()]
    assert rows == list(zip(items, ["yes", "no"], strict=True))


def test_after_a_login_in_another_tab_a_reload_is_asked_for(serve: Serve, label: Label) -> None:
    site = serve(9)
    page = label(site)
    _end_sessions(site)
    page.context.add_cookies([site.session("Ann")])  # type: ignore[list-item]
    page.keyboard.press("y")
    _unsent(page, "1 answer not sent yet.")
    page.get_by_role("link", name="Reload").click()
    hands.shown(page)
    hands.all_sent(page)
    assert [row.kind for row in site.store.log()] == ["yes"]


def test_an_answer_that_is_refused_is_taken_out_and_said(serve: Serve, label: Label) -> None:
    site = serve(9)
    page = label(site)
    told = '{"error": "there is no question 1; ask for the next", "reason": "unknown"}'
    page.route("**/api/answer", lambda route: route.fulfill(status=404, body=told))
    page.keyboard.press("y")
    expect(page.get_by_text("there is no question 1; ask for the next")).to_be_visible()
    hands.all_sent(page)


def test_what_is_not_sent_yet_can_be_taken_back(serve: Serve, label: Label) -> None:
    """The undo waits behind the answer."""
    site = serve(9)
    page = label(site)
    page.wait_for_timeout(300)
    first = hands.shown(page)
    page.context.set_offline(True)
    page.keyboard.press("y")
    hands.shown(page, unlike=first.question)
    page.keyboard.press("u")
    page.wait_for_selector(f"[data-question='{first.question}']")
    page.keyboard.press("n")
    _unsent(page, "3 answers not sent yet.")
    page.context.set_offline(False)
    hands.all_sent(page)
    assert [row.kind for row in site.store.log()] == ["yes", "undo", "no"]
    assert [(row.item, row.kind) for row in site.counted()] == [(first.item, "no")]


def test_two_tabs_lose_nothing_and_double_nothing(serve: Serve, label: Label) -> None:
    """What is answered in one tab is not asked in the other."""
    site = serve(12)
    one = label(site)
    two = one.context.new_page()
    two.goto(site.address)
    hands.shown(two)
    seen: list[int] = []
    while len(seen) < 12:
        for page, other in ((one, two), (two, one)):
            what = hands.shown(page)
            seen.append(what.question)
            page.keyboard.press("y")
            other.wait_for_function(ANOTHER, arg=seen[-1])
    hands.all_sent(one)
    assert len(site.counted()) == 12
    assert len({row.item for row in site.counted()}) == 12
    assert site.store.check() == []


def test_a_browser_without_storage_sends_directly_and_says_so(serve: Serve, label: Label) -> None:
    site = serve(9)
    page = label(site)
    page.evaluate("() => { Storage.prototype.setItem = () => { throw new Error('full'); }; }")
    page.route("**/api/answer", lambda route: route.abort())
    page.keyboard.press("y")
    expect(page.get_by_text("This browser has no room to keep answers")).to_be_visible()
    expect(page.get_by_role("button", name="Try now")).to_be_visible()  # the answer was refused
    page.unroute("**/api/answer")
    _send_now(page)
    expect(page.locator("#notice")).to_be_hidden()
    assert [row.kind for row in site.store.log()] == ["yes"]


def test_what_this_program_did_not_write_is_passed_over(serve: Serve, label: Label) -> None:
    """Damaged entries, of a browser that crashed or another program, stop nobody from labelling."""
    site = serve(9)
    page = label(site)
    hands.shown(page)
    page.evaluate(
        """() => {
          const [prefix] = Object.keys(sessionStorage);
          for (const text of ["{", "null", "7", "[]", ""]) {
            localStorage.setItem(`${prefix}${text}`, text);
          }
          sessionStorage.setItem(prefix, "{");
        }"""
    )
    page.reload()
    _answer(page, "yn")
    expect(page.get_by_text("2 by you")).to_be_visible()
    assert len(site.counted()) == 2
