"""The page: whole, alone, escaped, the same every time."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from base64 import b64encode
from collections.abc import Callable
from functools import cache
from hashlib import sha256
from pathlib import Path

import pytest
from report.markup import pictures, read
from report.samples import HOSTILE, cells, curves, hostile, pairs, realistic, scores

from ruleout.report import Listing, Note, Report, Section, csv, latex, render, write

REPORTS: dict[str, Callable[[], Report]] = {
    "realistic": realistic,
    "hostile": hostile,
    "cells": lambda: Report("Paper", sections=[Section("UCI", [cells()]), Section("", [cells(1)])]),
    "bare": lambda: Report(""),
}


@cache
def rendered(name: str) -> str:
    return render(REPORTS[name]())


@pytest.fixture(params=REPORTS)
def page(request: pytest.FixtureRequest) -> str:
    return rendered(request.param)


def test_every_tag_is_closed_in_its_turn(page: str) -> None:
    assert read(page).all("html")


def test_every_picture_is_xml_and_says_what_it_shows(page: str) -> None:
    for picture in pictures(page):
        hidden = picture.get("aria-hidden") == "true"
        assert hidden or (picture[0].tag == "title" and picture[1].tag == "desc")


def test_nothing_is_asked_from_elsewhere(page: str) -> None:
    reader = read(page)
    assert not re.search("https?://|//[a-z]+[.]|@import", page)
    assert not re.search(r"url\((?!#)", page)
    for element in reader.elements:
        assert element.name not in {"link", "img", "iframe", "object", "embed", "base", "image"}
        assert not {"src", "srcset", "style", "action"} & set(element.attributes)
        assert element.attributes.get("href", "#").startswith("#")


def test_a_policy_lets_only_our_own_script_and_style_run(page: str) -> None:
    reader = read(page)
    policy = next(e for e in reader.all("meta") if "http-equiv" in e.attributes)
    assert policy.attributes["content"].startswith("default-src 'none'")
    for name in ("script", "style"):
        (element,) = reader.all(name)
        digest = b64encode(sha256(element.text.encode()).digest()).decode()
        assert f"{name}-src 'sha256-{digest}'" in policy.attributes["content"]


def test_ids_are_unique_and_references_meet_them(page: str) -> None:
    reader = read(page)
    ids = [element.attributes["id"] for element in reader.elements if "id" in element.attributes]
    assert len(ids) == len(set(ids))
    wanted = [e.attributes["href"][1:] for e in reader.elements if "href" in e.attributes]
    wanted += [n for e in reader.elements for n in e.attributes.get("aria-labelledby", "").split()]
    wanted += re.findall(r"url\(#([^)]+)\)", page)
    assert set(wanted) <= set(ids)


def test_hostile_text_stays_text() -> None:
    page = rendered("hostile")
    reader = read(page)
    assert len(reader.all("script")) == len(reader.all("style")) == 1
    assert not [n for e in reader.elements for n in e.attributes if n.startswith("on")]
    assert "alert(1)" in reader.all("h1")[0].text
    assert "{{ 7 * 7 }}" in page


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_name_is_shown_as_it_is(name: str) -> None:
    page = read(render(Report("Names", sections=[Section("", [Listing("", {name: name})])])))
    shown = re.sub("[\x00\x07\ud800]", "\ufffd", name)
    assert [element.text for element in page.all("dd")] == [shown]


def test_the_same_report_gives_the_same_text_in_every_process() -> None:
    code = (
        "from hashlib import sha256; from report.samples import realistic;"
        "from ruleout.report import render;"
        "print(sha256(render(realistic()).encode()).hexdigest())"
    )
    tests = str(Path(__file__).parent.parent)
    found = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={"PYTHONPATH": os.pathsep.join([tests, *sys.path]), "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout.strip()
        for seed in ("1", "2")
    }
    assert found == {sha256(rendered("realistic").encode()).hexdigest()}


def test_a_page_stays_small() -> None:
    large = Report("Large", sections=[Section("", [scores(10), curves(2000), pairs(100)])])
    assert len(rendered("realistic").encode()) < 300_000
    assert len(render(large).encode()) < 500_000


def test_facts_are_formatted_and_missing_ones_are_dashes() -> None:
    page = read(render(Report("", facts={"rows": 60000, "rate": 1e-5, "law": None, "gpu": True})))
    assert [element.text for element in page.all("dd")] == ["60,000", "1e-05", "–", "yes"]


def test_a_warning_says_so_in_words() -> None:
    page = read(render(Report("", sections=[Section("", [Note("Few rows.", kind="warning")])])))
    assert page.all("p", "warning")[0].text == "Warning. Few rows."


def test_sections_are_listed_from_three_on() -> None:
    sections = [Section(name) for name in "abc"]
    assert [a.text for a in read(render(Report("", sections=sections))).all("a")] == ["a", "b", "c"]
    assert not read(render(Report("", sections=sections[:2]))).all("nav")


def test_what_is_no_part_is_refused() -> None:
    report = Report("", sections=[Section("", ["text"])])  # type: ignore[list-item]
    with pytest.raises(TypeError, match="a str is not a part of a report"):
        render(report)


def test_write_returns_the_file_and_leaves_nothing_else(tmp_path: Path) -> None:
    file = write(realistic(), tmp_path / "report.html")
    assert file.read_bytes().decode() == rendered("realistic")
    assert list(tmp_path.iterdir()) == [file]


def test_a_report_that_fails_leaves_the_old_page(tmp_path: Path) -> None:
    file = write(Report("old"), tmp_path / "report.html")
    with pytest.raises(TypeError):
        write(Report("", sections=[Section("", [None])]), file)  # type: ignore[list-item]
    assert "old" in file.read_text()
    assert list(tmp_path.iterdir()) == [file]


def test_write_names_a_folder_that_is_missing(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="does not exist; make it first"):
        write(Report(""), tmp_path / "no" / "report.html")


def test_write_keeps_a_link_and_the_rights_of_the_file(tmp_path: Path) -> None:
    file, link = tmp_path / "real.html", tmp_path / "link.html"
    file.write_text("old")
    file.chmod(0o640)
    link.symlink_to(file)
    write(Report("new"), link)
    assert link.is_symlink()
    assert "new" in file.read_text()
    assert file.stat().st_mode & 0o777 == 0o640


def test_a_report_begins_with_its_scores_and_ends_with_what_was_run() -> None:
    facts = {"rows": 1797}
    page = render(Report("", ["LOG wins."], facts, [Section("Scores", [scores()])]))
    assert page.index("LOG wins.") < page.index("Scores</h2>") < page.index("What was run")
    assert "What was run" not in render(Report(""))


def test_tables_can_be_copied_as_latex_and_csv() -> None:
    found = read(render(Report("", sections=[Section("", [scores(), cells(2)])])))
    texts = [area.text.lstrip("\n") for area in found.all("textarea")]
    assert [text.split("\n")[0][:22] for text in texts] == [
        "% needs \\usepackage{bo",
        "name,label,family,form",
        "% needs \\usepackage{bo",
        "group,approach,dataset",
    ]
    assert texts[2:] == [latex(cells(2)), csv(cells(2))]
    assert texts[1].count("\n") == len(scores().rows) + 1
    assert r"\textbf{94." in texts[0]
    asked = [button.attributes.get("data-copy") for button in found.all("button")]
    assert [key for key in asked if key] == [
        area.attributes["id"] for area in found.all("textarea")
    ]
