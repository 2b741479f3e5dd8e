"""What may be said of a table: its separator, weights, groups, text columns, features elsewhere."""

from __future__ import annotations

import json
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.csv as arrow_csv
import pyarrow.parquet as pq
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


ROWS = "a,w,who,not\n1,2,ann,cat\n2,0,bob,dog\n3,0.5,ann,cat\n"


def write(folder: Path, suffix: str, text: str = ROWS) -> Path:
    path = folder / f"rows{suffix}"
    table = arrow_csv.read_csv(BytesIO(text.encode()))
    if suffix == ".csv":
        path.write_text(text)
    elif suffix == ".parquet":
        pq.write_table(table, path)
    elif suffix == ".jsonl":
        path.write_text("\n".join(map(json.dumps, table.to_pylist())))
    else:
        columns: Any = {name: np.array(table[name].to_pylist()) for name in ("w", "who")}
        said = table["not"].to_pylist()
        columns["not"] = np.array([[one == name for name in ("cat", "dog")] for one in said])
        np.savez(path, x=np.array(table["a"])[:, None], classes=["cat", "dog"], **columns)
    return path


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".jsonl", ".npz"])
def test_weights_and_groups_come_from_columns(tmp_path: Path, suffix: str) -> None:
    table = read_table(write(tmp_path, suffix), excluded="not", weight="w", group="who")
    assert table.shape == (1,)
    assert table.weight is not None
    assert table.weight.tolist() == [2, 0, 0.5]
    assert table.groups is not None
    assert table.groups.tolist() == [0, 1, 0]
    assert not {"w", "who"} & {*table.features}


@pytest.mark.parametrize(
    ("text", "told", "sentence"),
    [
        (ROWS.replace("0.5", "-1"), {}, "line 4, column 'w': a row cannot weigh -1; give numbers"),
        (ROWS.replace("0.5", "x"), {}, "line 4, column 'w': a row cannot weigh nan; give numbers"),
        (ROWS.replace("0.5", "1e999"), {}, "line 4, column 'w': a row cannot weigh inf"),
        (ROWS.replace(",2,", ",0,").replace("0.5", "0"), {}, "column 'w': every row weighs zero"),
        (ROWS.replace("bob", " "), {}, "line 3, column 'who': the cell is empty; name the group"),
        (ROWS, {"weight": "v"}, "there is no column 'v'"),
        (ROWS, {"group": "whom"}, "there is no column 'whom'; did you mean 'who'?"),
        (ROWS, {"weight": "who"}, "column 'who' is asked for as weights and as something else"),
        (ROWS, {"features": ["a", "w"]}, "column 'w' holds weights and is asked for as a feature"),
        (ROWS, {"ignore": ["who"]}, "column 'who' is asked for and ignored"),
    ],
)
def test_weights_and_groups_that_cannot_be_used(
    tmp_path: Path, text: str, told: dict[str, Any], sentence: str
) -> None:
    path = tmp_path / "rows.csv"
    path.write_text(text)
    with pytest.raises(InputError) as caught:
        read_table(path, **{"excluded": "not", "weight": "w", "group": "who"} | told)
    assert sentence in str(caught.value)


def test_rows_without_a_weight_may_be_left_out(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text(ROWS.replace("0.5", ""))
    table = read_table(path, excluded="not", weight="w", group="who", skip_bad_rows=True)
    assert len(table) == 2
    assert table.groups is not None
    assert table.groups.tolist() == [0, 1]
