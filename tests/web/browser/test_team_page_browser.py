"""The team page in Chromium, served for real: light and dark, on a desk and on a phone."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeAlias

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, expect
from web.browser.site import QUICK, Site
from web.teams import label, project

from ruleout.web import Store
from ruleout.web.service import Options

Open: TypeAlias = Callable[..., Page]
WIDTHS = {"desk": 1280, "phone": 390}


def _served(store: Store, folder: Path) -> Iterator[Site]:
    site = Site(store, folder, Options(name="Wildlife", hasher=QUICK))
    site.start()
    try:
        yield site
    finally:
        site.stop()


@pytest.fixture(scope="module")
def full(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A project that a team is well into."""
    folder = tmp_path_factory.mktemp("full")
    with project(folder, 300, known=24, rounds=3, gold_rate=0.1) as store:
        label(store, share=0.8)
        yield from _served(store, folder)


@pytest.fixture
def empty(tmp_path: Path) -> Iterator[Site]:
    """A project that nobody has begun."""
    with project(tmp_path, 20) as store:
        yield from _served(store, tmp_path)


@pytest.fixture
def team(window: Callable[..., Page]) -> Callable[..., Page]:
    """Open the team page as a lead."""

    def opened(site: Site, width: int = 1280, scheme: Any = "light") -> Page:
        page = window(viewport={"width": width, "height": 900}, color_scheme=scheme)
        page.context.add_cookies([site.session("Maria", "lead")])  # type: ignore[list-item]
        page.goto(f"{site.address}/team")
        return page

    return opened


def _look(page: Page) -> None:
    """Check what everybody needs: nothing inaccessible, no scrolling sideways."""
    for details in page.locator("summary").all():
        details.click()
    found = Axe().run(page).response["violations"]
    assert found == [], [(one["id"], one["nodes"][0]["html"]) for one in found]
    width = page.evaluate("document.documentElement.scrollWidth")
    assert width <= page.viewport_size["width"]  # type: ignore[index]


@pytest.mark.parametrize(
    ("scheme", "where"),
    [
        ("light", "desk"),
        ("dark", "phone"),
        pytest.param("dark", "desk", marks=pytest.mark.slow),
        pytest.param("light", "phone", marks=pytest.mark.slow),
    ],
)
def test_the_page_of_a_team_at_work(team: Open, full: Site, scheme: Any, where: str) -> None:
    page = team(full, WIDTHS[where], scheme)
    _look(page)
    shown = page.locator("svg[role=img]:visible")
    assert shown.count() == 4  # each picture once, in the form for this width


@pytest.mark.parametrize("where", ["desk", "phone"])
def test_the_page_of_a_project_that_nobody_has_begun(team: Open, empty: Site, where: str) -> None:
    page = team(empty, WIDTHS[where])
    _look(page)
    assert page.locator(".missing").count() == 5


def test_a_lead_invites_and_closes_an_account(team: Open, empty: Site) -> None:
    page = team(empty, WIDTHS["phone"])
    page.get_by_label("Name", exact=True).fill("<b>New</b>")
    page.get_by_role("button", name="Make a link").click()
    link = page.get_by_label("Invite link").input_value()
    assert link.startswith(f"{empty.address}/join/")
    _look(page)
    page.goto(f"{empty.address}/team")
    assert page.get_by_label("Invite link").count() == 0  # shown once
    close = page.get_by_role("button", name="Close the account of <b>New</b>")
    again = page.get_by_role("button", name="Open the account of <b>New</b>")
    close.click()
    expect(again).to_have_count(1)
    assert empty.store.user("<b>New</b>").disabled
    again.click()
    expect(close).to_have_count(1)
    assert not empty.store.user("<b>New</b>").disabled


def test_targets_are_large_enough_for_fingers(team: Open, full: Site) -> None:
    page = team(full, WIDTHS["phone"])
    found = page.locator(".page :is(button, summary, input:not([type=hidden]), select)").all()
    assert len(found) > 15
    assert all((one.bounding_box() or {"height": 0})["height"] >= 44 for one in found)


def test_what_there_is_no_number_for_has_a_dash(team: Open, full: Site) -> None:
    """A class of the label page once hid it here."""
    page = team(full)
    row = page.get_by_role("row", name="Maria").first
    expect(row.get_by_text("you", exact=True)).to_be_visible()
    expect(row.get_by_text("–").first).to_be_visible()
