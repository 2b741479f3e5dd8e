"""Fitting on answers: every "yes" and every "no" teaches."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from estimator.small import NAMES, X, Y, classifier
from scipy.sparse import csr_matrix

import ruleout as ro
from ruleout.estimator import classifier as room
from ruleout.labels.origins import may_err
from ruleout.theory import answer_outcomes
from ruleout.training import Trial, fit_grid
from ruleout.training.class_weights import class_shares


def answered(rows: Any, rounds: int = 2, seed: int = 0, classes: Any = 10) -> ro.Answers:
    """Ask about some rows of X, each several times."""
    items = np.repeat(np.asarray(rows), rounds)
    asked = ro.propose(len(items), classes, seed=seed)
    return ro.answer(asked, Y if isinstance(classes, int) else NAMES[Y], items)


ROWS = np.flatnonzero(np.arange(300) % 3)
REST = np.setdiff1d(np.arange(300), ROWS)
ANSWERS = answered(ROWS)


def test_where_so_much_is_wrong_that_no_accuracy_follows_the_likelihood_chooses() -> None:
    x, y = np.random.default_rng(0).normal(size=(60, 3)), np.arange(60) % 3
    said = ro.evidence(ro.draw(y, 3, 1), (6, 10))
    clf = ro.RuleOutClassifier(approach="likelihood", grid="small", epochs=3, random_state=0)
    judged = clf.fit(x, said).criterion_
    assert (judged.name, judged.low) == ("likelihood", None)


def test_it_is_the_engine_with_rates_on_the_rows_asked_about() -> None:
    clf = classifier(precision="float64").fit(X, ANSWERS)
    rows, sets, rates = ANSWERS.per_item()
    grid = [{"learning_rate": 0.1, "weight_decay": 1e-5}]
    fit = fit_grid(
        X[rows], [Trial(sets, rate=rates)], grid=grid, epochs=5, precision="float64", seed=0
    )
    for name, value in clf.module_.state_dict().items():
        assert torch.equal(value, fit.weights[name][0, 0])


def test_rows_without_answers_and_without_weight_are_left_out() -> None:
    other = X.copy()
    other[REST] = 77.0  # nobody was asked about these
    same = classifier().fit(X, ANSWERS).decision_function(X)
    assert np.array_equal(classifier().fit(other, ANSWERS).decision_function(X), same)
    weight = np.ones(300)
    weight[:100] = 0
    late = ANSWERS.items >= 100
    fewer = ro.Answers(ANSWERS.asked[late], ANSWERS.yes[late], ANSWERS.items[late])
    found = classifier().fit(X, ANSWERS, sample_weight=weight).decision_function(X)
    wanted = classifier().fit(X, fewer, sample_weight=weight).decision_function(X)
    assert np.allclose(found, wanted)


def test_yes_answers_teach_too() -> None:
    clf = classifier(epochs=40).fit(X, ANSWERS)
    yes = ANSWERS.yes
    only = ro.Answers(ANSWERS.asked[yes], ANSWERS.yes[yes], ANSWERS.items[yes])
    assert clf.score(X[REST], Y[REST]) > 0.75
    assert classifier(epochs=40).fit(X, only).score(X[REST], Y[REST]) > 0.6


@pytest.mark.parametrize(
    "options",
    [
        {"grid": {"learning_rate": [0.1, 1e-5]}},
        {"early_stopping": True, "patience": 2, "epochs": 30},
        {"grid": {"learning_rate": [0.1, 1e-5]}, "criterion": ro.criterion("risk", loss="mae")},
        {"grid": {"learning_rate": [0.1, 1e-5]}, "criterion": "consistency"},
        {"class_weight": "balanced"},
        {"class_weight": {3: 2.0}},
        {"approach": "cce", "learning_rate": 0.03},
        {"model": "mlp", "hidden": 20},
    ],
)
def test_every_setting_works(options: dict[str, Any]) -> None:
    clf = classifier(**{"epochs": 20, **options}).fit(X, ANSWERS)
    assert clf.score(X, Y) > 0.6
    if "grid" in options:
        assert clf.configuration_["learning_rate"] == 0.1


def test_the_score_is_the_unbiased_accuracy() -> None:
    clf = classifier().fit(X, ANSWERS)
    rows, sets, rates = ANSWERS.per_item()
    out = sets.excluded[np.arange(len(rows)), clf.predict(X[rows])]
    values = 1 - out / (1 - rates)
    assert clf.score(X, ANSWERS) == pytest.approx(values.mean())
    weight = np.linspace(0, 2, 300)
    wanted = np.average(values, weights=weight[rows])
    assert clf.score(X, ANSWERS, sample_weight=weight) == pytest.approx(wanted)
    many = [clf.score(X, answered(np.arange(300), 1, seed)) for seed in range(200)]
    error = np.std(many) / np.sqrt(len(many))
    assert np.mean(many) == pytest.approx(clf.score(X, Y), abs=4 * error)


def test_the_score_of_evidence_is_what_is_judged() -> None:
    """Half of the rows come from somebody who is mostly wrong: they count little in both."""
    clf, rates = classifier().fit(X, ANSWERS), np.where(np.arange(300) % 2, 0.6, 0.0)
    said = ro.evidence(ro.draw(Y, 10, seed=0, noise=rates), rates)
    judged = said.judge(clf.predict(X))
    assert judged is not None
    assert clf.score(X, said) == pytest.approx(judged.estimate)
    alike = said.credit.of(clf.predict(X)).value.mean()
    assert abs(alike - judged.estimate) > 0.01
    sure = ro.draw(Y, 10, seed=0)
    assert clf.score(X, ro.evidence(sure)) == pytest.approx(clf.score(X, sure))


def test_class_shares_from_answers_are_unbiased() -> None:
    posterior = np.array([0.5, 0.3, 0.15, 0.05])
    found = answer_outcomes(posterior, "released", 2)
    sets = ro.LabelSets(found.excluded, unlabelled=True)
    n = len(found.rates)
    shares = class_shares(sets, found.probabilities * n, found.rates)
    assert shares == pytest.approx(posterior, abs=1e-10)


def test_resolve_uses_the_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    """With classes as frequent as the model sees them."""
    monkeypatch.setattr(room, "_EVEN", (0.0,))
    clf = classifier().fit(X, ANSWERS)
    found = clf.resolve(X, ANSWERS, cross=False)
    rows, sets, _ = ANSWERS.per_item()
    asked = clf.resolve(X[rows], sets, cross=False)
    assert np.array_equal(found.labels[rows], asked.labels)
    assert np.array_equal(found.labels[REST], clf.predict(X[REST]))


def test_a_likelihood_of_nothing_but_certainty_is_sets(monkeypatch: pytest.MonkeyPatch) -> None:
    """With classes as frequent as the model sees them."""
    monkeypatch.setattr(room, "_EVEN", (0.0,))
    clf = classifier().fit(X, ANSWERS)
    rows, sets, _ = ANSWERS.per_item()
    sure = np.where(sets.excluded, -np.inf, 0.0)
    found = clf.resolve(X[rows], likelihood=sure)
    assert np.array_equal(found.labels, clf.resolve(X[rows], sets, cross=False).labels)
    nothing = clf.resolve(X, likelihood=np.full((300, 10), -3.0))
    assert np.array_equal(nothing.labels, clf.predict(X))
    assert np.allclose(nothing.probability, nothing.before)


def test_answers_that_may_be_wrong_can_be_overruled() -> None:
    """One answer in ten is wrong: those who trust them all name fewer classes rightly."""
    wrong = np.random.default_rng(0).random(len(ANSWERS)) < 0.1
    asked, yes = ANSWERS.asked, ANSWERS.yes ^ wrong
    out: Any = np.where(yes[:, None], ~asked.excluded, asked.excluded).reshape(-1, 2, 10)
    likely = np.sum(np.where(out, np.log(0.1), np.log(0.9)), 1)
    clf = classifier(epochs=20).fit(X, Y)
    found = clf.resolve(X[ROWS], likelihood=likely)
    hard = np.where(out.any(1) & ~out.any(1).all(1, keepdims=True), -np.inf, 0.0)
    trusting = clf.resolve(X[ROWS], likelihood=hard)
    assert np.mean(found.labels == Y[ROWS]) > 0.05 + np.mean(trusting.labels == Y[ROWS])


def test_resolve_takes_one_kind_of_evidence() -> None:
    clf = classifier().fit(X, ANSWERS)
    with pytest.raises(ValueError, match="give one of the two"):
        clf.resolve(X)
    with pytest.raises(ValueError, match=r"likelihood has shape \(3, 10\)"):
        clf.resolve(X, likelihood=np.zeros((3, 10)))


def test_names_sparse_rows_and_partial_fits() -> None:
    answers = answered(np.arange(300), classes=NAMES.tolist())
    clf = classifier(epochs=20).fit(csr_matrix(X), answers)
    assert clf.classes_.tolist() == NAMES.tolist()
    assert clf.score(X, NAMES[Y]) > 0.75
    part = classifier(learning_rate=0.03)
    for _ in range(60):
        part.partial_fit(X, answers)
    assert part.score(X, NAMES[Y]) > 0.75


def test_the_card_says_so(tmp_path: Path) -> None:
    classifier().fit(X, ANSWERS).save(tmp_path / "model")
    card = json.loads((tmp_path / "model" / "card.json").read_text())
    assert card["record"]["learned_from"] == "every answer"
    again = ro.load(tmp_path / "model")
    assert again.record_["learned_from"] == "every answer"


@pytest.mark.parametrize(
    ("answers", "options", "sentence"),
    [
        (answered([0, 299]), {"rows": 200}, "an answer is about row 299, but X has 200 rows"),
        (
            ro.Answers(ANSWERS.asked, ANSWERS.yes, ANSWERS.items - 4),
            {},
            "an answer is about row -3, but X has 300 rows",
        ),
        (answered([]), {}, "y rules nothing out"),
        (ANSWERS, {"approach": "ga-after"}, "'ga-after' cannot learn from every answer; use log,"),
        (ANSWERS, {"approach": "clpl"}, "'clpl' cannot learn from every answer"),
        (ANSWERS, {"weight": "unasked"}, "every row with an answer weighs zero"),
        (
            ro.Answers(
                ro.LabelSets([[1, 0, 0], [0, 1, 1]]), np.array([False, False]), np.array([4, 4])
            ),
            {},
            "the answers about item 4 rule out every class; ask about it again",
        ),
    ],
)
def test_what_cannot_be_learned_from_is_said(
    answers: ro.Answers, options: dict[str, Any], sentence: str
) -> None:
    rows, weight = options.pop("rows", 300), options.pop("weight", None)
    if weight is not None:
        weight = (np.arange(300) % 3 == 0).astype(float)
    with pytest.raises(ValueError, match=sentence):
        classifier(**options).fit(X[:rows], answers, sample_weight=weight)


@pytest.mark.parametrize(("size", "k", "error"), [(1, 2, (15, 30)), (3, 10, 0.3)])
def test_answers_that_are_guesses_are_named_so(size: int, k: int, error: Any) -> None:
    """A set of s of k classes that is wrong in s / k of all cases says nothing."""
    guesses = ro.evidence(ro.draw(np.zeros(40, int), k, size, 0), error)
    assert may_err(guesses)
    with pytest.raises(ValueError, match="every answer is a guess"):
        ro.RuleOutClassifier(approach="likelihood").fit(np.arange(40.0)[:, None], guesses)
