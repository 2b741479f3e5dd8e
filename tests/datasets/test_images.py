# ruff: noqa: E501  # the sentences stand as users read them
"""A folder of images: which are read, how they become numbers, what is refused."""

from __future__ import annotations

import json
import struct
import sys
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import ruleout as ro
from ruleout.datasets.tables import draw_table, read_table
from ruleout.labels.errors import InputError

GREY = np.arange(12, dtype=np.uint8).reshape(3, 4) * 20
RED = np.stack([GREY, GREY * 0, GREY * 0], -1)


def save(path: Path, pixels: Any, **options: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(pixels).save(path, **options)
    return path


@pytest.fixture
def pets(tmp_path: Path) -> Path:
    """Three grey images, one of them in a folder below, and their label file."""
    folder = tmp_path / "pets"
    save(folder / "b.png", GREY)
    save(folder / "images" / "a.png", 255 - GREY)
    save(folder / "more" / "c.bmp", GREY // 2)
    lines = "file,not,is\nb.png,dog|fish,cat\na.png,cat,dog\nmore/c.bmp,fish,dog\n"
    (folder / "labels.csv").write_text(lines)
    return folder


def test_rows_follow_the_label_file(pets: Path) -> None:
    table = read_table(pets, excluded="not", label="is")
    assert table.row_names == ("b.png", "images/a.png", "more/c.bmp")
    assert (table.shape, table.features, table.x.dtype.name) == ((1, 3, 4), (), "float32")
    expected = np.stack([GREY, 255 - GREY, GREY // 2]).reshape(3, -1)
    assert np.array_equal(table.x, expected.astype(np.float32) / np.float32(255))
    assert table.sets is not None
    assert table.sets.to_lists() == [["dog", "fish"], ["cat"], ["fish"]]
    assert table.labels is not None
    assert table.labels.tolist() == ["cat", "dog", "dog"]
    assert table.reading == {
        "kind": "images",
        "shape": [1, 3, 4],
        "resize": "bilinear, stretched",
        "alpha": "on white",
        "turned": "as EXIF says",
        "scale": "0 to 1",
    }


def test_without_labels_all_images_are_read_by_name(pets: Path) -> None:
    save(pets / ".hidden.png", GREY)
    table = read_table(pets)
    assert table.row_names == ("b.png", "images/a.png", "more/c.bmp")
    assert (table.sets, table.labels, table.classes) == (None, None, None)


def test_images_that_the_label_file_leaves_out_are_noted(pets: Path) -> None:
    labels = pets.parent / "some.jsonl"
    labels.write_text('{"file": "b.png", "not": ["cat"]}\n{"file": "b.png", "not": ["dog"]}\n')
    table = read_table(pets, excluded="not", labels_file=labels)
    assert table.row_names == ("b.png", "b.png")
    assert table.notes[-1] == "2 image(s) in the folder are not in some.jsonl: left out."


def test_the_checksum_covers_every_image_and_the_label_file(pets: Path) -> None:
    def digest() -> str:
        return read_table(pets, excluded="not").sha256

    first = digest()
    assert digest() == first
    labels = pets / "labels.csv"
    labels.write_text(labels.read_text().replace("dog|fish", "fish"))
    second = digest()
    save(pets / "more" / "c.bmp", GREY // 3)
    assert len({first, second, digest()}) == 3


def test_one_colour_image_makes_all_of_them_colour(pets: Path) -> None:
    save(pets / "more" / "c.bmp", RED)
    table = read_table(pets, excluded="not")
    assert table.shape == (3, 3, 4)
    x = table.x.reshape(3, 3, 3, 4)
    assert np.array_equal(x[0, 0], x[0, 2])
    assert np.array_equal(x[2, 0], GREY.astype(np.float32) / np.float32(255))
    assert not x[2, 1:].any()


def test_an_earlier_reading_is_repeated(pets: Path) -> None:
    first = read_table(pets, excluded="not", size=(2, 2))
    stored = json.loads(json.dumps(first.reading))
    assert np.array_equal(read_table(pets, reading=stored).x, first.x)
    folder = pets.parent / "new"
    save(folder / "big.png", np.kron(RED, np.ones((5, 5, 1), np.uint8)))
    again = read_table(folder, reading=stored)
    assert again.shape == (1, 2, 2)
    np.savez(folder / "a.npz", x=np.zeros((1, 2, 2)))
    assert read_table(folder / "a.npz", reading=stored).shape == (1, 2, 2)


def test_resizing_is_bilinear_and_stretches(tmp_path: Path) -> None:
    half = np.repeat([[0, 200]], 4, 0).repeat(4, 1).astype(np.uint8)  # 4 × 8
    save(tmp_path / "a.png", half)
    x = read_table(tmp_path, size=(2, 2)).x
    assert np.allclose(x * 255, [[200 / 7, 1200 / 7] * 2], atol=0.6)  # triangles
    assert np.array_equal(read_table(tmp_path, size=(4, 8)).x[0] * 255, half.ravel())


@pytest.mark.parametrize("ending", [".png", ".bmp", ".gif", ".webp", ".jpg"])
def test_formats(ending: str, tmp_path: Path) -> None:
    options: dict[str, Any] = {".webp": {"lossless": True}, ".jpg": {"quality": 100}}
    flat = np.full((8, 8, 3), (250, 10, 10), np.uint8)
    save(tmp_path / f"a{ending}", flat, **options.get(ending, {}))
    table = read_table(tmp_path)
    assert table.shape == (3, 8, 8)
    assert np.allclose(table.x.reshape(3, -1).mean(1) * 255, (250, 10, 10), atol=2)


def test_only_the_first_frame_of_an_animation_counts(tmp_path: Path) -> None:
    frames = [Image.fromarray(np.full((2, 2), value, np.uint8)) for value in (10, 200)]
    frames[0].save(tmp_path / "a.gif", save_all=True, append_images=frames[1:])
    assert np.allclose(read_table(tmp_path).x * 255, 10)
    assert read_table(tmp_path).shape == (1, 2, 2)


def test_depth_transparency_palettes_and_orientation(tmp_path: Path) -> None:
    save(tmp_path / "deep" / "a.png", (GREY.astype(np.uint16) * 257))
    assert np.allclose(read_table(tmp_path / "deep").x * 255, GREY.ravel())
    clear = np.dstack([RED, np.zeros((3, 4), np.uint8)])
    save(tmp_path / "clear" / "a.png", clear)
    assert np.allclose(read_table(tmp_path / "clear").x, 1)
    palette = Image.fromarray(RED).quantize(12)
    (tmp_path / "palette").mkdir()
    palette.save(tmp_path / "palette" / "a.png")
    assert read_table(tmp_path / "palette").shape == (3, 3, 4)
    (tmp_path / "bits").mkdir()
    Image.fromarray(GREY > 100).save(tmp_path / "bits" / "a.png")
    assert np.array_equal(read_table(tmp_path / "bits").x, (GREY > 100).reshape(1, -1))
    exif = Image.Exif()
    exif[0x0112] = 6  # the camera was turned
    save(tmp_path / "turned" / "a.png", GREY, exif=exif)
    assert np.allclose(read_table(tmp_path / "turned").x * 255, np.rot90(GREY, -1).ravel())


def test_drawing_writes_the_label_file_again(pets: Path) -> None:
    out = pets.parent / "drawn.csv"
    sets = draw_table(pets, out, label="is", classes=["cat", "dog", "fish"], law=1, seed=0)
    table = read_table(pets, excluded="excluded", labels_file=out)
    assert table.sets == sets == ro.draw(["cat", "dog", "dog"], ["cat", "dog", "fish"], 1, 0)
    assert table.row_names == ("b.png", "images/a.png", "more/c.bmp")
    draw_table(pets, pets.parent / "drawn.npz", label="is", classes=["cat", "dog", "fish"])
    arrays = read_table(pets.parent / "drawn.npz", excluded="excluded")
    assert np.array_equal(arrays.x, table.x)


def bomb() -> bytes:
    """A PNG of a few bytes whose header claims 50,000 × 50,000 pixels."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        body = kind + data
        return struct.pack(">I", len(data)) + body + struct.pack(">I", zlib.crc32(body))

    head = struct.pack(">IIBBBBB", 50_000, 50_000, 8, 0, 0, 0, 0)
    data = chunk(b"IDAT", zlib.compress(b"\0" * 100)) + chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + data


@pytest.mark.parametrize("side", [50_000, 9_000])
def test_bombs_are_refused(side: int, pets: Path) -> None:
    content = bomb()
    if side == 9_000:  # below the bound of Pillow's warning
        content = content.replace(
            struct.pack(">II", 50_000, 50_000), struct.pack(">II", side, side)
        )
        head = content[12:29]
        content = content[:29] + struct.pack(">I", zlib.crc32(head)) + content[33:]
    (pets / "b.png").write_bytes(content)
    with pytest.raises(InputError) as caught:
        read_table(pets, excluded="not")
    expected = (
        f"{pets / 'b.png'}, row 0: the image has more than 67,108,864 pixels; make it smaller"
    )
    assert str(caught.value) == expected


def spoil(folder: Path, what: str) -> dict[str, Any]:
    """Break something; return what is asked for."""
    options: dict[str, Any] = {"excluded": "not"}
    labels = folder / "labels.csv"
    if what == "broken":
        (folder / "b.png").write_bytes((folder / "b.png").read_bytes()[:45])
    elif what == "no image":
        (folder / "more" / "c.bmp").write_text("hello")
    elif what == "size":
        save(folder / "more" / "c.bmp", GREY.T)
    elif what == "missing":
        labels.write_text("file,not\nd.png,cat\n")
    elif what == "outside":
        save(folder.parent / "secret.png", GREY)
        labels.write_text("file,not\n../secret.png,cat\n")
    elif what == "absolute":
        save(folder.parent / "secret.png", GREY)
        labels.write_text(f"file,not\n{folder.parent / 'secret.png'},cat\n")
    elif what == "no labels":
        labels.unlink()
    elif what == "no file column":
        labels.write_text("files,not\nb.png,cat\n")
    elif what == "label":
        labels.write_text("file,not\nb.png,cat|cat\na.png,dog\n")
    elif what == "zero":
        options["size"] = (0, 4)
    elif what == "vast":
        options["size"] = (100_000, 100_000)
    elif what == "features":
        options["features"] = ["x0"]
    elif what == "columns":
        options["reading"] = {"kind": "columns", "features": ["a"]}
    elif what == "scale":
        options["reading"] = {"kind": "images", "shape": [1, 3, 4], "scale": "as stored"}
    elif what == "npz labels":
        options["labels_file"] = folder / "labels.npz"
        np.savez(folder / "labels.npz", x=GREY)
    return options


@pytest.mark.parametrize(
    ("what", "where", "sentence"),
    [
        ("broken", "/b.png, row 0", "this is not a readable image; save it again as PNG, JPEG, BMP, GIF or WebP"),
        ("no image", "/more/c.bmp, row 2", "this is not a readable image; save it again as PNG, JPEG, BMP, GIF or WebP"),
        ("size", "/more/c.bmp", "the image is 4×3 pixels high and wide, b.png is 3×4; give one size for all, as in --size 3x4"),
        ("missing", "/labels.csv, line 2, column 'file'", "there is no image 'd.png' in FOLDER; give names relative to that folder"),
        ("outside", "/labels.csv, line 2, column 'file'", "there is no image '../secret.png' in FOLDER; give names relative to that folder"),
        ("absolute", "/labels.csv, line 2, column 'file'", "there is no image"),
        ("no labels", "", "the folder has no file labels.csv; name the label file with labels_file=... (--labels-file FILE)"),
        ("no file column", "/labels.csv", "there is no column 'file'; did you mean 'files'?"),
        ("label", "/labels.csv, line 2, column 'not'", "class 'cat' appears twice; name each class once"),
        ("zero", "", "the size is (0, 4); give a height and a width above 0, together at most 67,108,864 pixels"),
        ("vast", "", "the size is (100000, 100000); give a height and a width above 0, together at most 67,108,864 pixels"),
        ("features", "", "this is a folder of images; images have no columns to choose from"),
        ("columns", "", "this is a folder of images, and columns are wanted; give a table file"),
        ("scale", "", "this is a folder of images, and arrays of another scale are wanted; give an NPZ file, scaled as the first one was"),
        ("npz labels", "/labels.npz", "a .npz file has no columns; use .csv, .tsv, .parquet or .jsonl"),
    ],
)  # fmt: skip
def test_bad_folders_are_named(what: str, where: str, sentence: str, pets: Path) -> None:
    options = spoil(pets, what)
    with pytest.raises(InputError) as caught:
        read_table(pets, **options)
    expected = f"{pets}{where}: {sentence}".replace("FOLDER", str(pets))
    found = str(caught.value)
    assert found.startswith(expected) if what == "absolute" else found == expected


def test_pillow_may_be_absent(pets: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "PIL", None)
    with pytest.raises(InputError) as caught:
        read_table(pets)
    assert str(caught.value) == f"{pets}: reading images needs Pillow; pip install pillow"


def test_broken_bytes_never_give_another_error(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    for ending in (".png", ".jpg", ".gif", ".webp", ".bmp"):
        path = save(
            tmp_path / ending[1:] / f"a{ending}", np.kron(RED, np.ones((4, 4, 1), np.uint8))
        )
        good = path.read_bytes()
        for turn in range(60):
            bad = bytearray(good)
            if turn % 2:
                del bad[rng.integers(len(bad)) :]
            else:
                bad[rng.integers(len(bad))] = rng.integers(256)
            path.write_bytes(bytes(bad))
            try:
                read_table(path.parent, size=(4, 4))
            except InputError as error:
                assert str(path) in str(error)  # noqa: PT017  # reading well is right, too


@pytest.fixture
def sorted_pets(tmp_path: Path) -> Path:
    """Images in folders of their class, and no label file."""
    for place, name in enumerate(["cat/1.png", "cat/old/2.png", "dog/1.png", "hen/1.png"] * 3):
        save(tmp_path / "sorted" / name.replace(".", f"-{place}."), GREY + place)
    return tmp_path / "sorted"


def test_class_folders_are_labels(sorted_pets: Path) -> None:
    table = read_table(sorted_pets, label="folder")
    assert table.classes == ("cat", "dog", "hen")
    assert table.labels is not None
    assert table.labels.tolist() == [name.split("/")[0] for name in table.row_names or ()]
    assert np.bincount(np.unique(table.labels, return_inverse=True)[1]).tolist() == [6, 3, 3]


@pytest.mark.parametrize("suffix", [".csv", ".npz"])
def test_sets_are_drawn_from_class_folders(sorted_pets: Path, suffix: str) -> None:
    out = sorted_pets.with_name(f"sets{suffix}")
    sets = draw_table(sorted_pets, out, label="folder", keep_label=True)
    told: dict[str, Any] = {"excluded": "excluded", "label": "folder"}
    if suffix == ".csv":
        again = read_table(sorted_pets, labels_file=out, **told)
        assert not ro.datasets.inspect(sets, again.x, again.labels).warnings
    else:
        again = read_table(out, **told)
    assert again.sets == sets
    assert again.labels is not None
    labels = read_table(sorted_pets, label="folder").labels
    assert again.labels.tolist() == (labels.tolist() if labels is not None else None)


def test_an_image_in_no_class_folder_is_named(sorted_pets: Path) -> None:
    save(sorted_pets / "lost.png", GREY)
    with pytest.raises(InputError, match=r"the image 'lost\.png' lies in no class folder; move it"):
        read_table(sorted_pets, label="folder")


def test_a_label_file_comes_before_class_folders(sorted_pets: Path) -> None:
    (sorted_pets / "labels.csv").write_text("file,is\ncat/1-0.png,dog\ndog/1-2.png,cat\n")
    with pytest.raises(InputError, match="there is no column 'folder'"):
        read_table(sorted_pets, label="folder")
    table = read_table(sorted_pets, label="is")
    assert table.labels is not None
    assert table.labels.tolist() == ["dog", "cat"]


def test_class_folders_say_nothing_of_what_was_ruled_out(sorted_pets: Path) -> None:
    with pytest.raises(InputError, match=r"the folder has no file labels\.csv"):
        read_table(sorted_pets, excluded="not", label="folder")
