"""A project as files: nothing lost, nothing made up, and no spreadsheet computes it."""

from __future__ import annotations

import csv
import json
from itertools import chain
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from web.logs import CLASSES, LOG, row

import ruleout as ro
from ruleout.labels.errors import InputError
from ruleout.web import project_export
from ruleout.web.importing import read_answers
from ruleout.web.spreadsheet import FORMULA, inert, names_cell, unescaped

HOSTILE = ["=1+1.png", "a|b,\"c'.png", "+x/é.png", "-7.png", "@sum", "'quoted'", "plain.png"]
EVIL = ("=cmd|' /C calc'!A0", "-dog", "a\\b", '@x,"y"')


@pytest.mark.parametrize("suffix", [".csv", ".jsonl", ".parquet", ".npz"])
@pytest.mark.parametrize("column", ["item", "file"])
def test_label_sets_are_read_back_whatever_the_names(
    tmp_path: Path, suffix: str, column: str
) -> None:
    sets = ro.LabelSets.from_lists(
        [[0], [1, 2], [0, 1, 3], [3], [1], [2, 3], []], EVIL, unlabelled=True
    )
    file = tmp_path / f"sets{suffix}"
    project_export.write_sets(sets, HOSTILE, file, weights=np.linspace(0.1, 1, 7), column=column)
    assert ro.LabelSets.read(file, unlabelled=True) == sets
    assert [one.name for one in tmp_path.iterdir()] == [file.name]


def test_names_and_weights_stand_beside_the_sets(tmp_path: Path) -> None:
    sets = ro.LabelSets.from_lists([["cat"], ["dog", "fish"]], CLASSES)
    for suffix in ("jsonl", "parquet", "npz"):
        project_export.write_sets(sets, ["=a", "b"], tmp_path / f"s.{suffix}", weights=[0.5, 1])
    lines = [json.loads(line) for line in (tmp_path / "s.jsonl").read_text().splitlines()]
    assert lines[1] == {"item": "=a", "excluded": ["cat"], "weight": 0.5}
    read = pq.read_table(tmp_path / "s.parquet").to_pylist()
    assert read[1] == {"item": "b", "excluded": ["dog", "fish"], "weight": 1.0}
    arrays = np.load(tmp_path / "s.npz")
    assert arrays["item"].tolist() == ["=a", "b"]
    assert arrays["weight"].tolist() == [0.5, 1.0]


@pytest.mark.parametrize("column", ["item", "file"])
def test_no_cell_of_a_csv_begins_like_a_formula(tmp_path: Path, column: str) -> None:
    sets = ro.LabelSets.from_lists([[0], [1], [3], [0, 1], [1], [3], [2]], EVIL)
    project_export.write_sets(sets, HOSTILE, tmp_path / "s.csv", column=column)
    log = [row(name, "no", (n % 4,), "=HYPERLINK()") for n, name in enumerate(HOSTILE)]
    log += [row("-1", "which", (0,), "+ada", id="@id", undoes="=1", law="-x")]
    project_export.write_log(log, EVIL, tmp_path / "log.csv")
    for file in tmp_path.iterdir():
        with open(file, newline="", encoding="utf-8") as stream:
            cells = list(chain(*csv.reader(stream)))
        assert not [cell for cell in cells if cell.startswith(FORMULA)]


def test_the_file_column_is_one_that_the_readers_of_folders_take(tmp_path: Path) -> None:
    from PIL import Image

    folder = tmp_path / "images"
    folder.mkdir()
    for name in ("=1.png", "b.png"):
        Image.new("L", (2, 2)).save(folder / name)
    sets = ro.LabelSets.from_lists([["cat"], ["dog"]], CLASSES)
    project_export.write_sets(sets, ["=1.png", "b.png"], tmp_path / "labels.csv", column="file")
    read = ro.datasets.read_table(folder, excluded="excluded", labels_file=tmp_path / "labels.csv")
    assert read.sets == sets
    assert read.row_names == ("=1.png", "b.png")


def test_all_ways_to_begin_a_formula_are_known() -> None:
    for start in "=+-@\t\r\n＝＋－＠":
        assert inert(f"{start}1") == f"'{start}1"


@given(st.text("'=-x"))
def test_what_is_made_inert_is_the_same_when_read(text: str) -> None:
    assert not inert(text).startswith(FORMULA)
    assert unescaped(inert(text)) == text


@given(st.lists(st.text(min_size=1).filter(lambda name: name.strip() != ""), min_size=1))
def test_cells_of_names_read_back(names: list[str]) -> None:
    from ruleout.labels.row_files import split

    cell = names_cell(names)
    assert not cell.startswith(FORMULA)
    assert split(cell) == names


def test_the_log_is_complete_in_every_kind_of_file(tmp_path: Path) -> None:
    log = [*LOG, row("a", "no", (0,), late=True, counts=False, took_ms=None, sent=None)]
    for suffix in ("csv", "jsonl", "parquet"):
        project_export.write_log(log, CLASSES, tmp_path / f"log.{suffix}")
    read = pq.read_table(tmp_path / "log.parquet").to_pylist()
    lines = [json.loads(line) for line in (tmp_path / "log.jsonl").read_text().splitlines()][1:]
    with open(tmp_path / "log.csv", newline="", encoding="utf-8") as stream:
        cells = list(csv.DictReader(stream))
    assert len(read) == len(lines) == len(cells) == len(log)
    for one, got, line, cell in zip(log, read, lines, cells, strict=True):
        proposed = [CLASSES[code] for code in one.proposed]
        assert got["proposed"] == line["proposed"] == proposed
        assert cell["proposed"] == "|".join(proposed)
        assert got["id"] == line["id"] == cell["id"] == one.id
        assert (got["received"], got["time"]) == (one.received, one.sent)
        assert line["received"] == cell["received"] == one.received.isoformat()
        assert (got["counts"], cell["counts"]) == (one.counts, "yes" if one.counts else "no")
        assert (got["which"] or "") == cell["which"]
        assert got["took_ms"] == line["took_ms"] == one.took_ms
    project_export.write_log([], CLASSES, tmp_path / "none.parquet")
    assert pq.read_table(tmp_path / "none.parquet").num_rows == 0


@pytest.mark.parametrize("suffix", ["csv", "jsonl", "parquet"])
def test_items_and_people_that_differ_by_an_apostrophe_stay_apart(
    tmp_path: Path, suffix: str
) -> None:
    names, kinds = ["=1", "'=1", "''=1", "'1"], ["no", "yes", "which", "no"]
    log = [
        row(name, kind, (code,), user)
        for name, user, kind, code in zip(names, names[::-1], kinds, range(4), strict=True)
    ]
    classes = ("'=a", "=a", "b", "c")
    project_export.write_log(log, classes, tmp_path / f"log.{suffix}")
    read = read_answers(tmp_path / f"log.{suffix}", names, classes).answers
    assert [one.item for one in read] == names
    assert [one.annotator for one in read] == names[::-1]
    assert [one.proposed for one in read] == [(0,), (1,), (), (3,)]
    assert read[2].which == 2


def test_logs_written_before_are_still_read(tmp_path: Path) -> None:
    """An item that begins with an apostrophe and then a formula was written as it is."""
    (tmp_path / "log.csv").write_text("item,annotator,kind,proposed\n'=1,ada,no,cat\n")
    (read,) = read_answers(tmp_path / "log.csv", ["'=1", "x"], CLASSES).answers
    assert read.item == "'=1"


def test_a_failed_writing_leaves_the_old_file(tmp_path: Path) -> None:
    file = tmp_path / "log.csv"
    file.write_text("old")
    with pytest.raises(InputError, match=r"a cell would be .* write \.parquet instead"):
        project_export.write_log([row("a", "no", (0,))], ("x" * 200_000, "y"), file)
    assert file.read_text() == "old"
    assert [one.name for one in tmp_path.iterdir()] == ["log.csv"]


def test_bad_requests_are_one_sentence(tmp_path: Path) -> None:
    sets = ro.LabelSets.from_lists([["cat"]], CLASSES)
    with pytest.raises(InputError, match="1 rows but 2 items; give one name per row"):
        project_export.write_sets(sets, ["a", "b"], tmp_path / "a.csv")
    with pytest.raises(InputError, match=r"unknown file type '.xls'; use one of .csv, .tsv"):
        project_export.write_sets(sets, ["a"], tmp_path / "a.xls")
