"""Criteria: right in expectation, right standard errors, and no way in for true labels."""

from __future__ import annotations

import inspect
import pickle

import numpy as np
import pytest
import torch
from scipy.integrate import quad
from scipy.stats import norm

import ruleout as ro
from ruleout.theory import set_distribution


def batch(n: int, k: int, seed: int = 0) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Logits that are right about three times in four, sets, and the truth."""
    random = torch.Generator().manual_seed(seed)
    y = torch.randint(k, (n,), generator=random)
    logits = torch.randn(n, k, dtype=torch.float64, generator=random)
    logits[torch.arange(n), y] += 2.5
    return logits, torch.from_numpy(ro.draw(y.numpy(), k, "released", seed).excluded), y


@pytest.mark.parametrize("k", [2, 3, 5])
def test_accuracy_is_unbiased(k: int) -> None:
    """Over every set there is, the mean is the probability of the predicted class."""
    posterior = np.random.default_rng(k).dirichlet(np.ones(k))
    sets, p = set_distribution(posterior, "released")
    logits = torch.randn(k, dtype=torch.float64, generator=torch.Generator().manual_seed(k))
    one = torch.stack([ro.criterion("accuracy")(logits[None], row[None]).estimate for row in sets])
    assert float(one @ torch.from_numpy(p)) == pytest.approx(posterior[int(logits.argmax())])


def test_formulas_by_loops() -> None:
    logits, excluded, _ = batch(50, 6)
    accuracy, consistent = [], []
    for f, out in zip(logits, excluded, strict=True):
        hit = bool(out[f.argmax()])
        accuracy.append(1 - (5 / int(out.sum()) if hit else 0))
        consistent.append(0.0 if hit else 1.0)
    for name, values in (("accuracy", accuracy), ("consistency", consistent)):
        found = ro.criterion(name)(logits, excluded)
        assert float(found.estimate) == pytest.approx(np.mean(values))
        assert float(found.standard_error) == pytest.approx(np.std(values, ddof=1) / np.sqrt(50))


@pytest.mark.parametrize("power", [0, 3, 8])
def test_a_calibrated_likelihood_by_loops(power: int) -> None:
    """However sure a model is made, by a power of two, it is as good."""
    logits, excluded, _ = batch(50, 6)
    means = []
    for place in range(-2, 9):
        total = 0.0
        for f, out in zip(logits.numpy(), excluded.numpy(), strict=True):
            p = np.exp(f / 2.0**place)
            total += float(np.log(p[~out].sum() / p.sum()))
        means.append(total / 50)
    best = int(np.argmax(means))
    assert 0 < best < 5
    found = ro.criterion("calibrated")(logits * 2.0 ** min(power, 8 - best), excluded)
    assert float(found.estimate) == pytest.approx(means[best])


@pytest.mark.parametrize("loss", ["cce", "mae", "log", "clpl"])
def test_risk_is_the_mean_of_the_loss(loss: str) -> None:
    logits, excluded, _ = batch(50, 6)
    found = ro.criterion("risk", loss=loss)(logits, excluded)
    values = ro.losses.get(loss)(logits, excluded)
    assert torch.allclose(found.estimate, values.mean())
    assert torch.allclose(found.standard_error, values.std() / 50**0.5)


def test_the_standard_error_is_the_spread_of_the_estimate() -> None:
    """Over 1000 samples: no bias, the right variance, and about 95 % within two of them."""
    truth, _ = quad(lambda x: norm.pdf(x - 2.5) * norm.cdf(x) ** 9, -10, 15)  # P(largest is right)
    found = [ro.criterion("accuracy")(*batch(1600, 10, seed)[:2]) for seed in range(1000)]
    estimates = np.array([float(one.estimate) for one in found])
    errors = np.array([float(one.standard_error) for one in found])
    assert abs(estimates.mean() - truth) < 3 * estimates.std() / np.sqrt(1000)
    assert np.mean(errors**2) / estimates.var(ddof=1) == pytest.approx(1, abs=0.15)
    assert 0.93 <= np.mean(np.abs(estimates - truth) < 2 * errors) <= 0.975


def test_any_leading_shape() -> None:
    _, excluded, _ = batch(20, 4)
    stack = torch.randn(
        3, 2, 20, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(1)
    )
    for name in ("accuracy", "consistency", "likelihood", "calibrated", "risk"):
        found = ro.criterion(name)(stack, excluded)
        assert found.estimate.shape == found.standard_error.shape == (3, 2)
        alone = ro.criterion(name)(stack[1, 1], excluded)
        assert torch.allclose(found.estimate[1, 1], alone.estimate)
        assert torch.allclose(found.standard_error[1, 1], alone.standard_error)


def test_rows_that_say_nothing_do_not_count() -> None:
    logits, excluded, _ = batch(20, 4)
    some = excluded.clone()
    some[::2] = False
    for name in ("accuracy", "consistency", "likelihood", "calibrated", "risk"):
        found, kept = ro.criterion(name)(logits, some), ro.criterion(name)(logits[1::2], some[1::2])
        assert torch.allclose(found.estimate, kept.estimate)
        assert torch.allclose(found.standard_error, kept.standard_error)


def test_one_row_has_no_standard_error() -> None:
    found = ro.criterion("accuracy")(torch.zeros(1, 3), torch.tensor([[0, 1, 0]]))
    assert found.standard_error == torch.inf


@pytest.mark.parametrize("name", ["accuracy", "consistency", "likelihood", "calibrated", "risk"])
def test_a_diverged_model_harms_only_itself(name: str) -> None:
    logits, excluded, _ = batch(20, 4)
    stack = torch.stack([logits, logits * torch.nan])
    found = ro.criterion(name)(stack, excluded)
    assert found.estimate[0].isfinite()
    assert found.estimate[1].isnan()


def test_direction_names_and_pickles() -> None:
    assert ro.criterion("accuracy").higher_is_better
    assert not ro.criterion("risk").higher_is_better
    for name in ("accuracy", "consistency", "likelihood", "calibrated", "risk"):
        assert pickle.loads(pickle.dumps(ro.criterion(name))).name == name  # made in this line
    with pytest.raises(ValueError, match="unknown criterion 'acuracy'; did you mean 'accuracy'"):
        ro.criterion("acuracy")
    with pytest.raises(ValueError, match="loss 'pc' reads single labels"):
        ro.criterion("risk", loss="pc")


def test_there_is_no_way_in_for_true_labels() -> None:
    call = inspect.signature(ro.criterion("accuracy").__call__).parameters
    assert list(call) == ["logits", "excluded", "rate", "groups"]
    with pytest.raises(ValueError, match="must both end in"):
        ro.criterion("accuracy")(torch.zeros(5, 3), np.array([0, 1, 2, 0, 1]) == 1)


def test_predictions_that_were_not_ruled_out_earn_exactly_one() -> None:
    """In float32 and for every size of a set: a tie of two models is a tie to the bit."""
    for k in (3, 7, 10, 20):
        excluded = torch.tril(torch.ones(k - 1, k))  # 1 to k-1 classes; the last one never
        logits = torch.zeros(k - 1, k)
        logits[:, -1] = 1
        assert ro.criterion("accuracy").values(logits, excluded).tolist() == [1.0] * (k - 1)
