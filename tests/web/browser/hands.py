"""What a person does on the page, done by a program."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from playwright.sync_api import Page

SHOWN = """() => {
    const work = document.getElementById("work");
    if (!work.dataset.question) return null;
    return { question: Number(work.dataset.question), state: work.dataset.state,
             image: document.querySelector("#item img")?.getAttribute("src") ?? null,
             names: Array.from(document.querySelectorAll("#classes .name"), (n) => n.textContent) };
}"""


@dataclass(frozen=True)
class Shown:
    """What is on the screen and can be answered."""

    question: int
    state: str
    image: str | None
    names: list[str]

    @property
    def item(self) -> int:
        """The item that is seen."""
        return int(str(self.image).rpartition("/")[2])


def shown(page: Page, unlike: int | None = None) -> Shown:
    """Wait until a question (another one) can be answered, and return it."""
    page.wait_for_function(
        """(last) => {
            const asked = document.getElementById("work")?.dataset.question;
            return asked && asked !== String(last);
        }""",
        arg=unlike,
    )
    return Shown(**page.evaluate(SHOWN))


def label(page: Page, n: int, choose: Callable[[Shown], str]) -> dict[int, Shown]:
    """Answer n questions by keyboard as fast as they come; return what was seen, by item."""
    seen: dict[int, Shown] = {}
    until = time.monotonic() + 60
    while len(seen) < n:
        assert time.monotonic() < until, f"only {len(seen)} of {n} questions came in a minute"
        now = page.evaluate(SHOWN)
        if now is not None:
            what = Shown(**now)
            assert what.item not in seen, "an item was shown again"
            seen[what.item] = what
            page.keyboard.press(choose(what))
    return seen


def all_sent(page: Page) -> None:
    """Wait until the outbox is empty."""
    page.wait_for_function(
        "() => !Object.keys(localStorage).some((key) => key.startsWith('ruleout-outbox'))"
    )
