"""Boards of the field, votes and answers of tools, from the command line to a model and back."""

from __future__ import annotations

import csv
import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cli.fitted import run
from scipy import sparse
from scipy.io import savemat

import ruleout as ro
from ruleout.datasets.data_formats import BoardSet
from ruleout.datasets.registry import REGISTRY

REAL = Path(os.environ.get("RULEOUT_REAL") or Path(__file__).parents[3] / "shared/data/real")
QUICK = ("--grid", "none", "--learning-rate", "0.5", "--epochs", "60")
NAMES = ["cat", "dog", "hen", "cow"]


@pytest.fixture(params=[np.asarray, sparse.csc_matrix], ids=["dense", "sparse"])
def board(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """60 rows that are easily told apart, with two or three candidates each."""
    rng = np.random.default_rng(0)
    y = np.arange(60) % 4
    x = np.eye(4)[y] + rng.normal(0, 0.05, (60, 4)) * (rng.random((60, 4)) < 0.5)
    sets = ro.draw(y, classes=4, law=[0.5, 0.5, 0], seed=0)
    arrays = {"partial_target": sets.candidates.T.astype(float), "target": np.eye(4)[y].T}
    told: Any = {"data": request.param(x)}
    told |= {name: request.param(array) for name, array in arrays.items()}
    savemat(tmp_path / "board.mat", told)
    return tmp_path / "board.mat"


def accuracy(*words: object) -> float:
    result = run("evaluate", *words, "--json")
    assert result.exit_code == 0, result.output
    return float(json.loads(result.stdout)["labels"]["accuracy"]["estimate"])


def test_a_board_needs_no_option(board: Path) -> None:
    model = board.with_name("model")
    result = run("fit", board, "--out", model, *QUICK)
    assert result.exit_code == 0, result.output
    assert "Trained on 60 rows of 4 features, 4 classes." in result.stdout
    assert accuracy(model, board, "--label", "target") == 1.0
    assert "By what was ruled out in 60 rows" in run("evaluate", model, board).stdout
    for command in (("check", board), ("resolve", model, board), ("predict", model, board)):
        assert run(*command).exit_code == 0


def test_true_classes_of_a_board_are_heard(board: Path) -> None:
    model = board.with_name("model")
    result = run("fit", board, "--known", "target", "--out", model, *QUICK)
    assert result.exit_code == 0, result.output
    assert run("fit", board, "--label", "target", "--out", model, *QUICK).exit_code == 0
    told = ("--approaches", "log", "--epochs", "30", "--grid", "none", "--trials", "2")
    out = board.with_name("out")
    result = run("compare", board, "--label", "target", *told, "--out", out)
    assert result.exit_code == 0, result.output
    assert json.loads((out / "results.json").read_text())["method"]["rows"] == 12
    drawn = board.with_name("drawn.csv")
    assert run("draw", board, "--label", "target", "--out", drawn).exit_code == 0
    assert drawn.read_text().startswith("x0,x1,x2,x3,excluded")


def test_a_board_is_found_by_its_name(board: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from dataclasses import replace

    entry, root = REGISTRY["lost"], board.parent
    assert isinstance(entry, BoardSet)
    (root / "boards").mkdir()
    board.rename(root / "boards" / "lost.mat")
    file = replace(entry.file, sha256="", shape=(60, 4))
    monkeypatch.setitem(REGISTRY, "lost", replace(entry, file=file, many=4))
    monkeypatch.setenv("RULEOUT_DATA", str(root))
    monkeypatch.chdir(root)
    assert run("check", "lost").exit_code == 0
    assert run("fit", "lost", "--out", "model", *QUICK).exit_code == 0
    assert accuracy("model", "lost", "--label", "target") == 1.0
    result = run("check", "lots", "--excluded", "a")
    assert (result.exit_code, result.stderr.count("\n")) == (1, 1)


@pytest.mark.parametrize("command", ["check", "fit", "evaluate", "compare", "resolve", "predict"])
def test_a_file_that_is_none_is_one_sentence(board: Path, command: str) -> None:
    model, bad = board.with_name("model"), board.with_name("bad.mat")
    assert run("fit", board, "--out", model, *QUICK).exit_code == 0
    bad.write_bytes(board.read_bytes()[:300])
    words = [model] if command in ("evaluate", "resolve", "predict") else []
    more = ["--out", board.with_name("new")] if command in ("fit", "compare") else []
    result = run(command, *words, bad, *more)
    assert result.exit_code == 1
    assert result.stderr == f"ruleout: {bad}: this is not a readable .mat file of version 5 to 7; write it again\n"  # noqa: E501  # fmt: skip


def test_votes_and_answers_reach_the_model(tmp_path: Path) -> None:
    y, rng = np.arange(60) % 4, np.random.default_rng(0)
    votes = np.where(ro.draw(y, classes=4, seed=0).excluded, -1, 0)
    table, model = tmp_path / "votes.csv", tmp_path / "model"
    with open(table, "w", newline="") as stream:
        rows = csv.writer(stream)
        rows.writerow(["a", "b", "c", "d", *NAMES, "is"])
        rows.writerows([*np.eye(4)[c], *v, NAMES[c]] for c, v in zip(y, votes, strict=True))
    told = ("--votes", ",".join(NAMES))
    result = run("fit", table, *told, "--ignore", "is", "--out", model, *QUICK)
    assert result.exit_code == 0, result.output
    assert accuracy(model, table, "--label", "is") == 1.0
    assert run("resolve", model, table, *told).exit_code == 0

    answers, features = tmp_path / "answers.jsonl", tmp_path / "features.npz"
    np.savez(features, x=np.eye(4)[y], item=np.arange(60))
    with open(answers, "w") as out:
        for item in range(60):
            for label in rng.permutation(4)[:3]:
                answer = "accept" if label == y[item] else "reject"
                row = {"label": NAMES[label], "answer": answer, "item": item, "is": NAMES[y[item]]}
                out.write(json.dumps(row | {"_view_id": "classification", "meta": {}}) + "\n")
    said = ("--candidates", "label", "--answer", "answer", "--item", "item")
    more = ("--features-from", features)
    result = run("fit", answers, *said, *more, "--out", model, *QUICK)
    assert result.exit_code == 0, result.output
    assert "Trained on 60 rows of 4 features" in result.stdout
    assert accuracy(model, answers, "--label", "is", *said, *more) == 1.0


@pytest.mark.parametrize("suffix", [".npz", ".parquet"])
def test_answers_about_real_images_with_features_of_another_file(
    tmp_path: Path, suffix: str
) -> None:
    """Three of the answers rule everything out, 65 nothing."""
    file = REAL / "cifar10s-even.csv"
    if not file.is_file():
        pytest.skip(f"{file} is missing: set RULEOUT_REAL to a folder with the real boards")
    with open(file) as stream:
        items = sorted({int(row["item"]) for row in csv.DictReader(stream)})
    x, features = np.random.default_rng(0).normal(size=(len(items), 5)), tmp_path / f"x{suffix}"
    if suffix == ".npz":
        np.savez(features, x=x, item=np.array(items))
    else:
        import pyarrow as pa
        from pyarrow import parquet

        columns = {f"f{place}": x[:, place] for place in range(5)}
        parquet.write_table(pa.table({"item": items, **columns}), features)
    told = ["--excluded", "excluded", "--item", "item", "--annotator", "annotator"]
    told += ["--features-from", str(features)]
    result = run("check", file, *told)
    assert result.exit_code == 1
    assert result.stderr.endswith("leave the row out (--skip-bad-rows) (3 rows: lines 746, 2341, 2359)\n")  # noqa: E501  # fmt: skip
    told += ["--skip-bad-rows", "--unlabelled"]
    result = run("fit", file, *told, "--out", tmp_path / "model", "--grid", "none", "--epochs", "2")
    assert result.exit_code == 0, result.output
    assert "248 people gave 3,305 answers about 493 items" in result.stderr
    assert "Trained on 493 rows of 5 features, 10 classes." in result.stdout
    out = tmp_path / "out.csv"
    assert run("resolve", tmp_path / "model", file, *told, "--out", out).exit_code == 0
    assert out.read_text().splitlines()[0].startswith('"item","resolved"')


def test_auto_says_what_it_tried_and_why(board: Path) -> None:
    model = board.with_name("model")
    result = run("fit", board, "--approach", "auto", "--out", model, "--epochs", "20")
    assert result.exit_code == 0, result.output
    assert "Auto: tests do not reject that sets are random; tried log, proden" in result.stdout
    assert "6 models, whose mean predicts" in result.stdout  # 60 rows do not tell the two apart
    assert accuracy(model, board, "--label", "target") > 0.9


@pytest.mark.parametrize("given", [("--grid", "paper"), ("--learning-rate", "0.1")])
def test_auto_refuses_settings(board: Path, given: tuple[str, str]) -> None:
    result = run("fit", board, "--approach", "auto", *given, "--out", board.with_name("model"))
    assert result.exit_code == 2
    assert "auto chooses its own" in result.output


def test_a_board_that_says_nothing_is_refused(tmp_path: Path) -> None:
    savemat(tmp_path / "b.mat", {"data": np.eye(4), "partial_target": np.ones((3, 4))})
    result = run("fit", tmp_path / "b.mat", "--unlabelled", "--out", tmp_path / "m")
    assert result.exit_code != 0
    assert "b.mat, column 'partial_target': no row says anything; give at least" in result.stderr
    (tmp_path / "c.mat").write_bytes(b"\x89HDF\r\n" + bytes(600))
    result = run("check", tmp_path / "c.mat")
    assert "c.mat: this is an HDF5 file; save it with scipy.io.savemat" in result.stderr
