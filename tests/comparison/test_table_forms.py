"""A comparison at a prompt, in a notebook, in Markdown, CSV, JSON and pandas."""

from __future__ import annotations

import csv
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from comparison.made import lost, row, table

from ruleout.comparison import Comparison


@pytest.fixture
def made() -> Comparison:
    mixed: tuple[dict[str, Any], ...] = (
        {"learning_rate": 0.01, "weight_decay": 1e-5},
        {"learning_rate": 0.1, "weight_decay": 1e-5},
    )
    other = table(row("cce", 0.97))
    whole = table(
        lost("gce"), row("cce", 0.85, mark="•", p_value=0.0004, p_holm=0.012, diverged=2),
        row("log", 0.93), row("exp", 0.91, configurations=mixed, p_value=0.2, p_holm=0.2),
    )  # fmt: skip
    return whole.with_baseline(other, label="cross entropy", family="true labels")


def test_the_prompt_shows_a_table(made: Comparison) -> None:
    lines = repr(made).splitlines()
    assert lines[0] == "Comparison of 4 approaches: linear, 4 configurations, 3 trials"
    assert "test accuracy, %" in lines[2]
    first = [line.split()[0] for line in lines[3:8]]
    assert first == ["log", "exp", "•", "gce", "cross"]
    assert "85.00 ± 1.00" in lines[5]
    assert "<0.001" in lines[5]
    assert "diverged" in lines[6]
    assert all(len(line) < 150 for line in lines)


def test_notes_say_what_the_numbers_are(made: Comparison) -> None:
    text = repr(made)
    assert "true labels of 360 test rows; mean ± standard deviation of 3 trials" in text
    assert "• log is better than this row, ○ worse: paired t-test over the trials" in text
    assert "Diverged in part: cce (2 of 12 models diverged)." in text
    assert "+: trials chose differently" in text


def test_estimates_are_not_passed_off_as_truth() -> None:
    text = repr(table(row("log", 0.9), kind="kept", over="rows"))
    assert "estimated accuracy, %" in text
    assert "360 rows kept back, which neither trained nor chose" in text
    assert "standard error over the rows" in text
    assert "It assumes that sets are drawn at random and that none is wrong." in text
    assert "The best of several scores is partly luck." in text


def test_a_baseline_is_last_and_never_best(made: Comparison) -> None:
    assert made.best.approach == made.chosen.approach == "log"
    assert made.ranked[-1].label == "cross entropy"
    assert made["cross entropy"].baseline


def test_chosen_and_best_may_differ() -> None:
    found = table(row("log", 0.93, estimate=0.90), row("exp", 0.92, estimate=0.95))
    assert (found.best.approach, found.chosen.approach) == ("log", "exp")


def test_rows_are_found_by_name(made: Comparison) -> None:
    assert made["exp"].score == 0.91
    with pytest.raises(KeyError, match="did you mean 'exp'"):
        made["expp"]


def test_markdown_is_a_table(made: Comparison) -> None:
    lines = made.to_markdown().splitlines()
    assert lines[0].startswith("| mark | approach |")
    assert lines[1].startswith("| :--- | :--- |")
    assert {line.count("|") for line in lines[:7]} == {lines[0].count("|")}


def test_csv_holds_every_number(made: Comparison, tmp_path: Path) -> None:
    made.to_csv(tmp_path / "table.csv")
    with open(tmp_path / "table.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [one["approach"] for one in rows] == ["log", "exp", "cce", "gce", "cross entropy"]
    assert float(rows[0]["score"]) == made["log"].score
    assert float(rows[1]["trial_3"]) == made["exp"].trials[2]
    assert rows[3]["score"] == rows[3]["learning_rate"] == ""
    assert list(tmp_path.iterdir()) == [tmp_path / "table.csv"]


def test_frame_has_the_columns_of_the_csv(made: Comparison) -> None:
    frame = made.to_frame()
    assert frame.approach.tolist()[0] == "log"
    assert frame.score.isna().sum() == 1
    assert frame.set_index("approach").loc["cce", "p_value"] == 0.0004


def test_json_is_strict(made: Comparison) -> None:
    found = json.loads(made.to_json())
    assert found == json.loads(json.dumps(made.to_dict()))
    assert [one["score"] for one in found["rows"]] == [None, 0.85, 0.93, 0.91, 0.97]
    assert found["method"]["reference"] == "log"
    assert found["rows"][2]["curve"]["epochs"] == [1, 2]


def test_html_is_escaped() -> None:
    evil = replace(row("log", 0.9), approach="<b>log</b>", family="a & b")
    text = table(evil)._repr_html_()
    assert "&lt;b&gt;log&lt;/b&gt;" in text
    assert "<b>log" not in text
    assert "a &amp; b" in text


def test_numbers_that_are_no_shares_are_no_percents() -> None:
    text = repr(table(row("log", 1.25), kind="kept", measure="risk", criterion="risk"))
    assert "risk" in text
    assert "1.25 ± 0.01" in text
    assert "%" not in text.splitlines()[2]


def test_nan_never_shows(made: Comparison) -> None:
    for text in (repr(made), made.to_markdown(), made._repr_html_(), made.to_json()):
        assert "nan" not in text.lower()
    assert np.isnan(made["gce"].score)
