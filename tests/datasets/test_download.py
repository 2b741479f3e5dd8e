"""Absent files: downloaded whole and checked, or one sentence that says how to get them."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from ruleout.datasets import DataError, load

if TYPE_CHECKING:
    from datasets.conftest import Serve, Tiny

FIRST = "train-labels-idx1-ubyte.gz"  # labels are small and come first


def refused(root: Path) -> str:
    """Load, expect a DataError and nothing left behind; return its sentence without the path."""
    with pytest.raises(DataError) as caught:
        load("mnist", root)
    assert [path for path in root.rglob("*") if path.is_file()] == []
    assert list(root.rglob(".ruleout-*")) == []
    start = f"{root / 'mnist' / FIRST}: the file is missing and cannot be downloaded ("
    end = f"save https://example.org/{FIRST} in the folder {root / 'mnist'}"
    sentence = str(caught.value)
    assert sentence.startswith(start)
    assert sentence.endswith(end)
    return sentence[len(start) : -len(end)]


def test_absent_files_are_downloaded_once(tiny: Tiny, tmp_path: Path, serve: Serve) -> None:
    server = serve(tiny.files.__getitem__)
    for _ in range(2):
        assert load("mnist", tmp_path / "new" / "root").y_train.tolist() == [3, 1, 4, 1, 5, 9]
    assert sorted(server.asked) == sorted(f"https://example.org/{name}" for name in tiny.files)
    folder = tmp_path / "new" / "root" / "mnist"
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == tiny.files


def test_only_what_is_absent_is_asked_for(tiny: Tiny, tmp_path: Path, serve: Serve) -> None:
    server = serve(tiny.files.__getitem__)
    (tiny.put(tmp_path) / FIRST).unlink()
    load("mnist", tmp_path)
    assert server.asked == [f"https://example.org/{FIRST}"]


@pytest.mark.usefixtures("tiny")
def test_without_pooch_the_sentence_says_how(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pooch", None)
    assert refused(tmp_path) == "pooch is not installed); pip install pooch, or "
    assert list(tmp_path.iterdir()) == []


@pytest.mark.usefixtures("tiny")
@pytest.mark.parametrize(
    ("error", "why"),
    [
        (ConnectionError("no route\nto host"), "ConnectionError: no route to host"),
        (TimeoutError(), "TimeoutError:"),
        (OSError(28, "No space left on device"), "OSError: [Errno 28] No space left on device"),
        (ValueError("x" * 500), f"ValueError: {'x' * 68}…"),
    ],
)
def test_a_failed_download_leaves_nothing(
    tmp_path: Path, serve: Serve, error: Exception, why: str
) -> None:
    def fail(_: str) -> bytes:
        raise error

    serve(fail)
    assert refused(tmp_path) == f"{why}); "


def test_a_cut_connection_leaves_nothing(tiny: Tiny, tmp_path: Path, serve: Serve) -> None:
    server = serve(lambda name: tiny.files[name][:-9])
    assert refused(tmp_path).startswith("what arrived is wrong: ")
    assert len(server.asked) == 1


def test_an_interrupt_passes_and_leaves_nothing(tiny: Tiny, tmp_path: Path, serve: Serve) -> None:
    def stop(_: str) -> bytes:
        raise KeyboardInterrupt

    serve(stop)
    with pytest.raises(KeyboardInterrupt):
        load("mnist", tmp_path)
    assert list((tmp_path / tiny.entry.train_labels.folder).iterdir()) == []


@pytest.mark.usefixtures("tiny")
@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"", "the file is empty"),
        (bytes(1 << 20), "it is too long"),
    ],
)
def test_a_wrong_download_is_thrown_away(
    tmp_path: Path, serve: Serve, content: bytes, why: str
) -> None:
    serve(lambda _: content)
    assert refused(tmp_path) == f"what arrived is wrong: {why}); "


def test_a_download_with_another_sum_is_thrown_away(
    tiny: Tiny, tmp_path: Path, serve: Serve
) -> None:
    serve(lambda _: tiny.files["t10k-labels-idx1-ubyte.gz"])
    expected, found = tiny.entry.train_labels.sha256[:12], tiny.entry.test_labels.sha256[:12]
    assert refused(tmp_path) == (
        f"what arrived is wrong: the content has sha256 {found}… instead of {expected}…); "
    )


def test_a_root_that_is_a_file_is_an_error_of_one_sentence(
    tiny: Tiny, tmp_path: Path, serve: Serve
) -> None:
    serve(tiny.files.__getitem__)
    (tmp_path / "root").write_text("")
    with pytest.raises(DataError, match=r"cannot be downloaded \(NotADirectoryError"):
        load("mnist", tmp_path / "root")
