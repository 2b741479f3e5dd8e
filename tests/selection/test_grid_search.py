"""Choosing without true labels: splits, rules, and the search that uses them."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pytest
import torch

import ruleout as ro
from ruleout.selection import _foretold as foretold
from ruleout.selection import _likeliest as likeliest
from ruleout.selection import _optimism as optimism
from ruleout.selection import _Outcomes as Outcomes
from ruleout.selection import choose, search, split
from ruleout.training import Trial, Watch, fit_grid

GRID = {"learning_rate": [1e-1, 1e-2, 1e-6], "weight_decay": [0.0, 1e-3]}


@pytest.fixture(scope="module")
def digits() -> tuple[Any, Any, list[ro.LabelSets]]:
    x, y = ro.datasets.load("digits").train
    return x, y, [ro.draw(y, classes=10, seed=seed) for seed in range(2)]


@pytest.mark.parametrize(
    ("n", "share", "aside"), [(1484, 0.1, 149), (600, 0.1, 60), (2, 0.1, 1), (10, 0.99, 9)]
)
def test_a_split_rounds_up_and_leaves_a_row(n: int, share: float, aside: int) -> None:
    kept, held = split(n, share, seed=0)
    assert len(held) == aside
    assert sorted([*kept, *held]) == list(range(n))
    assert not np.array_equal(held, split(n, share, seed=1)[1]) or n == 2


def test_the_best_mean_over_trials_is_chosen() -> None:
    table = [[0.9, 0.5, 0.6], [0.1, 0.7, 0.6]]
    assert choose(table) == 1
    assert choose(table, higher_is_better=False) == 0


def test_what_diverged_is_never_chosen() -> None:
    configs = [{"learning_rate": 0.1, "weight_decay": decay} for decay in (0.0, 1.0)]
    assert choose([0.5, np.nan]) == 0
    assert choose([[0.5, 0.9], [0.5, np.nan]]) == 0
    one: dict[str, Any] = {"rule": "one-standard-error", "configurations": configs}
    assert choose([0.5, np.nan], [np.inf, np.inf], **one) == 0


def test_one_standard_error_prefers_strong_decay_then_small_rates() -> None:
    configs = [
        {"learning_rate": rate, "weight_decay": decay}
        for decay in (0.0, 0.1)
        for rate in (0.1, 0.01)
    ]
    one: dict[str, Any] = {"rule": "one-standard-error", "configurations": configs}
    assert choose([0.80, 0.70, 0.79, 0.79], [0.02] * 4, **one) == 3
    assert choose([0.80, 0.70, 0.79, 0.70], [0.02] * 4, **one) == 2
    assert choose([0.80, 0.70, 0.70, 0.70], [0.02] * 4, **one) == 0
    two = [[0.80, 0.7, 0.785, 0.7]] * 2  # the error of a mean of two is smaller by the root of two
    assert choose(two, [[0.02] * 4] * 2, **one) == 0


def test_a_search_finds_what_true_labels_would_choose(digits: Any) -> None:
    x, y, sets = digits
    train, test = split(len(x), 0.2, seed=9)
    own = [s[train] for s in sets]
    found = search(x[train], own, grid=GRID, epochs=10)
    watch = {"test": Watch(y[test], x=x[test])}
    oracle = fit_grid(x[train], own, grid=GRID, epochs=10, watch=watch)
    truth = oracle.history["test/accuracy"][..., -1].mean(0)
    assert truth[found.chosen[0]] > truth.max() - 0.03
    assert found.final is not None
    assert found.final.shape == (2, 1)
    mean, error = found.estimate
    assert 0.7 < mean <= 1.05
    assert 0 < error < 0.1


def test_rows_set_aside_do_not_train(digits: Any) -> None:
    x, _, sets = digits
    found = search(x, sets[0], grid=GRID, epochs=2, refit=False, seed=3)
    kept, _ = split(len(x), seed=3)
    alone = fit_grid(x, [Trial(sets[0][kept], kept, seed=3)], grid=GRID, epochs=2)
    for name, value in alone.weights.items():
        assert np.array_equal(value, found.grid.weights[name])
    assert found.final is None


def test_the_refit_is_the_chosen_configuration_on_all_rows(digits: Any) -> None:
    x, _, sets = digits
    found = search(x, sets, grid=GRID, epochs=2)
    alone = fit_grid(x, sets, grid=[found.configuration], epochs=2)
    assert found.final is not None
    for name, value in alone.weights.items():
        assert np.allclose(value, found.final.weights[name], atol=1e-6)


def test_trials_can_choose_for_themselves(digits: Any) -> None:
    x, _, sets = digits
    found = search(x[:300], [s[:300] for s in sets], grid=GRID, epochs=3, per_trial=True)
    assert found.final is not None
    for trial, place in enumerate(found.chosen):
        best = np.nanargmax(found.estimates[trial])
        assert place == best
        own = fit_grid(
            x[:300], [s[:300] for s in sets], grid=[found.grid.configurations[place]], epochs=3
        )
        weights = found.final.weights["0.weight"][trial, 0]
        assert np.allclose(weights, own.weights["0.weight"][trial, 0], atol=1e-6)


def test_patience_also_chooses_the_epochs(digits: Any) -> None:
    x, _, sets = digits
    found = search(x, sets[0], grid={"learning_rate": [0.3]}, epochs=60, patience=3)
    assert found.final is not None
    assert found.final.epochs[-1] == found.grid.stopped[0, 0] < 60


@pytest.mark.parametrize("criterion", ["accuracy", "consistency", "risk"])
def test_every_criterion_can_choose(digits: Any, criterion: str) -> None:
    x, _, sets = digits
    found = search(x, sets[0], grid=GRID, epochs=5, criterion=criterion)
    assert found.configuration["learning_rate"] > 1e-6


def test_there_is_no_place_for_true_labels() -> None:
    names = {*inspect.signature(search).parameters, *inspect.signature(choose).parameters}
    assert not names & {"y", "labels", "truth", "target"}


def test_a_group_is_set_aside_whole_or_not_at_all() -> None:
    groups = np.repeat(["a", "b", "c", "d", "e", "f"], [10, 20, 10, 5, 30, 25])
    for seed in range(20):
        kept, aside = split(100, 0.2, seed=seed, groups=groups)
        assert not {*groups[kept]} & {*groups[aside]}
        assert sorted([*kept, *aside]) == list(range(100))
        assert 5 <= len(aside) <= 20
    large = np.repeat([0, 1], [40, 60])
    assert {len(split(100, 0.1, seed=seed, groups=large)[1]) for seed in range(9)} == {40}


def test_rows_that_are_groups_of_their_own_are_split_as_rows_are() -> None:
    for one, other in zip(
        split(37, 0.1, seed=4), split(37, 0.1, seed=4, groups=range(37)), strict=True
    ):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize(
    ("groups", "sentence"),
    [
        ([1, 1, 1], "all rows are of one group; give at least two groups"),
        ([1, 2], r"groups has shape \(2,\); give 3, one for each row"),
        ([1.0, np.nan, 2.0], "row 1: the group is nan; name a group for each row"),
        (["a", None, "b"], "row 1: the group is None; name a group for each row"),
        (np.array([[1], 2, 3], object), r"row 0: the group is \[1\]; name a group for each row"),
    ],
)
def test_groups_that_cannot_be_used_are_refused(groups: Any, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        split(3, 0.1, seed=0, groups=groups)


def test_trials_whose_groups_differ_in_size_choose_together(digits: Any) -> None:
    """What is added to bring the rows set aside to one length changes no estimate."""
    x, _, sets = digits
    groups = np.repeat(np.arange(40), [31, 54] * 20)
    rows = np.arange(1700)
    trials = [Trial(one[:1700], rows=rows, groups=groups, seed=t) for t, one in enumerate(sets)]
    grid = {"learning_rate": [1e-1, 1e-3]}
    both = search(x, trials, grid=grid, epochs=2, refit=False)
    assert len({len(split(1700, 0.1, seed=t, groups=groups)[1]) for t in range(2)}) == 2
    for place, trial in enumerate(trials):
        alone = search(x, [trial], grid=grid, epochs=2, refit=False)
        np.testing.assert_allclose(both.estimates[place], alone.estimates[0], atol=1e-5)
        np.testing.assert_allclose(both.errors[place], alone.errors[0], atol=1e-5)


# ---------------------------------------------------------------------- folds, and honest numbers


def earned(found: Any, x: Any, sets: ro.LabelSets) -> tuple[Any, Any]:
    """What every configuration's predictions of rows it did not train on earn, row by row."""
    n, k = sets.shape
    value, weight = np.zeros((len(found.grid.configurations), n)), np.zeros(n)
    for fold, rows in enumerate(found.aside):
        for c in range(len(value)):
            logits = found.grid.module(fold, c)(torch.from_numpy(x[rows])).detach().numpy()
            for row, scores in zip(rows, logits, strict=True):
                stays = 1 - sets.sizes[row] / (k - 1)  # how often a wrong class stays possible
                value[c, row] = (scores.argmax() not in sets[int(row)]) - stays
                value[c, row] /= 1 - stays
                weight[row] = 1 / (0.5 * stays / (1 - stays) + 0.25)
    return value, weight


def test_folds_set_every_row_aside_once_and_choose_together(digits: Any) -> None:
    x, _, sets = digits
    own = sets[0][:203]
    found = search(x[:203], own, grid=GRID, epochs=8, folds=5, refit=False)
    assert found.grid.shape == (5, 6)
    assert sorted(np.concatenate(found.aside)) == list(range(203))
    for fold, rows in enumerate(found.aside):
        kept = np.setdiff1d(np.arange(203), rows)
        alone = fit_grid(x, [Trial(own[kept], kept, seed=0)], grid=GRID, epochs=8)
        for name, weights in alone.weights.items():
            assert np.allclose(weights[0], found.grid.weights[name][fold], atol=1e-5)
    value, weight = earned(found, x, own)
    np.testing.assert_allclose(found.estimates[0], value @ weight / weight.sum(), atol=1e-6)
    assert found.chosen[0] == np.argmax(value @ weight)


def test_groups_stay_whole_in_folds_and_few_of_them_make_fewer_folds(digits: Any) -> None:
    x, _, sets = digits
    groups = np.arange(120) % 7
    trial = Trial(sets[0][:120], rows=np.arange(120), groups=groups)
    found = search(x, [trial], grid=GRID, epochs=1, folds=5, refit=False)
    assert len(found.aside) == 3
    assert sum(len({*groups[rows]}) for rows in found.aside) == 7


def test_with_folds_the_epochs_are_the_mean_of_the_best(digits: Any) -> None:
    x, _, sets = digits
    one = {"learning_rate": [0.3]}
    found = search(x[:300], sets[0][:300], grid=one, epochs=60, patience=3, folds=4)
    assert found.final is not None
    assert found.final.epochs[-1] == round(found.grid.stopped.mean()) < 60


def outcomes(said: ro.labels.Evidence, predicted: Any, foretold: Any = 0.0) -> Outcomes:
    """Return what models did that predict so, ``[C, n]``, and foretell so, ``[n, C]``."""
    weight = said.credit.weight.mean(1)
    earned = np.stack([weight * said.credit.of(one).value for one in predicted], 1)
    kept, units = np.arange(len(predicted)), np.arange(len(weight))
    told = np.broadcast_to(foretold, earned.shape)
    return Outcomes(kept, said, np.asarray(predicted), weight, earned, told, units)


@pytest.mark.parametrize(
    ("law", "wrong", "chosen"), [(1, 6, 1), ("released", 2, 1), (1, 80, 0), (8, 12, 0)]
)
def test_the_likeliest_of_those_that_accuracy_cannot_tell_apart(
    law: Any, wrong: int, chosen: int
) -> None:
    """The second is wrong in some of 150 rows more, and foretells better what was said."""
    y = np.arange(150) % 10
    said = ro.evidence(ro.draw(y, 10, law, seed=0))
    right = np.where(np.arange(150) < 20, (y + 1) % 10, y)
    worse = np.where(np.arange(150) < 20 + wrong, (y + 1) % 10, y)
    tried = outcomes(said, [right, worse], np.array([-0.2, -0.1]))
    assert likeliest([tried]) == chosen


def test_trials_choose_together_what_diverged_in_none() -> None:
    said = ro.evidence(ro.draw(np.arange(40) % 4, 4, 1, seed=0))
    tried = outcomes(said, np.zeros((3, 40), int), np.array([0.0, 0.2, 0.1]))
    lost = tried._replace(kept=np.array([0, 2, 3]))
    assert likeliest([tried]) == 1
    assert likeliest([lost]) == 2
    assert likeliest([tried, lost]) == 2


def test_what_foretells_is_not_blamed_for_how_sure_it_is() -> None:
    """Too sure, or not sure enough, or with some rows that it knows nothing of."""
    random = np.random.default_rng(0)
    y = random.integers(5, size=400)
    costs = torch.from_numpy(ro.evidence(ro.draw(y, 5, "released", seed=0)).costs)
    logits = torch.from_numpy(2.0 * np.eye(5)[y] + random.normal(size=(400, 5)))
    alike = [float(foretold(scale * logits, costs).mean()) for scale in (1, 16, 0.5)]
    assert alike == pytest.approx([alike[0]] * 3)
    lost = torch.where(torch.arange(400)[:, None] % 5 == 0, 50 * logits.flip(0), logits)
    plain = -ro.losses.get("likelihood").function(lost, (costs > 0).double())
    assert foretold(lost, costs).mean() > plain.mean() + 0.5
    nothing = foretold(torch.zeros_like(logits), costs)
    left = torch.from_numpy(np.log((costs.numpy() == 0).mean(1)))
    np.testing.assert_allclose(nothing, left, atol=1e-9)


def test_what_the_likelihood_chose_owes_little_to_luck() -> None:
    """Fifty that guess, and foretell by chance: the accuracy of what is chosen is not too good."""
    random, k, n = np.random.default_rng(0), 4, 150
    y, predicted = random.integers(k, size=n), random.integers(k, size=(50, n))
    tried = outcomes(ro.evidence(ro.draw(y, k, seed=0)), predicted, random.normal(size=(n, 50)))
    own = likeliest([tried])
    by_likelihood = optimism(tried, own, predicted[own], 0, np.full((50, 50), np.inf))
    best = int(tried.earned.sum(0).argmax())
    assert by_likelihood < 0.02 < 0.05 < optimism(tried, best, predicted[best], 0)


@pytest.mark.parametrize("anew", [0.0, 0.5, 1.0])
def test_an_honest_number_takes_off_what_choosing_adds(anew: float) -> None:
    """Fifty configurations that guess: the best looks better than it is, the number does not.

    A share of the rows is guessed anew, as by models that are trained once more: of what choosing
    adds, these have as much less.
    """
    random, k, n, off = np.random.default_rng(0), 4, 150, []
    for seed in range(40):
        y, predicted = random.integers(k, size=n), random.integers(k, size=(50, n))
        said = ro.evidence(ro.draw(y, classes=k, seed=seed))
        best = int(outcomes(said, predicted).earned.sum(0).argmax())
        other = random.random(n) < anew
        unseen = np.where(other, random.integers(k, size=n), predicted[best])
        found: Any = said.judge(unseen)
        taken_off = optimism(outcomes(said, predicted), best, unseen, seed)
        off.append((found.estimate - 0.25, taken_off))
    too_good, taken = np.mean(off, 0)
    assert too_good == pytest.approx(0.125 * (1 - anew), abs=0.03)
    assert taken == pytest.approx(0.11 * (1 - anew), abs=0.03)


def test_no_error_on_rows_held_out_is_no_certainty() -> None:
    x = np.eye(4, dtype=np.float32)[np.arange(40) % 4] + np.arange(40)[:, None] / 1e4
    sets = ro.LabelSets.from_labels(np.arange(40) % 4, 4)
    grid = {"learning_rate": [0.1, 0.2]}
    (number,) = search(x, sets, grid=grid, epochs=50, folds=5, honest=True).numbers
    assert number is not None
    assert (number.estimate, number.high) == (1, 1)
    assert number.low == pytest.approx(1 / (1 + 1.959964**2 / 40))  # Wilson's: all folds agree


def test_where_sets_may_say_nothing_there_is_no_number(digits: Any) -> None:
    x, y, _ = digits
    sets = ro.draw(y[:60], classes=10, law=1, seed=0)
    trials = [
        Trial(sets, rows=np.arange(60), evidence=ro.evidence(sets, (wrong, 30))) for wrong in (1, 9)
    ]
    told: dict[str, Any] = {
        "grid": {"learning_rate": [0.1]},
        "epochs": 2,
        "folds": 5,
        "honest": True,
    }
    assert search(x, trials[:1], **told).numbers == [None]
    with pytest.raises(ValueError, match="no row held out tells anything about accuracy"):
        search(x, trials[1:], **told)


def test_a_search_goes_on_from_one_that_kept_its_moments(digits: Any) -> None:
    """As if it had trained at once; an honest number, whose models begin anew, is no hindrance."""
    x, _, (sets, _) = digits
    told: dict[str, Any] = {"grid": GRID, "refit": False, "precision": "float64"}
    first = search(x[:300], sets[:300], epochs=2, moments=True, folds=3, honest=True, **told)
    assert first.numbers is not None
    assert first.grid.state is not None
    left = [1, 2]
    told |= {"grid": [first.grid.configurations[place] for place in left], "folds": 3}
    start = first.grid.state.of(left)
    found = search(x[:300], sets[:300], epochs=3, start=start, **told)
    whole = search(x[:300], sets[:300], epochs=5, **told)
    assert np.allclose(found.estimates, whole.estimates, rtol=0, atol=1e-9)
    for name, weight in whole.grid.weights.items():
        assert torch.allclose(found.grid.weights[name], weight, rtol=0, atol=1e-9)
