"""Take the pictures of the docs: ``python tests/web/browser/shots.py docs/_static/labelling``."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))  # it is run as a program

from PIL import Image
from playwright.sync_api import Browser, Page, sync_playwright
from sklearn.datasets import load_digits
from web.browser import hands
from web.browser.conftest import CHROMIUM, FLAGS
from web.browser.site import DIGITS, QUICK, Site, served
from web.teams import label, project

from ruleout.web.service import Options

PHONE: dict[str, Any] = {
    "viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True,
    "device_scale_factor": 2,
}  # fmt: skip
DESK: dict[str, Any] = {"viewport": {"width": 1280, "height": 760}}
DARK = {"color_scheme": "dark"}
TRUTH: dict[int, str] = {}  # the digit of each item by its number
THREE: dict[str, Any] = {"ask_which": True, "law": "fixed:3", "cap": 3}


def main(folder: Path, *only: str) -> None:
    """Write every picture, or only some."""
    folder.mkdir(parents=True, exist_ok=True)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        if not only or {"team", "team-trust"} & set(only):
            _team(browser, folder)
        for name in [one for one in only or SHOTS if one in SHOTS]:
            settings, options, act = SHOTS[name]
            with _labelling(browser, settings, options) as page:
                act(page)
                page.wait_for_timeout(400)
                _write(page.screenshot(), folder / f"{name}.png")
        browser.close()


def _team(browser: Browser, folder: Path) -> None:
    """Write both pictures of the team page: a project that twelve people are well into."""
    with (
        TemporaryDirectory() as place,
        project(Path(place), 1500, known=48, rounds=5, gold_rate=0.1) as store,
    ):
        label(store, share=0.8)
        site = Site(store, Path(place), Options(name="wildlife", hasher=QUICK))
        site.start()
        for name, scheme in (("team", "light"), ("team-trust", "dark")):
            view: Any = {"viewport": {"width": 1280, "height": 850}, "color_scheme": scheme}
            context = browser.new_context(**view)
            context.add_cookies([site.session("Maria", "lead")])  # type: ignore[list-item]
            page = context.new_page()
            page.goto(f"{site.address}/team")
            clip = _below(page) if name == "team-trust" else None
            _write(page.screenshot(full_page=clip is not None, clip=clip), folder / f"{name}.png")
            context.close()
        site.stop()


def _below(page: Page) -> Any:
    """Return where the team page says how far to trust the answers, and what is known."""
    names = ("How far to trust the answers", "What is known")
    parts = [page.get_by_role("heading", name=one).locator("xpath=..") for one in names]
    first, last = [part.evaluate("one => one.getBoundingClientRect().toJSON()") for part in parts]
    top = first["top"] - 32
    return {"x": 0, "y": top, "width": 1280, "height": last["bottom"] - top}


@contextmanager
def _labelling(
    browser: Browser, settings: dict[str, Any], options: dict[str, Any]
) -> Iterator[Page]:
    with TemporaryDirectory() as place:
        url = f"sqlite:///{place}/project.sqlite"
        with served(url, Path(place), 400, **settings) as site:
            context = browser.new_context(**options)
            context.add_cookies([site.session("Ann")])  # type: ignore[list-item]
            page = context.new_page()
            TRUTH.update(
                (number, DIGITS[load_digits().target[place]])
                for place, (number, _) in enumerate(site.store.items())
            )
            page.goto(site.address)
            hands.shown(page)
            yield page
            context.close()


def _write(picture: bytes, file: Path) -> None:
    """Write few colours: the pictures stay small."""
    few = Image.open(BytesIO(picture)).convert("RGB").quantize(128, dither=Image.Dither.NONE)
    few.save(file, optimize=True)
    print(f"{file} {file.stat().st_size / 1000:.0f} kB")


def _some(page: Page, n: int = 35) -> None:
    """Label for a while at an honest pace, so that there is progress."""
    last = None
    for number in range(n):
        what = hands.shown(page, unlike=last)
        last = what.question
        page.wait_for_timeout(300)
        if what.state == "rule-out":
            page.keyboard.press("1")
        page.keyboard.press("Enter" if what.state == "rule-out" else "nny"[number % 3])
    hands.shown(page, unlike=last)
    hands.all_sent(page)


def _which(page: Page) -> None:
    """Say "yes" where that is true: the items are the digits of scikit-learn in their order."""
    what = hands.shown(page)
    while TRUTH[what.item] not in what.names:
        page.keyboard.press("n")
        what = hands.shown(page, unlike=what.question)
    hands.all_sent(page)
    page.keyboard.press("y")


def _rule_out(page: Page) -> None:
    _some(page)
    for key in "1245":
        page.keyboard.press(key)


def _offline(page: Page) -> None:
    _some(page, 20)
    page.context.set_offline(True)
    for _ in range(2):
        page.wait_for_timeout(300)
        page.keyboard.press("n")


def _login(page: Page) -> None:
    page.get_by_role("button", name="Log out").click()
    page.wait_for_selector("#password")


Shot = tuple[dict[str, Any], dict[str, Any], Callable[[Page], None]]
SHOTS: dict[str, Shot] = {
    "label": ({}, DESK, _some),
    "label-dark": ({}, DESK | DARK, _some),
    "phone": ({}, PHONE, _some),
    "rule-out": ({"mode": "rule-out", "cap": None}, DESK, _rule_out),
    "which": (THREE, PHONE | DARK, _which),
    "offline": ({}, PHONE, _offline),
    "login": ({}, DESK, _login),
}

if __name__ == "__main__":
    main(Path(sys.argv[1]), *sys.argv[2:])
