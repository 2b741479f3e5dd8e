"""``ruleout data``: what there is, and how it gets here."""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from typer.testing import CliRunner

from ruleout.cli.data import data

run = CliRunner().invoke
TEXT = "".join(f"{' '.join(str(row + at) for at in range(60))}\n" for row in range(600))


@pytest.fixture(autouse=True)
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty data folder, and no network."""
    monkeypatch.setenv("RULEOUT_DATA", str(tmp_path))
    monkeypatch.setenv("COLUMNS", "100")

    def refuse(*_: object, **__: object) -> None:
        raise ConnectionError("no network")

    fake = SimpleNamespace(HTTPDownloader=lambda **_: refuse)
    monkeypatch.setitem(sys.modules, "pooch", fake)
    return tmp_path


def rows() -> dict[str, list[str]]:
    result = run(data, ["list"])
    assert result.exit_code == 0, result.output
    return {line.split()[0]: line.split() for line in result.stdout.splitlines() if line.strip()}


def test_all_data_sets_are_listed(root: Path) -> None:
    table = rows()
    assert len(table) == 1 + 10 + 6 + 1
    assert table["name"] == ["name", "rows", "features", "classes", "here", "where"]
    assert table["digits"] == ["digits", "1,797", "64", "10", "yes", "in", "scikit-learn"]
    assert table["cifar10"] == ["cifar10", "50,000", "+", "10,000", "3,072", "10", "no", "cifar10/"]
    assert table["yeast"] == ["yeast", "1,484", "8", "10", "no", "uci/"]
    assert " ".join(table["lost"]) == "lost 1,122 108 16 no boards/, for academic use"
    assert " ".join(table["msrcv2"][-5:]) == "use; no checksum is known"
    assert table["The"] == f"The data folder is {root}".split()


def test_listing_opens_no_file(root: Path) -> None:
    for name in ("uci/yeast.data", "mnist/t10k-labels-idx1-ubyte"):
        (root / name).parent.mkdir()
        (root / name).write_bytes(b"nonsense")
    table = rows()
    assert table["yeast"][-2] == "yes"
    assert table["mnist"][-5:] == ["1", "of", "4", "files", "mnist/"]


def test_fetching_says_where(root: Path) -> None:
    result = run(data, ["fetch", "digits", "digits"])
    assert (result.exit_code, result.output) == (0, "digits: in scikit-learn\n")
    assert list(root.iterdir()) == []


def test_files_that_are_here_are_checked(root: Path) -> None:
    file = root / "uci" / "synthetic_control.data"
    file.parent.mkdir()
    file.write_text(TEXT)
    result = run(data, ["fetch", "synthetic-control"])
    assert result.exit_code == 1
    assert result.stdout == ""
    assert result.stderr.startswith(f"ruleout: {file}: the content has sha256 ")
    assert result.stderr.count("\n") == 1


def test_whole_files_are_reported(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from dataclasses import replace

    from ruleout.datasets.data_formats import TableSet
    from ruleout.datasets.registry import REGISTRY

    entry = REGISTRY["synthetic-control"]
    assert isinstance(entry, TableSet)
    free = replace(entry, file=replace(entry.file, sha256=""))
    monkeypatch.setitem(REGISTRY, "synthetic-control", free)
    (root / "uci").mkdir()
    (root / "uci" / "synthetic_control.data").write_text(TEXT)
    result = run(data, ["fetch", "synthetic-control"])
    assert result.output == f"synthetic-control: 1 file in {root / 'uci'}, checked\n"


def test_one_failure_does_not_stop_the_others(root: Path) -> None:
    result = run(data, ["fetch", "all"])
    assert result.exit_code == 1
    assert result.stdout == "digits: in scikit-learn\n"
    lines = result.stderr.splitlines()
    assert len(lines) == 9 + 3
    lines = run(data, ["fetch", "all", "msrcv2"]).stderr.splitlines()
    assert lines[12:] == [
        f"ruleout: {root / 'boards' / 'MSRCv2.mat'}: the file is missing, and ruleout cannot "
        "unpack RAR; unpack http://palm.seu.edu.cn/zhangml/files/MSRCv2.rar into the folder "
        f"{root / 'boards'}"
    ]
    assert lines[0] == (
        f"ruleout: {root / 'mnist' / 'train-labels-idx1-ubyte.gz'}: the file is missing and cannot "
        "be downloaded (ConnectionError: no network); save "
        "https://ossci-datasets.s3.amazonaws.com/mnist/train-labels-idx1-ubyte.gz in the folder "
        f"{root / 'mnist'}"
    )


def test_names_are_checked_before_anything_is_fetched() -> None:
    result = run(data, ["fetch", "digits", "mnits"])
    assert result.exit_code == 1
    assert result.output == "ruleout: unknown data set 'mnits'; did you mean 'mnist'?\n"


def test_no_name_is_a_usage_error() -> None:
    assert run(data, ["fetch"]).exit_code == 2
