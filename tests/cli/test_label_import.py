# ruff: noqa: E501  # the sentences stand as users read them
"""``ruleout label import``: answers from elsewhere, once each."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from cli.labelled import make_answered, make_project, ran, run

import ruleout as ro
from ruleout.web.project import Project

TABLE = """item,annotator,kind,proposed,excluded,which
0.png,Zoe,no,cat|dog,,
1.png,Zoe,excluded,,fish|bird,
2.png,Yan,which,,,cat
3.png,Yan,skip,,,
"""


def studio(*tasks: tuple[str, list[str]]) -> str:
    return json.dumps(
        [
            {
                "id": place,
                "data": {"image": f"/data/upload/1/0a1b2c3d-{item}"},
                "annotations": [{"completed_by": 7, "result": [choice(names)]}],
            }
            for place, (item, names) in enumerate(tasks)
        ]
    )


def choice(names: list[str], control: str = "kind") -> dict[str, Any]:
    value = {"choices": names}
    return {"type": "choices", "from_name": control, "to_name": "image", "value": value}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return make_project(tmp_path)


def kinds(project: Path) -> list[tuple[str, str, str]]:
    with Project.open(project) as opened:
        return [(row.item_name, row.user_name, row.kind) for row in opened.store.log()]


def test_a_table_of_answers(project: Path, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(TABLE)
    assert ran("import", project, tmp_path / "a.csv") == "4 answers added.\nNew people: Zoe, Yan\n"
    assert sorted(kinds(project)) == [
        ("0.png", "Zoe", "no"), ("1.png", "Zoe", "excluded"), ("2.png", "Yan", "which"),
        ("3.png", "Yan", "skip"),
    ]  # fmt: skip
    ran("export", project, "--out", tmp_path / "out", "--how", "intersection")
    sets = ro.LabelSets.read(tmp_path / "out" / "sets.csv")
    assert sets.to_lists() == [["cat", "dog"], ["fish", "bird"], ["dog", "fish", "bird"]]


def test_a_file_counts_once(project: Path, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(TABLE)
    ran("import", project, tmp_path / "a.csv")
    assert ran("import", project, tmp_path / "a.csv") == "0 answers added, 4 were there before.\n"
    assert len(kinds(project)) == 4


def test_label_studio_by_its_suffix(project: Path, tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text(studio(("0.png", ["cat"]), ("1.png", ["dog"])))
    assert ran("import", project, tmp_path / "a.json").startswith("2 answers added.\n")
    assert [kind for _, _, kind in kinds(project)] == ["which", "which"]


def test_what_choices_mean(project: Path, tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text(studio(("0.png", ["cat", "dog"])))
    ran("import", project, tmp_path / "a.json", "--meaning", "excluded")
    with Project.open(project) as opened:
        assert [row.excluded for row in opened.store.log()] == [(0, 1)]


def test_other_suffixes_need_a_word(project: Path, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text(studio(("0.png", ["cat"])))
    ran("import", project, tmp_path / "a.txt", "--from", "label-studio")
    assert len(kinds(project)) == 1


def test_an_export_comes_back(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    ran("export", make_answered(tmp_path / "one"), "--out", tmp_path / "out")
    project = make_project(tmp_path / "two")
    said = ran("import", project, tmp_path / "out" / "log.csv")
    assert said == "6 answers added.\nNew people: Ann\n"


def test_an_export_brings_nothing_back_to_its_own_project(tmp_path: Path) -> None:
    project = make_answered(tmp_path)
    ran("export", project, "--out", tmp_path / "out")
    said = ran("import", project, tmp_path / "out" / "log.csv")
    assert said == "0 answers added, 6 were there before.\n"


def test_unknown_tasks_may_be_left_out(project: Path, tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text(studio(("0.png", ["cat"]), ("none.jpg", ["cat"])))
    result = run("import", project, tmp_path / "a.json", "--skip-unknown")
    assert result.exit_code == 0
    assert result.stderr == "Note: 1 task(s) that match no item: left out.\n"


BAD: dict[str, tuple[str, str, tuple[str, ...], str]] = {
    "missing": ("a.csv", "", (), "a.csv: no such file or directory; check the name"),
    "missing JSON": ("a.json", "", (), "a.json: no such file or directory; check the name"),
    "suffix": ("a.txt", "hello", (), "a.txt: unknown file type '.txt'; use one of .csv, .tsv, .jsonl, .parquet"),
    "no column": ("a.csv", "a,b\n1,2\n", (), "a.csv, line 2: there is no column 'kind'; the columns are 'a', 'b'"),
    "item": ("a.csv", "item,annotator,kind,proposed\n9.pgn,Ann,no,cat\n", (), "a.csv, line 2, column 'item': there is no item '9.pgn'; did you mean '5.png'?"),
    "class": ("a.csv", "item,annotator,kind,proposed\n0.png,Ann,no,cta\n", (), "a.csv, line 2, column 'proposed': unknown class 'cta'; did you mean 'cat'?"),
    "second row": ("a.csv", "item,annotator,kind,proposed\n0.png,Ann,no,cat\n0.png,,no,cat\n", (), "a.csv, line 3, column 'annotator': the annotator is blank; say who answered"),
    "no JSON": ("a.json", "{", (), "a.json: this is not valid JSON; fix or remove it"),
    "no tasks": ("a.json", "{}", (), "a.json: the file is not a list of tasks; export as JSON from Label Studio"),
    "several": ("a.json", studio(("0.png", ["cat", "dog"])), (), "a.json, row 0: 2 classes are chosen, 'cat', 'dog'; say whether they are candidates or excluded, with --meaning"),
    "controls": ("a.json", json.dumps([{"data": {"image": "0.png"}, "annotations": [{"result": [choice(["cat"]), choice(["x"], "other")]}]}]), (), "a.json: there are 2 sets of choices, 'kind', 'other'; name the one that holds the classes with --control"),
    "key": ("a.json", studio(("0.png", ["cat"])), ("--key", "img"), "a.json, row 0: data has no key 'img'; did you mean 'image'?"),
    "wrong kind of file": ("a.csv", studio(("0.png", ["cat"])), ("--from", "label-studio"), ""),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD)
def test_bad_files_bring_nothing(
    case: str, project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name, content, options, sentence = BAD[case]
    monkeypatch.chdir(tmp_path)
    if content:
        (tmp_path / name).write_text(content)
    result = run("import", project, name, *options)
    if not sentence:  # the content is what --from says, whatever the suffix
        assert result.exit_code == 0
        return
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr == f"ruleout: {sentence}\n"
    assert kinds(project) == []
    assert len(ran("users", project).splitlines()) == 2
