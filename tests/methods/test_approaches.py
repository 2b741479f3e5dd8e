"""The registry: eighteen rows, their families and batch forms, and rules of the batch."""

from __future__ import annotations

import pickle
from collections import Counter
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

import ruleout as ro
from ruleout.methods import PAPER

TABLE = {  # group and label of the paper's tables
    "log": ("upper-bound", "LOG"),
    "exp": ("upper-bound", "EXP"),
    "mae": ("bounded", "MAE"),
    "mse": ("bounded", "MSE"),
    "gce": ("bounded", "GCE"),
    "phuber": ("bounded", "PHuber-CE"),
    "cce": ("unbounded", "CCE"),
    "clpl": ("partial-label", "CLPL"),
    **{f"{n}-before": ("before-shuffle", n.upper()) for n in ("ga", "nn", "free", "pc")},
    **{f"{n}-after": ("after-shuffle", n.upper()) for n in ("ga", "nn", "free", "pc")},
    "forward-before": ("before-shuffle", "Forward"),
    "forward-after": ("after-shuffle", "Forward"),
}


def test_the_eighteen_rows_of_the_paper() -> None:
    assert len(PAPER) == 18
    assert set(PAPER) == set(TABLE)
    assert ro.approaches()[:18] == list(PAPER)
    for name, (family, label) in TABLE.items():
        row = ro.approach(name)
        assert (row.name, row.family, row.label) == (name, family, label)
        assert row.paper


def test_forms() -> None:
    forms = Counter(ro.approach(name).form for name in PAPER)
    assert forms == {"whole": 8, "pairs-before": 5, "pairs-after": 5}
    assert len(ro.approaches()) == len(set(ro.approaches()))


def test_variants_have_their_own_names() -> None:
    names = ro.approaches()
    for name in ("free-2019", "nn-2019", "ga-2019", "nn-by-excluded", "ga-by-excluded", "ova"):
        assert f"{name}-before" in names
        assert f"{name}-after" in names
    assert {"log-text", "exp-text"} <= set(names)


def test_unknown_names_suggest_the_nearest() -> None:
    with pytest.raises(ValueError, match="unknown approach 'ga-befor'; did you mean 'ga-before'"):
        ro.approach("ga-befor")
    with pytest.raises(
        ValueError, match="unknown approach 'GA'; did you mean 'ga-before' or 'ga-after'"
    ):
        ro.approach("GA")
    with pytest.raises(ValueError, match="unknown approach 'LOG'; did you mean 'log'"):
        ro.approach("LOG")
    with pytest.raises(ValueError, match="unknown loss 'lgo'; did you mean 'log'"):
        ro.losses.get("lgo")
    with pytest.raises(ValueError, match="unknown family 'bound'; did you mean 'bounded'"):
        ro.approaches(family="bound")
    with pytest.raises(ValueError, match=r"loss 'gce' has no option 'p'; its options are \['q'\]"):
        ro.approach("gce", p=1)
    with pytest.raises(ValueError, match="loss 'log' has no option 'q'; it has no options"):
        ro.approach("log", q=1)
    with pytest.raises(ValueError, match="loss 'ga' has no option 'q'"):
        ro.approach("ga-before", q=1)


def test_options_reach_the_loss() -> None:
    logits = torch.randn(5, 4, generator=torch.Generator().manual_seed(0))
    sets = ro.draw([0, 1, 2, 3, 0], 4)
    found = ro.approach("gce", q=0.3).batch_loss(logits, sets)
    assert torch.equal(found, ro.losses.get("gce", q=0.3)(logits, sets).mean())
    assert not torch.equal(found, ro.approach("gce").batch_loss(logits, sets))
    q = np.full((4, 4), 1 / 3) * (1 - np.eye(4))
    by_hand = ro.approach("forward-after", transition=q).batch_loss(logits, sets)
    assert torch.allclose(by_hand, ro.approach("forward-after").batch_loss(logits, sets))


@pytest.mark.parametrize(
    ("name", "options", "sentence"),
    [
        ("gce", {"q": 0}, "0 < q <= 1"),
        ("gce", {"q": 1.5}, "0 < q <= 1"),
        ("phuber", {"tau": -1}, "tau > 0"),
        ("phuber", {"tau": float("nan")}, "tau > 0"),
    ],
)
def test_impossible_options_are_refused_at_once(
    name: str, options: dict[str, float], sentence: str
) -> None:
    with pytest.raises(ValueError, match=sentence):
        ro.losses.get(name, **options)


def test_options_may_differ_between_stacked_models() -> None:
    logits = torch.randn(2, 5, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    sets = ro.draw([0, 1, 2, 3, 0], 4)
    for name, option in (("gce", "q"), ("phuber", "tau")):
        values = torch.tensor([0.3, 0.9], dtype=torch.float64)
        both = ro.approach(name, **{option: values[:, None, None]}).batch_loss(logits, sets)
        for i in range(2):
            alone = ro.approach(name, **{option: float(values[i])}).batch_loss(logits[i], sets)
            assert torch.allclose(both[i], alone)


def test_weights_and_priors_of_the_wrong_shape_are_refused() -> None:
    f, sets = torch.zeros(6, 4), ro.draw([0, 1, 2, 3, 0, 1], 4)
    for name in ("log", "nn-after", "pc-after"):
        row = ro.approach(name)
        with pytest.raises(ValueError, match=r"weight is \(6, 1\), but must fit \(6,\)"):
            row.batch_loss(f, sets, weight=torch.ones(6, 1))
        with pytest.raises(ValueError, match=r"prior is \(6, 4\), but must fit \(4,\)"):
            row.batch_loss(f, sets, prior=torch.full((6, 4), 0.25))
        with pytest.raises(ValueError, match="prior must hold shares that sum to 1"):
            row.batch_loss(f, sets, prior=[1, 2, 3, 4])
        stacked = torch.zeros(2, 6, 4)
        one = row.batch_loss(stacked, sets, weight=np.ones((2, 6))[:, ::-1])
        assert torch.allclose(one, row.batch_loss(stacked, sets))
    with pytest.raises(ValueError, match=r"rate is \(6, 1\), but must fit \(6,\)"):
        ro.losses.answered(f, sets, torch.ones(6, 1) / 2)


def test_sets_may_be_stacked_where_logits_are_not() -> None:
    f = torch.randn(6, 4, generator=torch.Generator().manual_seed(0))
    y = [0, 1, 2, 3, 0, 1]
    stack = np.stack([ro.draw(y, 4, 1, seed=seed).excluded for seed in range(3)])
    for name in ro.approaches():
        row = ro.approach(name)
        found = row.batch_loss(f, stack)
        alone = torch.stack([row.batch_loss(f, one) for one in stack])
        assert torch.allclose(found, alone), name


def test_before_rows_with_several_classes_are_refused() -> None:
    sets = ro.draw([0, 1], 4, 2)
    for name in ("ga-before", "pc-before", "forward-before"):
        with pytest.raises(ValueError, match="a row rules out 2 classes, but this approach takes"):
            ro.approach(name).batch_loss(torch.zeros(2, 4), sets)


@pytest.mark.parametrize("kind", [np.array, torch.tensor])
@pytest.mark.parametrize(
    ("excluded", "said"),
    [
        ([[2, 0, 0]], "values other than 0 and 1"),
        ([[0.5, 0, 0]], "values other than 0 and 1"),
        ([[1, 1, 1]], "a row rules out every class; leave at least one possible"),
    ],
)
def test_masks_that_cannot_be_are_refused(excluded: Any, said: str, kind: Any) -> None:
    for call in (ro.approach("log").batch_loss, ro.losses.get("log"), ro.criterion("risk")):
        with pytest.raises(ValueError, match=said):
            call(torch.zeros(1, 3), kind(excluded))


def test_before_rows_are_also_checked_as_tensors_but_not_where_nobody_can_look() -> None:
    row, logits = ro.approach("pc-before"), torch.arange(24.0).double().sin().view(3, 2, 4)
    two = torch.tensor([[1, 1, 0, 0], [0, 1, 0, 0]])
    with pytest.raises(ValueError, match="a row rules out 2 classes, but this approach takes"):
        row.batch_loss(logits, two)
    one = torch.tensor([[1, 0, 0, 0], [0, 1, 0, 0]])
    mapped = torch.vmap(lambda f, e: row.batch_loss(f, e))(logits, one.expand(3, 2, 4))
    assert torch.allclose(mapped, row.batch_loss(logits, one))


def test_the_family_of_a_single_label_loss_is_kept() -> None:
    ro.losses.register("mine", kind="single", family="ours", paper="y")(torch.zeros_like)
    try:
        assert ro.approaches(family="ours") == ["mine-before", "mine-after"]
    finally:
        ro.losses.forget("mine")


def test_an_approach_is_taken_where_its_name_is_and_can_have_another_one() -> None:
    mine = ro.approach("gce", q=0.3).named("gce-0.3", "GCE (q = 0.3)")
    assert ro.approach(mine) is mine
    assert ro.approach(mine, q=0.5).options == {"q": 0.5}
    assert (mine.name, mine.label, mine.family) == ("gce-0.3", "GCE (q = 0.3)", "bounded")
    assert pickle.loads(pickle.dumps(mine)) == mine  # our own object
    x, y = ro.datasets.load("digits").train
    sets = ro.draw(y[:50], 10, seed=0)
    fit = ro.fit_grid(x[:50], sets, approach=mine, epochs=1)
    assert (fit.record["approach"], fit.record["approach_options"]) == ("gce-0.3", {"q": 0.3})


def test_one_approach_is_compared_with_itself_under_other_options() -> None:
    x, y = ro.datasets.load("digits").train
    mine = ro.approach("gce", q=0.3).named("gce-0.3", "GCE (q = 0.3)")
    options: dict[str, Any] = {"grid": {"learning_rate": [0.1]}, "epochs": 2, "trials": 1}
    sets = ro.draw(y[:200], 10, seed=0)
    table = ro.compare(x[:200], sets, approaches=["gce", mine], reference="gce-0.3", **options)
    assert {row.approach: row.label for row in table.rows} == {
        "gce": "GCE",
        "gce-0.3": "GCE (q = 0.3)",
    }


def test_a_batch_rule_of_a_user_is_two_rows_that_keep_the_contract() -> None:
    @ro.methods.register_rule("mine", paper="a test")
    def mine(logits: Tensor, excluded: Tensor, prior: Any, weight: Any) -> Tensor:
        del prior
        pairs = excluded if weight is None else excluded * weight.unsqueeze(-1)
        total = (pairs * logits.softmax(-1).square()).sum((-2, -1))
        return total / pairs.sum((-2, -1)).clamp(min=1e-300)

    try:
        with pytest.raises(ValueError, match="'mine' is registered already"):
            ro.methods.register_rule("mine", paper="y")
        assert ro.approach("mine-before").family == "before-shuffle"
        ro.testing.check_approach("mine-after")
        assert pickle.loads(pickle.dumps(ro.approach("mine-after"))).source.function is mine
    finally:
        ro.methods.forget_rule("mine")
    assert "mine-after" not in ro.approaches()


@pytest.mark.parametrize("name", ro.approaches())
def test_approaches_pickle_compare_and_hash(name: str) -> None:
    row = ro.approach(name)
    again = pickle.loads(pickle.dumps(row))  # our own object, made in the line itself
    assert again == row == ro.approach(name)
    assert len({row, again, ro.approach(name)}) == 1


def test_options_take_part_in_comparison() -> None:
    assert ro.approach("gce", q=0.5) != ro.approach("gce")
    q = np.full((4, 4), 1 / 3) * (1 - np.eye(4))
    assert ro.approach("forward-after", transition=q) == ro.approach("forward-after", transition=q)
    assert ro.approach("forward-after", transition=q) != ro.approach("forward-after")


def test_names_that_would_hide_a_row_are_refused() -> None:
    with pytest.raises(ValueError, match="'pc-before' ends like an approach over pairs"):
        ro.losses.register("pc-before", family="x", paper="y")
    with pytest.raises(ValueError, match="unknown kind 'sngle'"):
        ro.losses.register("mine", kind="sngle", family="x", paper="y")  # type: ignore[arg-type]
    ro.losses.register("nn", kind="single", family="x", paper="y")(torch.zeros_like)
    try:
        with pytest.raises(ValueError, match="'nn' is the name of a batch rule; rename your loss"):
            ro.approaches()
    finally:
        ro.losses.forget("nn")
    with pytest.raises(ValueError, match="unknown loss 'nn'"):
        ro.losses.forget("nn")


def test_ga_is_not_decided_by_rounding() -> None:
    """At s = k-1 the parts of absent classes are zero: float32 must not take them for negative."""
    for seed in range(20):
        logits = 2 * torch.randn(
            7, 12, dtype=torch.float64, generator=torch.Generator().manual_seed(seed)
        )
        sets = ro.draw(np.arange(7), 12, 11, seed=seed)
        row = ro.approach("ga-after")
        exact, rough = row.batch_loss(logits, sets), row.batch_loss(logits.float(), sets)
        assert torch.allclose(rough.double(), exact, rtol=1e-4)
        assert torch.allclose(exact, ro.approach("free-after").batch_loss(logits, sets))


def test_bad_transition_matrices_are_refused() -> None:
    f = torch.zeros(1, 3)
    with pytest.raises(ValueError, match=r"transition matrix is \(2, 2\), but there are 3 classes"):
        ro.losses.get("forward", transition=np.eye(2))(f)
    with pytest.raises(ValueError, match="probabilities that sum to 1"):
        ro.losses.get("forward", transition=np.ones((3, 3)))(f)


def test_bad_tensors_are_refused_in_words() -> None:
    f = torch.zeros(2, 3)
    with pytest.raises(ValueError, match=r"logits \(2, 3\) and excluded \(2, 4\) must both end"):
        ro.approach("log").batch_loss(f, torch.zeros(2, 4))
    with pytest.raises(TypeError, match="floating-point torch tensor"):
        ro.approach("log").batch_loss(f.int(), f)
    with pytest.raises(TypeError, match="needs excluded"):
        ro.losses.get("log")(f)


def uneven() -> tuple[torch.Tensor, torch.Tensor]:
    """A batch whose ruled-out classes are far from balanced, as on Yeast."""
    random = torch.Generator().manual_seed(3)
    logits = torch.randn(60, 4, dtype=torch.float64, generator=random)
    y = torch.multinomial(torch.tensor([0.7, 0.1, 0.1, 0.1]), 60, True, generator=random)
    return logits, torch.from_numpy(ro.draw(y.numpy(), 4, 1, seed=1).excluded)


def test_the_two_forms_agree_for_uniform_priors_only() -> None:
    logits, excluded = uneven()
    even = torch.full((4,), 0.25, dtype=torch.float64)
    for rule in ("free", "nn", "ga"):
        new, old = ro.approach(f"{rule}-before"), ro.approach(f"{rule}-2019-before")
        a, b = (row.batch_loss(logits, excluded, prior=even) for row in (new, old))
        assert torch.allclose(a, b)
    a, b = (
        ro.approach(name).batch_loss(logits, excluded)
        for name in ("free-before", "free-2019-before")
    )
    assert (a - b).abs() > 1e-3


def test_free_is_the_mean_of_eq_3_when_the_prior_is_the_batch_s_own() -> None:
    logits, excluded = uneven()
    eq3 = ro.losses.get("free")(logits)[excluded].mean()
    for name in ("free-before", "free-after"):
        assert torch.allclose(ro.approach(name).batch_loss(logits, excluded), eq3)


def test_nn_is_never_below_free_nor_below_zero() -> None:
    for seed in range(20):
        logits = 4 * torch.randn(9, 5, generator=torch.Generator().manual_seed(seed))
        sets = ro.draw(np.arange(9) % 5, 5, seed=seed)
        free = ro.approach("free-after").batch_loss(logits, sets)
        for name in ("nn-after", "nn-by-excluded-after"):
            assert ro.approach(name).batch_loss(logits, sets) >= max(float(free), 0) - 1e-4


def test_ga_descends_when_all_parts_are_positive_and_ascends_otherwise() -> None:
    sets = ro.LabelSets.from_single(np.arange(8) % 4, 4)
    calm = torch.zeros(8, 4)
    free, ga = ro.approach("free-before"), ro.approach("ga-before")
    assert torch.allclose(ga.batch_loss(calm, sets), free.batch_loss(calm, sets))
    fitted = (-30 * torch.from_numpy(sets.excluded)).float()
    at = fitted.clone().requires_grad_()
    (up,) = torch.autograd.grad(ga.batch_loss(at, sets), at)
    (down,) = torch.autograd.grad(free.batch_loss(at, sets), at)
    assert ga.batch_loss(fitted, sets) > 0 > free.batch_loss(fitted, sets)
    assert (up * down).sum() < 0


def test_absent_classes_give_no_nan() -> None:
    """Libcll's URE-GA trains on NaN in every batch that lacks a class."""
    logits = torch.randn(2, 30, generator=torch.Generator().manual_seed(0), requires_grad=True)
    sets = ro.LabelSets.from_single([3, 3], 30)
    for rule in ("free", "nn", "ga", "free-2019", "nn-2019", "ga-2019", "ga-by-excluded"):
        for form in ("before", "after"):
            value = ro.approach(f"{rule}-{form}").batch_loss(logits, sets)
            (slope,) = torch.autograd.grad(value, logits)
            assert value.isfinite()
            assert slope.isfinite().all()


def test_both_decompositions_give_the_same_mean_over_the_same_pairs() -> None:
    """Pairs walked one by one, or masked in the matrix: one number."""
    logits = torch.randn(7, 5, dtype=torch.float64, generator=torch.Generator().manual_seed(2))
    sets = ro.draw(np.arange(7) % 5, 5, seed=2)
    rows, codes = np.nonzero(sets.excluded)
    pairs = ro.LabelSets.from_single(codes, 5)
    for base in ("ga", "nn", "free", "pc", "forward", "ova", "pc-ramp"):
        before = ro.approach(f"{base}-before").batch_loss(logits[rows], pairs)
        after = ro.approach(f"{base}-after").batch_loss(logits, sets)
        assert torch.allclose(before, after)


def test_ga_needs_the_shares_of_the_whole_run() -> None:
    """With them it learns; with each batch's own it learns the reverse, as the guide says."""
    digits = ro.datasets.load("digits")
    x, y = torch.from_numpy(digits.x_train), torch.from_numpy(digits.y_train)
    sets = ro.draw(digits.y_train, 10, seed=0)
    excluded = torch.from_numpy(sets.excluded)
    random = torch.Generator().manual_seed(0)
    accuracy = []
    for prior in (sets.shares, None):
        model = ro.models.build("linear", 64, 10, seed=0)
        adam = torch.optim.Adam(model.parameters(), lr=1e-2)
        for _ in range(300):
            rows = torch.randint(len(x), (256,), generator=random)
            loss = ro.approach("ga-after").batch_loss(model(x[rows]), excluded[rows], prior=prior)
            adam.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            adam.step()
        accuracy.append(float((model(x).argmax(1) == y).double().mean()))
    assert accuracy[0] > 0.4
    assert accuracy[1] < 0.1
