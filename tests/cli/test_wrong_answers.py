"""Answers that may be wrong, in every command that learns from them or judges by them."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cli.fitted import QUICK, run, trained

import ruleout as ro
from ruleout.comparison.judging import look, plan
from ruleout.estimator import load
from ruleout.training import Trial, fit_grid

X, Y = (part[:600] for part in ro.datasets.load("digits").train)
SETS = ro.draw(Y, classes=10, seed=0, noise=0.2)


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("wrong") / "digits.csv"
    with path.open("w", newline="") as stream:
        lines = csv.writer(stream)
        lines.writerow([*(f"p{i}" for i in range(64)), "not", "is"])
        for row, out, label in zip(X, SETS.to_lists(), Y, strict=True):
            lines.writerow([*row, "|".join(map(str, out)), label])
    return path


ASK = ("--excluded", "not", "--ignore", "is", "--classes", "10", "--error-rate", "0.2")


def test_fit_learns_by_the_likelihood(table: Path, tmp_path: Path) -> None:
    result = run("fit", table, "--out", tmp_path / "m", *ASK, *QUICK)
    assert result.exit_code == 0, result.output
    found, known = load(tmp_path / "m"), ro.evidence(SETS, 0.2)
    assert found.approach == "likelihood"
    told: Any = {"learning_rate": 0.1, "epochs": 5, "random_state": 0}
    same = ro.RuleOutClassifier(approach="likelihood", **told).fit(X, known)
    np.testing.assert_allclose(found.predict_proba(X), same.predict_proba(X), atol=1e-5)


def test_an_approach_that_is_named_is_taken(table: Path, tmp_path: Path) -> None:
    result = run("fit", table, "--out", tmp_path / "m", *ASK, *QUICK, "--approach", "exp")
    assert result.exit_code == 0, result.output
    assert load(tmp_path / "m").approach == "exp"


def test_evaluate_and_resolve_expect_mistakes(table: Path, tmp_path: Path) -> None:
    model, said, out = trained()[0], ro.evidence(SETS, (6, 30)), tmp_path / "named.csv"
    names = ",".join(load(model).classes_.tolist())
    own, clf = tmp_path / "own.csv", load(model)
    head, *lines = table.read_text().splitlines()
    words = ["|".join(names.split(",")[c] for c in np.flatnonzero(row)) for row in SETS.excluded]
    cut = [",".join(line.split(",")[:64]) for line in lines]
    own.write_text("\n".join([head[:-3], *(f"{a},{b}" for a, b in zip(cut, words, strict=True))]))
    ask = ("--excluded", "not", "--error-rate", "6/30")
    result = run("evaluate", model, own, *ask, "--json")
    assert result.exit_code == 0, result.output
    judged = said.judge(clf.predict_proba(X).argmax(1))
    assert judged is not None
    found = json.loads(result.stdout)["sets"]["accuracy"]["estimate"]
    assert found == pytest.approx(judged.estimate)
    result = run("resolve", model, own, *ask, "--out", out)
    assert result.exit_code == 0, result.output
    resolved = [line.split(",")[0].strip('"') for line in out.read_text().splitlines()[1:]]
    held = SETS.excluded[np.arange(len(Y)), [names.split(",").index(one) for one in resolved]]
    assert held.any()  # a class that was ruled out by mistake can be named


def test_compare_adds_the_likelihood(table: Path, tmp_path: Path) -> None:
    told = ("--grid", "none", "--epochs", "1", "--trials", "1")
    result = run("compare", table, *ASK, *told, "--out", tmp_path)
    assert result.exit_code == 0, result.output
    assert "likelihood" in result.stdout


def test_rows_that_judge_expect_mistakes_too() -> None:
    """The score is the weighted mean of what predictions earn, as evidence says it."""
    items = np.repeat(np.arange(len(Y)), np.arange(len(Y)) % 3 + 1)
    said = ro.evidence(ro.draw(Y[items], 10, seed=1, noise=0.2), 0.2, items=items)
    judges: Any = {"trials": 1, "test": None, "score": ro.criterion("accuracy"), "seed": 0}
    judging = plan(X, Trial(said.sets, evidence=said), judge=0.3, **judges)
    fit = fit_grid(X, judging.trials, approach="likelihood", epochs=3, watch={"j": judging.watch()})
    (mean,), values = judging.per_row(fit)[:2]
    apart = judging.rows[0]
    predicted = judging.logits(fit, 0).argmax(-1).numpy()
    wanted = said[apart].judge(predicted)
    assert wanted is not None
    assert mean == pytest.approx(wanted.estimate) == pytest.approx(values.mean())
    assert fit.history["j/accuracy"][0, 0, -1] == pytest.approx(wanted.estimate, abs=1e-5)
    assert (
        look(X, judging, fit, "likelihood").bins.count.sum()
        == (np.asarray(judging.weights) > 0).sum()
    )


@pytest.mark.parametrize(
    ("rate", "code", "say"),
    [("often", 2, "0.05, or 3/30"), ("5/3", 1, "give (wrong, asked)"), ("1.5", 1, "from 0 to 1")],
)
def test_a_rate_that_is_none(table: Path, tmp_path: Path, rate: str, code: int, say: str) -> None:
    ask = (*ASK[:-1], rate, *QUICK)
    result = run("fit", table, "--out", tmp_path / "m", *ask)
    assert result.exit_code == code
    assert say in " ".join(result.stderr.replace("│", " ").split())


def test_a_rate_without_sets_has_nothing_to_speak_of(table: Path, tmp_path: Path) -> None:
    told = ("--label", "is", "--ignore", "not", "--error-rate", "0.1")
    result = run("fit", table, "--out", tmp_path / "m", *told)
    assert result.exit_code == 2
    assert "--error-rate" in result.stderr
