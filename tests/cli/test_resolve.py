"""``ruleout resolve``: the best class of what is left."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from cli.fitted import SETS, X, run, trained

from ruleout.estimator import load


def test_what_is_left_is_resolved(tmp_path: Path) -> None:
    model, data = trained()
    out = tmp_path / "out.jsonl"
    result = run("resolve", model, data, "--excluded", "not", "--out", out)
    assert result.exit_code == 0, result.output
    found = load(model).resolve(X, SETS)
    rows = [json.loads(line) for line in out.read_text().splitlines()]
    assert [row["resolved"] for row in rows] == found.labels.tolist()
    assert [row["probability"] for row in rows] == pytest.approx(found.probability)
    assert [row["before"] for row in rows] == pytest.approx(found.before)
    assert [row["candidates"] for row in rows] == (10 - SETS.sizes).tolist()
    sure = int((found.probability >= 0.95).sum())
    assert result.stdout.startswith(
        f"Written: {out} (200 rows)\n{sure} of 200 rows at 0.95 or above; "
    )


def test_the_first_rows_are_printed_without_a_file() -> None:
    model, data = trained()
    result = run("resolve", model, data, "--excluded", "not")
    assert result.exit_code == 0, result.output
    assert "resolved" in result.stdout


def test_rows_that_stay_can_be_told_from_those_left_out(tmp_path: Path) -> None:
    model, data = trained()
    header, first, second, *_ = data.read_text().splitlines()
    lines = [f"{header},id", f"{first},a", f"{second.partition(',')[0]},b", f"{second},c"]
    (tmp_path / "a.csv").write_text("\n".join(lines))
    told: list[object] = ["resolve", model, tmp_path / "a.csv", "--excluded", "not"]
    told += ["--skip-bad-rows", "--out", tmp_path / "out.jsonl"]
    assert "missing here, too: --item names" in run(*told).stderr
    named = run(*told, "--item", "id")
    assert "missing here" not in named.stderr
    rows = (tmp_path / "out.jsonl").read_text().splitlines()
    assert [json.loads(row)["item"] for row in rows] == ["a", "c"]


def test_excluded_is_needed() -> None:
    result = run("resolve", *trained())
    assert result.exit_code == 2
    assert "--excluded" in result.stderr


def test_a_missing_column_is_named() -> None:
    model, data = trained()
    result = run("resolve", model, data, "--excluded", "nott")
    assert (result.exit_code, result.stderr) == (
        1,
        f"ruleout: {data}: there is no column 'nott'; did you mean 'not'?\n",
    )
