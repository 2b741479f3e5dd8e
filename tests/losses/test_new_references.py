"""The references of the later losses and revisions give what can be worked out by hand."""

from __future__ import annotations

from math import exp, isclose, log
from typing import Any

import pytest
import references as ref

EVEN = [0.7] * 4  # p = 1/4 each
ONE = [False, True, False, False]


def floats(values: Any) -> list[float]:
    return [float(v) for v in values]


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (ref.scl_nl(EVEN, 1), log(4 / 3)),
        (ref.scl_exp(EVEN, 1), exp(1 / 4)),
        (ref.l_uw(EVEN, 1), log(4)),
        (ref.l_w(EVEN, 1), (1 + 1 / 4) * log(4)),
        (ref.op(EVEN, 1), log(4)),
        (ref.op_w(EVEN, 1), (1 / 16 + 1e-6) * log(4)),
        (ref.cc(EVEN, ONE), log(4 / 3)),
        (ref.targeted(EVEN, ONE), log(4)),
        (ref.targeted([0.0, log(3)], [False, False], [0.25, 0.75]), log(4) - 0.75 * log(3)),
        (ref.lws([0.0] * 4, ONE), 1 / 2),
        (ref.lws([0.0] * 4, ONE, beta=5), 3 / 8 + 5 / 8),
        (ref.lws([log(3), log(3)], [False, True], [1, 1], beta=2), 1 / 4 + 2 * 3 / 4),
    ],
)
def test_losses_at_logits_worked_out_by_hand(found: Any, expected: float) -> None:
    assert isclose(found, expected, rel_tol=1e-14)


def test_losses_at_extreme_logits() -> None:
    wide = [1e4, -1e4]
    assert ref.scl_nl(wide, 0) == ref.op(wide, 0) == ref.cc(wide, [True, False]) == 20000
    assert isclose(ref.l_uw(wide, 0), log(1 + exp(1)), rel_tol=1e-14)
    assert isclose(ref.l_w(wide, 0), log(1 + exp(1)), rel_tol=1e-14)  # the weight is 1 + 0
    assert isclose(ref.op_w(wide, 0), (1 + 1e-6) * 20000, rel_tol=1e-14)  # p = w = 1
    assert 0 < ref.scl_nl(wide, 1) < 1e-300


def test_scarce_by_hand() -> None:
    level = [[0.0, 0.0], [0.0, 0.0]]
    # each class: (1/2) log 2 + |log 2 - (1/2) log 2|
    crossed = [[True, False], [False, True]]
    assert isclose(ref.scarce(level, crossed), 2 * log(2), rel_tol=1e-14)
    # class 1 is ruled out nowhere: its part is |log 2 - 0|; the second row rules out nothing
    alone = [[True, False], [False, False]]
    assert isclose(ref.scarce(level, alone), 2 * log(2), rel_tol=1e-14)
    assert isclose(ref.scarce([[0.0, 0.0], [9.0, 9.0]], alone), 2 * log(2), rel_tol=1e-14)
    # pi = (0, 1): class 0 log 2 + |log 2 - log 2|, class 1 0 + |log 2|
    assert isclose(ref.scarce(level, crossed, [0.0, 1.0]), 2 * log(2), rel_tol=1e-14)
    # |.| at work: rows (-1e4, 0) and (1e4, 0) that rule out 0 and 1, weights 3 and 1:
    # class 0: 0 + |3/4 1e4 - 1/2 1e4|, class 1: log 2 as above
    found = ref.scarce([[-1e4, 0.0], [1e4, 0.0]], crossed, weight=[3, 1])
    assert isclose(found, 2500 + log(2), rel_tol=1e-14)


F = [[0.3, -1.0, 2.0], [1.5, 0.2, -0.4], [0.0, 3.0, 0.5], [-2.0, 0.1, 0.7]]
E = [[True, False, False], [False, True, True], [False, True, False], [False, False, True]]


@pytest.mark.parametrize("prior", [None, [0.2, 0.5, 0.3]])
@pytest.mark.parametrize("split", ["ordinary", "excluded"])
@pytest.mark.parametrize("rule", ["free", "nn", "ga"])
def test_the_uniform_transition_gives_the_uniform_rule(rule: str, split: str, prior: Any) -> None:
    uniform = [[0.0 if y == c else 0.5 for c in range(3)] for y in range(3)]
    parts = (ref.ordinary_parts if split == "ordinary" else ref.excluded_parts)(F, E, prior)
    batch = {"free": ref.free_batch, "nn": ref.nn_batch}
    expected = ref.ga_batch(parts, ref.counts(E)) if rule == "ga" else batch[rule](parts)
    found = ref.corrected_with_transition(F, E, uniform, rule, split, prior)
    assert isclose(found, expected, rel_tol=1e-14)


@pytest.mark.parametrize("split", ["ordinary", "excluded"])
def test_a_class_ruled_out_by_one_class_alone_is_its_ordinary_loss(split: str) -> None:
    """Class y always rules out y + 1: c says y = c - 1, and the loss is -log p_{c-1}."""
    cycle = [[0.0, 1.0, 0.0], [0.0, 0.0, 1.0], [1.0, 0.0, 0.0]]
    expected = ref.mean_over_pairs(lambda f, c: -ref.log_softmax(f)[c - 1], F, E)
    for rule in ("free", "nn", "ga"):
        found = ref.corrected_with_transition(F, E, cycle, rule, split)
        assert isclose(found, expected, rel_tol=1e-14)


def test_revisions_by_hand() -> None:
    f = [log(1), log(3), log(4), log(2)]
    some = [False, False, True, True]
    assert floats(ref.revise_proden(f, some)) == pytest.approx([1 / 4, 3 / 4, 0, 0])
    assert floats(ref.revise_lws(f, some)) == pytest.approx([1 / 4, 3 / 4, 2 / 3, 1 / 3])
    assert floats(ref.revise_lws(f, [False] * 4)) == pytest.approx([0.1, 0.3, 0.4, 0.2])
    # |f - 1| f
    assert floats(ref.revise_cavl([2.0, 3.0, -1.0], [False, True, False])) == [1, 0, 0]
    assert floats(ref.revise_cavl([0.5, 0.9], [False, False])) == [1, 0]  # 0.25 and 0.09
    assert floats(ref.revise_cavl([-2.0, -1.0, 0.0], [False, False, True])) == [0, 1, 0]
    assert floats(ref.revise_cavl([2.0, 2.0, 2.0], [False, True, False])) == [0.5, 0, 0.5]


def test_pop_purifies_at_epoch_21_and_the_released_weights_come_back() -> None:
    out, small = [[False, False, True]], exp(-10) / (1 + exp(-10))
    epochs = [[[0.0, -10.0, 5.0]]] * 23
    found = ref.pop_epochs(epochs, out)
    for epoch in (1, 20, 22, 23):
        assert floats(found[epoch - 1][0]) == pytest.approx([1 - small, small, 0], rel=1e-14)
    assert floats(found[21 - 1][0]) == [1, 0, 0]
    kept = ref.pop_epochs(epochs, out, authors=True)
    assert found[:21] == kept[:21]
    assert floats(kept[22 - 1][0]) == floats(kept[23 - 1][0]) == [1, 0, 0]


def test_pop_asks_more_once_nothing_leaves() -> None:
    """A ratio between theta and theta (1 + increase) leaves at the second purification."""
    found = ref.pop_epochs([[[0.0, -log(999.5)]]] * 26, [[False, False]])
    assert floats(found[21 - 1][0])[1] == pytest.approx(1 / 1000.5)
    assert floats(found[26 - 1][0]) == [1, 0]
    slower = ref.pop_epochs([[[0.0, -log(999.5)]]] * 26, [[False, False]], increase=0.0001)
    assert floats(slower[26 - 1][0])[1] == pytest.approx(1 / 1000.5)


def test_pop_keeps_the_last_candidate_and_averages_five_epochs() -> None:
    first, second = [[[-10.0, 0.0]]], [[[10.0, 0.0]]]
    found = ref.pop_epochs(first * 21 + second * 5, [[False, False]])
    assert floats(found[21 - 1][0]) == floats(found[26 - 1][0]) == [0, 1]
    mixed = ref.pop_epochs(first * 18 + second * 3, [[False, False]])
    share = (3 / (1 + exp(-10)) + 2 / (1 + exp(10))) / 5
    assert floats(mixed[21 - 1][0]) == pytest.approx([share, 1 - share], rel=1e-14)


def test_crosel_selects_from_the_end_of_epoch_10() -> None:
    sure, even = [log(96), log(2), log(2)], [0.0, 0.0, 0.0]
    out = [[False, False, True]] * 2
    found = ref.crosel_epochs([[sure, even]] * 10, out)
    assert floats(found[8][0]) == pytest.approx([96 / 98, 2 / 98, 0])
    # half the rows are selected: 2 (1 - 1/2) p, and 1 / (1/2) on the prediction
    assert floats(found[9][0]) == pytest.approx([0.96 + 2, 0.02, 0])
    assert floats(found[9][1]) == pytest.approx([1 / 3, 1 / 3, 0])


def test_crosel_selects_nothing_unsteady_ruled_out_or_unsure() -> None:
    sure, other = [log(96), log(2), log(2)], [log(2), log(96), log(2)]
    candidates, out = [False, False, True], [True, False, False]
    for last, excluded, threshold in (
        ([sure, other, sure], candidates, 0.5),  # max mean (0.96 + 0.02 + 0.96) / 3
        ([sure, sure, sure], out, 0.9),
        ([sure, sure, sure], candidates, 0.97),
    ):
        epochs = [[sure]] * 7 + [[f] for f in last]
        found = ref.crosel_epochs(epochs, [excluded], threshold)
        expected = [0 if excluded[j] else 2 * [0.96, 0.02, 0.02][j] for j in range(3)]
        assert floats(found[9][0]) == pytest.approx(expected)


def test_crosel_asks_for_more_than_a_twentieth() -> None:
    sure, even = [log(96), log(2), log(2)], [0.0, 0.0, 0.0]
    out = [[False, False, True]] * 20
    found = ref.crosel_epochs([[sure] + [even] * 19] * 10, out)
    assert floats(found[9][0]) == pytest.approx([1.9 * 0.96, 1.9 * 0.02, 0])


def test_conformal_cleaning_by_hand() -> None:
    """Scores of the calibration rows 0.5 and 0.8, beta 0.4, eps 1/2."""
    rows = [[log(0.5), log(0.3), log(0.2)], [log(0.2), log(0.2), log(0.6)]]
    out = [[False, False, True]] * 2
    every = [[True, True, False]] * 2
    assert ref.conformal_candidates(rows, out, [0, 1], 10) == every
    # row 0: 0.75 has rank 2/3 and 0.85 rank 1/3, against 0.45; row 1 would lose both: it keeps both
    cleaned = [[True, False, False], [True, True, False]]
    assert ref.conformal_candidates(rows, out, [0, 1], 11) == cleaned
    assert ref.conformal_candidates(rows, out, [0, 1], 11, alpha=0.3) == every
    # eps 1/16: 0.53125 and 0.71875, both have rank 2/3; row 1: 0.8125 twice has rank 1/3
    assert ref.conformal_candidates(rows, out, [0, 1], 14) == every
    assert ref.conformal_candidates(rows, out, [0], 14, alpha=0.05) == every  # rank 1/2 each
    assert ref.conformal_candidates(rows, out, [1], 11, alpha=0.2) == cleaned
