"""``ruleout label add``: a living project gets more items, classes, gold and rounds."""

from __future__ import annotations

from pathlib import Path

import pytest
from cli.labelled import CLASSES, make_answered, make_project, png, ran, run

from ruleout.web.project import Project


def test_new_images_classes_gold_and_rounds_are_added(tmp_path: Path) -> None:
    project = make_answered(tmp_path)
    for place in range(6, 9):
        (tmp_path / "images" / f"{place}.png").write_bytes(png(place))
    (tmp_path / "gold.csv").write_text("item,class\n7.png,fox\n0.png,cat\n")
    options = ("--items", tmp_path / "images", "--classes", "fox", "--gold", tmp_path / "gold.csv")
    assert ran("add", project, *options, "--rounds", 2) == (
        "Added: 3 item(s), 2 known class(es), 1 class(es).\n"
        "The project has 5 classes, and asks for 2 answers for each.\n"
    )
    with Project.open(project) as opened:
        items = {item.name: item for _, item in opened.store.items()}
        assert len(items) == 9
        assert (items["7.png"].gold, items["0.png"].gold, items["8.png"].gold) == (4, 0, None)
        settings = opened.store.settings
        assert (settings.classes, settings.rounds) == ((*CLASSES, "fox"), 2)
        assert settings.gold_rate == 0.05
        assert len([row for row in opened.store.log() if row.counts]) == 6
    assert ran("add", project, "--items", tmp_path / "images").startswith("Added: no items")


def test_rows_are_added_from_a_table_that_has_grown(tmp_path: Path) -> None:
    table = tmp_path / "rows.csv"
    table.write_text("id,words\na,one\nb,two\n")
    columns = ("--items", table, "--text", "words", "--name", "id")
    ran("init", tmp_path / "project", *columns, "--classes", "x,y", "--lead", "Lea")
    table.write_text("id,words\nb,two\nc,three\n")
    assert ran("add", tmp_path / "project", *columns).startswith("Added: 1 item(s).")
    result = run("add", tmp_path / "project", "--items", table, "--name", "id")
    assert (result.exit_code, "another content" in result.stderr) == (1, True)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--items", "{}"], "the images of the project are in"),
        (["--items", "nowhere"], "there is no such file or folder"),
        (["--classes", "cat"], "'cat' appears twice"),
        (["--classes", "nowhere.txt"], "nowhere.txt: "),
        (["--gold", "nowhere.csv"], "nowhere.csv: "),
        (["--rounds", "0"], "rounds = 0"),
        (["--rounds", "99999999999999999999"], "rounds = "),
        (["--gold-rate", "nan"], "gold_rate = nan"),
    ],
)
def test_what_cannot_be_added_is_one_sentence(
    tmp_path: Path, words: list[str], sentence: str
) -> None:
    project = make_project(tmp_path)
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "a.png").write_bytes(png())
    result = run("add", project, *(word.format(tmp_path / "other") for word in words))
    assert (result.exit_code, result.stdout) == (1, "")
    assert sentence in result.stderr
    assert len(result.stderr.splitlines()) == 1


def test_nothing_to_add_is_a_usage_error(tmp_path: Path) -> None:
    assert run("add", make_project(tmp_path)).exit_code == 2
