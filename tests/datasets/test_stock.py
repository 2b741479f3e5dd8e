"""Which files are there, and how the others are fetched."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from ruleout.datasets import DataError, Stock, fetch, survey

if TYPE_CHECKING:
    from datasets.conftest import Serve, Tiny, TinyCifar, TinyNews


BOARDS = {
    "lost": ((1122, 0), 108, 16),
    "birdsong": ((4998, 0), 38, 13),
    "italian": ((21878, 0), 519, 90),
    "msrcv2": ((1758, 0), 48, 23),
    "soccer-player": ((17472, 0), 279, 171),
    "yahoo-news": ((22991, 0), 163, 219),
}


def one(name: str, root: Path) -> Stock:
    return next(entry for entry in survey(root) if entry.name == name)


def test_table_5_of_the_paper(tmp_path: Path) -> None:
    found = {entry.name: (entry.rows, entry.features, entry.classes) for entry in survey(tmp_path)}
    boards = {name: found.pop(name) for name in BOARDS}
    assert boards == BOARDS
    assert found == {
        "digits": ((1797, 0), 64, 10),
        "mnist": ((60000, 10000), 784, 10),
        "fashion-mnist": ((60000, 10000), 784, 10),
        "kmnist": ((60000, 10000), 784, 10),
        "cifar10": ((50000, 10000), 3072, 10),
        "20newsgroups": ((18846, 0), 1000, 20),
        "yeast": ((1484, 0), 8, 10),
        "texture": ((5500, 0), 40, 11),
        "dermatology": ((366, 0), 34, 6),
        "synthetic-control": ((600, 0), 60, 6),
    }
    assert [entry.name for entry in survey(tmp_path) if entry.present] == ["digits"]


def test_files_are_counted_by_any_of_their_names(tiny: Tiny, tmp_path: Path) -> None:
    folder = tiny.put(tmp_path)
    assert one("mnist", tmp_path).present
    file = next(folder.iterdir())
    file.rename(file.with_suffix(""))
    entry = one("mnist", tmp_path)
    assert (entry.present, len(entry.files), entry.folder) == (True, 4, folder)
    file.with_suffix("").unlink()
    entry = one("mnist", tmp_path)
    assert (entry.present, len(entry.files), entry.wanted) == (False, 3, 4)


def test_cifar_is_there_as_an_archive_or_as_six_files(cifar: TinyCifar, tmp_path: Path) -> None:
    folder = tmp_path / "cifar10"
    folder.mkdir()
    for name, content in cifar.batches.items():
        assert not one("cifar10", tmp_path).present
        (folder / name).write_bytes(content)
    assert len(one("cifar10", tmp_path).files) == 6
    (folder / "test_batch.bin").unlink()
    (folder / "cifar-10-binary.tar.gz").touch()
    entry = one("cifar10", tmp_path)
    assert (entry.present, [file.suffix for file in entry.files]) == (True, [".gz"])


def test_fetching_downloads_and_checks(tiny: Tiny, tmp_path: Path, serve: Serve) -> None:
    server = serve(tiny.files.__getitem__)
    assert fetch("mnist", tmp_path) == one("mnist", tmp_path)
    assert len(server.asked) == 4
    file = tmp_path / "mnist" / "t10k-images-idx3-ubyte.gz"
    file.write_bytes(b"")
    with pytest.raises(DataError, match="the file is empty"):
        fetch("mnist", tmp_path)


def test_fetching_documents_makes_no_features(
    news: TinyNews, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = news.put(tmp_path)
    monkeypatch.setattr("ruleout.datasets.data_formats.make_features", None)
    assert fetch("20newsgroups", tmp_path).files == (file,)
    assert list(file.parent.iterdir()) == [file]
    news.put(tmp_path, {"early/cats/1": b""})
    with pytest.raises(DataError, match="1 documents instead of 4"):
        fetch("20newsgroups", tmp_path)


def test_an_unknown_name_gets_the_nearest(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="did you mean 'yeast'"):
        fetch("yest", tmp_path)


def test_where_nothing_can_be_had_the_sentence_says_how(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pooch", None)
    with pytest.raises(DataError) as caught:
        fetch("texture", tmp_path)
    assert str(caught.value) == (
        f"{tmp_path}/uci/texture.zip: the file is missing and cannot be downloaded (pooch is not "
        "installed); pip install pooch, or save "
        "https://sci2s.ugr.es/keel/dataset/data/classification/texture.zip in the folder "
        f"{tmp_path}/uci"
    )
