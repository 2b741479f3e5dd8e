"""Modules that do what few do, and images whose axes are not where a model looks for them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import ruleout as ro
from ruleout.labels.errors import InputError
from ruleout.training import Trial, Watch, fit_grid

GRID = {"learning_rate": [1e-2, 1e-3]}
N = 90


@pytest.fixture(scope="module")
def images() -> tuple[Any, Any, ro.LabelSets]:
    x, y = ro.datasets.load("digits").train
    x, y = x[:N].reshape(-1, 1, 8, 8).astype(np.float32), y[:N]
    return x, y, ro.draw(y, classes=10, seed=0)


class Scaling(nn.Module):
    """Scales its input in place."""

    def __init__(self, classes: int) -> None:
        super().__init__()
        self.out = nn.Linear(64, classes)

    def forward(self, x: Tensor) -> Tensor:
        x /= 2
        out: Tensor = self.out(x.flatten(1))
        return out


class Outside(Scaling):
    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.out((x / 2).flatten(1))
        return out


class Branching(Scaling):
    """Looks at its numbers, which `vmap` cannot follow."""

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.out(x.flatten(1) if x.mean() > 0.3 else -x.flatten(1))
        return out


class Mixing(Scaling):
    """What it says of a row depends on the others of the batch, without any buffer."""

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.out(x.flatten(1))
        return (out - out.mean(0)).tanh()


def made(kind: type[nn.Module]) -> Callable[..., nn.Module]:
    return lambda _, classes: kind(classes)


def assert_equal(one: Any, two: Any, atol: float = 0.0) -> None:
    assert one.history.keys() == two.history.keys()
    for name, values in one.history.items():
        assert np.allclose(values, two.history[name], rtol=0, atol=atol), name


@pytest.mark.parametrize("approach", ["log", "rc", "cavl"])
@pytest.mark.parametrize("more", [{}, {"grid": GRID}])
def test_what_a_module_writes_to_its_input_reaches_nothing_else(
    images: Any, approach: str, more: dict[str, Any]
) -> None:
    """Not the training data, what is watched, other models, or the user's own rows."""
    x, y, sets = images
    before = x.copy()
    how: dict[str, Any] = {"approach": approach, "epochs": 3, "batch_size": 32, **more}
    how["watch"] = {"own": Watch(y), "other": Watch(y, x=x)}
    inside, outside = (fit_grid(x, sets, model=made(m), **how) for m in (Scaling, Outside))
    assert_equal(inside, outside)
    assert torch.equal(inside.logits(x), outside.logits(x))
    assert np.array_equal(x, before)


def test_a_classifier_leaves_its_input_as_it_is(images: Any) -> None:
    x, _, sets = images
    before = x.copy()
    for members in (1, 2):
        how: dict[str, Any] = {"epochs": 3, "members": members, "random_state": 0}
        one, two = (
            ro.RuleOutClassifier(model=made(m), **how).fit(x, sets) for m in (Scaling, Outside)
        )
        for _ in range(2):
            assert np.array_equal(one.predict_proba(x), two.predict_proba(x))
    assert np.array_equal(x, before)


def test_models_of_a_function_that_holds_a_module_are_apart(images: Any) -> None:
    """As where a trained body is given a new head."""
    x, _, sets = images
    body = nn.Conv2d(1, 4, 3, padding=1)
    start = body.weight.detach().clone()

    def headed(_: tuple[int, ...], classes: int) -> nn.Module:
        return nn.Sequential(body, nn.ReLU(), nn.Flatten(), nn.Linear(256, classes))

    fit = fit_grid(x, [sets, sets], model=headed, epochs=2)
    one = fit.module(0)
    said = one(torch.from_numpy(x))
    fit.module(1)
    assert torch.equal(one(torch.from_numpy(x)), said)
    assert torch.equal(body.weight, start)
    assert_equal(fit, fit_grid(x, [sets, sets], model=headed, epochs=2))
    clf = ro.RuleOutClassifier(model=headed, members=3, epochs=2).fit(x, sets)
    members: Any = clf.module_.members
    bodies = [member[0].weight for member in members]
    assert not torch.equal(bodies[0], bodies[1])


def test_modules_that_vmap_cannot_follow_train_one_after_another(images: Any) -> None:
    x, _, sets = images
    how: dict[str, Any] = {"model": made(Branching), "grid": GRID, "epochs": 2}
    fit = fit_grid(x, sets, **how)
    assert fit.record["stack"] == [1, 1]
    assert_equal(fit, fit_grid(x, sets, **how, stack=1))
    ro.RuleOutClassifier(model=made(Branching), epochs=1).fit(x, sets).resolve(x, sets)


def test_modules_that_mix_rows_see_none_that_fill_up_a_trial(images: Any) -> None:
    x, _, sets = images
    trials = [Trial(sets), Trial(sets[:40], np.arange(40))]
    how: dict[str, Any] = {"model": made(Mixing), "grid": GRID, "epochs": 2, "batch_size": 32}
    how["precision"] = "float64"
    assert_equal(fit_grid(x, trials, **how), fit_grid(x, trials, **how, stack=1), 1e-12)


def test_a_classifier_takes_images_in_any_form(images: Any) -> None:
    x, _, sets = images
    clf = ro.RuleOutClassifier(model=made(Outside), epochs=2, random_state=0).fit(x, sets)
    want = clf.predict_proba(x)
    learning = torch.from_numpy(x).requires_grad_()
    for rows in (torch.from_numpy(x), learning, x.tolist(), [*torch.from_numpy(x)]):
        again = ro.RuleOutClassifier(model=made(Outside), epochs=2, random_state=0)
        assert np.array_equal(again.fit(rows, sets).predict_proba(rows), want)
    with pytest.raises(ValueError, match="0 sample"):  # as for flat rows
        clf.predict_proba(x[:0])


def test_images_of_several_sizes_are_one_sentence(images: Any) -> None:
    x, _, sets = images
    for rows in ([*x[1:], x[0, :, 1:]], [*torch.from_numpy(x[1:]), torch.zeros(1, 7, 7)]):
        for call in (fit_grid, ro.RuleOutClassifier(epochs=1).fit):
            with pytest.raises(InputError, match="have several shapes; make them alike first"):
                call(rows, sets)


def test_axes_that_are_elsewhere_are_refused(images: Any) -> None:
    """Channels last: the numbers would fit, and be read as other pixels."""
    x, y, sets = images
    first = np.repeat(x, 3, 1)
    last = np.moveaxis(first, 1, -1)
    how: dict[str, Any] = {
        "model": lambda shape, k: nn.Sequential(nn.Flatten(), nn.Linear(int(np.prod(shape)), k)),
        "epochs": 1,
    }
    fit = fit_grid(first, sets, **how)
    said = r"rows of shape \(8, 8, 3\), and the model reads \(3, 8, 8\); channels come first"
    clf = ro.RuleOutClassifier(**how).fit(first, sets)
    for call in (
        lambda: fit.logits(last),
        lambda: fit_grid(first, sets, watch={"other": Watch(y, x=last)}, **how),
        lambda: fit_grid(last, sets, shape=(3, 8, 8), **how),
        lambda: clf.predict(last),
        lambda: ro.RuleOutClassifier(shape=(3, 8, 8), **how).fit(last, sets),
    ):
        with pytest.raises(InputError, match=said):
            call()
    flat = first.reshape(N, -1)
    assert torch.equal(fit.logits(flat), fit.logits(first))  # flat rows have no axes
    assert np.array_equal(clf.predict(flat), clf.predict(first))
    assert fit.logits(first.tolist()).shape == fit.logits(torch.tensor(first).bfloat16()).shape


class Settings(Outside):
    def __init__(self, classes: int, power: float = 1.0) -> None:
        super().__init__(classes)
        self.power = power


@pytest.mark.parametrize(
    "other",
    [
        {"shape": (1, 4, 16)},
        {"model": lambda _, k: Settings(k, 2.0)},
        {"schedule": lambda done: 1.0 if abs(done - 0.55) > 0.01 else 0.5},
    ],
)
def test_a_checkpoint_of_other_settings_is_refused(
    images: Any, tmp_path: Path, other: dict[str, Any]
) -> None:
    x, _, sets = images
    how: dict[str, Any] = {"shape": (1, 8, 8), "model": lambda _, k: Settings(k), "epochs": 1}
    how |= {"schedule": lambda _: 1.0, "checkpoint": tmp_path}
    fit_grid(x.reshape(N, -1), sets, **how)
    fit_grid(x.reshape(N, -1), sets, **how)
    with pytest.raises(InputError, match="other data or settings"):
        fit_grid(x.reshape(N, -1), sets, **how | other)


def test_what_is_remembered_is_of_these_rows_and_this_approach(images: Any) -> None:
    x, _, sets = images
    how: dict[str, Any] = {"epochs": 2, "seed": 0}
    start = fit_grid(x[: N - 10], sets[: N - 10], approach="proden", **how)
    lws = fit_grid(x, sets, approach="lws", **how)
    other = Trial(sets[10:], np.arange(10, N))
    for before in (start, lws):
        state = before.state
        assert state is not None
        forgotten = replace(state, memory=None)
        for trial in ([Trial(sets)], [other]):
            mine = fit_grid(x, trial, approach="proden", start=before, **how)
            assert_equal(mine, fit_grid(x, trial, approach="proden", start=forgotten, **how))
    with pytest.raises(ValueError, match="start remembers 80 rows, this fit has 90"):
        fit_grid(x, sets, approach="proden", start=start.state, **how)
    with pytest.raises(ValueError, match="start is 'x'; give a GridFit"):
        fit_grid(x, sets, **how | {"start": "x"})


class Extra(Outside):
    def get_extra_state(self) -> Any:
        return {"a": 1}

    def set_extra_state(self, _: Any) -> None: ...


class Complex(Outside):
    def __init__(self, classes: int) -> None:
        super().__init__(classes)
        self.turn = nn.Parameter(torch.ones(64, dtype=torch.complex64))


class Lazy(Outside):
    def __init__(self, classes: int) -> None:
        super().__init__(classes)
        self.out = nn.LazyLinear(classes)


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ({"model": made(Extra)}, "holds more than tensors"),
        ({"model": made(Complex)}, "the model has complex weights"),
        ({"model": made(Lazy)}, "layers that do not know their sizes"),
        ({"model": lambda *_: None}, "the model function returned a NoneType"),
        ({"model": lambda _: None}, "called as model"),
        ({"shape": "1x8x8"}, "shape is '1x8x8'; give whole numbers"),
        ({"shape": (1, 8, 9)}, "the model reads"),
        ({"schedule": lambda _: None}, "the schedule makes None of 0"),
        ({"device": "mps"}, "unknown device 'mps'"),
        ({"device": "meta"}, "unknown device 'meta'"),
    ],
)
def test_what_cannot_be_trained_is_said_in_one_sentence(
    images: Any, how: dict[str, Any], said: str
) -> None:
    x, _, sets = images
    with pytest.raises(ValueError, match=said):
        fit_grid(x, sets, epochs=1, **how)


def test_a_module_with_bf16_weights_and_a_number_as_shape(images: Any) -> None:
    x, _, sets = images
    rounded = fit_grid(x, sets, model=lambda _, k: Outside(k).bfloat16(), epochs=1)
    assert np.isfinite(rounded.history["loss"]).all()
    flat = x.reshape(N, -1)
    how: dict[str, Any] = {"shape": 64}
    assert_equal(fit_grid(flat, sets, **how, epochs=1), fit_grid(flat, sets, epochs=1))


def test_images_too_small_to_be_moved_are_refused(images: Any) -> None:
    x, _, sets = images
    body = nn.Sequential(nn.Conv2d(1, 1, 1), nn.Flatten(), nn.Linear(49, 10))
    how: dict[str, Any] = {"model": body}
    with pytest.raises(InputError, match="images of 7 × 7 pixels are too small"):
        fit_grid(x[:, :, 1:, 1:], sets, augment=["crop"], epochs=1, **how)
