"""What may be said of a table: its separator, weights, groups, text columns, features elsewhere."""

from __future__ import annotations

import json
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as arrow_csv
import pyarrow.parquet as pq
import pytest
from sklearn.feature_extraction.text import TfidfVectorizer

from ruleout.datasets import inspect, read_batches
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
        (
            ROWS.replace("0.5", "-1"),
            {},
            "line 4, column 'w': the weight is not a number of at least 0",
        ),
        (
            ROWS.replace("0.5", "x"),
            {},
            "line 4, column 'w': the weight is not a number of at least 0; give",
        ),
        (ROWS.replace("0.5", "1e999"), {}, "line 4, column 'w': the weight is not a number"),
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


BOOKS = "year,title,not\n1,the red cat,dog\n2,a blue dog,cat\n3,,dog\n4,Red fish red,cat|dog\n"


def vectors(texts: list[str]) -> Any:
    return TfidfVectorizer(dtype=np.float32).fit(texts).transform(texts).toarray()


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".jsonl"])
def test_text_becomes_the_weights_of_its_words(tmp_path: Path, suffix: str) -> None:
    path = write(tmp_path, suffix, BOOKS)
    told: dict[str, Any] = {"excluded": "not", "classes": ["cat", "dog", "fish"]}
    table = read_table(path, text=["title"], **told)
    words = ["blue", "cat", "dog", "fish", "red", "the"]
    assert table.features == ("year", *(f"title: {word}" for word in words))
    titles = ["the red cat", "a blue dog", "", "Red fish red"]
    np.testing.assert_allclose(table.x[:, 1:], vectors(titles), rtol=1e-6)
    assert table.x[:, 0].tolist() == [1, 2, 3, 4]
    assert table.reading["features"] == ["year"]
    again = read_table(path, reading=json.loads(json.dumps(table.reading)), **told)
    np.testing.assert_array_equal(again.x, table.x)


def test_new_rows_are_read_with_the_words_of_the_first(tmp_path: Path) -> None:
    path, other = tmp_path / "books.csv", tmp_path / "new.csv"
    path.write_text(BOOKS)
    other.write_text("title,year\nred green,7\ngreen,8\n")
    table = read_table(path, text=["title"], excluded="not", classes=["cat", "dog", "fish"])
    new = read_table(other, reading=table.reading)
    assert new.features == table.features
    assert new.x[1].tolist() == [8, 0, 0, 0, 0, 0, 0]
    assert new.x[0].tolist() == [7, 0, 0, 0, 0, 1, 0]
    parts = [part.x for part in read_batches(other, wide=1 << 40, reading=table.reading)]
    np.testing.assert_array_equal(np.concatenate(parts), new.x)


def test_text_alone_is_enough(tmp_path: Path) -> None:
    path = tmp_path / "books.csv"
    path.write_text(BOOKS)
    told: dict[str, Any] = {"excluded": "not", "classes": ["cat", "dog", "fish"]}
    table = read_table(path, text=["title"], ignore=["year"], **told)
    assert table.shape == (6,)
    assert read_table(path, reading=table.reading).x.tolist() == table.x.tolist()


def test_a_column_has_at_most_two_thousand_words(tmp_path: Path) -> None:
    path = tmp_path / "books.csv"
    rows = "".join(f"word{i} word{i + 1},{'dog' if i % 2 else 'cat'}\n" for i in range(2100))
    path.write_text("title,not\n" + rows)
    assert read_table(path, text=["title"], excluded="not").shape == (2000,)


@pytest.mark.parametrize(
    ("text", "told", "sentence"),
    [
        (BOOKS, {"text": ["name"]}, "there is no column 'name'"),
        (BOOKS, {"features": ["title"]}, "column 'title' holds text and is asked for as a feature"),
        (BOOKS, {"ignore": ["title"]}, "column 'title' is asked for and ignored"),
        ("title,not\n1,cat\n-,dog\n", {}, "column 'title': no row holds a word of two letters"),
    ],
)
def test_text_that_cannot_be_used(
    tmp_path: Path, text: str, told: dict[str, Any], sentence: str
) -> None:
    path = tmp_path / "books.csv"
    path.write_text(text)
    with pytest.raises(InputError) as caught:
        read_table(path, **{"excluded": "not", "text": ["title"]} | told)
    assert sentence in str(caught.value)


def test_cells_that_are_lists_are_not_text(tmp_path: Path) -> None:
    path = tmp_path / "books.jsonl"
    path.write_text('{"title": "red", "not": ["cat"]}\n{"title": ["red"], "not": ["dog"]}\n')
    with pytest.raises(InputError, match=r"line 2, column 'title': the cell holds \['red'\]"):
        read_table(path, excluded="not", text=["title"])


@pytest.mark.parametrize(
    "learned",
    [None, [], {"words": ["red"]}, {"words": 3, "idf": [1.0]}, {"words": ["red"], "idf": [1, 2]},
     {"words": ["red", "red"], "idf": [1, 2]}, {"words": ["red"], "idf": ["x"]},
     {"words": ["red"], "idf": [float("inf")]}, {"words": [], "idf": []}],
)  # fmt: skip
def test_words_that_a_stranger_wrote_are_checked(tmp_path: Path, learned: Any) -> None:
    path = tmp_path / "books.csv"
    path.write_text(BOOKS)
    reading = {"kind": "columns", "features": ["year"], "text": {"title": learned}}
    with pytest.raises(InputError, match="what the model knows about words is damaged"):
        read_table(path, reading=reading)


@pytest.fixture
def joined(tmp_path: Path) -> tuple[Path, Path]:
    """Rows with a weight, a group and sets, and a file with the features of two of them."""
    rows, features = tmp_path / "rows.csv", tmp_path / "features.parquet"
    lines = ["item,note,w,who,not", "b,x,1,ann,cat", "c,y,2,bob,dog", "a,z,3,ann,cat"]
    rows.write_text("\n".join(lines) + "\n")
    pq.write_table(
        pa.table({"v0": [1, 2, 9], "item": ["a", "b", "other"], "v1": [3, 4, 9]}), features
    )
    return rows, features


def test_features_may_lie_in_another_file(joined: tuple[Path, Path]) -> None:
    rows, features = joined
    told: dict[str, Any] = {"excluded": "not", "weight": "w", "group": "who"}
    table = read_table(rows, features_from=features, **told)
    assert (table.features, table.shape, table.row_names) == (("v0", "v1"), (2,), ("b", "a"))
    assert table.x.tolist() == [[2, 4], [1, 3]]
    assert table.sets is not None
    assert table.sets.to_lists() == [["cat"], ["cat"]]
    assert table.weight is not None
    assert table.weight.tolist() == [1, 3]
    assert table.groups is not None
    assert table.groups.tolist() == [0, 0]
    assert f"1 of 3 rows are not in {features}: left out." in table.notes
    again = read_table(rows, features_from=features, reading=table.reading)
    assert again.x.tolist() == table.x.tolist()
    turned = read_table(rows, features_from=features, features=["v1", "v0"])
    assert turned.x.tolist() == [[4, 2], [3, 1]]


def test_features_elsewhere_that_cannot_be_used(joined: tuple[Path, Path]) -> None:
    rows, features = joined
    other = features.with_name("other.csv")
    for text, sentence in {
        "item,v\nq,1\n": r"other\.csv: the column 'item' names none of the rows; name rows",
        "id,v\nb,1\n": r"other\.csv: there is no column 'item'",
        "item,v\nb,1\nb,2\n": r"other\.csv, line 3, column 'item': the name 'b' appears twice",
        "item,v\nb,x\n": r"other\.csv, line 2, column 'v': 'x' is not a number",
    }.items():
        other.write_text(text)
        with pytest.raises(InputError, match=sentence):
            read_table(rows, excluded="not", features_from=other)
    with pytest.raises(InputError, match=r"none\.csv: there is no such file"):
        read_table(rows, excluded="not", features_from=features.with_name("none.csv"))
    with pytest.raises(InputError, match="a folder of images has its own features; give its label"):
        read_table(rows.parent, excluded="not", features_from=features)
    rows.write_text("id,not\nb,cat\n")
    with pytest.raises(InputError, match=r"rows\.csv: there is no column 'item'"):
        read_table(rows, excluded="not", features_from=features)
