"""``ruleout compare``: files in, a table and a folder out, one sentence for bad input."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest
import typer
from typer.testing import CliRunner

import ruleout as ro
from ruleout.cli import app as everything
from ruleout.cli.compare import compare

app = typer.Typer()
app.command()(compare)
QUICK = ["--epochs", "2", "--grid", "none", "--trials", "2", "--approaches", "log,exp"]


def run(*words: object) -> tuple[int, str]:
    result = CliRunner().invoke(app, [str(word) for word in words])
    return result.exit_code, result.output


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three blobs as a table: two features, what was ruled out, the true label."""
    random = np.random.default_rng(0)
    names = np.array(["cat", "dog", "fish"])
    y = random.integers(3, size=200)
    x = np.eye(3)[y][:, :2] + random.normal(0, 0.1, (200, 2))
    sets = ro.draw(names[y], classes=names.tolist(), law="paper", seed=0)
    file = tmp_path_factory.mktemp("data") / "pets.csv"
    lines = [
        f"{a},{b},{'|'.join(map(str, ruled))},{name}"
        for (a, b), ruled, name in zip(x.tolist(), sets, names[y], strict=True)
    ]
    file.write_text("\n".join(["weight,age,not,kind", *lines]) + "\n")
    return file


def test_it_prints_a_table_and_writes_four_files(data: Path, tmp_path: Path) -> None:
    out = tmp_path / "new" / "out"
    code, text = run(data, "--excluded", "not", "--ignore", "kind", *QUICK, "--out", out)
    assert code == 0, text
    assert "estimated" in text
    assert "40 rows kept back" in text
    assert "No p: the test takes at least three trials." in text
    assert str(out / "report.html") in text
    files = sorted(file.name for file in out.iterdir())
    assert files == ["report.html", "results.json", "table.csv", "table.md"]
    found = json.loads((out / "results.json").read_text("utf-8"))
    assert [row["approach"] for row in found["rows"]] == ["log", "exp"]
    assert found["classes"] == ["cat", "dog", "fish"]
    assert "pets.csv" in (out / "report.html").read_text("utf-8")


def test_nothing_is_called_an_accuracy_where_a_test_rejects_what_it_assumes(
    data: Path, tmp_path: Path
) -> None:
    """What rows are, given as what they are not; true labels judge as ever."""
    told = (*QUICK, "--out", tmp_path)
    code, text = run(data, "--excluded", "kind", "--ignore", "not", *told)
    assert code == 0, text
    assert "accuracy, %" not in " ".join(text.split())
    assert "No accuracy is estimated: sets drawn at random do not look like this" in " ".join(
        text.split()
    )
    head = (tmp_path / "table.md").read_text().splitlines()[0]
    assert "| log-likelihood |" in head
    assert "| held-out log-likelihood |" in head
    assert "How often it is right" not in (tmp_path / "report.html").read_text()
    assert json.loads((tmp_path / "results.json").read_text())["method"]["rejected"] is True
    code, text = run(data, "--excluded", "not", "--ignore", "kind", *told)
    assert "assumes that they are drawn at random, which" in " ".join(text.split())


def test_equal_rows_are_kept_together(data: Path, tmp_path: Path) -> None:
    """Each row six times, with a label of its own that only another copy of it could tell."""
    head, *lines = data.read_text().splitlines()
    random, many = np.random.default_rng(0), []
    for line in lines[:100]:
        name, *other = random.permutation(["cat", "dog", "fish"])
        features = ",".join(line.split(",")[:2])
        noise = ",".join(f"{one:.6f}" for one in random.normal(size=60))
        many += [f"{features},{'|'.join(other)},{name},{noise}"] * 6
    file = tmp_path / "many.csv"
    file.write_text("\n".join([",".join([head, *(f"n{i}" for i in range(60))]), *many]) + "\n")
    told = [*QUICK[:-4], "--epochs", "200", "--trials", "2", "--approaches", "log,exp"]
    words = (file, "--excluded", "not", "--label", "kind", *told, "--out", tmp_path / "out")
    code, text = run(*words)
    assert code == 0, text
    assert "Note: 600 rows equal others: they train, choose or judge together." in text
    (first, _) = json.loads((tmp_path / "out" / "results.json").read_text("utf-8"))["rows"]
    assert first["score"] < 0.5


def test_columns_of_different_sizes_are_scaled(tmp_path: Path) -> None:
    from cli.test_fit import SIZES, write_sizes

    file = write_sizes(tmp_path / "data.csv")
    words = (
        file,
        "--excluded",
        "not",
        "--label",
        "is",
        *QUICK,
        "--epochs",
        "40",
        "--grid",
        "small",
    )
    best = []
    for option in ("--scale", "--no-scale"):
        code, text = run(*words, option, "--out", tmp_path / option)
        assert code == 0, text
        assert SIZES in text
        best.append(json.loads((tmp_path / option / "results.json").read_text("utf-8")))
    assert best[0]["rows"][0]["score"] > best[1]["rows"][0]["score"] + 0.1
    assert best[0]["facts"]["columns"] == "scaled"
    assert "columns" not in best[1]["facts"]


def test_true_labels_only_report(data: Path, tmp_path: Path) -> None:
    """The same rows train and choose with and without them."""
    words = ["--excluded", "not", *QUICK]
    code, text = run(data, *words, "--label", "kind", "--out", tmp_path)
    assert code == 0, text
    assert "true labels of 40 test rows" in re.sub(r"\s+", " ", text)
    found = json.loads((tmp_path / "results.json").read_text("utf-8"))
    assert found["method"]["kind"] == "labels"
    assert found["facts"]["rows"] == 160
    assert found["facts"]["features"] == 2


def test_folds_judge_every_row(data: Path, tmp_path: Path) -> None:
    words = ["--excluded", "not", "--ignore", "kind", "--judge", "folds", "--holm", *QUICK]
    code, text = run(data, *words, "--out", tmp_path)
    assert code == 0, text
    assert "200 rows, each judged by the trial" in re.sub(r"\s+", " ", text)
    assert "corrected after Holm" in re.sub(r"\s+", " ", text)


def test_warnings_are_notes(data: Path, tmp_path: Path) -> None:
    words = ["--excluded", "not", "--ignore", "kind", "--epochs", "1", "--grid", "none"]
    code, text = run(
        data, *words, "--approaches", "clpl", "--model", "mlp", "--out", tmp_path, "--trials", 1
    )
    assert code == 0, text
    assert "Note: CLPL is convex in a linear model only" in text


@pytest.mark.parametrize(
    ("words", "code", "sentence"),
    [
        (["--approaches", "lgo"], 1, "ruleout: unknown approach 'lgo'; did you mean 'log'?"),
        (["--model", "linaer"], 1, "unknown model 'linaer'; did you mean 'linear'?"),
        (["--judge", "half"], 2, "'half' is neither a share between 0 and 1 nor 'folds'"),
        (["--criterion", "acc"], 1, "unknown criterion 'acc'"),
        (["--device", "cuda:99"], 1, "device"),
        (["--label", "kind", "--judge", "folds"], 2, "--judge folds needs no true labels"),
        (["--label", "kind", "--judge", "2"], 2, "'2' is neither a share between 0 and 1 nor"),
        (["--label", "kindd"], 1, "there is no column 'kindd'; did you mean 'kind'?"),
        (["--grid", "huge"], 2, "huge"),
        (["--trials", "0"], 2, "--trials"),
    ],
)
def test_bad_words_are_one_sentence(
    data: Path, tmp_path: Path, words: list[str], code: int, sentence: str
) -> None:
    ignored = [] if "--label" in words else ["--ignore", "kind"]
    fast = ["--epochs", "1", "--out", str(tmp_path)]
    got, text = run(data, "--excluded", "not", *ignored, *fast, *words)
    assert got == code, text
    assert sentence in re.sub(r"[│\s]+", " ", text)
    assert "Traceback" not in text
    assert not list(tmp_path.iterdir())


def test_a_folder_that_cannot_be_made_fails_before_training(data: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    words = ["--excluded", "not", "--ignore", "kind", "--out", tmp_path / "file" / "out"]
    code, text = run(data, *words)
    assert code == 1
    assert "\nruleout: " in text
    assert "log" not in text


def test_progress_is_told_on_stderr(data: Path, tmp_path: Path) -> None:
    words = ["compare", data, "--excluded", "not", "--ignore", "kind", *QUICK, "--out", tmp_path]
    result = CliRunner().invoke(everything, [str(word) for word in words])
    assert "  0 %  log\n 50 %  exp\n" in result.stderr
    assert "0 %  log" not in result.stdout
    assert "Report: " in result.stdout
