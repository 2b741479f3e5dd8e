"""The docs keep up with the code."""

from __future__ import annotations

import json
import re
import runpy
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import ruleout as ro
from ruleout.cli import app

ROOT = Path(__file__).parent.parent
PAGES = sorted((ROOT / "docs" / "api").glob("*.rst"))
API = "\n".join(page.read_text() for page in PAGES)

pytestmark = pytest.mark.skipif(not PAGES, reason="the docs are not part of this checkout")


@pytest.mark.parametrize(
    "name", [n for n in ro.__all__ if n not in ("__version__", "labels", "losses")]
)
def test_every_public_name_is_documented(name: str) -> None:
    assert f"ruleout.{name}" in API


@pytest.mark.parametrize("name", ro.losses.names())
def test_every_loss_is_documented(name: str) -> None:
    function = ro.losses.get(name).function
    assert f"autofunction:: {function.__module__}.{function.__name__}\n" in API
    assert function.__doc__


@pytest.mark.parametrize(
    "room",
    ["comparison", "datasets", "estimator", "experiments", "report", "selection", "training"],
)
def test_every_public_name_of_a_room_is_documented(room: str) -> None:
    names = getattr(ro, room).__all__
    assert [
        name for name in names if not re.search(rf"ruleout\.([\w.]+\.)?{name}$", API, re.M)
    ] == []


def test_every_room_has_a_page_of_the_api() -> None:
    rooms = {one.name for one in _script("house_map")["rooms"]()} | {"testing", "theory"}
    assert {page.stem for page in PAGES} == (rooms - {"cli"}) | {"index"}
    index = (ROOT / "docs" / "api" / "index.rst").read_text()
    assert [name for name in ro._LATE if f"   {name}\n" not in index] == []


def _script(name: str) -> dict[str, Any]:
    """Run a file of the docs, and return what it defines."""
    return runpy.run_path(str(ROOT / "docs" / f"{name}.py"))


def test_command_reference_is_up_to_date() -> None:
    """`python docs/commands.py` writes it."""
    page = (ROOT / "docs" / "cli.md").read_text()
    assert page == _script("commands")["renewed"](page)


@pytest.mark.slow
def test_the_roads_are_as_the_page_says() -> None:
    """`python docs/roads.py` walks them."""
    done = subprocess.run(
        [sys.executable, ROOT / "docs" / "roads.py"], capture_output=True, text=True, check=True
    )
    page = (ROOT / "docs" / "house.md").read_text()
    for road in done.stdout.strip().split("\n\nOne"):
        files = [line.removeprefix("- ") for line in road.splitlines() if line.startswith("- ")]
        assert f"passes {len(files)} files: {', '.join(files)}." in page


def test_the_map_of_the_house_is_up_to_date() -> None:
    """`python docs/house_map.py` writes it."""
    script, page = _script("house_map"), (ROOT / "docs" / "house.md").read_text()
    assert page == script["renewed"](page)
    assert all(script["first_line"](file) for file in script["ROOT"].rglob("*.py"))


def test_command_reference_has_every_option() -> None:
    script, page = _script("commands"), (ROOT / "docs" / "cli.md").read_text()
    reference = page[page.index(script["START"]) :]
    for name, command in script["commands"]().items():
        part = reference.split(f"### {name}\n")[1].split("###")[0]
        for parameter in command.params:
            shown = parameter.opts if parameter.param_type_name == "option" else [parameter.metavar]
            assert all(one in part for one in shown)


_BOOKS = [ROOT / "README.md", ROOT / "results" / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


@pytest.mark.parametrize("page", _BOOKS, ids=lambda page: str(page.relative_to(ROOT)))
def test_commands_and_options_that_a_page_names_exist(page: Path) -> None:
    commands = _script("commands")["commands"]()
    text = page.read_text().replace("\\\n", " ")
    for line in re.findall(r"^(?: {4})?(ruleout .*)$|`(ruleout [^`\n]*)`", text, re.M):
        words = shlex.split("".join(line), comments=True)[1:]
        words = words[2:] if words[:1] == ["--plugin"] else words
        name = next((n for n in (" ".join(words[:2]), *words[:1]) if n in commands), None)
        group = any(one.startswith(f"{words[0]} ") for one in commands) if words else True
        assert name or group or words[0].startswith("-"), line
        known = [opt for one in commands[name].params for opt in one.opts] if name else ["--help"]
        given = [one.partition("=")[0] for one in words if one.startswith("--")]
        assert [one for one in given if one not in [*known, "--help"]] == [], line


def test_every_option_has_help() -> None:
    assert list(_script("commands")["undocumented"]()) == []


@pytest.mark.slow
def test_example_of_the_command_line_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every command of the page, in its order."""
    page = (ROOT / "docs" / "cli.md").read_text()
    monkeypatch.chdir(tmp_path)
    for code in re.findall(r"^```python\n(.*?)^```", page, re.M | re.S):
        exec(code, {})
    shell = "".join(re.findall(r"^```sh\n(.*?)^```", page, re.M | re.S))
    lines = shell.replace("\\\n", "").splitlines()
    assert [line.split()[1] for line in lines] == (
        ["draw", "check", "fit", "predict", "evaluate", "resolve", "compare"]
    )
    for line in lines:
        found = CliRunner().invoke(app, shlex.split(line)[1:])
        assert found.exit_code == 0, found.output
    assert (tmp_path / "report" / "report.html").exists()


@pytest.mark.slow
def test_the_tutorial_runs_as_it_is_written(tmp_path: Path) -> None:
    """`python docs/pictures.py` takes its pictures."""
    pytest.importorskip("PIL")
    for command, printed, said in _script("pictures")["follow"](tmp_path):
        there = [_words_and_numbers(line) for line in printed.splitlines()]
        for line in said.splitlines():
            words, numbers = _words_and_numbers(line)
            near = pytest.approx(numbers, rel=0.1, abs=0.05)
            assert line == "…" or any(w == words and n == near for w, n in there), (command, line)
    assert (tmp_path / "report" / "report.html").exists()


def _words_and_numbers(line: str) -> tuple[str, list[float]]:
    number = r"\d[\d,]*(?:\.\d+)?(?:e-?\d+)?"
    found = [float(one.replace(",", "")) for one in re.findall(number, line)]
    return " ".join(re.sub(number, "#", line).split()), found


@pytest.mark.parametrize("page", sorted((ROOT / "docs").glob("*.md")), ids=lambda page: page.stem)
def test_pictures_of_a_page_are_there(page: Path) -> None:
    named = re.findall(r"!\[[^\]]*\]\(([^)]+)\)", page.read_text())
    assert [one for one in named if not (page.parent / one).is_file()] == []


@pytest.mark.parametrize("name", ro.approaches())
def test_the_table_of_approaches_says_what_each_computes_costs_and_is_for(name: str) -> None:
    table, row = _script("table"), ro.approach(name)
    assert "$" in table["formula"](row) or "ramp" in name
    assert len(table["when"](row)) > 1
    (says,) = [one for one in table["what"]() if one.startswith(f"| `{name}` |")]
    assert len(re.findall(r"(?<!\\)\|", says)) == 5
    assert ":func:" not in says
    (line,) = [one for one in table["costs"]() if one.startswith(f"| `{name}` |")]
    assert re.search(r"\| \d+\.\d \| \d+\.\d \|", line), "python benchmarks/approaches.py --record"


def test_tables_of_times_do_without_the_files(tmp_path: Path) -> None:
    _script("measured")["write_measured"](tmp_path / "table.md", tmp_path)
    assert "Not recorded in this checkout" in (tmp_path / "table.md").read_text()


def test_tables_of_times_show_what_was_recorded(tmp_path: Path) -> None:
    machine = {"cpu": "a processor", "threads": 2, "gpu": None, "torch": "2.9"}
    rows = [{"case": "digits linear", "stacked ms": 1.25, "loader / stacked": None}]
    told = {"command": "python x.py", "date": "2026-01-01", "machine": machine}
    (tmp_path / "engine.json").write_text(json.dumps({**told, "results": {"rows": rows}}))
    _script("measured")["write_measured"](tmp_path / "table.md", tmp_path)
    text = (tmp_path / "table.md").read_text()
    assert "| digits linear | 1.25 | – | – | – | – |" in text
    assert "`python x.py`, 2026-01-01, a processor, 2 threads" in text


def test_readme_names_the_two_commands() -> None:
    text = (ROOT / "README.md").read_text()
    assert "make demo" in text
    assert "make test" in text
    recipes = (ROOT / "Makefile").read_text()
    assert "\ndemo:" in recipes
    assert "\ntest:" in recipes


def test_files_that_the_readme_names_are_there() -> None:
    lines = (ROOT / "README.md").read_text().split("| where to look |\n")[1].split("\n\n")[0]
    for line in lines.splitlines()[1:]:
        room, _, look = line.strip("| ").split(" | ")
        own = Path() if room == "theory, testing" else Path(room)
        named = re.findall(r"`([\w/]+\.(?:py|html|toml))`", look)
        assert [one for one in named if not (ROOT / "src" / "ruleout" / own / one).is_file()] == []
        assert named, line


def test_the_guide_to_approaches_is_what_the_ledger_says() -> None:
    """`python docs/which.py` writes it."""
    assert (ROOT / "docs" / "which.md").read_text() == _script("which")["document"]()


def test_the_reproduction_is_what_the_ledgers_say(tmp_path: Path) -> None:
    """`make results` writes the page and the tables."""
    from ruleout.experiments import gather, write_report

    script = _script("reproduction")
    assert (ROOT / "docs" / "reproduction.md").read_text() == script["document"]()
    readme = (ROOT / "README.md").read_text()
    assert readme == script["renewed"](readme)
    written = write_report(
        gather(ROOT / "results" / "ledger"), tmp_path, ["latex", "markdown", "csv"]
    )
    for file in written:
        assert file.read_bytes() == (ROOT / "results" / file.name).read_bytes()


def test_the_study_of_labelling_is_what_was_measured() -> None:
    """`python docs/study.py` writes the tables of the page."""
    from ruleout.learning.planning import read_study

    page = (ROOT / "docs" / "labelling-study.md").read_text()
    assert page == _script("study")["document"](read_study())


def test_what_the_issue_asks_of_the_results() -> None:
    """Every cell is there once, and agrees with the paper as often as it must."""
    import csv

    with open(ROOT / "results" / "accuracy.csv", newline="") as lines:
        rows = list(csv.DictReader(lines))
    keys = {
        tuple(row[n] for n in ("table", "dataset", "model", "sizes", "approach", "group"))
        for row in rows
    }
    assert len(rows) == len(keys) >= 479
    good = [row["verdict"] in ("agrees", "better") for row in rows]
    upper = [g for g, row in zip(good, rows, strict=True) if row["group"] == "upper-bound"]
    assert sum(good) / len(good) >= 0.75
    assert sum(upper) / len(upper) >= 0.9


def test_comments_beside_fields_are_shown_as_parameters() -> None:
    described = _script("field_comments")["described"]
    assert list(described(ro.report.Note)) == []
    told = described(ro.report.Score)
    assert told["name"] == "the approach, as code knows it"
    assert told["chosen"].startswith("the chosen configuration")
