"""What may be said of a table: its separator, weights, groups, text columns, features elsewhere."""

from __future__ import annotations

from pathlib import Path

import pytest

from ruleout.datasets import inspect
from ruleout.datasets.tables import draw_table, read_table
from ruleout.labels.errors import InputError


def test_a_separator_is_taken_at_its_word(tmp_path: Path) -> None:
    file = tmp_path / "pets.csv"
    file.write_text('size|not\n1|"dog|fish"\n2|cat\n')
    table = read_table(file, excluded="not", separator="|")
    assert table.features == ("size",)
    assert table.sets is not None
    assert table.sets.to_lists() == [["dog", "fish"], ["cat"]]


@pytest.mark.parametrize("mark", ["tab", "\\t", "\t"])
def test_it_wins_over_what_the_first_lines_show(tmp_path: Path, mark: str) -> None:
    file = tmp_path / "pets.csv"
    file.write_text("size, cm\tnot\n1\tdog,hen\n2\tcat\n")
    with pytest.raises(InputError):
        read_table(file, excluded="not", classes=["cat", "dog,hen"])
    table = read_table(file, excluded="not", classes=["cat", "dog,hen"], separator=mark)
    assert table.features == ("size, cm",)


def test_faults_in_such_a_file_name_their_line(tmp_path: Path) -> None:
    file = tmp_path / "pets.csv"
    file.write_text("a~not\n1~cat\n\nx~dog\n")
    with pytest.raises(InputError, match=r"pets\.csv, line 4, column 'a': 'x' is not a number"):
        read_table(file, excluded="not", separator="~")
    file.write_text("a~not\n\n1~cat|dog\n1~fish|hen\n")
    table = read_table(file, excluded="not", separator="~", classes=["cat", "dog", "fish", "hen"])
    assert table.sets is not None
    found = inspect(table.sets, table.x, features=table.features, file=table.source)
    assert "lines 3, 4" in str(found.to_dicts())


@pytest.mark.parametrize("mark", ["", ";;", '"', "\n", "–", "comma"])
def test_what_cannot_separate_is_refused(tmp_path: Path, mark: str) -> None:
    file = tmp_path / "pets.csv"
    file.write_text("a,not\n1,cat\n")
    with pytest.raises(InputError, match="cannot separate cells; give one character"):
        read_table(file, excluded="not", separator=mark)


def test_only_delimited_files_have_a_separator(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="only CSV and TSV files have a separator"):
        read_table(tmp_path / "pets.parquet", excluded="not", separator=";")


def test_sets_are_drawn_from_it_too(tmp_path: Path) -> None:
    file = tmp_path / "pets.csv"
    file.write_text("a~is\n" + "1~cat\n2~dog\n3~hen\n" * 4)
    sets = draw_table(file, tmp_path / "sets.csv", label="is", separator="~")
    assert (len(sets), sets.classes) == (12, ("cat", "dog", "hen"))
