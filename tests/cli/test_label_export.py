"""``ruleout label export`` and ``status``: what was answered, as files and as tables."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from cli.labelled import CLASSES, answer_all, make_answered, make_project, ran, run
from typer.testing import CliRunner

import ruleout as ro
from ruleout.cli import app
from ruleout.web.project import Project


def contradicting(folder: Path) -> Path:
    """A project of rule-out questions whose first item has no class left."""
    from ruleout.web import Reply

    place = make_project(folder, "--mode", "rule-out", "--rounds", 2)
    with Project.open(place) as project:
        store = project.store
        for name, excluded in (("Ann", (0, 1)), ("Bob", (2, 3))):
            user = store.add_user(name)
            number = next(store.items())[0]
            first = next(one for one in store.next(user, 6) if one.item == number)
            reply = Reply(id=name, kind="excluded", question=first.id, excluded=excluded)
            store.answer(user, reply)
    return place


READ: dict[str, Any] = {
    "csv": pd.read_csv,
    "jsonl": lambda file: pd.read_json(file, lines=True),
    "parquet": pd.read_parquet,
}


TABLES = ("items", "contradictions", "log", "decisions", "days")


@pytest.mark.parametrize("form", ["csv", "jsonl", "parquet", "npz"])
def test_every_format_reads_back(form: str, tmp_path: Path) -> None:
    project, out = make_answered(tmp_path), tmp_path / "out"
    ran("export", project, "--out", out, "--format", form)
    table = "csv" if form == "npz" else form
    names = {f"sets.{form}", *(f"{n}.{table}" for n in TABLES)}
    assert {file.name for file in out.iterdir()} == names | {"about.json"}
    sets = ro.LabelSets.read(out / f"sets.{form}")
    assert sets.classes == CLASSES
    with Project.open(project) as opened:
        asked = {row.item_name: row.proposed for row in opened.store.log()}
    for row, name in enumerate(f"{n}.png" for n in range(6)):
        assert tuple(np.flatnonzero(sets.excluded[row])) == asked[name]
    log = READ[table](out / f"log.{table}")
    assert len(log) == 6 + (table == "jsonl")  # JSONL names the classes in a line of its own
    assert log.kind.dropna().tolist() == ["no"] * 6


def test_names_and_weights_stand_beside_the_sets(tmp_path: Path) -> None:
    ran("export", make_answered(tmp_path), "--out", tmp_path / "out")
    table = pd.read_csv(tmp_path / "out" / "sets.csv")
    assert table.file.tolist() == [f"{n}.png" for n in range(6)]
    assert table.weight.between(0.5, 1).all()


def test_the_sets_are_the_label_file_of_the_images(tmp_path: Path) -> None:
    ran("export", make_answered(tmp_path), "--out", tmp_path / "out")
    options = ["--labels-file", str(tmp_path / "out" / "sets.csv"), "--excluded", "excluded"]
    result = CliRunner().invoke(app, ["check", str(tmp_path / "images"), *options])
    assert result.exit_code == 0, result.output
    assert "6 rows" in result.stdout


def test_how_answers_are_combined(tmp_path: Path) -> None:
    project = make_project(tmp_path)
    with Project.open(project) as opened:
        answer_all(opened.store, opened.store.add_user("Ann"), "yes")
    ran("export", project, "--out", tmp_path / "no")
    ran("export", project, "--out", tmp_path / "all", "--how", "intersection")
    assert len(ro.LabelSets.read(tmp_path / "no" / "sets.csv")) == 0
    assert len(ro.LabelSets.read(tmp_path / "all" / "sets.csv")) == 6


def test_unlabelled_items_get_a_row_on_request(tmp_path: Path) -> None:
    project = make_project(tmp_path)
    said = ran("export", project, "--out", tmp_path / "out", "--unlabelled")
    assert "6 unlabelled, 0 contradicting" in said
    sets = ro.LabelSets.read(tmp_path / "out" / "sets.csv", unlabelled=True)
    assert (len(sets), int(sets.sizes.sum())) == (6, 0)


def test_contradictions_are_named_and_in_no_set(tmp_path: Path) -> None:
    out = tmp_path / "out"
    result = run("export", contradicting(tmp_path), "--out", out)
    assert result.exit_code == 0
    assert result.stderr == "Note: the answers about 1 item(s) leave no class, such as '0.png'\n"
    table = pd.read_csv(out / "contradictions.csv")
    assert table.annotator.tolist() == ["Ann", "Bob"]
    assert len(ro.LabelSets.read(out / "sets.csv")) == 0
    states = pd.read_csv(out / "items.csv").state.tolist()
    assert states == ["contradicting"] + ["unlabelled"] * 5


def test_the_folder_says_what_is_in_it(tmp_path: Path) -> None:
    ran("export", make_answered(tmp_path), "--out", tmp_path / "out")
    about = json.loads((tmp_path / "out" / "about.json").read_text())
    assert about["counts"] == {
        "labelled": 6, "unlabelled": 0, "contradicting": 0, "tests": 0, "answers": 6,
    }  # fmt: skip
    assert about["settings"]["classes"] == list(CLASSES)
    assert set(about["files"]) == {"sets.csv", *(f"{name}.csv" for name in TABLES)}
    assert about["how"] == "no"


def test_no_name_becomes_a_formula(tmp_path: Path) -> None:
    table = tmp_path / "rows.csv"
    table.write_text('id,words\n"=1+1",hello\n"@x",ho\n')
    options = ("--items", table, "--name", "id", "--classes", "=cat,dog")
    ran("init", tmp_path / "p", *options)
    with Project.open(tmp_path / "p") as opened:
        answer_all(opened.store, opened.store.add_user("+Ann"))
    ran("export", tmp_path / "p", "--out", tmp_path / "out")
    for file in (tmp_path / "out").glob("*.csv"):
        for cell in pd.read_csv(file, dtype=str).fillna("").to_numpy().ravel():
            assert not cell.startswith(("=", "+", "-", "@")), (file.name, cell)


def test_an_export_is_never_written_over(tmp_path: Path) -> None:
    project, out = make_answered(tmp_path), tmp_path / "out"
    ran("export", project, "--out", out)
    before = (out / "about.json").read_bytes()
    result = run("export", project, "--out", out)
    assert result.exit_code == 1
    assert result.stderr == (
        f"ruleout: {out}: the folder is not empty; give the name of a new one\n"
    )
    assert (out / "about.json").read_bytes() == before


# ---------------------------------------------------------------------- status


def test_status_counts(tmp_path: Path) -> None:
    project = make_answered(tmp_path, "--rounds", 2, "--cap", 2)
    lines = {
        line.split("  ")[0].strip(): line.split("  ", 1)[-1].strip()
        for line in ran("status", project).splitlines()
    }
    assert lines["project"] == str(project)
    assert lines["items"] == f"6 from {tmp_path / 'images'}"
    assert lines["asks"] == "propose, 4 classes, law released, at most 2"
    assert lines["answers"].startswith("6 of 12 wanted, 50 %; 0 as tests, 0 skipped")
    assert lines["done"] == "0 of 6 items"
    assert lines["contradictions"] == "0"
    assert lines["Ann"].split() == ["6", "0", "6", "0", "0", "0", "0"]
    assert "The database is sound." in lines


def test_status_and_export_tell_the_days(tmp_path: Path) -> None:
    project = make_answered(tmp_path)
    said = ran("status", project, "--days")
    ran("export", project, "--out", tmp_path / "out")
    (line,) = (tmp_path / "out" / "days.csv").read_text().splitlines()[1:]
    annotator, day, answers, hours = line.split(",")
    assert (annotator, answers, float(hours) < 1) == ("Ann", "6", True)
    assert f"{day}  Ann" in said
    assert day not in ran("status", project)


def test_status_counts_contradictions(tmp_path: Path) -> None:
    assert "\ncontradictions  1 " in ran("status", contradicting(tmp_path))


def test_status_knows_when_all_is_done(tmp_path: Path) -> None:
    assert "\ntime left       none" in ran("status", make_answered(tmp_path))
