# ruff: noqa: E501  # the sentences stand as users read them
"""``ruleout draw``: true labels go, ruled-out classes come."""

from __future__ import annotations

from pathlib import Path
from typing import IO

import pytest
import typer
from typer.testing import CliRunner

import ruleout as ro
from ruleout.cli.draw import draw
from ruleout.datasets import read_table
from ruleout.labels.atomic import atomic_write
from ruleout.labels.origins import named_origin

app = typer.Typer(pretty_exceptions_enable=False)
app.command()(draw)
run = CliRunner().invoke
CLASSES = ["cat", "dog", "fish", "hen"]


@pytest.fixture
def data(tmp_path: Path) -> Path:
    path = tmp_path / "data.csv"
    path.write_text("a,is,city\n" + "1.5,cat,Rome\n2,dog,Oslo\n3,fish,Bonn\n4,hen,Kiel\n" * 5)
    return path


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".jsonl", ".parquet"])
def test_the_table_is_written_again(suffix: str, data: Path) -> None:
    out = data.with_name(f"out{suffix}")
    options = ["--label", "is", "--law", "2", "--seed", "7", "--out", str(out)]
    result = run(app, [str(data), *options])
    assert result.exit_code == 0, result.output
    assert result.stdout.endswith(f"Written: {out}\n")
    table = read_table(out, excluded="excluded", ignore=["city"])
    assert table.sets == ro.draw(CLASSES * 5, CLASSES, law=2, seed=7)
    assert table.features == ("a",)


def test_labels_may_be_kept_and_features_left_out(data: Path) -> None:
    out = data.with_name("out.csv")
    assert run(app, [str(data), "--label", "is", "--out", str(out), "--keep-label"]).exit_code == 0
    header = out.read_text().split("\n")[0]
    assert header.startswith("a,is,excluded,city,")
    only = data.with_name("sets.npz")
    assert run(app, [str(data), "--label", "is", "--out", str(only), "--sets-only"]).exit_code == 0
    assert ro.LabelSets.read(only) == ro.draw(CLASSES * 5, CLASSES, seed=0)


@pytest.mark.parametrize("law", ["paper~0.3", "strong:fixed:1"])
def test_a_law_may_have_mistakes_or_preferences(law: str, data: Path) -> None:
    out = data.with_name("out.csv")
    result = run(app, [str(data), "--label", "is", "--out", str(out), "--law", law])
    assert result.exit_code == 0, result.output
    wanted = named_origin(law, 4).draw(CLASSES * 5, CLASSES, 0)
    assert read_table(out, excluded="excluded", ignore=["city"]).sets == wanted
    bad = run(app, [str(data), "--label", "is", "--out", str(out), "--law", "paper~2"])
    assert bad.exit_code == 1


def test_a_law_may_be_probabilities(data: Path) -> None:
    out = data.with_name("out.csv")
    options = ["--label", "is", "--out", str(out), "--law", "0,0,1", "--classes", "4"]
    assert run(app, [str(data), *options]).exit_code == 1  # the names are no numbers
    assert not out.exists()
    result = run(app, [str(data), *options[:-2]])
    assert result.exit_code == 0, result.output
    sets = read_table(out, excluded="excluded", ignore=["city"]).sets
    assert sets is not None
    assert set(sets.sizes.tolist()) == {3}


@pytest.mark.parametrize(
    ("options", "code", "sentence"),
    [
        (["--label", "are"], 1, "data.csv: there is no column 'are'; the columns are 'a', 'is', 'city'"),
        (["--label", "is", "--law", "9"], 1, "size 9 is impossible with 4 classes; choose a size from 1 to 3"),
        (["--label", "is", "--law", "relased"], 1, "unknown size law 'relased'; did you mean 'released'?"),
        (["--label", "is", "--law", "0.5,0.5"], 1, "the size law has shape (2,); with 4 classes give 3 probabilities"),
        (["--label", "is", "--law", "0.5,x"], 2, "is not a law"),
        (["--label", "is", "--seed", "-1"], 2, "Invalid value"),
        ([], 2, "give one; only a labelling project"),
    ],
)  # fmt: skip
def test_bad_input_is_one_sentence_and_nothing_is_written(
    data: Path, options: list[str], code: int, sentence: str
) -> None:
    result = run(app, [str(data), "--out", str(data.with_name("out.csv")), *options])
    assert result.exit_code == code
    assert sentence in result.stderr
    assert list(data.parent.iterdir()) == [data]


def test_a_folder_that_is_not_there_or_not_writable(
    data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = [str(data), "--label", "is", "--out"]
    result = run(app, [*options, str(data.parent / "no" / "out.csv")])
    expected = f"ruleout: the folder {data.parent / 'no'} does not exist; make it first\n"
    assert (result.exit_code, result.stderr.endswith(expected)) == (1, True)

    def refuse(**options: object) -> None:
        raise PermissionError(13, "Permission denied", f"{options['dir']}/.ruleout-x1y2")

    monkeypatch.setattr("tempfile.TemporaryDirectory", refuse)
    result = run(app, [*options, str(data.with_name("out.csv"))])
    expected = f"ruleout: {data.parent}: permission denied; check the permissions\n"
    assert (result.exit_code, result.stderr.endswith(expected)) == (1, True)


def test_atomic_write_leaves_the_old_file_when_writing_fails(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("old")

    def fill(out: IO[bytes]) -> None:
        out.write(b"half")
        raise OSError("the disk is full")

    with pytest.raises(OSError, match="full"), atomic_write(path) as out:
        fill(out)
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]
    with pytest.raises(IsADirectoryError, match="is a folder"), atomic_write(tmp_path):
        pass
