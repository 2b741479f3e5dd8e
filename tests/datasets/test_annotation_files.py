# ruff: noqa: E501  # the sentences stand as users read them
"""Votes of -1, 0 and 1, and what annotation tools write: accept, reject, ignore, and choices."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ruleout.datasets import Table, read_batches, read_table
from ruleout.labels.errors import InputError
from ruleout.labels.sets import LabelSets

CLASSES = ["cat", "dog", "hen"]
BINARY = [  # as Prodigy writes them: https://prodi.gy/docs/api-interfaces#classification
    {"text": "it purrs", "label": "cat", "answer": "accept", "_input_hash": 7, "meta": {"a": 1}},
    {"text": "it purrs", "label": "dog", "answer": "reject", "_input_hash": 7},
    {"text": "it barks", "label": "cat", "answer": "reject", "_input_hash": -9},
    {"text": "it is late", "label": "hen", "answer": "ignore", "_input_hash": 8},
]
OPTIONS = [{"id": name, "text": name.upper()} for name in CLASSES]
CHOICES = [  # https://prodi.gy/docs/api-interfaces#choice
    {"text": "it purrs", "options": OPTIONS, "accept": ["cat"], "answer": "accept"},
    {"text": "it runs", "options": OPTIONS, "accept": ["cat", "dog"], "answer": "accept"},
    {"text": "it is late", "options": OPTIONS, "accept": [], "answer": "reject"},
    {"text": "it flies", "options": OPTIONS, "accept": ["hen"], "answer": "accept"},
]
TASKS = [  # https://labelstud.io/guide/task_format
    {
        "id": 3,
        "data": {"text": "it purrs", "size": 2},
        "annotations": [
            {"completed_by": 10, "was_cancelled": False, "result": [
                {"from_name": "animal", "type": "choices", "value": {"choices": ["cat", "dog"]}},
                {"from_name": "box", "type": "rectanglelabels", "value": {}},
            ]},
            {"completed_by": {"email": "b@x.org"}, "was_cancelled": True, "result": []},
        ],
    },
    {
        "id": 4,
        "data": {"text": "it flies", "size": 1},
        "annotations": [
            {"result": [{"from_name": "animal", "type": "choices", "value": {"choices": ["hen"]}}]},
            {"completed_by": 10, "result": []},
        ],
    },
]  # fmt: skip


def lines(folder: Path, rows: list[Any]) -> Path:
    file = folder / "answers.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return file


def left(table: Table) -> list[list[Any]]:
    assert table.sets is not None
    return table.sets.to_candidates()


def test_accept_leaves_one_class_and_reject_rules_it_out(tmp_path: Path) -> None:
    file = lines(tmp_path, BINARY)
    table = read_table(
        file,
        candidates="label",
        answer="answer",
        classes=CLASSES,
        item="_input_hash",
        text=["text"],
    )
    assert left(table) == [["cat"], ["cat", "hen"], ["dog", "hen"]]
    assert table.items is not None
    assert table.items.tolist() == ["7", "7", "-9"]
    assert table.features == ("text: barks", "text: it", "text: purrs")
    assert table.notes == ("1 row(s) left out: their answer says nothing.",)
    heard = table.heard()
    assert (len(heard), heard.sets) == (2, LabelSets([[0, 1, 1], [1, 0, 0]], CLASSES))


def test_choices_are_candidates(tmp_path: Path) -> None:
    table = read_table(
        lines(tmp_path, CHOICES), candidates="accept", answer="answer", featureless=True
    )
    assert left(table) == [["cat"], ["cat", "dog"], ["hen"]]


@pytest.mark.parametrize("suffix", [".csv", ".tsv"])
def test_a_plain_table_of_answers(tmp_path: Path, suffix: str) -> None:
    rows = ["item,label,answer,f", "a,cat,yes,1", "a,dog,NO,1", "b,hen,0,2", "b,hen,,2", "c,,1,3"]
    file = tmp_path / f"answers{suffix}"
    file.write_text("\n".join(rows).replace(",", "\t" if suffix == ".tsv" else ","))
    table = read_table(file, candidates="label", answer="answer", features=["f"])
    assert left(table) == [["cat"], ["cat", "hen"], ["cat", "dog"]]
    assert table.x.ravel().tolist() == [1, 1, 2]


def test_lines_are_told_although_rows_are_left_out(tmp_path: Path) -> None:
    file = lines(tmp_path, [*BINARY, BINARY[0] | {"label": "cow"}])
    with pytest.raises(InputError, match=r"line 5, column 'label': unknown class 'cow'"):
        read_table(file, candidates="label", answer="answer", classes=CLASSES, featureless=True)


def test_label_studio_exports_have_a_row_for_each_annotation(tmp_path: Path) -> None:
    file = tmp_path / "export.json"
    file.write_text(json.dumps(TASKS))
    told: Any = {"candidates": "animal", "item": "item", "annotator": "annotator"}
    table = read_table(file, answer="answer", features=["size"], **told)
    assert left(table) == [["cat", "dog"], ["hen"]]
    assert table.x.ravel().tolist() == [2, 1]
    assert table.items is not None
    assert table.items.tolist() == ["3", "4"]
    assert table.annotators is not None
    assert table.annotators.tolist() == ["10", "label-studio"]
    assert table.notes[0] == "2 row(s) left out: their answer says nothing."


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("{}", ": the file is not a list of tasks; export as JSON from Label Studio"),
        ("[1]", ", row 0: this is not a task with data; export as JSON, not JSON-MIN, from Label Studio"),
        ("[", ": this is not valid JSON; fix or remove it"),
        ('[{"data": {}, "annotations": 3}]', ", row 0: annotations is 3, not a list; export it again"),
        ('[{"data": {}}]', ": there is no column 'animal'; the file has none"),
    ],
)  # fmt: skip
def test_other_json_is_refused(tmp_path: Path, text: str, sentence: str) -> None:
    file = tmp_path / "export.json"
    file.write_text(text)
    with pytest.raises(InputError) as caught:
        read_table(file, candidates="animal", answer="answer", featureless=True)
    assert str(caught.value) == f"{file}{sentence}"


# ---------------------------------------------------------------------- votes

VOTES = st.integers(2, 6).flatmap(
    lambda k: st.lists(st.lists(st.integers(-1, 1), min_size=k, max_size=k), min_size=1, max_size=9)
)


@given(VOTES)
def test_votes_are_read_as_a_loop_would(votes: list[list[int]]) -> None:
    wanted = []
    for row in votes:
        yes = [place for place, vote in enumerate(row) if vote == 1]
        no = [place for place, vote in enumerate(row) if vote == -1]
        wanted.append([p for p in range(len(row)) if p not in yes] if yes else no)
    full = any(len(row) == len(votes[0]) for row in wanted)
    if full:
        with pytest.raises(InputError, match="every class is ruled out"):
            LabelSets.from_votes(votes, unlabelled=True)
    else:
        sets = LabelSets.from_votes(votes, unlabelled=True)
        assert sets.to_lists() == wanted
        assert LabelSets.from_votes(np.array(votes, float), unlabelled=True) == sets


def test_votes_come_in_frames_and_sparse_matrices() -> None:
    pd = pytest.importorskip("pandas")
    sparse = pytest.importorskip("scipy.sparse")
    votes = np.array([[-1, 0, 0], [0, 1, 1]])
    sets = LabelSets.from_candidates([["dog", "hen"], ["dog", "hen"]], CLASSES)
    assert LabelSets.from_votes(pd.DataFrame(votes, columns=CLASSES)) == sets
    assert LabelSets.from_votes(sparse.csr_array(votes), CLASSES) == sets
    with pytest.raises(InputError, match="row 1, column 'hen': 2 is not -1, 0 or 1; 1 means that"):
        LabelSets.from_votes(pd.DataFrame(votes, columns=CLASSES).assign(hen=[0, 2]))


@pytest.mark.parametrize("wide", [None, 1])
def test_columns_of_votes_are_named_like_classes(tmp_path: Path, wide: int | None) -> None:
    file = tmp_path / "votes.csv"
    file.write_text("f,cat,dog,hen,is\n1,-1,0,0,hen\n2,0,1,1,dog\n")
    (table,) = read_batches(file, wide=wide, votes=CLASSES, label="is")
    assert left(table) == [["dog", "hen"], ["dog", "hen"]]
    assert table.features == ("f",)
    assert table.labels is not None
    assert table.labels.tolist() == ["hen", "dog"]


def test_votes_for_other_classes_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "votes.csv"
    file.write_text("f,cat,dog\n1,-1,0\n")
    with pytest.raises(InputError, match="the classes are 'cat', 'dog', not 'dog', 'cat'"):
        read_table(file, votes=["cat", "dog"], classes=["dog", "cat"])
