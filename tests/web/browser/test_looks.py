"""Everybody can use the pages: on a phone, by keyboard, with a screen reader, light and dark."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import BrowserContext, Page, expect
from web.browser import hands
from web.browser.site import Site

from ruleout.web import Item

Serve = Callable[..., Site]
Label = Callable[..., Page]

PHONE: dict[str, Any] = {
    "viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True,
}  # fmt: skip
HOSTILE = (
    "<img src=x onerror=alert(1)>", "</script><script>alert(1)</script>", "{{ 7 * 7 }}",
    "javascript:alert(1)", "שלום עולם", "W" * 200, "a word " * 28,
)  # fmt: skip
_CONTROLS = "a, button, label:has(input), input:not([type=hidden], [tabindex='-1'])"
_SMALL = """(controls) => Array.from(document.querySelectorAll(controls))
    .filter((e) => e.checkVisibility() && !(e.matches("input") && e.closest("label")))
    .map((e) => [e.outerHTML.slice(0, 60), e.getBoundingClientRect()])
    .filter(([, box]) => box.width < 44 || box.height < 44)
    .map(([what, box]) => `${what} ${box.width} x ${box.height}`)"""


def _axe(page: Page) -> None:
    """Every rule of axe-core, best practices included."""
    results = Axe().run(page)
    assert results.violations_count == 0, results.generate_report()


def _fits(page: Page) -> None:
    """Nothing is wider than the screen, and everything can be hit with a thumb."""
    wide = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
    assert page.evaluate(wide) <= 0
    assert page.evaluate(_SMALL, _CONTROLS) == []


def _to_which(page: Page) -> None:
    page.keyboard.press("y")
    expect(page.get_by_role("heading", name="Which one?")).to_be_visible()


def _to_help(page: Page) -> None:
    page.keyboard.press("?")
    expect(page.get_by_role("dialog")).to_be_visible()


def _to_ruled_out(page: Page) -> None:
    for key in "123":
        page.keyboard.press(key)


def _to_offline(page: Page) -> None:
    page.route("**/api/answer", lambda route: route.abort())
    page.keyboard.press("y")
    expect(page.locator("#unsent")).to_have_text("1 answer not sent yet.")


def _to_login_wanted(page: Page) -> None:
    told = '{"error": "you are not logged in; log in", "reason": "login"}'
    page.route("**/api/answer", lambda route: route.fulfill(status=401, body=told))
    page.keyboard.press("n")
    expect(page.get_by_role("link", name="Log in again")).to_be_visible()


def _to_end(page: Page) -> None:
    hands.label(page, 3, lambda _: "n")
    expect(page.get_by_role("heading", name="All questions are answered")).to_be_visible()


MANY = tuple(f"kind {n}" for n in range(300))
STATES: dict[str, tuple[dict[str, Any], Callable[[Page], object]]] = {
    "question": ({}, hands.shown),
    "which": ({"ask_which": True, "law": "fixed:3", "cap": 3}, _to_which),
    "many which": ({"ask_which": True, "law": "fixed:200", "cap": 200, "classes": MANY}, _to_which),
    "help": ({}, _to_help),
    "rule out": ({"mode": "rule-out", "cap": None}, _to_ruled_out),
    "many classes": ({"mode": "rule-out", "cap": None, "classes": MANY}, _to_ruled_out),
    "long list": ({"law": "fixed:200", "cap": 200, "classes": MANY}, hands.shown),
    "hostile": ({"classes": HOSTILE, "cap": None, "law": "fixed:6"}, hands.shown),
    "offline": ({}, _to_offline),
    "logged out": ({}, _to_login_wanted),
    "end": ({}, _to_end),
}


@pytest.mark.parametrize("state", STATES)
def test_everybody_can_use_the_page(serve: Serve, label: Label, state: str) -> None:
    """Axe in light on a desk, dark on a phone; there, nothing is too wide or too small."""
    settings, reach = STATES[state]
    page = label(serve(3, **settings))
    reach(page)
    _axe(page)
    page.emulate_media(color_scheme="dark", reduced_motion="reduce")
    page.set_viewport_size({"width": 390, "height": 844})
    _axe(page)
    _fits(page)


@pytest.mark.parametrize("width", [390, 1280])
def test_at_the_end_the_buttons_are_buttons(serve: Serve, label: Label, width: int) -> None:
    page = label(serve(3), viewport={"width": width, "height": 844})
    _to_end(page)
    for name in ("Undo", "Help"):
        box = page.get_by_role("button", name=name).bounding_box()
        assert box is not None
        assert box["height"] <= 60


ITEMS = {
    "text": Item(name="t", kind="text", text=f"{HOSTILE[0]}\n\n  indented\n" + "many words " * 900),
    "row": Item(name="r", kind="row", cells={name: name[::-1] for name in HOSTILE} | {"n": 3.5}),
}


@pytest.mark.parametrize("kind", ITEMS)
def test_texts_and_rows_are_shown_as_they_are(serve: Serve, label: Label, kind: str) -> None:
    page = label(serve([ITEMS[kind]], classes=HOSTILE, cap=None))
    reading = page.get_by_role("group", name="Item 1")
    expect(reading).to_contain_text(HOSTILE[0])
    _axe(page)
    page.set_viewport_size({"width": 390, "height": 844})
    _axe(page)
    _fits(page)
    assert page.evaluate("document.querySelectorAll('#work script, #item img').length") == 0


SCHEMES: tuple[Literal["light", "dark"], ...] = ("light", "dark")


def _pages(site: Site) -> list[str]:
    return ["/login", site.invite("Bo").removeprefix(site.address), "/join/no-such-link"]


def test_everybody_can_use_the_other_pages(
    serve: Serve, context: Callable[..., BrowserContext]
) -> None:
    site = serve(3)
    page = context(**PHONE).new_page()
    for path in _pages(site):
        page.goto(site.address + path)
        for scheme in SCHEMES:
            page.emulate_media(color_scheme=scheme)
            _axe(page)
            _fits(page)


@pytest.mark.parametrize("scripts", [True, False])
def test_a_failed_login_says_so_at_the_field(
    serve: Serve, context: Callable[..., BrowserContext], scripts: bool
) -> None:
    """Forms need no JavaScript."""
    site = serve(3)
    page = context(java_script_enabled=scripts).new_page()
    page.goto(site.address)
    page.get_by_label("Name").fill('Ann "><script>alert(1)</script>')
    page.get_by_label("Password").fill("wrong, alas")
    page.get_by_role("button", name="Log in").click()
    expect(page.get_by_role("alert")).to_have_text("The name or the password is wrong.")
    expect(page.get_by_label("Password")).to_have_attribute("aria-describedby", "problem")
    expect(page.get_by_label("Name")).to_have_value('Ann "><script>alert(1)</script>')


def test_a_phone_reaches_every_button_without_scrolling(serve: Serve, label: Label) -> None:
    """Taps answer; the buttons stay at the bottom of the screen under a long list."""
    site = serve(5, classes=MANY, law="fixed:60", cap=60)
    page = label(site, **PHONE)
    for name, kind in (("Yes", "yes"), ("No", "no"), ("Skip", "skip")):
        what = hands.shown(page)
        button = page.get_by_role("button", name=name)
        box = button.bounding_box()
        assert box is not None
        assert 844 / 2 < box["y"] < box["y"] + box["height"] <= 844
        button.tap()
        hands.shown(page, unlike=what.question)
        hands.all_sent(page)
        assert [row.kind for row in site.store.log()][-1] == kind
    page.get_by_role("button", name="Undo").tap()
    hands.all_sent(page)
    assert [row.kind for row in site.store.log()][-1] == "undo"


@pytest.mark.parametrize("size", [(390, 844), (1280, 760)])
def test_classes_out_of_sight_are_counted(
    serve: Serve, label: Label, size: tuple[int, int]
) -> None:
    """Who says "no" says it of every class of the list."""
    site = serve(5, classes=MANY, law="fixed:60", cap=60)
    page = label(site, viewport={"width": size[0], "height": size[1]})
    hands.shown(page)
    expect(page.get_by_role("heading", name="Is it one of these 60?")).to_be_visible()
    below = page.locator("#below")
    expect(below).to_have_text(re.compile(r"^\d+ more below$"))
    first = int((below.text_content() or "").split()[0])
    seen = page.evaluate("""() => Array.from(document.querySelectorAll("#classes li")).filter(
        (li) => { const box = li.getBoundingClientRect();
                  return document.elementFromPoint(box.x + 9, box.bottom - 9) === li
                      || li.contains(document.elementFromPoint(box.x + 9, box.bottom - 9)); }
    ).length""")
    assert abs(60 - seen - first) <= 4  # a row may be half in sight
    page.evaluate("scrollTo(0, 1e6); document.getElementById('classes').scrollTop = 1e6")
    expect(below).to_be_empty()


def test_a_screen_reader_is_told_the_question(serve: Serve, label: Label) -> None:
    page = label(serve(5))
    what = hands.shown(page)
    said = page.locator("#said")
    expect(said).to_have_attribute("role", "status")
    expect(said).to_have_text(f"Item {what.item}. Is it one of these? {', '.join(what.names)}")
    expect(page.get_by_role("img", name=f"Item {what.item}")).to_be_visible()


@pytest.mark.parametrize("options", [{}, PHONE], ids=["desk", "phone"])
def test_guidelines_are_read_by_keyboard_and_on_a_phone(
    serve: Serve, label: Label, tmp_path: Path, options: dict[str, Any]
) -> None:
    site, folder = serve(4), tmp_path / "project"
    (folder / "examples" / "two").mkdir(parents=True)
    (folder / "examples" / "two" / "1.png").write_bytes((site.images / "2.png").read_bytes())
    (folder / "guidelines.md").write_text("# Rules\n\n<img src=x>\n\n" + "A long line. " * 400)
    site.stop()
    site.options = replace(site.options, guidelines=folder)
    site.start()
    page = label(site, **options)
    _fits(page)
    _to_help(page)
    expect(page.get_by_role("region", name="Guidelines of the project")).to_be_focused()
    page.keyboard.press("End")
    picture = page.get_by_alt_text("Example 1 of two")
    expect(picture).to_be_in_viewport()
    assert picture.evaluate("(image) => image.decode().then(() => image.naturalWidth)") > 0
    _axe(page)
    _fits(page)
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)
