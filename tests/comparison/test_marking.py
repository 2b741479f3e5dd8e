"""Which row the others are tested against, and which marks they get."""

from __future__ import annotations

from dataclasses import replace

import null_marks
import numpy as np
import pytest
from comparison.made import lost, row

from ruleout.comparison import Method, Row, compare, paired_t_test
from ruleout.comparison.comparing import with_marks
from ruleout.comparison.significance import crossed_t_test

TRIALS = Method(kind="labels", rows=9, trials=3)
BOTH = Method(kind="kept", rows=9, trials=3, over="both")
ROWS = Method(kind="kept", rows=9, trials=3, over="rows")


def scored(approach: str, *trials: float) -> Row:
    return row(approach, float(np.mean(trials)), trials=trials)


def marks(rows: list[Row], method: Method, *reference: str) -> dict[str, str]:
    return {one.approach: one.mark for one in with_marks(rows, method, reference)[0]}


def test_the_better_of_log_and_exp_by_the_criterion_is_the_reference() -> None:
    rows = [scored("log", 0.90, 0.91, 0.92), scored("exp", 0.95, 0.94, 0.96), lost("mae")]
    assert with_marks(rows, TRIALS, ["log", "exp"])[1].reference == "exp"
    assert with_marks(rows, TRIALS, ["log"])[1].reference == "log"
    lucky = [rows[0], replace(rows[1], estimate=0.91)]
    assert with_marks(lucky, TRIALS, ["log", "exp"])[1].reference == "log"


def test_without_the_reference_the_best_by_the_criterion_stands_in() -> None:
    rows = [scored("mae", 0.90, 0.91, 0.92), scored("mse", 0.95, 0.94, 0.96), lost("log")]
    assert with_marks(rows, TRIALS, ["log", "exp"])[1].reference == "mse"


def test_marks_say_who_is_better() -> None:
    ours = scored("log", 0.90, 0.91, 0.92)
    worse, better = scored("cce", 0.80, 0.82, 0.81), scored("mae", 0.95, 0.96, 0.97)
    same, gone = scored("mse", 0.90, 0.91, 0.92), lost("gce")
    found = marks([ours, worse, better, same, gone], TRIALS, "log")
    assert found == {"log": "", "cce": "•", "mae": "○", "mse": "", "gce": ""}


def test_a_risk_is_better_when_lower() -> None:
    rows = [scored("log", 0.90, 0.91, 0.92), scored("cce", 0.80, 0.82, 0.81)]
    method = replace(TRIALS, higher_is_better=False)
    assert marks(rows, method, "log") == {"log": "", "cce": "○"}
    by_risk = replace(method, criterion="risk", criterion_up=False)
    assert with_marks(rows, by_risk, ["log", "cce"])[1].reference == "cce"


def test_rows_are_compared_in_pairs() -> None:
    random = np.random.default_rng(0)
    values = random.normal(size=50)
    ours = row("log", 0.9, values=values)
    theirs = row("cce", 0.8, values=values - 0.1 + random.normal(0, 0.05, 50))
    found = with_marks([ours, theirs], ROWS, ["log"])[0]
    assert found[1].p_value == pytest.approx(paired_t_test(ours.values, theirs.values))
    assert found[1].mark == "•"


def test_trials_and_rows_are_compared_in_pairs() -> None:
    """A row that says nothing does not count; what it says elsewhere does not matter."""
    random = np.random.default_rng(1)
    cells = random.normal(size=(3, 50))
    less = cells - 0.1 + random.normal(0, 0.05, (3, 50))
    cells[:, 7], less[:, 7] = np.nan, np.nan
    ours, theirs = row("log", 0.9, cells=cells), row("cce", 0.8, cells=less)
    found = with_marks([ours, theirs], BOTH, ["log"])[0]
    kept = np.arange(50) != 7
    assert found[1].p_value == pytest.approx(crossed_t_test(cells[:, kept], less[:, kept]))
    assert found[1].mark == "•"


def test_holm_takes_marks_away() -> None:
    ours = scored("log", 0.90, 0.91, 0.92)
    near = [scored(name, 0.87, 0.89, 0.91) for name in ("mae", "mse", "gce", "cce")]
    barely = with_marks([ours, near[0]], TRIALS, ["log"])[0][1].p_value
    assert 0.05 / 4 < barely < 0.1
    method = replace(TRIALS, level=0.1)
    assert set(marks([ours, *near], method, "log").values()) == {"", "•"}
    assert set(marks([ours, *near], replace(method, holm=True), "log").values()) == {""}


def test_one_row_alone_is_not_with_marks() -> None:
    rows, method = with_marks([scored("log", 0.9, 0.8)], TRIALS, ["log"])
    assert not method.reference
    assert np.isnan(rows[0].p_value)


@pytest.mark.slow
@pytest.mark.parametrize("design", null_marks.DESIGNS)
def test_log_against_itself_is_rarely_marked(design: str) -> None:
    """A share of ``benchmarks/null_marks.py``: the same approach and rows, other seeds."""
    assert null_marks.share(100, "seeds", design) <= 0.1  # at 5 %, more in one case of 90


@pytest.mark.slow
@pytest.mark.parametrize("design", null_marks.DESIGNS)
def test_what_the_simulation_runs_is_what_compare_runs(design: str) -> None:
    stacked = null_marks.run([(0, 0), (1, 1)], "seeds", design, "log", 5, 20)[1]
    x, each, told = null_marks.given(1, 1, "seeds", design, 5)
    alone = compare(x, each, approaches=["log"], grid=null_marks.GRID, epochs=20, **told).rows[0]
    assert stacked.trials == alone.trials
    np.testing.assert_array_equal(stacked.cells.ravel(), alone.cells.ravel())
