"""`compare` end to end, on digits."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from comparison.made import GRID, digits
from scipy.sparse import csr_array

import ruleout as ro
from ruleout.comparison import Comparison, compare
from ruleout.comparison.significance import crossed_t_test
from ruleout.labels.errors import InputError
from ruleout.methods import PAPER
from ruleout.report import render
from ruleout.selection import search
from ruleout.training import Trial


@pytest.fixture(scope="module")
def sets() -> list[ro.LabelSets]:
    return [ro.draw(digits()[1], classes=10, seed=trial) for trial in range(3)]


@pytest.fixture(scope="module")
def found(sets: list[ro.LabelSets]) -> Comparison:
    x, _, x_test, y_test = digits()
    told: dict[str, Any] = {"grid": GRID, "epochs": 25, "average": 3, "test": (x_test, y_test)}
    return compare(x, sets, approaches=["cce", "log", "ga-after"], **told)


def test_log_ranks_above_cce(found: Comparison) -> None:
    assert [row.approach for row in found.rows] == ["cce", "log", "ga-after"]
    assert [row.approach for row in found.ranked][:2] == ["log", "cce"]
    assert found.best.approach == found.chosen.approach == found.method.reference == "log"
    assert found["log"].score > found["cce"].score + 0.03
    assert found["log"].score > 0.9


def test_scores_are_means_over_trials_and_the_last_epochs(found: Comparison) -> None:
    for row in found.rows:
        assert row.curve is not None
        np.testing.assert_allclose(row.trials, row.curve.values[:, -3:].mean(1))
        assert row.score == pytest.approx(np.mean(row.trials))
        assert row.spread == pytest.approx(np.std(row.trials, ddof=1))


def test_marks_are_paired_over_trials_and_rows(found: Comparison) -> None:
    """Cells are shifted to the scores of their trials, which average the last epochs."""
    ours, theirs = found["log"], found["cce"]
    np.testing.assert_allclose(ours.cells.mean(1), ours.trials)
    expected = crossed_t_test(ours.cells, theirs.cells)
    assert theirs.p_value == pytest.approx(expected)
    assert theirs.mark == ("•" if expected < 0.05 else "")
    assert np.isnan(ours.p_value)
    assert not ours.mark


def test_company_changes_nothing(sets: list[ro.LabelSets], found: Comparison) -> None:
    """Splits, batch orders and first weights do not depend on what else is compared."""
    x, _, x_test, y_test = digits()
    alone = compare(
        x, sets, approaches=["log"], grid=GRID, epochs=25, average=3, test=(x_test, y_test)
    )
    assert alone["log"].trials == found["log"].trials
    assert alone["log"].configuration == found["log"].configuration
    assert not alone.method.reference


def test_label_sets_estimate_what_true_labels_say(
    sets: list[ro.LabelSets], found: Comparison
) -> None:
    """The same models, judged by label sets of the test rows instead of their labels."""
    x, _, x_test, y_test = digits()
    seen = ro.draw(y_test, classes=10, seed=9)
    told: dict[str, Any] = {"grid": GRID, "epochs": 25, "average": 3, "test": (x_test, seen)}
    guessed = compare(x, sets, approaches=["log", "cce"], **told)
    assert guessed.method.kind == "sets"
    assert guessed.method.over == "both"
    for name in ("log", "cce"):
        row, truth = guessed[name], found[name]
        assert row.curve is not None
        assert truth.curve is not None
        assert row.configuration == truth.configuration
        assert abs(row.score - truth.curve.values[:, -1].mean()) < 4 * row.spread
        assert 0.005 < row.spread < 0.03


def test_rows_that_judge_have_no_say_in_the_rest(sets: list[ro.LabelSets]) -> None:
    """Rewriting their sets changes scores, and neither choice nor estimate."""
    x = digits()[0]
    told: dict[str, Any] = {"approaches": ["log"], "grid": GRID, "epochs": 3, "trials": 2}
    before = compare(x, sets[0], **told)
    mask = sets[0].excluded
    judging = np.sort(np.random.default_rng([0, 0, 1]).permutation(1000)[:200])
    mask[judging] = np.roll(mask[judging], 1, axis=1)
    after = compare(x, ro.LabelSets(mask), **told)
    assert after["log"].estimate == before["log"].estimate
    assert after["log"].configurations == before["log"].configurations
    assert after["log"].score < before["log"].score


@pytest.mark.parametrize("judge", ["folds", 0.2])
def test_every_trial_chooses_for_itself(
    sets: list[ro.LabelSets], judge: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One choice for all would make trials depend on each other, and no test knows how far."""
    asked = []

    def spy(*given: Any, **told: Any) -> Any:
        asked.append(told["per_trial"])
        return search(*given, **told)

    monkeypatch.setattr("ruleout.comparison.comparing.search", spy)
    compare(digits()[0], sets[0], approaches=["log"], grid=None, epochs=1, judge=judge)
    assert asked == [True]


def test_folds_judge_with_every_row(sets: list[ro.LabelSets]) -> None:
    found = compare(digits()[0], sets[0], approaches=["log"], grid=GRID, epochs=5, judge="folds")
    assert found.method.kind == "folds"
    assert len(found["log"].values) == 1000
    assert found["log"].score == pytest.approx(np.mean(found["log"].trials))
    assert len(found["log"].configurations) == 5


def test_rows_tell_more_than_three_trials(sets: list[ro.LabelSets]) -> None:
    """Paired over rows kept back, LOG's lead on CCE is significant, also after Holm."""
    told: dict[str, Any] = {"grid": GRID, "epochs": 15, "holm": True, "judge": 0.2}
    found = compare(digits()[0], sets[0], approaches=["log", "cce", "pc-after"], **told)
    assert found.method.kind == "kept"
    assert found["cce"].mark == "•"
    assert found["cce"].p_value <= found["cce"].p_holm < 0.05


def test_risk_is_better_when_lower(sets: list[ro.LabelSets]) -> None:
    told: dict[str, Any] = {"grid": GRID, "epochs": 10, "criterion": "risk", "score": "risk"}
    found = compare(digits()[0], sets[0], approaches=["mae", "log"], trials=1, **told)
    scores = [row.score for row in found.ranked]
    assert scores == sorted(scores)
    assert found.best.score == min(scores)
    assert found.method.score_label == "Risk"


@pytest.fixture
def boom() -> Iterator[None]:
    @ro.losses.register("boom", family="bounded", paper="an example")
    def boom(logits: torch.Tensor, excluded: torch.Tensor) -> torch.Tensor:
        """Nothing but NaN."""
        return (logits * excluded).sum(-1) * torch.nan

    yield
    ro.losses.forget("boom")


@pytest.mark.usefixtures("boom")
def test_what_diverges_is_listed_and_stops_nobody(sets: list[ro.LabelSets]) -> None:
    found = compare(digits()[0], sets[0], approaches=["boom", "log"], grid=GRID, epochs=2, trials=2)
    assert found["boom"].failed
    assert (found["boom"].diverged, found["boom"].models) == (8, 8)
    assert found["boom"].note == "diverged"
    assert found.best.approach == "log"
    assert not found["boom"].mark
    assert "diverged" in repr(found)


@pytest.mark.filterwarnings("ignore:a learning rate of")
def test_when_all_diverge_there_is_a_table_still(sets: list[ro.LabelSets]) -> None:
    told: dict[str, Any] = {"grid": {"learning_rate": 3e38}, "epochs": 2, "trials": 1}
    found = compare(digits()[0], sets[0], approaches=["cce", "free-after"], **told)
    assert all(row.failed for row in found.rows)
    assert found.pictures is None
    with pytest.raises(ValueError, match="every approach diverged; try smaller learning rates"):
        _ = found.best
    assert "Every approach diverged" in render(found.report())


@pytest.mark.filterwarnings("ignore:a learning rate of")
def test_some_models_may_diverge(sets: list[ro.LabelSets]) -> None:
    told: dict[str, Any] = {"grid": {"learning_rate": [3e38, 1e-2]}, "epochs": 2, "trials": 1}
    found = compare(digits()[0], sets[0], approaches=["cce"], **told)
    assert found["cce"].configuration["learning_rate"] == 1e-2
    assert found["cce"].note == "1 of 2 models diverged"


@pytest.mark.parametrize(
    ("told", "sentence"),
    [
        ({"approaches": ["log", "fowrard-after"]}, "did you mean 'forward-after'?"),
        ({"approaches": ["ga"]}, "did you mean 'ga-before' or 'ga-after'?"),
        ({"approaches": ["log", "log"]}, "approach 'log' is named twice"),
        ({"approaches": []}, "no approach is named"),
        ({"grid": "papr"}, "unknown grid 'papr'; did you mean 'paper'?"),
        ({"grid": {"q": [0.5]}, "approaches": ["gce", "log"]}, "option"),
        ({"criterion": "acuracy"}, "did you mean 'accuracy'?"),
        ({"average": 300}, "average must lie between 1 and the 250 epochs, not 300"),
        ({"reference": "lgo"}, "unknown approach 'lgo'; did you mean 'log'?"),
        (
            {"approaches": ["log", "exp"], "reference": "mae"},
            "reference 'mae' is not among the approaches; add it, or name one of log, exp",
        ),
        ({"epochs": 0}, "epochs must be a whole number of at least 1, not 0"),
        ({"patience": 0}, "patience must be a whole number of at least 1, not 0"),
        ({"class_weight": {11: 2.0}}, "class_weight names an unknown class 11"),
        ({"level": 5}, "level must lie between 0 and 1, not 5"),
        ({"over": "epochs"}, "over must be 'trials', 'rows' or 'both', not 'epochs'"),
    ],
)
def test_bad_requests_fail_before_training(
    sets: list[ro.LabelSets], told: dict[str, Any], sentence: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ruleout.comparison.comparing.search", None)
    with pytest.raises(ValueError) as error:
        compare(digits()[0], sets[0], **told)
    assert sentence in str(error.value)


def test_early_stopping_chooses_the_epochs_of_each_approach(sets: list[ro.LabelSets]) -> None:
    x, _, x_test, y_test = digits()
    told: dict[str, Any] = {"grid": {"learning_rate": [0.3]}, "epochs": 60, "trials": 2}
    told |= {"approaches": ["log", "cce"], "test": (x_test, y_test)}
    found = compare(x, sets[0], early_stopping=True, patience=3, **told)
    assert found.facts["early stopping"] == "after 3 epochs without a better accuracy"
    for row in found.rows:
        assert row.curve is not None
        last = int(row.curve.epochs[-1])
        assert 1 <= last < 60
        alone = compare(x, sets[0], **{**told, "approaches": [row.approach], "epochs": last})
        assert alone[row.approach].trials == row.trials


def test_classes_weigh_as_in_the_classifier() -> None:
    x, _, x_test, y_test = digits()
    weights = {3: 0.0, 8: 5.0}
    told: dict[str, Any] = {"grid": None, "epochs": 10, "trials": 1, "test": (x_test, y_test)}
    known = ro.LabelSets.from_labels(digits()[1], 10)
    found = compare(x, known, approaches=["log"], class_weight=weights, **told)
    clf = ro.RuleOutClassifier(epochs=10, class_weight=weights, random_state=0).fit(x, known)
    assert found["log"].score == pytest.approx(clf.score(x_test, y_test))
    assert found["log"].score < compare(x, known, approaches=["log"], **told)["log"].score
    assert found.facts["class weight"] == "{3: 0.0, 8: 5.0}"


def test_a_grid_over_batch_sizes_and_models(sets: list[ro.LabelSets], tmp_path: Path) -> None:
    grid = {"model.hidden": [3, (30, 20)], "batch_size": [32, 400], "learning_rate": 0.03}
    told: dict[str, Any] = {"grid": grid, "model": "mlp", "epochs": 4, "judge": "folds"}
    found = compare(digits()[0][:300], sets[0][:300], approaches=["log", "exp"], **told)
    assert found["log"].configuration["batch_size"] in (32, 400)
    assert "model.hidden" in found.write(tmp_path).read_text()


def test_other_errors_are_not_taken_for_divergence(sets: list[ro.LabelSets]) -> None:
    bad = ro.LabelSets(np.zeros((1000, 10)), unlabelled=True)
    with pytest.raises(InputError, match="rule nothing out"):
        compare(digits()[0], [sets[0], bad], approaches=["log"], epochs=1)


def test_clpl_says_that_convexity_is_gone(sets: list[ro.LabelSets]) -> None:
    told: dict[str, Any] = {"grid": None, "epochs": 1, "trials": 1}
    x = digits()[0]
    with pytest.warns(UserWarning, match="its guarantee is gone"):
        compare(x, sets[0], approaches=["clpl"], model="mlp", **told)
    compare(x, sets[0], approaches=["clpl"], model="linear", **told)  # warnings are errors here
    compare(x, sets[0], approaches=["log"], model="mlp", **told)


def test_the_eighteen_are_the_default(sets: list[ro.LabelSets]) -> None:
    seen: list[tuple[float, str]] = []
    x, _, x_test, y_test = digits()
    found = compare(
        x[:60], sets[0][:60], grid=None, epochs=1, trials=1, test=(x_test, y_test),
        progress=lambda done, name: seen.append((done, name)),
    )  # fmt: skip
    assert tuple(row.approach for row in found.rows) == PAPER
    shares = [done for done, _ in seen]
    assert shares == sorted(shares)
    assert shares[-1] == pytest.approx(1)
    assert list(dict.fromkeys(name for _, name in seen)) == list(PAPER)


def test_sparse_features_are_features(sets: list[ro.LabelSets]) -> None:
    x, told = digits()[0][:200], {"approaches": ["log"], "grid": None, "epochs": 2, "trials": 2}
    dense = compare(x, sets[0][:200], **told)  # type: ignore[arg-type]
    sparse = compare(csr_array(x), sets[0][:200], **told)  # type: ignore[arg-type]
    assert sparse["log"].trials == dense["log"].trials


@pytest.mark.cuda
def test_cuda_finds_the_same(sets: list[ro.LabelSets]) -> None:
    x, _, x_test, y_test = digits()
    told: dict[str, Any] = {"grid": GRID, "epochs": 10, "test": (x_test, y_test)}
    here = compare(x, sets, approaches=["log", "cce"], **told)
    there = compare(x, sets, approaches=["log", "cce"], device="cuda", **told)
    for one, other in zip(here.rows, there.rows, strict=True):
        assert one.score == pytest.approx(other.score, abs=0.02)


def test_one_trial_is_compared_over_rows(sets: list[ro.LabelSets]) -> None:
    x, _, x_test, y_test = digits()
    told: dict[str, Any] = {"grid": None, "epochs": 3, "trials": 1, "test": (x_test, y_test)}
    found = compare(x, sets[0], approaches=["log", "exp"], **told)
    assert found.method.over == "rows"
    assert np.isnan(found["log"].spread)
    worse = min(found.rows, key=lambda row: row.score)
    assert 0 <= worse.p_value <= 1


def test_trials_may_choose_their_rows(sets: list[ro.LabelSets]) -> None:
    x, _, x_test, y_test = digits()
    halves = [Trial(sets[0][:500], np.arange(500)), Trial(sets[0][500:], np.arange(500, 1000))]
    told: dict[str, Any] = {"grid": None, "epochs": 2, "test": (x_test, y_test)}
    found = compare(x, halves, approaches=["log"], **told)
    assert found["log"].trials[0] != found["log"].trials[1]
