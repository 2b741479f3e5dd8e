# ruff: noqa: E501  # the sentences stand as users read them
"""``ruleout predict``: rows in, classes and probabilities out."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
from cli.fitted import NAMES, SETS, X, run, trained
from numpy.testing import assert_allclose

from ruleout.estimator import RuleOutClassifier, load


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".parquet", ".jsonl"])
def test_predictions_are_written_by_suffix(suffix: str, tmp_path: Path) -> None:
    model, data = trained()
    out = tmp_path / f"out{suffix}"
    result = run("predict", model, data, "--out", out)
    assert result.exit_code == 0, result.output
    assert result.stdout == f"Written: {out} (200 rows)\n"
    if suffix == ".parquet":
        rows = pq.read_table(out).to_pylist()
    elif suffix == ".jsonl":
        rows = [json.loads(line) for line in out.read_text().splitlines()]
    else:
        with out.open() as stream:
            rows = list(csv.DictReader(stream, delimiter="\t" if suffix == ".tsv" else ","))
    clf = load(model)
    assert [row["prediction"] for row in rows] == clf.predict(X).tolist()
    assert_allclose([float(row["probability"]) for row in rows], clf.predict_proba(X).max(1))
    assert set(rows[0]) == {"prediction", "probability"}


def test_every_class_has_a_column_on_request(tmp_path: Path) -> None:
    model, data = trained()
    run("predict", model, data, "--out", tmp_path / "out.parquet", "--probabilities")
    found = pq.read_table(tmp_path / "out.parquet").to_pandas()
    assert_allclose(found[[f"p({name})" for name in NAMES]], load(model).predict_proba(X))


def test_the_first_rows_are_printed_without_a_file() -> None:
    model, data = trained()
    result = run("predict", model, data)
    assert result.exit_code == 0
    assert "prediction" in result.stdout
    assert result.stdout.endswith("190 more rows: write them with --out FILE.\n")


def test_no_name_is_a_command_to_the_terminal(tmp_path: Path) -> None:
    red = "\x1b[31mred\x07"
    RuleOutClassifier(epochs=300, learning_rate=0.1).fit([[-1.0], [1.0]], [red, "blue"]).save(
        tmp_path / "model"
    )
    (tmp_path / "a.csv").write_text("x\n-1\n1\n")
    result = run("predict", tmp_path / "model", tmp_path / "a.csv")
    assert r"\x1b[31mred\x07" in result.stdout
    assert not {"\x1b", "\x07"} & {*result.stdout}


def test_columns_are_found_by_name_in_any_order(tmp_path: Path) -> None:
    model, data = trained()
    frame = pd.read_csv(data)
    frame[["is", *reversed(frame.columns[:64])]].to_csv(tmp_path / "turned.csv", index=False)
    run("predict", model, tmp_path / "turned.csv", "--out", tmp_path / "out.parquet")
    found = pq.read_table(tmp_path / "out.parquet")["prediction"].to_pylist()
    assert found == load(model).predict(X).tolist()


def test_a_model_saved_from_python_finds_its_columns(tmp_path: Path) -> None:
    _, data = trained()
    frame = pd.DataFrame(X[:, ::-1], columns=[f"p{i}" for i in reversed(range(64))])
    clf = RuleOutClassifier(epochs=2, random_state=0).fit(frame, SETS)
    clf.save(tmp_path / "model")
    result = run("predict", tmp_path / "model", data, "--out", tmp_path / "out.parquet")
    assert result.exit_code == 0, result.output
    found = pq.read_table(tmp_path / "out.parquet")["prediction"].to_pylist()
    assert found == clf.predict(frame).tolist()


def test_bad_input(tmp_path: Path) -> None:
    model, data = trained()
    (tmp_path / "short.csv").write_text("p0,p1\n1,2\n")
    (tmp_path / "model.pkl").write_bytes(b"\x80\x04.")
    table: list[tuple[list[object], str]] = [
        (
            [tmp_path / "none", data],
            f"{tmp_path}/none: there is no such folder; give the folder that save made",
        ),
        (
            [tmp_path / "model.pkl", data],
            f"{tmp_path}/model.pkl: pickles are refused, since they can run code; save the model anew",
        ),
        (
            [model, tmp_path / "none.csv"],
            f"{tmp_path}/none.csv: there is no such file; check the name",
        ),
        (
            [model, data, "--out", tmp_path / "out.xls"],
            f"{tmp_path}/out.xls: unknown file type '.xls'; use one of .csv, .tsv, .jsonl, .parquet",
        ),
        (
            [model, data, "--out", data],
            f"{data}: this file is to be read and written; give another name",
        ),
        ([model, data, "--device", "gpu"], "unknown device 'gpu'; say 'cpu' or 'cuda'"),
        (  # the shell, too, leaves a home that nobody has as it is
            [model, data, "--out", "~nobody-has-this/out.csv"],
            f"the folder {Path.cwd()}/~nobody-has-this does not exist; make it first",
        ),
        (
            [model, "~nobody-has-this/new.csv"],
            "~nobody-has-this/new.csv: there is no such file; the folder ~nobody-has-this does "
            "not exist either",
        ),
    ]
    for arguments, sentence in table:
        result = run("predict", *arguments)
        assert (result.exit_code, result.stderr) == (1, f"ruleout: {sentence}\n")
    result = run("predict", model, tmp_path / "short.csv")
    assert result.exit_code == 1
    assert "62 columns are missing: 'p2', 'p3'" in result.stderr
    assert np.all([one.name != "out.xls" for one in tmp_path.iterdir()])


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_answers_are_the_same_bytes_whatever_is_read_at_a_time(
    suffix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, data = trained()
    file = tmp_path / f"data{suffix}"
    frame = pd.read_csv(data)[:41]
    frame.to_parquet(file) if suffix == ".parquet" else frame.to_csv(file, index=False)
    monkeypatch.setattr("ruleout.datasets.tables._ROWS", 16)
    monkeypatch.setattr("ruleout.labels.sets._CELLS", 64)
    said: dict[str, set[Any]] = {}
    for text, rows in ((50, 1), (2000, 7), (1 << 24, 1 << 16)):
        monkeypatch.setattr("ruleout.labels.files._TEXT", text)
        monkeypatch.setattr("ruleout.labels.files._BATCH", rows)
        for out in ("out.csv", "out.parquet", "out.jsonl"):
            run("predict", model, file, "--probabilities", "--out", tmp_path / out)
            said.setdefault(out, set()).add((tmp_path / out).read_bytes())
        run(
            "resolve",
            model,
            file,
            "--excluded",
            "not",
            "--ignore",
            "is",
            "--out",
            tmp_path / "r.csv",
        )
        said.setdefault("resolve", set()).add((tmp_path / "r.csv").read_bytes())
        for options in (["--label", "is"], ["--excluded", "not"]):
            found = run("evaluate", model, file, *options, "--json")
            assert found.exit_code == 0, found.output
            said.setdefault(options[0], set()).add(found.stdout)
    assert {name: len(found) for name, found in said.items()} == dict.fromkeys(said, 1)
    rows = pq.ParquetFile(tmp_path / "out.parquet").metadata
    assert [rows.row_group(i).num_rows for i in range(rows.num_row_groups)] == [16, 16, 9]
    assert next(iter(said["out.csv"])).count(b"\n") == 42


def test_nothing_is_left_where_a_later_batch_is_bad(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, data = trained()
    *lines, last = data.read_text().splitlines()
    (tmp_path / "data.csv").write_text("\n".join([*lines, f"x{last}"]))
    monkeypatch.setattr("ruleout.datasets.tables._ROWS", 64)
    monkeypatch.setattr("ruleout.labels.sets._CELLS", 64)
    result = run("predict", model, tmp_path / "data.csv", "--out", tmp_path / "out.csv")
    assert result.exit_code == 1
    assert f"{tmp_path}/data.csv, line 201, column 'p0': 'x" in result.stderr
    assert [one.name for one in tmp_path.iterdir()] == ["data.csv"]
