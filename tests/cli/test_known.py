"""True labels of some rows, beside what was ruled out: they teach, and correct what sets say."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from cli.fitted import run
from pyarrow import csv

import ruleout as ro
from ruleout.labels import LabelError, LabelSets

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
    told = ["--excluded", "out", "--known", "known", "--ignore", "true"]
    found = run("fit", tmp_path / "bad.csv", *told, "--out", tmp_path / "m")
    assert found.exit_code == 1, found.output
    assert "zebra" in found.output


@pytest.mark.parametrize("truth", [[0, 1], [0, 3, -1], [0.5, 0, 0], [-2, 0, 0]])
def test_truth_that_is_none(truth: list[float]) -> None:
    with pytest.raises(LabelError, match="truth"):
        ro.evidence(LabelSets([[1, 0, 0]] * 3, 3), truth=truth)
