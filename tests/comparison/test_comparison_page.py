"""The report of a comparison: which parts, and what they say."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pytest
from comparison.made import GRID, digits, lost, row, table

import ruleout as ro
from ruleout.comparison import Comparison, Row, compare
from ruleout.comparison.judging import bins, pairs
from ruleout.report import (
    Curves,
    Histogram,
    Matrix,
    Note,
    Reliability,
    Report,
    ScoreTable,
    render,
)

P = TypeVar("P")


def parts(report: Report, kind: type[P]) -> list[P]:
    every = [part for section in report.sections for part in section.parts]
    return [part for part in every if isinstance(part, kind)]


@pytest.fixture(scope="module", params=["labels", "kept", "folds"])
def trained(request: pytest.FixtureRequest) -> Comparison:
    x, y, x_test, y_test = digits()
    sets = ro.draw(y, classes=10, seed=0)
    told: dict[str, Any] = {"labels": {"test": (x_test, y_test)}, "folds": {"judge": "folds"}}
    more = told.get(request.param, {})
    return compare(x, sets, approaches=["log", "cce"], grid=GRID, epochs=6, trials=2, **more)


def test_every_part_is_there(trained: Comparison) -> None:
    report = trained.report(title="Digits", law="released", facts={"Data": "digits"})
    assert report.title == "Digits"
    assert next(iter(report.facts)) == "Data"
    assert parts(report, ScoreTable)[0].rows[0].name == trained.best.approach
    assert {line.name for line in parts(report, Curves)[0].lines} == {"log", "cce"}
    assert len(parts(report, Histogram)) == len(parts(report, Reliability)) == 1
    assert len(parts(report, Matrix)) == (2 if trained.method.kind == "labels" else 1)
    assert len(render(report)) > 10_000


def test_the_histogram_counts_every_set_once(trained: Comparison) -> None:
    """Two trials of one table are one table."""
    sizes = parts(trained.report(law="released"), Histogram)[0]
    assert sum(map(float, np.asarray(sizes.counts))) == 1000
    assert sum(map(float, np.asarray(sizes.expected))) == pytest.approx(1000)
    assert not len(parts(trained.report(), Histogram)[0].expected)


def test_confidence_is_judged_by_what_is_known(trained: Comparison) -> None:
    seen = parts(trained.report(), Reliability)[0]
    assert seen.estimated == (trained.method.kind != "labels")
    assert sum(map(int, np.asarray(seen.count))) == trained.method.rows


def test_contradictions_are_rare_and_on_the_diagonal(trained: Comparison) -> None:
    assert trained.pictures is not None
    ruled = trained.pictures.ruled
    assert np.diag(ruled).sum() < 0.1 * ruled.sum()
    confusion = trained.pictures.confusion
    if trained.method.kind == "labels":
        assert confusion is not None
        assert confusion.sum() == trained.method.rows
        share = np.diag(confusion).sum() / confusion.sum()
        assert trained.best.curve is not None
        assert share == pytest.approx(trained.best.curve.values[0, -1])
    else:
        assert confusion is None


def test_write_makes_four_files(trained: Comparison, tmp_path: Path) -> None:
    page = trained.write(tmp_path / "new" / "folder", law="released")
    names = sorted(file.name for file in page.parent.iterdir())
    assert names == ["report.html", "results.json", "table.csv", "table.md"]
    found = json.loads((page.parent / "results.json").read_text("utf-8"))
    assert {one["approach"] for one in found["rows"]} == {"log", "cce"}


def test_the_summary_tells_luck_from_choice() -> None:
    found = table(row("log", 0.93, estimate=0.9), row("exp", 0.92, estimate=0.95))
    summary = " ".join(found.report().summary)
    assert "before any score was seen, exp would be chosen; its score is 92.00" in summary


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ([row("log", 0.93), row("exp", 0.93)], "log and exp share the best score, 93.00 ± 1.00 %."),
        (
            [row("log", 0.93), row("exp", 0.92), row("cce", 0.5, mark="•")],
            "log has the best score, 93.00 ± 1.00 %, but the test does not tell it from exp.",
        ),
        ([row("log", 0.93), row("exp", 0.5, mark="•")], "log is best with 93.00 ± 1.00 %."),
        (
            [row("log", 0.92), row("mae", 0.93), lost("exp")],
            "mae has the best score, 93.00 ± 1.00 %, but the test does not tell it from log.",
        ),
        ([row("log", 0.5), row("mae", 0.93, mark="○")], "mae is best with 93.00 ± 1.00 %."),
        (
            [row("log", 0.5), row("mae", 0.93, mark="○"), row("exp", 0.92, mark="○")],
            "mae has the best score, 93.00 ± 1.00 %, significantly better than log; it is not "
            "tested against the others.",
        ),
    ],
)
def test_the_best_is_called_so_as_far_as_the_test_does(rows: list[Row], said: str) -> None:
    assert table(*rows).report().summary[0] == f"Test accuracy: {said}"


def test_what_diverged_is_said() -> None:
    report = table(row("log", 0.93, diverged=1), lost("gce")).report()
    said = [note.text for note in parts(report, Note)]
    assert said[0] == "Diverged, so without a score: gce."
    assert "log 1 of 12" in said[1]
    assert "gce" in render(report)


def test_curves_of_one_trial_have_no_band() -> None:
    one = row("log", 0.93)
    assert one.curve is not None
    curve = type(one.curve)(one.curve.epochs, one.curve.values[:1])
    report = table(row("log", 0.93, curve=curve), trials=1).report()
    assert len(parts(report, Curves)[0].lines[0].low) == 0


def test_small_bins_join_their_neighbours() -> None:
    sure = np.concatenate([np.full(3, 0.15), np.full(12, 0.35), np.full(30, 0.75), [0.95]])
    confidence, *_, count = bins(sure, np.ones(46))
    assert count.tolist() == [15, 31]
    assert confidence[0] == pytest.approx((3 * 0.15 + 12 * 0.35) / 15)
    assert bins(np.array([0.5]), np.array([1.0]))[3].tolist() == [1]


def test_bins_are_plain_means() -> None:
    random = np.random.default_rng(0)
    sure, right = random.uniform(size=500), random.normal(size=500)
    _, accuracy, error, count = bins(sure, right)
    for place, low in enumerate(np.arange(10) / 10):
        inside = [r for s, r in zip(sure, right, strict=True) if low <= s < low + 0.1]
        assert count[place] == len(inside)
        assert accuracy[place] == pytest.approx(sum(inside) / len(inside))
        assert error[place] == pytest.approx(np.std(inside, ddof=1) / len(inside) ** 0.5)


def test_pairs_are_plain_counts() -> None:
    random = np.random.default_rng(1)
    sets = ro.draw(random.integers(4, size=200), classes=4, seed=0)
    predicted = random.integers(4, size=200)
    expected = np.zeros((4, 4), int)
    for ruled, guess in zip(sets, predicted, strict=True):
        for name in ruled:
            expected[int(name), guess] += 1
    np.testing.assert_array_equal(pairs(sets, predicted), expected)
