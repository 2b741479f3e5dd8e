"""Planning: what a project says about itself, and what the study says."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import plan_coverage
import pytest
from cli.labelled import make_answered, ran, run
from learning.labelled import annotate, digits, make, write_rows

import ruleout as ro
from ruleout.cli.label import _print_forecast
from ruleout.datasets import Table
from ruleout.labels.errors import InputError
from ruleout.learning import planning
from ruleout.learning.planning import Measured, label_ratio, measure_curve, read_study, study_plans
from ruleout.learning.training_data import Review


@pytest.fixture(autouse=True)
def few_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fits as short as tell a curve from none."""
    monkeypatch.setattr(planning, "STEPS", 200)


WAYS = ("labels", "intersection", "answers", "no")


def _review(
    n: int, rounds: int = 1, seed: int = 0, wrong: float = 0.0, tests: tuple[int, int] = (0, 0)
) -> Review:
    x, y = digits(n)
    asked = ro.propose(n * rounds, 10, "released", seed=seed)
    answers = ro.answer(asked, y, np.tile(np.arange(n), rounds))
    turned = np.random.default_rng(seed).random(len(answers)) < wrong
    said = ro.Answers(asked, answers.yes ^ turned, answers.items)
    table = Table(x=x, shape=(64,), features=(), source=Path("x"), sha256="")
    sets = ro.LabelSets(np.zeros((n, 10), bool), 10, unlabelled=True)
    gold = np.full(n, -1, np.intp)
    return Review(
        table=table, sets=sets, evidence=None, answers=said, said=said, tests=tests, gold=gold,
        contradictions=(),
    )  # fmt: skip


def test_a_project_measures_its_own_curve_without_true_labels() -> None:
    review = _review(600)
    found = measure_curve(review)
    assert [round(point.questions) for point in found] == [120, 240, 480]
    assert found[-1].accuracy > found[0].accuracy + 0.1
    assert 0.75 < found[-1].accuracy < 1.0
    assert found[-1].error < found[0].error


def test_equal_items_learn_or_test_together() -> None:
    """No feature tells the classes, so that an item seen before is all that could help."""
    review, random = _review(600), np.random.default_rng(0)
    items = random.normal(size=(100, 64)).astype(np.float32)[np.arange(600) % 100]
    truth = random.integers(10, size=100)[np.arange(600) % 100]
    answers = ro.answer(review.answers.asked, truth, review.answers.items)
    told = replace(review, table=replace(review.table, x=items), answers=answers)
    last = measure_curve(told)[-1]
    assert abs(last.accuracy - 0.1) < 3 * last.error


@pytest.mark.slow
def test_wrong_answers_do_not_bend_the_curve() -> None:
    """One answer in ten is wrong, as gold questions tell; taken as right, accuracy seems low."""
    found, trusting = (
        measure_curve(_review(400, wrong=0.1, tests=tests))[-1] for tests in ((30, 300), (0, 0))
    )
    clean = measure_curve(_review(400))[-1]
    assert abs(found.accuracy - clean.accuracy) < 2 * found.error
    assert trusting.accuracy < clean.accuracy - 0.1


@pytest.mark.slow
def test_few_gold_questions_make_a_point_less_sure() -> None:
    few, many = (
        measure_curve(_review(150, wrong=0.1, tests=tests))[-1] for tests in ((3, 30), (300, 3000))
    )
    assert few.error > many.error


def test_points_of_the_same_items_err_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """Half of the items is part of all of them."""
    monkeypatch.setattr(planning, "TAUGHT", 0)
    _, half, whole = (point.drawn for point in measure_curve(_review(150, rounds=2)))
    assert half is not None
    assert whole is not None
    assert np.corrcoef(half, whole)[0, 1] > 0.2


def test_luck_of_what_taught_is_as_large_as_said_and_partly_common(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """So much of it that no other error counts; what is predicted does not matter."""
    monkeypatch.setattr(planning, "TAUGHT", 1000)
    monkeypatch.setattr(planning, "_crossed", lambda _, known, *__: np.zeros(len(known), int))
    found = measure_curve(_review(100, tests=(0, 300)))
    for point in found:
        share = max(point.accuracy, 0.02)
        expected = 1000 * math.sqrt(share * (1 - share) / point.questions)
        assert point.error == pytest.approx(expected, rel=0.1)
    alike = np.corrcoef([point.drawn for point in found])[np.triu_indices(3, 1)]
    assert alike == pytest.approx(planning.SHARED, abs=0.1)


@pytest.mark.slow
@pytest.mark.parametrize("wrong", [0.0, 0.05])
def test_the_range_holds_the_truth_more_often_than_not(wrong: float) -> None:
    """A small share of ``benchmarks/plan_coverage.py``, where 8 of 10 are the aim."""
    (found,) = plan_coverage.simulated([("blobs", wrong)], range(4), 4, steps=200, workers=1)
    assert found["covered"] >= 0.6


def test_too_few_answers_are_refused_with_a_way_out() -> None:
    review = _review(99)
    with pytest.raises(InputError, match=r"^99 items have answers .* plan again after 100"):
        measure_curve(review)


def test_gold_questions_without_a_right_answer_leave_nothing_to_plan_by() -> None:
    """A single right one leaves rates as of guessing possible, which do not count."""
    with pytest.raises(InputError, match=r"^5 of 10 answers to gold questions were wrong, so"):
        measure_curve(_review(100, tests=(5, 10)))
    assert all(math.isfinite(one.error) for one in measure_curve(_review(100, tests=(0, 1))))


def _study(ratio: float) -> list[Measured]:
    """Make a study in which a way needs `ratio` questions for what one label teaches."""

    def reach(labels: float) -> float:
        return 1 - 2 / math.sqrt(labels)

    labels = [Measured("d", "linear", "labels", q, 0, reach(q)) for q in (100, 400, 1600)]
    asked = [
        Measured("d", "linear", "no", int(q * ratio), 0, reach(q)) for q in (100, 200, 400, 1600)
    ]
    return labels + asked


def test_the_ratio_to_labels_is_found_again() -> None:
    found = label_ratio("no", _study(3.0))
    assert found.low <= found.middle <= found.high
    assert found.middle == pytest.approx(3.0, rel=0.15)


def test_a_way_that_was_not_studied_has_no_ratio() -> None:
    with pytest.raises(InputError, match="nothing about 'answers'"):
        label_ratio("answers", _study(3.0))


def test_a_dip_by_chance_does_not_turn_the_curve() -> None:
    trials = _study(3.0)
    trials.append(Measured("d", "linear", "no", 9600, 0, 0.5))
    assert label_ratio("no", trials).high < 10


def test_the_study_that_ships_has_all_ways_on_both_data_sets() -> None:
    trials = read_study()
    for data in ("digits", "fashion-mnist"):
        assert {one.way for one in trials if one.data == data} == set(WAYS)
    for one in study_plans(0.75, trials):
        assert one.low <= one.questions <= one.high


def test_a_target_that_all_trials_reached_is_read_off_the_trials() -> None:
    trials = [
        Measured("d", "linear", "no", q, trial, accuracy)
        for trial, late in enumerate((100, 200, 400))
        for q, accuracy in ((late, 0.5), (4 * late, 0.9))
    ]
    (found,) = study_plans(0.7, trials)
    assert (found.low, found.questions, found.high) == pytest.approx((200, 400, 800))


def test_a_target_beyond_the_trials_is_read_off_the_curve() -> None:
    found = next(one for one in study_plans(0.97, _study(3.0)) if one.way == "labels")
    assert found.questions == pytest.approx(4444, rel=0.3)
    assert found.high > found.low


def test_every_answer_teaches_more_than_no_alone() -> None:
    assert label_ratio("intersection").middle < label_ratio("no").middle
    assert label_ratio("intersection").middle > 1


# ---------------------------------------------------------------------- the command


def test_without_a_project_the_study_answers() -> None:
    said = ran("plan", "--target", "0.8")
    assert "digits" in said
    assert "fashion-mnist" in said
    assert "no alone" in said


def test_a_number_of_labels_becomes_a_number_of_questions() -> None:
    said = ran("plan", "--labels", 1000)
    assert "Where 1,000 true labels would do" in said
    assert len(said.splitlines()) == 4


def test_a_project_says_how_many_more(tmp_path: Path) -> None:
    x, y = digits(300)
    project, truth = make(tmp_path / "project", write_rows(tmp_path / "rows.csv", x), y)
    with project:
        annotate(project, truth)
    said = ran("plan", project.folder, "--target", "0.9")
    assert "Measured on this project (linear), without true labels" in said
    assert "0.9 " in said
    assert "questions" in said.splitlines()[-2]


@pytest.mark.parametrize(
    ("questions", "said"),
    [
        (1234, "0.9 takes about 1,200 questions (8 of 10 curves that fit as well: 900 or more).\n"
               "That is 1,100 more than were answered, 11 h 14 min at the pace of the last"),
        (50, "questions (8 of 10 curves that fit as well: 900 or more).\nThat many were answered"),
        (math.inf, "0.9 is beyond the curve; 80 of 100 curves that fit as well reach it. Another"),
    ],
)  # fmt: skip
def test_a_forecast_is_told_in_words(
    questions: float, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    found = planning.Forecast(0.9, questions, 900, math.inf, 0.8)
    progress: Any = SimpleNamespace(answers=110, per_hour=100.0)
    _print_forecast(found, progress)
    assert said in capsys.readouterr().out


def test_a_young_project_is_told_to_wait(tmp_path: Path) -> None:
    result = run("plan", make_answered(tmp_path))
    assert result.exit_code == 1
    assert "too few to measure on" in result.stderr


@pytest.mark.parametrize("words", [("--target", "0"), ("--target", "1.5"), ("--target", "nan")])
def test_a_target_is_a_share(words: tuple[str, ...]) -> None:
    assert run("plan", *words).exit_code == 2
