"""Real Chromium against a real service."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, sync_playwright
from web.browser.site import Site, served

CHROMIUM = Path("/usr/bin/chromium")
FLAGS = ["--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu"]
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


@pytest.fixture
def context(browser: Browser, complaints: list[str]) -> Iterator[Callable[..., BrowserContext]]:
    """Open a browser profile; errors of scripts and breaches of the CSP fail the test."""
    with ExitStack() as stack:

        def opened(**options: Any) -> BrowserContext:
            made = browser.new_context(**{"viewport": {"width": 1280, "height": 800}, **options})
            stack.callback(made.close)
            made.set_default_timeout(10_000)
            made.add_init_script(_WATCH)
            made.on("console", lambda m: complaints.append(m.text) if m.type == "error" else None)
            made.on("weberror", lambda error: complaints.append(str(error.error)))
            return made

        yield opened
        for_real = [text for text in complaints if not text.startswith("Failed to load resource")]
        assert not for_real, for_real


@pytest.fixture
def label(context: Callable[..., BrowserContext]) -> Callable[..., Page]:
    """Open the page that people label on, logged in, and wait for the first question."""

    def opened(site: Site, name: str = "Ann", wait: bool = True, **options: Any) -> Page:
        profile = context(**options)
        profile.add_cookies([site.session(name)])  # type: ignore[list-item]
        page = profile.new_page()
        page.goto(site.address)
        if wait:
            page.wait_for_selector("[data-question]")
        return page

    return opened
