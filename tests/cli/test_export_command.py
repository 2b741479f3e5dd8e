"""``ruleout export``: a model folder in, a file for other programs out."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from cli.fitted import run, trained
from numpy.testing import assert_allclose

from ruleout.datasets import read_table
from ruleout.estimator import RuleOutClassifier, load


@pytest.fixture
def books(tmp_path: Path) -> Path:
    """A table of text and numbers, and a model of it beside it."""
    file = tmp_path / "books.csv"
    file.write_text("title,pages,not\nred cats,3,dog\nblue dogs,4,cat\n")
    told = ("--excluded", "not", "--text", "title", "--grid", "none", "--epochs", "1")
    assert run("fit", file, "--out", tmp_path / "model", *told).exit_code == 0
    return file


def test_a_model_that_reads_text_takes_numbers(
    books: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(RuleOutClassifier, "export", lambda _, path: path.write_bytes(b"onnx"))
    out = books.with_name("model.onnx")
    result = run("export", books.with_name("model"), "--onnx", out)
    assert result.exit_code == 0, result.output
    assert "x holds numbers, not text: the words of title are in card.json." in result.stderr
    assert result.stdout == f"Rows of 5 numbers, 2 classes.\nWritten: {out}\n"
    assert out.read_bytes() == b"onnx"


@pytest.mark.slow
def test_the_file_answers_as_the_model_does(books: Path) -> None:
    onnxruntime = pytest.importorskip("onnxruntime")
    model, out = books.with_name("model"), books.with_name("model.onnx")
    assert run("export", model, "--onnx", out).exit_code == 0
    session = onnxruntime.InferenceSession(out)
    assert json.loads(session.get_modelmeta().custom_metadata_map["classes"]) == ["cat", "dog"]
    rows = read_table(books, reading=load(model).reading_).x
    (found,) = session.run(None, {"x": rows})
    assert_allclose(found, load(model).predict_proba(rows), atol=1e-5)


def test_what_cannot_be_exported_is_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run("export", trained()[0]).exit_code == 2
    result = run("export", tmp_path / "none", "--onnx", tmp_path / "model.onnx")
    assert (result.exit_code, result.stderr.count("\n")) == (1, 1)
    assert "there is no such folder" in result.stderr
    table = tmp_path / "rows.csv"
    table.write_text("a,b\n1,2\n")
    result = run("export", trained()[0], "--onnx", table)
    assert "the name of an ONNX file ends in .onnx" in result.stderr
    assert table.read_text() == "a,b\n1,2\n"
    monkeypatch.setitem(sys.modules, "onnx", None)
    result = run("export", trained()[0], "--onnx", tmp_path / "model.onnx")
    assert "export needs onnx and onnxscript; pip install 'ruleout[export]'" in result.stderr
    assert not (tmp_path / "model.onnx").exists()
