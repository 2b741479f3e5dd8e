"""``ruleout evaluate``: how good a model is, with true labels or without."""

from __future__ import annotations

import importlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cli.fitted import NAMES, QUICK, SETS, X, Y, run, trained

import ruleout as ro
from ruleout.estimator import consistency, load, unbiased_accuracy
from ruleout.estimator.scorers import LabelScores, SetScores

LABELS = np.array(NAMES)[Y]


def test_true_labels_give_accuracy_classes_and_calibration() -> None:
    model, data = trained()
    result = run("evaluate", model, data, "--label", "is", "--json")
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)["labels"]
    clf = load(model)
    hits = clf.predict(X) == LABELS
    assert found["rows"] == 200
    assert found["accuracy"]["estimate"] == pytest.approx(hits.mean())
    assert found["accuracy"]["standard_error"] == pytest.approx(hits.std(ddof=1) / 200**0.5)
    assert [one["class"] for one in found["classes"]] == NAMES
    for one in found["classes"]:
        own, said = one["class"] == LABELS, clf.predict(X) == one["class"]
        assert one["rows"] == own.sum()
        assert one["recall"] == pytest.approx(hits[own].mean())
        assert one["precision"] == (pytest.approx(hits[said].mean()) if said.any() else None)


def test_sets_give_an_accuracy_and_consistency_with_their_intervals() -> None:
    model, data = trained()
    result = run("evaluate", model, data, "--excluded", "not", "--json")
    found = json.loads(result.stdout)["sets"]
    clf = load(model)
    wanted: Any = ro.evidence(SETS).judge(clf.predict_proba(X).argmax(1))
    ends = [found["accuracy"][name] for name in ("estimate", "low", "high")]
    np.testing.assert_allclose(ends, wanted)
    ruled_out = SETS.excluded[np.arange(len(SETS)), clf.predict_proba(X).argmax(1)]
    values = 1 - ruled_out * (len(NAMES) - 1) / SETS.sizes
    assert len({*SETS.sizes.tolist()}) > 1
    error = values.std(ddof=1) / len(SETS) ** 0.5
    assert found["accuracy"]["standard_error"] == pytest.approx(error)
    assert ends[0] == pytest.approx(unbiased_accuracy(clf, X, SETS)) == pytest.approx(values.mean())
    assert found["consistency"]["estimate"] == pytest.approx(consistency(clf, X, SETS))
    assert found["consistency"]["low"] < found["consistency"]["estimate"]


def width(found: Any) -> float:
    return float(found["accuracy"]["high"] - found["accuracy"]["low"])


@pytest.mark.parametrize(
    ("by", "columns"),
    [
        ("sets", ("--excluded", "not")),
        ("sets", ("--excluded", "not", "--known", "is")),
        ("labels", ("--label", "is")),
    ],
)
def test_intervals_count_equal_rows_and_groups_once(
    by: str, columns: tuple[str, ...], tmp_path: Path
) -> None:
    """Every row twice, by features or by name: intervals are as wide as those of single rows."""
    model, data = trained()
    header, *lines = data.read_text().splitlines()
    often, named = tmp_path / "often.csv", tmp_path / "named.csv"
    often.write_text("\n".join([header, *lines * 2]))
    rows = [f"{line},g{place}" for place, line in enumerate(lines)]
    named.write_text("\n".join([f"{header},group", *rows * 2]))
    told = ["--json", *columns]
    one, two = (run("evaluate", model, file, *told) for file in (data, often))
    by_name = run("evaluate", model, named, *told, "--group", "group")
    wide = [width(json.loads(one.stdout)[by]) for one in (one, two, by_name)]
    np.testing.assert_allclose(wide, wide[0], rtol=0.05)
    assert "400 rows are 200 groups" in two.stderr
    assert "groups" not in one.stderr


def test_equal_rows_are_said_to_narrow_the_intervals_of_what_is_read_in_parts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, data = trained()
    other = tmp_path / "data.csv"
    header, *lines = data.read_text().splitlines()
    other.write_text("\n".join([header, *lines, *lines[:50]]))
    monkeypatch.setattr("ruleout.datasets.tables._ROWS", 16)
    monkeypatch.setattr("ruleout.labels.sets._CELLS", 1)
    found = run("evaluate", model, other, "--excluded", "not")
    wanted = (
        "Note: 50 rows have the same features as an earlier row. These count each as a row: where "
        "they speak of one thing, the intervals are too narrow."
    )
    assert wanted in found.stderr


def test_rows_that_trained_the_model_are_named_as_such(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In any order, by sets or by labels, also where they are read in parts."""
    model, data = trained()
    header, *lines = data.read_text().splitlines()
    (tmp_path / "turned.csv").write_text("\n".join([header, *lines[::-1]]))
    for words in ((data, "--excluded", "not"), (tmp_path / "turned.csv", "--label", "is")):
        assert "these rows also trained the model" in run("evaluate", model, *words).stderr
    (tmp_path / "fewer.csv").write_text("\n".join([header, *lines[1:]]))
    other = run("evaluate", model, tmp_path / "fewer.csv", "--excluded", "not", "--ignore", "is")
    assert "also trained" not in other.stderr
    monkeypatch.setattr("ruleout.datasets.tables._ROWS", 16)
    monkeypatch.setattr("ruleout.labels.sets._CELLS", 1)
    assert "these rows also trained the model" in run("evaluate", model, *words).stderr


def test_rows_that_trained_are_known_beside_rows_that_say_nothing(tmp_path: Path) -> None:
    header, *lines = trained()[1].read_text().splitlines()
    place = header.split(",").index("not")
    cells = [line.split(",") for line in lines]
    for row in cells[::3]:
        row[place] = ""
    (tmp_path / "t.csv").write_text("\n".join([header, *(",".join(row) for row in cells)]))
    told = [tmp_path / "t.csv", "--excluded", "not", "--unlabelled", "--ignore", "is"]
    run("fit", *told, *QUICK[:-2], "--out", tmp_path / "m")
    assert "also trained the model" in run("evaluate", tmp_path / "m", *told).stderr


def test_candidates_say_the_same_as_what_was_ruled_out(tmp_path: Path) -> None:
    model, data = trained()
    header, *lines = data.read_text().splitlines()
    left = ["|".join(map(str, row)) for row in SETS.to_candidates()]
    rows = [f"{line},{may}" for line, may in zip(lines, left, strict=True)]
    other = tmp_path / "data.csv"
    other.write_text("\n".join([f"{header},may", *rows, f"{rows[0]}|eleven", "1,2,3"]))
    by_candidates = ["--candidates", "may", "--ignore", "not,is", "--skip-bad-rows", "--json"]
    found = run("evaluate", model, other, *by_candidates)
    assert found.exit_code == 0, found.output
    wanted = run("evaluate", model, data, "--excluded", "not", "--json")
    assert json.loads(found.stdout) == json.loads(wanted.stdout)
    assert "1 row(s) left out: unknown class 'eleven' in column 'may'" in found.stderr
    assert "1 row(s) left out: they are not whole" in found.stderr
    assert run("evaluate", model, other, *by_candidates, "--excluded", "not").exit_code == 1


def test_both_are_printed() -> None:
    model, data = trained()
    result = run("evaluate", model, data, "--label", "is", "--excluded", "not")
    assert result.exit_code == 0, result.output
    assert result.stdout.startswith("By the true labels of 200 rows:\n  accuracy           0.")
    assert "By what was ruled out in 200 rows:\n  accuracy           0." in result.stdout
    assert "(ECE, 15 bins)" in result.stdout
    for name in NAMES:
        assert name in result.stdout


def test_one_of_the_two_is_needed() -> None:
    result = run("evaluate", *trained())
    assert result.exit_code == 2
    assert "--label, --excluded or --candidates" in result.stderr


def test_unknown_labels_are_named() -> None:
    model, data = trained()
    other = data.with_name("other.csv")
    other.write_text(data.read_text().replace(",zero\n", ",zeroo\n"))
    result = run("evaluate", model, other, "--label", "is")
    assert result.exit_code == 1
    assert result.stderr.startswith(f"ruleout: {other}, line 2, column 'is': unknown class 'zeroo'")


# ---------------------------------------------------------------------- the figures themselves


def test_calibration_is_that_of_a_loop() -> None:
    random = np.random.default_rng(0)
    confidence, hits = 0.5 + random.random(500) / 2, random.random(500) < 0.5
    wanted = 0.0
    for place in range(15):
        inside = (confidence >= place / 15) & (confidence < (place + 1) / 15)
        if inside.any():
            wanted += inside.mean() * abs(hits[inside].mean() - confidence[inside].mean())
    found = LabelScores().add(np.stack([confidence, 1 - confidence], 1), np.where(hits, 0, 1))
    assert found.result()["calibration_error"] == pytest.approx(wanted)


def test_one_row_has_no_standard_error() -> None:
    sure = np.eye(3)[[0]]
    by_label = LabelScores().add(sure, np.array([0])).result()["accuracy"]
    assert by_label == (1, np.inf, pytest.approx(1 / (1 + 1.959964**2)), 1)  # Wilson's
    by_sets = SetScores().add(sure, ro.LabelSets([[0, 1, 0]])).result()["accuracy"]
    doubted = SetScores().add(sure, ro.evidence(ro.LabelSets([[0, 1, 0]]), 0.1)).result()
    assert doubted["accuracy"].estimate <= doubted["accuracy"].high  # a share of 1.2 is none
    assert by_sets[:2] == (1, np.inf)
    assert by_sets.low < by_label.low  # which says less


@pytest.mark.parametrize("known", ["gold", "truth"])
def test_the_standard_error_holds_where_rates_or_labels_are_uncertain(known: str) -> None:
    """Over a hundred draws: what 30 gold questions tell of the rate, or 100 labels of the rest."""
    found, k, n = [], 5, 1000
    for seed in range(100):
        random = np.random.default_rng(seed)
        y = random.integers(k, size=n)
        predicted = np.where(random.random(n) < 0.7, y, random.integers(k, size=n))
        told: dict[str, Any] = {"error": (random.binomial(30, 0.1), 30)}
        if known == "truth":
            told = {"truth": np.where(np.arange(n) < 100, y, -1)}
        sets = ro.draw(y, k, seed=seed, noise=0.1 if known == "gold" else 0.0)
        share = SetScores().add(np.eye(k)[predicted], ro.evidence(sets, **told)).result()
        found.append(share["accuracy"][:2])
    estimates, errors = np.array(found).T
    assert errors.mean() == pytest.approx(estimates.std(), rel=0.25)


def test_precision_and_recall_are_those_of_scikit_learn() -> None:
    from sklearn.metrics import precision_recall_fscore_support

    random = np.random.default_rng(1)
    probabilities, codes = random.dirichlet(np.ones(4), 100), random.integers(4, size=100)
    found = LabelScores().add(probabilities, codes).result()["classes"]
    wanted = precision_recall_fscore_support(codes, probabilities.argmax(1))
    for name, values in zip(("precision", "recall", "f1", "rows"), wanted, strict=True):
        np.testing.assert_allclose(found[name], values)


# ---------------------------------------------------------------------- what an estimate assumes


def test_the_assumption_stands_beside_the_estimate() -> None:
    model, data = trained()
    result = run("evaluate", model, data, "--excluded", "not")
    assert "unbiased" not in result.stdout
    assert "An accuracy estimated from sets assumes that they are drawn at random" in result.stdout
    assert "that none is wrong, which only true labels can show: each 1 % of wro" in result.stdout


@pytest.mark.parametrize("listing", ["is", "may"])
def test_no_accuracy_is_printed_where_a_test_rejects_what_it_assumes(
    listing: str, tmp_path: Path
) -> None:
    """Columns of what rows are, or may be, given as what they are not."""
    model, data = trained()
    header, *lines = data.read_text().splitlines()
    left = ["|".join(map(str, row)) for row in SETS.to_candidates()]
    other = tmp_path / "data.csv"
    rows = [f"{line},{may}" for line, may in zip(lines, left, strict=True)]
    other.write_text("\n".join([f"{header},may", *rows]))
    columns = ["--excluded", listing, "--ignore", ",".join({"is", "not", "may"} - {listing})]
    result = run("evaluate", model, other, *columns)
    assert result.exit_code == 0, result.output
    assert "accuracy  " not in result.stdout
    assert "  No accuracy is estimated: sets drawn at random do not look like this" in result.stdout
    assert result.stdout.endswith("evaluate --label, or --known of some rows.\n")
    found = json.loads(run("evaluate", model, other, *columns, "--json").stdout)["sets"]
    assert found["accuracy"] is None
    assert "predictions" in found["why"]


def test_what_failed_in_training_is_remembered_of_fewer_rows(tmp_path: Path) -> None:
    """Candidates given as what was ruled out fail in all rows, and stay unnoticed in twelve."""
    _, data = trained()
    header, *lines = data.read_text().splitlines()
    left = ["|".join(map(str, row)) for row in SETS.to_candidates()]
    rows = [f"{line},{may}" for line, may in zip(lines, left, strict=True)]
    (tmp_path / "data.csv").write_text("\n".join([f"{header},may", *rows]))
    (tmp_path / "few.csv").write_text("\n".join([f"{header},may", *rows[:12]]))
    told = ["--excluded", "may", "--ignore", "is,not"]
    made = run("fit", tmp_path / "data.csv", *told, *QUICK, "--out", tmp_path / "m")
    assert made.exit_code == 0, made.output
    found = run("evaluate", tmp_path / "m", tmp_path / "few.csv", *told)
    assert "The sets that trained the model failed tests (meaning" in found.stdout
    whole = run("evaluate", tmp_path / "m", tmp_path / "data.csv", *told)
    assert "No accuracy is estimated" in whole.stdout
    assert "trained the model failed" not in whole.stdout  # there is no number it could be off


def test_the_first_rows_are_tested_whatever_is_read_at_a_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    model, data = trained()
    command = importlib.import_module("ruleout.cli.evaluate")
    monkeypatch.setattr(command, "_TESTED", 90)
    words = ("evaluate", model, data, "--excluded", "not", "--label", "is")
    whole = run(*words).stdout
    monkeypatch.setattr("ruleout.datasets.tables._ROWS", 16)
    monkeypatch.setattr("ruleout.labels.sets._CELLS", 1)
    assert run(*words).stdout == whole
    monkeypatch.setattr(command, "_TESTED", 200)
    assert run(*words).stdout != whole
