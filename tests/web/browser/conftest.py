"""Real Chromium against a real service."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import (
    Browser,
    BrowserContext,
    ConsoleMessage,
    Page,
    ViewportSize,
    WebError,
    sync_playwright,
)
from web.browser.site import Site, served

CHROMIUM = Path("/usr/bin/chromium")
FLAGS = ["--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu"]
DESK: ViewportSize = {"width": 1280, "height": 800}
_WATCH = """document.addEventListener("securitypolicyviolation", (event) =>
    console.error(`CSP: ${event.violatedDirective} ${event.blockedURI}`))"""


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Chromium without a window; closed after each file, as its event loop would bar others."""
    if not CHROMIUM.exists():
        pytest.skip("no Chromium is installed (apt-get install chromium)")
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield chromium
        chromium.close()


@pytest.fixture
def serve(tmp_path: Path, quick_folder: Path) -> Iterator[Callable[..., Site]]:
    """Serve a project on SQLite; settings by name."""
    with ExitStack() as stack:

        def start(items: Any = 8, url: str | None = None, **settings: Any) -> Site:
            address = url or f"sqlite:///{quick_folder / 'project.sqlite'}"
            return stack.enter_context(served(address, tmp_path, items, **settings))

        yield start


@pytest.fixture
def complaints() -> list[str]:
    """What the browser complained about; a test that expects something takes it out."""
    return []


def _watch(profile: BrowserContext, complaints: list[str]) -> Callable[[], None]:
    """Write down what goes wrong in a profile; return what stops that."""

    def said(message: ConsoleMessage) -> None:
        if message.type == "error":
            complaints.append(message.text)

    def failed(error: WebError) -> None:
        complaints.append(str(error.error))

    def stop() -> None:
        profile.remove_listener("console", said)
        profile.remove_listener("weberror", failed)

    profile.on("console", said)
    profile.on("weberror", failed)
    return stop


def _opened(browser: Browser, **options: Any) -> BrowserContext:
    made = browser.new_context(**{"viewport": DESK, **options})
    made.set_default_timeout(10_000)
    made.add_init_script(_WATCH)
    return made


@pytest.fixture
def context(browser: Browser, complaints: list[str]) -> Iterator[Callable[..., BrowserContext]]:
    """Open a browser profile; errors of scripts and breaches of the CSP fail the test."""
    with ExitStack() as stack:

        def opened(**options: Any) -> BrowserContext:
            made = _opened(browser, **options)
            stack.callback(made.close)
            _watch(made, complaints)
            return made

        yield opened
        for_real = [text for text in complaints if not text.startswith("Failed to load resource")]
        assert not for_real, for_real


@pytest.fixture(scope="module")
def kept(browser: Browser) -> Iterator[Page]:
    """A page that the tests of a file use in turn: a window takes Chromium half a second."""
    profile = _opened(browser)
    yield profile.new_page()
    profile.close()


def _empty(page: Page) -> None:
    """Leave nothing behind."""
    for other in page.context.pages[1:]:
        other.close()
    page.evaluate("try { localStorage.clear(); sessionStorage.clear() } catch {}")
    page.unroute_all(behavior="ignoreErrors")
    page.context.set_offline(False)
    page.goto("about:blank")
    page.context.clear_cookies()


@pytest.fixture
def window(
    context: Callable[..., BrowserContext], kept: Page, complaints: list[str]
) -> Iterator[Callable[..., Page]]:
    """Open a page of some size in light or dark: the first of a test is that of the file."""
    with ExitStack() as stack:
        free = [kept]

        def opened(**options: Any) -> Page:
            if not free or options.keys() - {"viewport", "color_scheme"}:
                return context(**options).new_page()
            page = free.pop()
            stack.callback(_empty, page)
            stack.callback(_watch(page.context, complaints))
            page.set_viewport_size(options.get("viewport", DESK))
            page.emulate_media(
                color_scheme=options.get("color_scheme", "light"), reduced_motion="no-preference"
            )
            return page

        yield opened


@pytest.fixture
def label(window: Callable[..., Page]) -> Callable[..., Page]:
    """Open the page that people label on, logged in, and wait for the first question."""

    def opened(site: Site, name: str = "Ann", wait: bool = True, **options: Any) -> Page:
        page = window(**options)
        page.context.add_cookies([site.session(name)])  # type: ignore[list-item]
        page.goto(site.address)
        if wait:
            page.wait_for_selector("[data-question]")
        return page

    return opened
