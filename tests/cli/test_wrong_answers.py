"""Answers that may be wrong, in every command that learns from them or judges by them."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cli.fitted import QUICK, run, trained
from wrong_answers import accuracies

import ruleout as ro
from ruleout.comparison.judging import look, plan
from ruleout.datasets import read_table
from ruleout.estimator import load
from ruleout.labels.errors import InputError
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
        look(X, judging, fit, "likelihood").bins[3].sum() == (np.asarray(judging.weights) > 0).sum()
    )


@pytest.mark.parametrize(
    ("rate", "code", "say"),
    [
        ("often", 2, "0.05, or 3/30"),
        ("5/3", 1, "give (wrong, asked)"),
        ("3/3", 1, "all 3 questions were answered wrongly; see whether the answers that are known"),
        ("1.5", 1, "rate is 1.5; give a rate from 0"),
    ],
)
def test_a_rate_that_is_none(table: Path, tmp_path: Path, rate: str, code: int, say: str) -> None:
    ask = (*ASK[:-1], rate, *QUICK)
    result = run("fit", table, "--out", tmp_path / "m", *ask)
    assert result.exit_code == code
    assert say in " ".join(result.stderr.replace("│", " ").split())


def test_where_nothing_follows_no_accuracy_is_assumed(tmp_path: Path) -> None:
    """Six of ten sets of five classes are wrong: worse than guesses."""
    data, sets = tmp_path / "t.csv", ro.draw(Y, 10, 5, 0)
    rows = zip(X[:, 20], X[:, 42], sets.to_lists(), strict=True)
    lines = [f"{a},{b},{'|'.join(map(str, out))}" for a, b, out in rows]
    data.write_text("\n".join(["a,b,not", *lines]))
    told = ("--excluded", "not", "--error-rate", "0.6")
    fitted = run("fit", data, *told, "--epochs", 3, "--out", tmp_path / "m")
    judged = run("evaluate", tmp_path / "m", data, *told)
    for one, say in (fitted, "No accuracy is estimated: so much "), (judged, "unknown: so much "):
        assert say in one.stdout, one.output
        assert "assumes" not in one.stdout


def test_a_rate_without_sets_has_nothing_to_speak_of(table: Path, tmp_path: Path) -> None:
    told = ("--label", "is", "--ignore", "not", "--error-rate", "0.1")
    result = run("fit", table, "--out", tmp_path / "m", *told)
    assert result.exit_code == 2
    assert "--error-rate" in result.stderr


# ---------------------------------------------------------------------- several people's answers

ITEMS = np.repeat(np.arange(300), 3)
WHO = np.random.default_rng(0).integers(0, 8, len(ITEMS))
SAID = ro.draw(Y[ITEMS], 10, 7, seed=2, noise=np.linspace(0.02, 0.3, 8)[WHO])
ANSWERS = ("--excluded", "not", "--annotator", "who", "--classes", "10")


def write(path: Path, *, features: bool = True, key: str = "image") -> Path:
    with path.open("w", newline="") as stream:
        lines = csv.writer(stream)
        head = [f"p{i}" for i in range(64)] if features else []
        lines.writerow([*head, key, "who", "not", "is"])
        for item, who, out in zip(ITEMS, WHO, SAID.to_lists(), strict=True):
            own = X[item] if features else []
            lines.writerow([*own, f"no {item}", f"a{who}", "|".join(map(str, out)), Y[item]])
    return path


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write(tmp_path_factory.mktemp("people") / "answers.csv")


def test_all_answers_about_an_item_are_one_row(answers: Path) -> None:
    """By a column, or by equal features; whoever is wrong often counts less."""
    told: Any = {"excluded": "not", "annotator": "who", "label": "is", "classes": 10}
    named = read_table(answers, **told, item="image").heard()
    alike = read_table(answers, **told, ignore=["image"]).heard()
    wanted = ro.evidence(SAID, items=ITEMS, people=WHO)
    for found in (named, alike):
        assert found.evidence is not None
        np.testing.assert_array_equal(found.evidence.likelihood, wanted.likelihood)
        np.testing.assert_allclose(found.x, X[:300])
        np.testing.assert_array_equal(found.labels, Y[:300])
    assert named.row_names == tuple(f"no {item}" for item in range(300))
    nobody = read_table(answers, **told | {"annotator": None}, item="image", ignore=["who"]).heard()
    assert nobody.notes[-1].startswith("900 answers about 300 items; by how far they agree, ")
    assert wanted.errors is not None
    assert np.corrcoef(wanted.errors, np.linspace(0.02, 0.3, 8))[0, 1] > 0.8


def test_every_command_hears_them(answers: Path, tmp_path: Path) -> None:
    model, ask = tmp_path / "m", (*ANSWERS, "--item", "image", "--ignore", "is")
    fitted = run("fit", answers, "--out", model, *ask, *QUICK)
    assert fitted.exit_code == 0, fitted.output
    assert "8 people gave 900 answers about 300 items; by how far they agree, " in fitted.stderr
    assert load(model).approach == "likelihood"
    judge = ("--excluded", "not", "--annotator", "who", "--item", "image")
    judged = run("evaluate", model, answers, *judge, "--json")
    assert json.loads(judged.stdout)["sets"]["rows"] == 300
    named = run("resolve", model, answers, *judge, "--out", tmp_path / "named.csv")
    assert named.exit_code == 0, named.output
    rows = list(csv.DictReader((tmp_path / "named.csv").read_text().splitlines()))
    assert rows[7]["item"] == "no 7"
    right = np.mean([int(row["resolved"]) == Y[at] for at, row in enumerate(rows)])
    assert right > 0.9  # the intersection of all answers leaves the truth in far fewer
    checked = run("check", answers, *ask)
    assert "900 rows" in checked.stdout
    assert "8 people gave 900 answers" in checked.stderr
    assert "% are wrong, of the best ('a" in checked.stderr
    assert "as many are wrong as the error rates say" in " ".join(checked.stdout.split())
    told = ("--approaches", "log,likelihood", "--grid", "none", "--epochs", "2", "--trials", "2")
    assert run("compare", answers, *ask, *told, "--out", tmp_path / "c").exit_code == 0


def test_features_of_items_from_another_file(tmp_path: Path) -> None:
    data, other = write(tmp_path / "a.csv", features=False, key="item"), tmp_path / "x.npz"
    np.savez(other, x=X[:300], item=[f"no {item}" for item in range(300)])
    told: Any = {"excluded": "not", "annotator": "who", "classes": 10}
    found = read_table(data, **told, features_from=other).heard()
    np.testing.assert_array_equal(found.x, X[:300])
    assert found.row_names == tuple(f"no {item}" for item in range(300))


def test_single_answers_tell_nothing_of_people(table: Path) -> None:
    told: Any = {"excluded": "not", "item": "is", "classes": 10, "annotator": "p0"}
    with pytest.raises(InputError, match="asked for twice"):
        read_table(table, **told | {"item": "p0"})
    found = read_table(table, **told | {"item": None}, ignore=["is"]).heard()
    assert (
        "too few about the same to tell how many are wrong: they count as never" in found.notes[-1]
    )
    assert found.evidence is not None
    assert found.evidence.gold is None


@pytest.mark.parametrize(("option", "what"), [("--label", "labels"), ("--weight", "weights")])
def test_answers_about_an_item_with_two_labels(tmp_path: Path, option: str, what: str) -> None:
    """Of what differs none is silently taken: not the first label, not the first weight."""
    data = tmp_path / "two.csv"
    data.write_text("a,item,not,is\n1,x,0,1\n1,x,2,0\n2,y,1,2\n")
    ask = ("--excluded", "not", option, "is", "--item", "item", "--classes", "3")
    result = run("compare", data, *ask, "--out", tmp_path / "c")
    assert result.exit_code == 1
    assert f"answers about one item have different {what}; give them the same" in result.stderr


def test_people_without_sets_have_said_nothing(answers: Path, tmp_path: Path) -> None:
    result = run("fit", answers, "--label", "is", "--annotator", "who", "--out", tmp_path / "m")
    assert result.exit_code == 2
    assert "--annotator" in result.stderr


@pytest.mark.slow
def test_the_likelihood_beats_weights_and_trust() -> None:
    """A small share of ``benchmarks/wrong_answers.py``: a fifth wrong, three answers a row."""
    found = np.mean([accuracies("digits", 0.2, 3, seed, epochs=30) for seed in range(2)], 0)
    nothing, weights, likelihood = found
    assert likelihood > max(nothing, weights) + 0.01


def test_items_whose_features_differ_and_a_rate_beside_people_are_said(tmp_path: Path) -> None:
    random, lines = np.random.default_rng(0), ["f,g,who,item,not"]
    for item in range(40):
        for who in ("Ann", "Bob", "Cy"):
            name = random.choice(["cat", "dog", "fish"])
            lines.append(f"{random.random():.4f},{random.random():.4f},{who},{item},{name}")
    (tmp_path / "t.csv").write_text("\n".join(lines))
    ask = ("--excluded", "not", "--annotator", "who", "--item", "item", "--error-rate", "0.05")
    found = run("fit", tmp_path / "t.csv", *ask, "--epochs", "2", "--out", tmp_path / "m")
    assert "Features differ between answers about 40 of these items" in found.stderr
    assert "the error rate that is given takes the place of this mean" in found.stderr
