"""Loading by name: what a data set is, where it is looked for, what is refused."""

from __future__ import annotations

import gzip
import subprocess
import sys
from dataclasses import FrozenInstanceError
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from ruleout.datasets import DataError, data_root, load, names
from ruleout.datasets.registry import REGISTRY

if TYPE_CHECKING:
    from datasets.conftest import Tiny


def test_digits_need_no_files_and_have_no_test_rows() -> None:
    data = load("digits", root="/no/such/folder")
    assert data.x_train.shape == (1797, 64)
    assert (data.x_train.dtype.name, data.y_train.dtype.name) == ("float32", "int64")
    assert (data.x_train.min(), data.x_train.max()) == (0, 1)
    assert data.classes == tuple(range(10))
    assert np.bincount(data.y_train).min() == 174
    assert data.x_test is None
    assert data.test is None
    assert data.shape == (64,)


def test_idx_files_become_flat_rows_between_0_and_1(tiny: Tiny, tmp_path: Path) -> None:
    tiny.put(tmp_path)
    data = load("mnist", tmp_path)
    x, y = data.train
    assert (x.dtype.name, y.dtype.name, x.shape) == ("float32", "int64", (6, 4))
    assert np.array_equal(x, np.arange(0, 264, 11, dtype=np.float32).reshape(6, 4) / 255)
    assert y.tolist() == [3, 1, 4, 1, 5, 9]
    assert data.test is not None
    assert data.test[1].tolist() == [9, 5, 1, 4, 1, 3]
    assert np.array_equal(data.test[0], x[::-1])
    assert (data.shape, data.source) == ((1, 2, 2), "Made on the spot.")


def test_repr_is_short_and_fields_are_fixed(tiny: Tiny, tmp_path: Path) -> None:
    tiny.put(tmp_path)
    data = load("mnist", str(tmp_path))
    assert repr(data) == "Dataset('mnist', 6 rows of shape (1, 2, 2), 10 classes, 6 test rows)"
    with pytest.raises(FrozenInstanceError):
        data.name = "other"  # type: ignore[misc]  # that it fails is the point


def test_unpacked_files_are_read_too(tiny: Tiny, tmp_path: Path) -> None:
    folder = tiny.put(tmp_path)
    for file in list(folder.iterdir()):
        file.with_suffix("").write_bytes(gzip.decompress(file.read_bytes()))
        file.unlink()
    assert load("mnist", tmp_path).y_train.tolist() == [3, 1, 4, 1, 5, 9]


def test_another_content_is_refused(tiny: Tiny, tmp_path: Path) -> None:
    """Test images under the name of the training images: right sizes, wrong sum."""
    folder = tiny.put(tmp_path)
    file = folder / "train-images-idx3-ubyte.gz"
    file.write_bytes(tiny.files["t10k-images-idx3-ubyte.gz"])
    expected, found = tiny.entry.train_images.sha256[:12], tiny.entry.test_images.sha256[:12]
    with pytest.raises(DataError) as caught:
        load("mnist", tmp_path)
    assert str(caught.value) == (
        f"{file}: the content has sha256 {found}… instead of {expected}…; delete it and load again"
    )
    assert file.exists()


ALL = (
    "digits, mnist, fashion-mnist, kmnist, cifar10, 20newsgroups, yeast, texture, dermatology, "
    "synthetic-control, lost, birdsong, italian, msrcv2, soccer-player, yahoo-news"
)


@pytest.mark.parametrize(
    ("name", "say"),
    [
        ("mnits", "unknown data set 'mnits'; did you mean 'mnist'?"),
        ("Fashion_MNIST", "unknown data set 'Fashion_MNIST'; did you mean 'fashion-mnist'?"),
        ("CIFAR-10", "unknown data set 'CIFAR-10'; did you mean 'cifar10'?"),
        ("imagenet-21k", f"unknown data set 'imagenet-21k'; the data sets are {ALL}"),
        (3, f"unknown data set 3; the data sets are {ALL}"),
        ([], f"unknown data set []; the data sets are {ALL}"),
    ],
)
def test_an_unknown_name_gets_the_nearest(name: Any, say: str) -> None:
    with pytest.raises(ValueError) as caught:
        load(name)
    assert str(caught.value) == say


def test_the_registry_is_whole() -> None:
    """No address twice, and as many distinct names as classes."""
    assert ", ".join(names()) == ALL
    files = [file for entry in REGISTRY.values() for file in entry.files]
    assert len({file.url for file in files}) == len(files) == 4 * 3 + 1 + 1 + 4 + 6
    packed = [file for file in files if file.url.endswith(".rar")]
    assert all(file.url.endswith(f"/{file.name}") for file in files if file not in packed)
    assert all(file.url.startswith("http") and file.most <= 1 << 28 for file in files)
    for entry in REGISTRY.values():
        assert len(set(entry.classes)) == len(entry.classes)


def test_every_content_has_a_sum_of_its_own() -> None:
    """Archives have none: their members have, or a structure. Of three boards none is known."""
    archives = {"cifar-10-binary.tar.gz", "20news-bydate.tar.gz"}
    archives |= {"MSRCv2.mat", "Soccer Player.mat", "Yahoo! News.mat"}
    parts = [file for entry in REGISTRY.values() for file in entry.files]
    parts += getattr(REGISTRY["cifar10"], "batches", ())
    assert {file.name for file in parts if not file.sha256} == archives
    sums = [file.sha256 for file in parts if file.sha256]
    assert len(set(sums)) == len(sums) == 12 + 6 + 4 + 3
    assert all(len(bytes.fromhex(one)) == 32 for one in sums)


@pytest.mark.parametrize(
    ("chosen", "cache", "expected"),
    [
        ("/srv/data", "/cache", "/srv/data"),
        ("~/data", None, "/home/me/data"),
        (None, "/cache", "/cache/ruleout"),
        ("", "/cache", "/cache/ruleout"),
        (None, None, "/home/me/.cache/ruleout"),
        (None, "", "/home/me/.cache/ruleout"),
        (None, "relative", "/home/me/.cache/ruleout"),
    ],
)
def test_data_root(
    monkeypatch: pytest.MonkeyPatch, chosen: str | None, cache: str | None, expected: str
) -> None:
    monkeypatch.setenv("HOME", "/home/me")
    for name, value in {"RULEOUT_DATA": chosen, "XDG_CACHE_HOME": cache}.items():
        if value is None:
            monkeypatch.delenv(name, raising=False)
        else:
            monkeypatch.setenv(name, value)
    assert data_root() == Path(expected)


def test_data_root_is_where_load_looks(
    tiny: Tiny, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tiny.put(tmp_path)
    monkeypatch.setenv("RULEOUT_DATA", str(tmp_path))
    assert len(load("mnist").y_train) == 6


def test_importing_loads_nothing_heavy_and_digits_load_no_torch() -> None:
    code = """
import sys
from ruleout.datasets import load
heavy = {"torch", "sklearn", "scipy", "pooch", "requests"}
print(sorted(heavy & set(sys.modules)))
load("digits")
print("torch" in sys.modules)"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["[]", "False"]
