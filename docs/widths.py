"""Open every page of the built docs in Chromium: is anything cut off, or a picture missing?

    python docs/widths.py docs/_build/html

On a desk (1280 pixels) and on a phone (390) nothing may stick out of the page: what is wider
scrolls inside its own frame. Code that has to scroll on a desk is named, so that it can be wrapped.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

CHROMIUM = Path("/usr/bin/chromium")
DESK, PHONE = 1280, 390
_LOOK = """() => {
  const wide = document.documentElement.clientWidth;
  const frame = (one) => one && one !== document.body
    && (getComputedStyle(one).overflowX !== "visible" || frame(one.parentElement));
  const words = (one) => `${one.tagName.toLowerCase()} "${one.textContent.trim().slice(0, 50)}"`;
  const inside = Array.from(document.querySelectorAll("article *"));
  const out = inside.filter((one) => one.getBoundingClientRect().right > wide + 1
    && !frame(one.parentElement));
  return { out: out.slice(0, 3).map(words),
    broken: Array.from(document.images).filter((one) => !one.naturalWidth).map((one) => one.src),
    code: Array.from(document.querySelectorAll("article pre"))
      .filter((one) => one.scrollWidth > one.clientWidth + 2).map(words) };
}"""


def look(folder: Path) -> Iterator[tuple[bool, str]]:
    """Yield what was found: whether it is a fault, and where and what it is."""
    from playwright.sync_api import sync_playwright

    pages = [one for one in sorted(folder.rglob("*.html")) if "_modules" not in one.parts]
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        for width in (DESK, PHONE):
            page = browser.new_page(viewport={"width": width, "height": 900})
            for file in pages:
                page.goto(file.resolve().as_uri())
                found, where = page.evaluate(_LOOK), f"{file.relative_to(folder)} at {width} px"
                yield from ((True, f"{where}: {one} sticks out") for one in found["out"])
                yield from ((True, f"{where}: {one} is missing") for one in found["broken"])
                if width == DESK:
                    yield from ((False, f"{where}: {one} has to scroll") for one in found["code"])
        browser.close()


def main(folder: Path) -> int:
    if not CHROMIUM.exists():
        print(f"widths: not checked, there is no {CHROMIUM}")
        return 0
    found = list(look(folder))
    for _, words in found:
        print(words)
    return int(any(fault for fault, _ in found))


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
