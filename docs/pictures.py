"""The pictures of the tutorial and of comparing.md, from real runs.

    python docs/pictures.py      # writes docs/_static/tutorial and docs/_static/report*.png

It follows the tutorial in an empty folder, labels for a while in Chromium, and takes what it sees.
"""

from __future__ import annotations

import csv
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

HERE = Path(__file__).parent
PAGE = HERE / "tutorial.md"
PICTURES = HERE / "_static" / "tutorial"
REPORTS = ("report", "report-below")
_BLOCK = re.compile(r"^```(python|sh)\n(.*?)^```(?:\n\n```text\n(.*?)^```)?", re.M | re.S)


def follow(folder: Path, page: Path = PAGE) -> Iterator[tuple[str, str, str]]:
    """Do what a page says; yield each command, what it prints, and what the page says it does."""
    for kind, code, said in _BLOCK.findall(page.read_text(encoding="utf-8")):
        lines = [code] if kind == "python" else code.replace("\\\n", "").splitlines()
        for line in lines:
            words = ["-c", line] if kind == "python" else ["-m", *shlex.split(line)]
            done = subprocess.run(
                [sys.executable, *words], cwd=folder, capture_output=True, text=True, check=False
            )
            if done.returncode:
                raise RuntimeError(f"{line}\n{done.stdout}{done.stderr}")
            yield line, done.stdout, said if line == lines[-1] else ""


# ---------------------------------------------------------------------- drawn


def _ten(file: Path, pictures: list[tuple[Path, str, str]]) -> None:
    from matplotlib.figure import Figure
    from PIL import Image

    page = Figure(figsize=(8, 3.9), layout="constrained")
    for axes, (image, text, colour) in zip(page.subplots(2, 5).flat, pictures, strict=True):
        axes.imshow(Image.open(image), cmap="gray_r")
        axes.set_xticks([])
        axes.set_yticks([])
        axes.set_xlabel(text, fontsize=8, color=colour)
    page.savefig(file, dpi=130, metadata={"Software": None})


def draw_answers(folder: Path, file: Path) -> None:
    """Draw ten pictures with what was asked about them, and the answers."""
    with open(folder / "answers.csv", newline="") as lines:
        rows = list(csv.DictReader(lines))
    told = []
    for row in rows[:10]:
        words = row["proposed"].split("|")
        asked = "\n".join(", ".join(words[start : start + 3]) for start in range(0, len(words), 3))
        shown = f"{asked}?\n{row['kind']}"
        told.append((folder / "digits" / row["item"], shown, "black"))
    _ten(file, told)


def draw_predictions(folder: Path, file: Path) -> None:
    """Draw ten pictures with what the model says of them: where it errs, that first."""
    with open(folder / "predictions.csv", newline="") as lines:
        said = list(csv.DictReader(lines))
    with open(folder / "new" / "labels.csv", newline="") as lines:
        truth = {row["file"]: row["class"] for row in csv.DictReader(lines)}
    names = sorted(truth)
    told = []
    for name, row in zip(names, said, strict=True):
        right = row["prediction"] == truth[name]
        text = f"{row['prediction']}, {100 * float(row['probability']):.0f} %"
        shown = text if right else f"{text}\n(it is {truth[name]})"
        told.append((folder / "new" / name, shown, "black" if right else "#b00020"))
    wrong = [one for one in told if one[2] != "black"][:3]
    _ten(file, wrong + [one for one in told if one[2] == "black"][: 10 - len(wrong)])


# ---------------------------------------------------------------------- in the browser


@contextmanager
def _chromium(**view: Any) -> Iterator[Any]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path="/usr/bin/chromium", args=["--no-sandbox"]
        )
        yield browser.new_context(**view).new_page()
        browser.close()


def write_small(picture: bytes, file: Path) -> None:
    """Write a picture with few colours, but those of small dots too: a third of its size."""
    from PIL import Image

    whole = Image.open(BytesIO(picture)).convert("RGB")
    few = whole.quantize(256, Image.Quantize.MAXCOVERAGE, kmeans=3, dither=Image.Dither.NONE)
    few.save(file, optimize=True)


def label(folder: Path, file: Path) -> None:
    """Serve the project, choose a password by the link that is printed, and answer for a while."""
    command = [sys.executable, "-m", "ruleout", "label", "serve", "project", "--port", "8799"]
    service = subprocess.Popen(
        command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    try:
        lines = iter(service.stdout or ())
        link = next(found[0] for line in lines if (found := re.search(r"http\S+/join/\S+", line)))
        with _chromium(viewport={"width": 1280, "height": 700}) as page:
            page.goto(link)
            for field in ("#password", "#again"):
                page.fill(field, "a few words in a row")
            page.get_by_role("button", name="Begin").click()
            page.get_by_role("button", name="Start labelling").click()
            for key in "nnynynnyyn":
                page.wait_for_timeout(700)
                page.keyboard.press(key)
            page.wait_for_timeout(700)
            write_small(page.screenshot(), file)
    finally:
        service.terminate()
        service.wait()


def report(folder: Path, *files: Path) -> None:
    """Take the report of a comparison, one picture below the other."""
    with _chromium(viewport={"width": 1280, "height": 900}) as page:
        page.goto((folder / "report.html").as_uri())
        for file in files:
            write_small(page.screenshot(), file)
            page.mouse.wheel(0, 880)
            page.wait_for_timeout(300)


def compared(folder: Path) -> None:
    """Compare some approaches on all digits, as comparing.md does, with more of them."""
    import ruleout as ro

    x, y = ro.datasets.load("digits").train
    names = ["log", "exp", "gce", "mae", "forward-after", "nn-before"]
    table = ro.compare(x, ro.draw(y, 10, seed=0), approaches=names, epochs=40, judge="folds")
    table.write(folder, title="Digits")


def main() -> None:
    PICTURES.mkdir(exist_ok=True)
    with TemporaryDirectory() as place:
        folder = Path(place, "tutorial")
        folder.mkdir()
        for line, printed, _ in follow(folder):
            if line.startswith("ruleout"):
                print(f"$ {line}\n{printed}")
            if "label init" in line:  # in a copy: these answers are not true
                shutil.copytree(folder, Path(place, "copy"))
                label(Path(place, "copy"), PICTURES / "label.png")
        draw_answers(folder, PICTURES / "answers.png")
        draw_predictions(folder, PICTURES / "predictions.png")
        report(folder / "report", PICTURES / "report.png")
        compared(Path(place, "report"))
        report(Path(place, "report"), *(HERE / "_static" / f"{name}.png" for name in REPORTS))


if __name__ == "__main__":
    main()
