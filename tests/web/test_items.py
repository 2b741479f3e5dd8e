"""What is to be labelled: read in a stable order, and nothing hostile gets through unnoticed."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import unicodedata
from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from ruleout.labels.errors import InputError
from ruleout.web import items
from ruleout.web.names import fault

ANIMALS = ("cat", "dog", "bird", "fish")
FORMATS = {"PNG": "png", "JPEG": "jpeg", "GIF": "gif", "WEBP": "webp", "BMP": "bmp"}


def picture(kind: str = "PNG", shade: int = 0) -> bytes:
    out = BytesIO()
    Image.new("L", (3, 2), shade).save(out, kind)
    return out.getvalue()


def lay(folder: Path, files: dict[str, bytes]) -> Path:
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return folder


# ------------------------------------------------------------------ images


@pytest.mark.parametrize("kind", FORMATS)
def test_the_type_of_an_image_is_in_its_first_bytes(kind: str) -> None:
    assert items.image_type(picture(kind)[:32]) == f"image/{FORMATS[kind]}"


@pytest.mark.parametrize(
    "head",
    [
        b"",
        b"BM",
        b"BM" + bytes(30),
        b"BMW is a car, not a bitmap picture",
        b"<svg xmlns='http://www.w3.org/2000/svg'>",
        b"<!DOCTYPE html><script>alert(1)</script>",
        b"RIFF\0\0\0\0WAVEfmt ",
        b"\x89PNG",
        b"%PDF-1.7",
    ],
)
def test_other_content_is_no_image(head: bytes) -> None:
    assert items.image_type(head[:32]) is None


def test_a_folder_is_read_by_content_in_the_order_of_names(tmp_path: Path) -> None:
    files = {
        "b/2.png": picture(shade=2),
        "b/10.dat": picture("JPEG"),  # the name says nothing
        "a.png": picture(),
        "Z.gif": picture("GIF"),
        "evil.png": b"<svg onload=alert(1)>",
        "page.html": b"<script>",
        "empty.png": b"",
        ".hidden.png": picture(),
        ".git/x.png": picture(),
    }
    found = items.read_items(lay(tmp_path, files), ANIMALS)
    assert [item.name for item in found.items] == ["Z.gif", "a.png", "b/10.dat", "b/2.png"]
    for item in found.items:
        assert (item.kind, item.path) == ("image", item.name)
        assert item.sha256 == hashlib.sha256(files[item.name]).hexdigest()
    assert found.notes == ("3 left out: not PNG, JPEG, GIF, WebP or BMP images.",)
    assert found.root == tmp_path.resolve()


def test_links_inside_are_followed_and_links_outside_refused(tmp_path: Path) -> None:
    inside, outside = tmp_path / "in", tmp_path / "out"
    lay(tmp_path, {"in/a.png": picture(), "in/sub/b.png": picture(), "out/secret.png": picture()})
    (inside / "c.png").symlink_to(inside / "a.png")
    (inside / "again").symlink_to(inside / "sub")
    (inside / "gone.png").symlink_to(inside / "nothing")
    (inside / "loop").symlink_to(inside / "loop")
    found = items.read_items(inside, ANIMALS)
    assert [item.name for item in found.items] == ["a.png", "c.png", "sub/b.png"]
    assert found.notes == (
        "2 left out: files that cannot be read.",
        "1 left out: links to folders.",
    )
    for target in (outside / "secret.png", outside):
        (inside / "x").symlink_to(target)
        with pytest.raises(InputError, match=r"the link 'x' leads out of the folder; copy what it"):
            items.read_items(inside, ANIMALS)
        (inside / "x").unlink()


def test_a_pipe_does_not_stop_the_reading(tmp_path: Path) -> None:
    lay(tmp_path, {"a.png": picture()})
    os.mkfifo(tmp_path / "pipe.png")
    assert items.read_items(tmp_path, ANIMALS).notes == ("1 left out: not plain files.",)


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        (b"a\nb.png", "a control character"),
        (b"\x1b[31m.png", "a control character"),
        (b"\xff.png", "bytes that are not UTF-8"),
        ("gnp.\u202eexe.png".encode(), "a character that turns the direction of writing"),
        ("a\u2028.png".encode(), "a control character"),
    ],
)
def test_a_misleading_file_name_is_refused(tmp_path: Path, name: bytes, problem: str) -> None:
    Path(os.fsdecode(os.path.join(os.fsencode(tmp_path), name))).write_bytes(picture())
    with pytest.raises(InputError) as caught:
        items.read_items(tmp_path, ANIMALS)
    sentence = str(caught.value)
    assert problem in sentence
    assert sentence.endswith("; rename the file")
    assert sentence.isascii()
    assert sentence.isprintable()


def test_names_that_look_the_same_are_refused(tmp_path: Path) -> None:
    for form in ("NFC", "NFD"):
        (tmp_path / unicodedata.normalize(form, "é.png")).write_bytes(picture())
    with pytest.raises(InputError, match="appears twice; rename one of the files"):
        items.read_items(tmp_path, ANIMALS)


@given(st.text())
def test_a_name_without_fault_is_printable_or_at_least_harmless(name: str) -> None:
    if fault(name) is None:
        name.encode()
        assert not any(unicodedata.category(c) in ("Cc", "Cs", "Zl", "Zp") for c in name)
        assert not any(unicodedata.bidirectional(c) in ("RLO", "LRO", "RLI", "PDI") for c in name)


def test_limits_are_one_sentence(tmp_path: Path) -> None:
    lay(tmp_path, {"a.png": picture(), "b.png": picture()})
    with pytest.raises(InputError, match="there are more than 1 images; split them"):
        items.read_items(tmp_path, ANIMALS, limits=items.Limits(items=1))
    size = len(picture())
    with pytest.raises(InputError, match=f"'a.png' has {size} bytes, more than 9; make it smaller"):
        items.read_items(tmp_path, ANIMALS, limits=items.Limits(image_bytes=9))
    with pytest.raises(InputError, match="text is the column 'words', but a folder"):
        items.read_items(tmp_path, ANIMALS, text="words")
    (tmp_path / "none").mkdir()
    with pytest.raises(InputError, match="nothing to label; give PNG"):
        items.read_items(tmp_path / "none", ANIMALS)
    with pytest.raises(InputError, match="no such file or folder; check the path"):
        items.read_items(tmp_path / "nowhere", ANIMALS)


# ------------------------------------------------------------------ tables

ROWS = [
    {"name": "first", "words": "a cat, or so", "year": 1999, "truth": "cat"},
    {"name": "second", "words": 'says "hi"\nand more', "year": 2001, "truth": ""},
    {"name": "=1+1", "words": "<script>alert(1)</script>", "year": -4, "truth": " fish "},
]


def written(folder: Path, suffix: str) -> Path:
    file = folder / f"rows{suffix}"
    if suffix == ".parquet":
        pq.write_table(pa.Table.from_pylist(ROWS), file)
    elif suffix == ".jsonl":
        file.write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    else:
        import csv

        with open(file, "w", newline="", encoding="utf-8") as out:
            table = csv.writer(out, delimiter="\t" if suffix == ".tsv" else ",")
            table.writerow(ROWS[0])
            table.writerows(row.values() for row in ROWS)
    return file


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".jsonl", ".parquet"])
def test_text_rows_are_the_same_from_every_kind_of_file(tmp_path: Path, suffix: str) -> None:
    file = written(tmp_path, suffix)
    found = items.read_items(file, ANIMALS, text="words", name="name", gold="truth")
    assert [item.name for item in found.items] == ["first", "second", "=1+1"]
    assert [item.text for item in found.items] == [row["words"] for row in ROWS]
    assert [item.gold for item in found.items] == [0, None, 3]
    assert {item.kind for item in found.items} == {"text"}
    first = str(ROWS[0]["words"])
    assert found.items[0].sha256 == hashlib.sha256(first.encode()).hexdigest()
    assert (found.root, found.notes) == (None, ())


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".jsonl", ".parquet"])
def test_all_columns_are_cells_but_never_the_true_class(tmp_path: Path, suffix: str) -> None:
    found = items.read_items(written(tmp_path, suffix), ANIMALS, gold="truth")
    assert [item.name for item in found.items] == ["row 0", "row 1", "row 2"]
    for item, row in zip(found.items, ROWS, strict=True):
        assert item.kind == "row"
        assert list(item.cells) == ["name", "words", "year"]
        assert [str(cell) for cell in item.cells.values()] == [
            str(row[key]) for key in ("name", "words", "year")
        ]
    assert len({item.sha256 for item in found.items}) == 3


def test_cells_become_what_json_and_databases_hold(tmp_path: Path) -> None:
    file = tmp_path / "a.jsonl"
    file.write_text(
        '{"classes": ["x"]}\n'
        '{"a": 1, "b": 1e999, "c": NaN, "d": [1, {"e": 2}], "f": true, "g": null, "h": %s}\n'
        % ("9" * 40)
    )
    (item,) = items.read_items(file, ANIMALS).items
    assert item.cells == {
        "a": 1,
        "b": "inf",
        "c": None,
        "d": '[1, {"e": 2}]',
        "f": True,
        "g": None,
        "h": "9" * 40,
    }
    json.dumps(dict(item.cells), allow_nan=False)


def test_the_class_list_of_our_own_files_is_no_cell(tmp_path: Path) -> None:
    file = named("a.csv", 'words,"classes: [""cat"", ""dog""]"\nhi,\n')(tmp_path)
    assert items.read_items(file, ANIMALS).items[0].cells == {"words": "hi"}


def csv_of(content: str | bytes) -> Callable[[Path], Path]:
    return named("a.csv", content)


def named(name: str, content: str | bytes) -> Callable[[Path], Path]:
    def lay_out(folder: Path) -> Path:
        (folder / name).write_bytes(content.encode() if isinstance(content, str) else content)
        return folder / name

    return lay_out


def parquet_of(**columns: Any) -> Callable[[Path], Path]:
    def lay_out(folder: Path) -> Path:
        pq.write_table(pa.table(columns), folder / "a.parquet")
        return folder / "a.parquet"

    return lay_out


BAD: list[tuple[Callable[[Path], Path], dict[str, str], str]] = [
    (csv_of(""), {}, "a.csv: the file is empty; give a first line that names the columns"),
    (csv_of("a,b\n"), {}, "a.csv: there is nothing to label; give a file with at least one row"),
    (csv_of("a,a\n1,2\n"), {}, "a.csv, line 1: column 'a' appears twice; name each column once"),
    (csv_of("a,b\n1\n"), {}, "a.csv, line 2: the row has 1 cells where the header has 2"),
    (csv_of('a\n"x\n'), {}, "a.csv, line 2: this is not valid CSV (unexpected end of data)"),
    (csv_of(b"a\n\xff\n"), {}, "a.csv: this is not UTF-8 text; save the file as UTF-8"),
    (csv_of("a\n" + "x" * 200_000), {}, "a.csv, line 2: this is not valid CSV (field larger"),
    (
        csv_of("text\nhi\n"),
        {"text": "txt"},
        "a.csv, line 2: there is no column 'txt'; did you mean 'text'?",
    ),
    (
        csv_of("text,n\nhi,1\nho,1\n"),
        {"name": "n"},
        "a.csv, line 3: the name '1' appears twice; name each row once",
    ),
    (
        csv_of("text,n\nhi,\n"),
        {"name": "n"},
        "a.csv, line 2, column 'n': the name is blank; give every row a name",
    ),
    (
        csv_of("text,n\nhi,a\u202eb\n"),
        {"name": "n"},
        "a.csv, line 2, column 'n': the name 'a\\\\u202eb' holds a character that turns",
    ),
    (
        csv_of("text,n\nhi," + "n" * 501 + "\n"),
        {"name": "n"},
        f"a.csv, line 2, column 'n': the name '{'n' * 59}… holds 501 characters, more",
    ),
    (
        csv_of("text,g\nhi,cta\n"),
        {"gold": "g"},
        "a.csv, line 2, column 'g': unknown class 'cta'; did you mean 'cat'?",
    ),
    (
        csv_of("text,g\n ,cat\n"),
        {"text": "text"},
        "a.csv, line 2, column 'text': the text is empty; drop the row, or fill the cell",
    ),
    (
        named("a.jsonl", '{"a": "\\u0000"}\n'),
        {},
        "a.jsonl, line 1, column 'a': the cell holds \"'\\\\x00'\", which databases cannot",
    ),
    (
        named("a.jsonl", '{"a": "\\ud800"}\n'),
        {},
        "a.jsonl, line 1, column 'a': the cell holds \"'\\\\ud800'\", which databases",
    ),
    (named("a.jsonl", "[1]\n"), {}, "a.jsonl, line 1: the line holds [1], not an object"),
    (named("a.jsonl", "{"), {}, "a.jsonl, line 1: this is not valid JSON; fix or remove it"),
    (named("a.jsonl", '{"a":' * 99_999), {}, "a.jsonl, line 1: this is not valid JSON; fix"),
    (named("a.jsonl", '{"a":' + "9" * 9999 + "}"), {}, "a.jsonl, line 1: this is not valid JSON"),
    (named("a.parquet", b"PAR1"), {}, "a.parquet: this is not a readable Parquet file; write it"),
    (
        parquet_of(a=pa.array([b"\xff"])),
        {},
        "a.parquet, row 0, column 'a': the cell holds bytes; save text, or give images as files",
    ),
    (named("a.svg", "<svg/>"), {}, "a.svg: unknown file type '.svg'; use one of .csv, .tsv"),
]


@pytest.mark.parametrize(("lay_out", "options", "sentence"), BAD)
def test_bad_tables_are_one_sentence(
    tmp_path: Path, lay_out: Callable[[Path], Path], options: dict[str, str], sentence: str
) -> None:
    with pytest.raises(InputError) as caught:
        items.read_items(lay_out(tmp_path), ANIMALS, **options)  # type: ignore[arg-type]  # by name
    assert str(caught.value).removeprefix(f"{tmp_path}/").startswith(sentence)


def test_limits_of_tables(tmp_path: Path) -> None:
    file = written(tmp_path, ".csv")
    with pytest.raises(InputError, match="there are more than 2 rows; split the file"):
        items.read_items(file, ANIMALS, limits=items.Limits(items=2))
    with pytest.raises(InputError, match=r"line 2: the row has 12 characters, more than 9"):
        items.read_items(file, ANIMALS, text="words", limits=items.Limits(characters=9))


def test_true_classes_may_come_from_a_file_of_their_own(tmp_path: Path) -> None:
    folder = lay(tmp_path / "images", {"a.png": picture(), "b.png": picture()})
    found = items.read_items(folder, ANIMALS).items
    gold = tmp_path / "gold.csv"
    gold.write_text("item,class\nb.png,fish\na.png,\n")
    assert [item.gold for item in items.read_gold(gold, found, ANIMALS)] == [None, 3]
    gold.write_text("item,class\nb.png,fish\nb.png,fish\nb.png,cat\n")
    with pytest.raises(InputError, match=r"line 4, column 'class': item 'b.png' has two classes"):
        items.read_gold(gold, found, ANIMALS)
    gold.write_text("item,class\nc.png,fish\n")
    with pytest.raises(InputError, match=r"there is no item 'c.png'; did you mean '[ab].png'"):
        items.read_gold(gold, found, ANIMALS)


# ------------------------------------------------------------------ class lists


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ("", "classes.txt: 0 class(es) given; at least two classes are needed"),
        ("cat\n", "classes.txt: 1 class(es) given; at least two classes are needed"),
        ("cat\n\ndog\n", "classes.txt, line 2: the class name is blank; write one class name"),
        ("cat\ndog\n cat \n", "classes.txt, line 3: the class name 'cat' appears twice; name"),
        (
            "caf\u00e9\ncafe\u0301\n",
            "classes.txt, line 2: the class name 'cafe\\\\u0301' appears tw",
        ),
        (
            "cat\nd\u202eog\n",
            "classes.txt, line 2: the class name 'd\\\\u202eog' holds a character",
        ),
        ("cat\n" + "x" * 201, f"classes.txt, line 2: the class name '{'x' * 59}… holds 201 chara"),
        (b"\xff\n", "classes.txt: this is not UTF-8 text; save the file as UTF-8"),
    ],
)
def test_bad_class_lists_are_one_sentence(
    tmp_path: Path, content: str | bytes, sentence: str
) -> None:
    file = named("classes.txt", content)(tmp_path)
    with pytest.raises(InputError) as caught:
        items.read_classes(file)
    assert str(caught.value).removeprefix(f"{tmp_path}/").startswith(sentence)


def test_a_class_list_may_have_a_mark_in_front_windows_lines_and_blanks_behind(
    tmp_path: Path,
) -> None:
    file = named("c.txt", "\ufeffcat\r\n dog \r\n\r\n\n")(tmp_path)
    assert items.read_classes(file) == ("cat", "dog")


def test_new_classes_are_checked_and_known_ones_are_as_they_are(tmp_path: Path) -> None:
    file = named("c.txt", "cat\ndog\n")(tmp_path)
    assert items.read_classes(file, ["x" * 300]) == ("cat", "dog")  # from Python, say
    with pytest.raises(InputError, match=r"'dog' appears twice.*") as caught:
        items.read_classes(file, ["cow", "dog"])
    assert "line 2" in str(caught.value)


def test_none_of_it_loads_torch() -> None:
    code = (
        "import sys, ruleout.web.items, ruleout.web.project_export, ruleout.web.importing, "
        "ruleout.web.team; print({'torch', 'sklearn', 'ruleout.datasets'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"
