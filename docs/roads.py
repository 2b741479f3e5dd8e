"""The two roads through the house: which files of src a row of a CSV, and one "No", pass.

python docs/roads.py      # prints both lists, in the order in which the files are reached

A file counts where one of its functions runs on the way, not what only runs while modules are
imported. The row's road ends when the model folder is saved, which keeps the tests that its sets
failed (`datasets/data_checks.py`, `labels/laws.py`).
"""

from __future__ import annotations

import csv
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

SRC = Path(__file__).parents[1] / "src" / "ruleout"


_walked: dict[str, None] | None = None  # while counting: the files, in the order they were reached
_end = ""  # the function in which the road ends


def _note(frame: FrameType, event: str, _: Any) -> None:
    code = frame.f_code
    if _walked is not None and event == "call" and not code.co_name.startswith("<"):
        file = Path(code.co_filename)
        if file.is_relative_to(SRC) and code.co_name != "__getattr__":  # which imports late
            _walked.setdefault(file.relative_to(SRC).as_posix())
    elif event == "return" and code.co_qualname == _end:
        sys.setprofile(None)


@contextmanager
def walked(end: str = "") -> Iterator[list[str]]:
    """Collect the files whose functions run, in any thread that began after this script did.

    Where the function named `end` returns, the road ends.
    """
    global _walked, _end
    files: list[str] = []
    _walked, _end = {}, end
    sys.setprofile(_note)
    try:
        yield files
    finally:
        sys.setprofile(None)
        files += _walked
        _walked = None


def row_of_a_csv(folder: Path) -> list[str]:
    """From ``ruleout fit table.csv --excluded not --out model`` to saved weights."""
    from typer.testing import CliRunner

    from ruleout.cli import app

    table = folder / "table.csv"
    with table.open("w", newline="") as out:
        rows = csv.writer(out)
        rows.writerow(["width", "height", "not"])
        names = ("cat", "dog", "fish")
        rows.writerows([i % 7, i % 5, "|".join(names[: 1 + i % 2])] for i in range(60))
    words = ["fit", str(table), "--excluded", "not", "--out", str(folder / "model")]
    words += ["--classes", ",".join(names), "--epochs", "2"]
    CliRunner().invoke(app, words)  # once without counting: registries fill, modules load
    (folder / "model").rename(folder / "before")
    with walked("RuleOutClassifier.save") as files:
        done = CliRunner().invoke(app, words)
    assert done.exit_code == 0, done.output
    return files


def one_no(folder: Path) -> list[str]:
    """From a "No" sent to the labelling service to a row in its database and the next question."""
    sys.path.insert(0, str(SRC.parents[1] / "tests"))
    from web.service.site import Site  # a project and a client in this process

    with Site(f"sqlite:///{folder / 'project.sqlite'}", folder) as site:
        ann = site.login()
        held = ann.api("/api/next", {"count": 3}).json()["questions"]

        def no(place: int) -> Any:
            body = {"id": f"a{place}", "kind": "no", "question": held[place]["id"]}
            return ann.api("/api/answer", {**body, "hold": 3})

        no(0)  # once without counting
        with walked() as files:
            done = no(1)
        assert done.json()["receipt"]["status"] == "recorded", done.text
    return files


ROADS: dict[str, Callable[[Path], list[str]]] = {
    "A row of a CSV, to saved weights": row_of_a_csv,
    'One "No", to a row in the database and the next question': one_no,
}


def main() -> None:
    threading.setprofile(_note)
    for name, road in ROADS.items():
        with tempfile.TemporaryDirectory() as folder:
            files = road(Path(folder))
        print(f"{name}: {len(files)} files\n")
        print("\n".join(f"- `{file}`" for file in files), end="\n\n")


if __name__ == "__main__":
    main()
