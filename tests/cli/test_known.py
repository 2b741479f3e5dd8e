"""True labels of some rows, beside what was ruled out: they teach, and correct what sets say."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from cli.fitted import QUICK, X, Y, run
from learning.labelled import NAMES, annotate, digits, make, write_rows
from pyarrow import csv

import ruleout as ro
from ruleout.labels import LabelError, LabelSets
from ruleout.learning import read_lesson

CLASSES = tuple("abcdef")


def write(path: Path, seed: int, n: int, known: int, avoid: float = 0.1) -> None:
    """Overlapping classes; whoever rules out avoids the class that is nearest besides the true."""
    random = np.random.default_rng(seed)
    means = np.random.default_rng(0).normal(size=(6, 8))
    y = random.integers(6, size=n)
    x = means[y] + 1.3 * random.normal(size=(n, 8))
    far = ((x[:, None] - means) ** 2).sum(2)
    far[np.arange(n), y] = np.inf
    chance = np.ones((n, 6))
    chance[np.arange(n), far.argmin(1)] = avoid
    chance[np.arange(n), y] = 0
    sets = ro.draw(y, CLASSES, 2, seed, transition=chance)
    true = [CLASSES[code] for code in y]
    table = {f"f{at}": x[:, at] for at in range(8)} | {
        "out": ["|".join(map(str, one)) for one in sets.to_lists()],
        "known": [name if row < known else "" for row, name in enumerate(true)],
        "true": true,
    }
    csv.write_csv(pa.table(table), path)


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    folder = tmp_path_factory.mktemp("known")
    write(folder / "train.csv", 1, 700, 200)
    write(folder / "test.csv", 2, 1500, 150)
    return folder / "train.csv", folder / "test.csv"


def test_some_true_labels_make_a_number_where_sets_alone_make_none(
    tables: tuple[Path, Path], tmp_path: Path
) -> None:
    train, test = tables
    sets, rest = ["--excluded", "out"], ["--ignore", "known,true"]
    blind = run("fit", train, *sets, *rest, "--epochs", 25, "--out", tmp_path / "blind")
    assert "95 % interval" not in blind.output
    told = run(
        "fit",
        train,
        *sets,
        "--known",
        "known",
        "--ignore",
        "true",
        "--epochs",
        25,
        "--out",
        tmp_path / "model",
    )
    assert "95 % interval" in told.output
    assert "It rests on 200 true labels" in told.output
    judged = run(
        "evaluate",
        tmp_path / "model",
        test,
        *sets,
        "--known",
        "known",
        "--ignore",
        "true",
        "--json",
    )
    found = json.loads(judged.stdout)["sets"]
    truth = run(
        "evaluate", tmp_path / "model", test, "--label", "true", "--ignore", "out,known", "--json"
    )
    right = json.loads(truth.stdout)["labels"]["accuracy"]["estimate"]
    assert found["accuracy"]["low"] <= right <= found["accuracy"]["high"]
    assert "150 true labels" in found["assumption"]


def test_few_that_show_mistakes_leave_no_number(tmp_path: Path) -> None:
    """Ten true labels correct nothing, but they can show that sets are wrong."""
    random = np.random.default_rng(0)
    y = random.integers(6, size=400)
    x = np.eye(6)[y] + 0.5 * random.normal(size=(400, 6))
    sets = ro.draw(y, CLASSES, 3, 0, noise=0.2)
    columns = {f"f{at}": x[:, at] for at in range(6)} | {
        "out": ["|".join(map(str, one)) for one in sets.to_lists()],
        "known": [CLASSES[one] if row < 10 else "" for row, one in enumerate(y)],
    }
    csv.write_csv(pa.table(columns), tmp_path / "t.csv")
    told = ["--excluded", "out", "--known", "known", *QUICK[:-2], "--out", tmp_path / "m"]
    found = run("fit", tmp_path / "t.csv", *told)
    assert found.exit_code == 0, found.output
    ask = [tmp_path / "m", tmp_path / "t.csv", "--excluded", "out", "--known", "known"]
    for rate, number in ((), False), (("--error-rate", "0.1"), True):
        judged = run("evaluate", *ask, *rate)
        assert ("95 % interval" in judged.stdout.split("consistency")[0]) is number, judged.output
        assert ("true class" in judged.stdout) is not number


def test_a_feature_is_not_taken_for_true_classes(tables: tuple[Path, Path], tmp_path: Path) -> None:
    sets, rest = ["--excluded", "out"], ["--ignore", "known,true"]
    run("fit", tables[0], *sets, *rest, *QUICK, "--out", tmp_path / "m")
    found = run("evaluate", tmp_path / "m", tables[1], *sets, *rest, "--known", "f3")
    assert found.exit_code == 1
    assert "column 'f3' holds true classes and is asked for as a feature" in found.stderr


def test_they_teach() -> None:
    """Where nothing else is known, rows with a label teach it."""
    x = np.repeat(np.eye(3), 20, 0)
    y = np.repeat([0, 1, 2], 20)
    sets = LabelSets(np.zeros((60, 3), bool), 3, unlabelled=True)
    said = ro.evidence(sets, truth=np.where(np.arange(60) % 4 == 0, y, -1))
    clf = ro.RuleOutClassifier(approach="likelihood", learning_rate=0.1, epochs=50, random_state=0)
    assert clf.fit(x, said).score(x, y) == 1.0


def test_a_class_that_is_none(tables: tuple[Path, Path], tmp_path: Path) -> None:
    text = tables[0].read_text().splitlines()
    names = text[0].split(",")
    row = text[1].split(",")
    row[[name.strip('"') for name in names].index("known")] = '"zebra"'
    (tmp_path / "bad.csv").write_text("\n".join([text[0], ",".join(row), *text[2:]]))
    told = ["--excluded", "out", "--known", "known", "--ignore", "true", "--classes", "a,b,c,d,e,f"]
    found = run("fit", tmp_path / "bad.csv", *told, "--out", tmp_path / "m")
    assert found.exit_code == 1, found.output
    assert "line 2, column 'known': unknown class 'zebra'" in found.output


@pytest.mark.parametrize("truth", [[0, 1], [0, 3, -1], [0.5, 0, 0], [-2, 0, 0]])
def test_truth_that_is_none(truth: list[float]) -> None:
    with pytest.raises(LabelError, match="truth"):
        ro.evidence(LabelSets([[1, 0, 0]] * 3, 3), truth=truth)


# ------------------------------------------ rows with a true class, with a set, with nothing

SETS = ro.draw(Y, classes=10, law=1, seed=0)
KNOWN, SILENT = np.arange(200) < 40, np.arange(200) >= 160
MIXED = ["--known", "is", *QUICK]


def mixed(path: Path, column: str = "not", more: dict[str, Any] | None = None) -> Path:
    """Write a table: 40 rows with their class, 120 with a set, 40 with nothing."""
    lists = SETS.to_lists() if column == "not" else [sorted({*range(10)} - {*s}) for s in SETS]
    told = zip(lists, KNOWN | SILENT, strict=True)
    columns = {f"p{at}": X[:, at] for at in range(64)} | {
        column: ["" if no else "|".join(map(str, own)) for own, no in told],
        "is": [str(one) if known else "" for one, known in zip(Y, KNOWN, strict=True)],
    }
    csv.write_csv(pa.table(columns | (more or {})), path)
    return path


@pytest.mark.parametrize("approach", ["log", "proden"])
@pytest.mark.parametrize("column", ["not", "may"])
def test_one_fit_learns_from_all_that_is_known(tmp_path: Path, approach: str, column: str) -> None:
    """As from sets that leave one candidate where the class is known, and without silent rows."""
    option = "--excluded" if column == "not" else "--candidates"
    table, model = mixed(tmp_path / "t.csv", column), tmp_path / "m"
    result = run("fit", table, option, column, *MIXED, "--approach", approach, "--out", model)
    told = "10 classes; the true class of 40 is known; 40 more say nothing and are left out.\n"
    assert f"Trained on 160 rows of 64 features, {told}" in result.stdout
    out = np.where(KNOWN[:, None], np.eye(10)[Y] == 0, SETS.excluded)[:160]
    settings: dict[str, Any] = {
        "approach": approach,
        "learning_rate": 0.1,
        "epochs": 5,
        "random_state": 0,
    }
    alone = ro.RuleOutClassifier(**settings).fit(X[:160], LabelSets(out, 10))
    np.testing.assert_allclose(ro.load(model).predict_proba(X), alone.predict_proba(X), atol=1e-5)


def test_what_labels_did_is_told(tmp_path: Path) -> None:
    """They chose, and nothing is said of wrong answers or error rates, since none were given."""
    table, told = mixed(tmp_path / "t.csv"), ["--excluded", "not", "--known", "is", "--epochs", 5]
    result = run("fit", table, *told, "--approach", "auto", "--out", tmp_path / "m")
    assert "by accuracy, with 40 true labels" in result.stdout
    assert "wrong" not in result.stdout
    usual = run("fit", table, *told, "--grid", "none", "--out", tmp_path / "usual")
    assert usual.exit_code == 0
    assert ro.load(tmp_path / "usual").approach == "log"


@pytest.mark.parametrize("command", ["check", "compare", "evaluate", "resolve"])
def test_commands_say_how_many_rows_are_of_each_kind(tmp_path: Path, command: str) -> None:
    told = [mixed(tmp_path / "t.csv"), "--excluded", "not", "--known", "is"]
    if command in ("evaluate", "resolve"):
        run("fit", *told, *QUICK, "--out", tmp_path / "m")
        told.insert(0, tmp_path / "m")
    if command == "compare":
        told += ["--approaches", "log", "--trials", 2, "--epochs", 2, "--out", tmp_path / "c"]
    result = run(command, *told)
    assert result.exit_code == 0, result.output
    said = "The true class of 40 rows is known; of the others 120 have a set, 40 say nothing."
    assert result.stderr.count(said) == 1


def test_rows_that_say_nothing_can_learn_from_the_model(tmp_path: Path) -> None:
    table, model = mixed(tmp_path / "t.csv"), tmp_path / "m"
    told = ["--excluded", "not", "--known", "is", "--approach", "log-unlabelled", "--epochs", 20]
    result = run("fit", table, *told, "--out", model)
    said = "40 more say nothing and learn from what the model says of them.\n"
    assert said in result.stdout
    settings: dict[str, Any] = {"learning_rate": 0.1, "epochs": 20, "random_state": 0}
    told_of = LabelSets(np.where(SILENT[:, None], False, SETS.excluded), 10, unlabelled=True)
    both = [
        ro.RuleOutClassifier(approach=name, **settings).fit(X, told_of).predict_proba(X)
        for name in ("log", "log-unlabelled")
    ]
    assert np.abs(both[0] - both[1]).max() > 0.01


def test_a_project_of_classes_answers_and_items_that_nobody_was_asked_about(
    tmp_path: Path,
) -> None:
    """Leads decided 20 items, 80 more were answered, 40 were not: fit, evaluate, resolve."""
    x, y = digits(140)
    project, truth = make(tmp_path / "p", write_rows(tmp_path / "r.csv", x), y, rounds=1)
    with project:
        annotate(project, truth, people=1, most=80)
        log = project.store.answer_log()
        answered = {log.items[at] for at in log.item.tolist()}
        rest = [(at, one.name) for at, one in project.store.items() if one.name not in answered]
        lead = project.store.add_user("Lea", "lead")
        for at, name in rest[:20]:
            project.store.decide(at, lead, which=truth[name])
        found = read_lesson(project, unlabelled=True)
    sets, names = found.target, found.table.row_names or ()
    assert isinstance(sets, LabelSets)
    left = dict(zip(names, sets.candidates.tolist(), strict=True))
    assert [int(np.argmax(left[name])) for _, name in rest[:20]] == [truth[n] for _, n in rest[:20]]
    assert (len(sets), int((sets.sizes == 0).sum()), (sets.sizes == 9).sum() >= 20) == (
        140,
        40,
        True,
    )
    said = "The class of 20 item(s) is known: leads decided it."
    assert said in found.notes
    told = ["--approach", "log-unlabelled", "--epochs", 15]
    result = run("fit", project.folder, *told, "--out", tmp_path / "m")
    assert said in result.stderr
    assert "Trained on 100 rows" in result.stdout
    assert "40 more say nothing and learn from what the model says of them" in result.stdout
    plain = run("fit", project.folder, "--grid", "none", "--epochs", 5, "--out", tmp_path / "plain")
    assert "Trained on 100 rows of 64 features, 10 classes.\n" in plain.stdout
    assert run("evaluate", tmp_path / "m", project.folder).exit_code == 0
    out = tmp_path / "named.csv"
    assert run("resolve", tmp_path / "m", project.folder, "--out", out).exit_code == 0
    table = csv.read_csv(out)
    resolved = dict(zip(table["item"].to_pylist(), table["resolved"].to_pylist(), strict=True))
    assert len(resolved) == 140
    assert [resolved[name] for _, name in rest[:20]] == [NAMES[truth[n]] for _, n in rest[:20]]


def test_a_known_row_without_a_set_earns_what_is_known() -> None:
    """All predictions are right: what they earn is never more than that."""
    y = np.arange(200) % 5
    out = ro.draw(y, 5, "released", seed=0).excluded
    out[:60] = False
    said = ro.evidence(
        LabelSets(out, 5, unlabelled=True), truth=np.where(np.arange(200) < 60, y, -1)
    )
    assert said.corrected
    for credit in (said.credit, said[np.arange(40, 200)].credit):
        earned = credit.of(y[-len(credit.value) :])
        assert float(earned.weight @ earned.value / earned.weight.sum()) == pytest.approx(1)
    assert said.judge(y) == said[np.arange(200)].judge(y)


def test_some_rows_are_corrected_by_their_own_labels() -> None:
    """Of all and of a part of the rows the credit is what its labels make of it."""
    random = np.random.default_rng(0)
    y, guess = random.integers(5, size=(2, 300))
    truth = np.where(np.arange(300) % 3 == 0, y, -1)
    sets = ro.draw(y, 5, "released", seed=0)
    said, part = ro.evidence(sets, truth=truth), np.arange(150)
    alone = ro.evidence(sets[part], truth=truth[part])
    np.testing.assert_allclose(said[part].credit.value, alone.credit.value)
    few = said[np.arange(12)]  # four labels: they count, but the interval is theirs
    found = few.judge(guess[:12])
    assert few.corrected
    assert found is not None
    assert found.estimate == pytest.approx((guess == y)[[0, 3, 6, 9]].mean(), abs=0.15)
    assert found.high - found.low > 0.3
    assert said[np.array([1, 2])].judge(guess[1:3]) is None


def test_known_rows_have_one_class_left(tmp_path: Path) -> None:
    told = [mixed(tmp_path / "t.csv"), "--excluded", "not", "--known", "is"]
    run("fit", *told, *QUICK, "--out", tmp_path / "m")
    result = run("resolve", tmp_path / "m", *told, "--out", tmp_path / "r.csv")
    assert result.stdout.endswith("40 had one class left.\n")
    found = csv.read_csv(tmp_path / "r.csv")["resolved"].to_numpy()
    assert (found[KNOWN] == Y[KNOWN]).all()


def test_whole_numbers_beside_empty_cells(tmp_path: Path) -> None:
    """Other programs write them as 4.0; a class may occur among those known alone."""
    texts = [f"{one}.0" if known else "" for one, known in zip(Y, KNOWN, strict=True)]
    texts[0] = "12.0"
    table = mixed(tmp_path / "t.csv", more={"is": texts})
    found = ro.datasets.read_table(table, excluded="not", known="is")
    assert found.classes == (*range(10), 12)
    assert found.known is not None
    assert found.known[:2].tolist() == ["12", str(Y[1])]


def test_sets_that_hold_the_known_class_are_counted(tmp_path: Path) -> None:
    every = ["|".join(map(str, own)) for own in SETS.to_lists()]
    every[:3] = [str(one) for one in Y[:3]]
    table = mixed(tmp_path / "t.csv", more={"not": every})
    result = run("fit", table, "--excluded", "not", *MIXED, "--out", tmp_path / "m")
    said = "3 of 40 rows rule out the class that they are known to have; --error-rate 3/40"
    assert said in result.stderr


def test_a_few_true_labels_help() -> None:
    """A share of ``benchmarks/true_labels.py``: digits, one class each, 5 % of them known."""
    data, gains = ro.datasets.load("digits"), []
    for seed in range(4):
        order = np.random.default_rng(seed).permutation(len(data.y_train))
        x, y = data.x_train[order], data.y_train[order]
        sets = ro.draw(y[:1300], 10, 1, seed)
        clf = ro.RuleOutClassifier(learning_rate=0.01, epochs=50, random_state=seed)
        known = ro.evidence(sets, truth=np.where(np.arange(1300) < 65, y[:1300], -1))
        scores = [clf.fit(x[:1300], said).score(x[1300:], y[1300:]) for said in (sets, known)]
        gains.append(scores[1] - scores[0])
    assert min(gains) > -0.01
    assert np.mean(gains) > 0.03


def test_known_rows_that_are_not_a_random_part_make_no_number(tmp_path: Path) -> None:
    """All that are known are of the class that is easiest to tell."""
    random = np.random.default_rng(2)
    y = random.integers(4, size=400)
    x = np.array([[6, 0, 0], [-6, 0, 0], [0, 0.3, 0], [0, -0.3, 0]])[y] + random.normal(
        size=(400, 3)
    )
    sets = ro.draw(y, CLASSES[:4], seed=0)
    columns = {f"f{at}": x[:, at] for at in range(3)} | {
        "out": ["|".join(map(str, one)) for one in sets.to_lists()],
        "known": ["a" if one == 0 else "" for one in y],
    }
    csv.write_csv(pa.table(columns), tmp_path / "t.csv")
    told = [tmp_path / "t.csv", "--excluded", "out", "--known", "known"]
    found = run("fit", *told, "--epochs", 5, "--out", tmp_path / "m")
    assert "95 % interval" not in found.output
    judged = run("evaluate", tmp_path / "m", *told)
    for output in (found.output, judged.output):
        assert "not a random part of all (p < 0.001): 'a' is ruled out in 0.0 % of them" in output
        assert "rows drawn at random, or judge without --known" in output
    assert "accuracy   " not in judged.output
    assert json.loads(run("check", *told, "--json").stdout)["assumption"]["level"] == "warning"


def test_sets_that_deny_every_known_class_are_named(tmp_path: Path) -> None:
    """An error rate of n of n is refused, so it is not advised."""
    rows = [f"{row % 7},{row % 5},{'abcd'[row % 4]}" for row in range(40)]
    lines = [f"{row},{row[-1] if at < 5 else ''}" for at, row in enumerate(rows)]
    (tmp_path / "t.csv").write_text("\n".join(["f,g,out,known", *lines]))
    told = [tmp_path / "t.csv", "--excluded", "out", "--known", "known"]
    found = run("fit", *told, "--epochs", 2, "--out", tmp_path / "m")
    assert "5 of 5 rows rule out the class that they are known to have; see whether" in found.stderr
    assert "--error-rate 5/5" not in found.stderr


def test_true_labels_alone_are_called_so(tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    y = random.integers(4, size=120)
    x = np.eye(4)[y] + 0.3 * random.normal(size=(120, 4))
    columns = {f"f{at}": x[:, at] for at in range(4)} | {
        "out": [""] * 120,
        "known": [CLASSES[one] if row < 40 else "" for row, one in enumerate(y)],
    }
    csv.write_csv(pa.table(columns), tmp_path / "t.csv")
    told = [tmp_path / "t.csv", "--excluded", "out", "--known", "known", "--classes", "a,b,c,d"]
    found = run("fit", *told, "--epochs", 5, "--out", tmp_path / "m")
    assert "It is that of 40 true labels alone" in found.output
    judged = run("evaluate", tmp_path / "m", *told[:-2])
    assert "also trained the model" in judged.stderr


def test_known_rows_of_one_class_choose_nothing_without_sets(tmp_path: Path) -> None:
    """A model that always names this class would be right in all of them."""
    random = np.random.default_rng(0)
    y = random.integers(4, size=400)
    x = random.normal(size=(4, 3))[y] * 2 + random.normal(size=(400, 3))
    sets = ro.draw(y, CLASSES[:4], seed=0).to_lists()
    columns = {f"f{at}": x[:, at] for at in range(3)} | {
        "out": [
            "" if one == 0 else "|".join(map(str, own)) for one, own in zip(y, sets, strict=True)
        ],
        "known": ["a" if one == 0 else "" for one in y],
    }
    csv.write_csv(pa.table(columns), tmp_path / "t.csv")
    told = [tmp_path / "t.csv", "--excluded", "out", "--known", "known"]
    found = run("fit", *told, "--epochs", 20, "--out", tmp_path / "m")
    assert "95 % interval" not in found.output
    assert "not a random part of all (p < 0.001): 'a' is ruled out in 0.0 % of them" in found.output
    guess = ro.load(tmp_path / "m").predict(x.astype("f"))
    assert (guess == np.array(CLASSES)[y]).mean() > 0.6


def test_a_few_known_rows_of_one_class_forbid_no_number(tmp_path: Path) -> None:
    """Fewer than thirty correct nothing, so it does not matter which rows they are."""
    y = np.arange(400) % 4
    x = np.random.default_rng(0).normal(size=(400, 2)) + y[:, None]
    columns = {f"f{at}": x[:, at] for at in range(2)} | {
        "out": ["|".join(map(str, one)) for one in ro.draw(y, CLASSES[:4], seed=0).to_lists()]
    }
    for many, level in ((25, "fine"), (35, "warning")):
        columns["known"] = ["a" if row % 4 == 0 and row < 4 * many else "" for row in range(400)]
        csv.write_csv(pa.table(columns), tmp_path / "t.csv")
        found = run("check", tmp_path / "t.csv", "--excluded", "out", "--known", "known", "--json")
        told = json.loads(found.stdout)
        assert {one["name"]: one["level"] for one in told["findings"]}["known rows"] == "warning"
        assert told["assumption"]["level"] == level
        assert ("No accuracy is estimated from" in told["assumption"]["message"]) == (many > 30)
