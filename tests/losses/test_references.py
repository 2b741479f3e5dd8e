"""Every loss and every approach equals the plain-loop reference, at ordinary and extreme logits."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import pytest
import references as ref
import torch
from torch import Tensor

import ruleout as ro
from ruleout.labels.origins import biased_matrix
from ruleout.losses.functions import nearest_row

Row = Sequence[float]
CLOSE = 1e-10


def batch(k: int, seed: int, scale: float, law: str | int = "released", n: int = 6) -> Any:
    rng = np.random.default_rng(seed)
    logits = rng.standard_normal((n, k)) * scale
    sets = ro.draw(rng.integers(0, k, n), k, law, seed)
    return torch.from_numpy(logits), torch.from_numpy(sets.excluded)


BATCHES = [
    *(batch(k, k, 3.0) for k in (2, 3, 5, 10)),
    *(batch(6, s, 3.0, s) for s in range(1, 6)),
    batch(4, 11, 50.0),
    batch(5, 12, 1e4),
    batch(3, 13, 1e4),
]


def agree(found: Tensor, expected: Any) -> None:
    """Compare to 1e-10, relative to the largest number in play."""
    want = torch.tensor(np.vectorize(float)(np.array(expected, object)), dtype=torch.float64)
    assert found.shape == want.shape
    assert (found - want).abs().max() <= CLOSE * max(1.0, float(want.abs().max()))


def estimate(name: str, f: Row, excluded: Sequence[bool]) -> Any:
    return ref.unbiased(ref.base(name, f), excluded)


PER_EXAMPLE: dict[str, Callable[[Row, Sequence[bool]], Any]] = {
    "log": ref.log,
    "log-unlabelled": ref.log,
    "exp": ref.exp,
    "log-text": partial(ref.log, text=True),
    "exp-text": partial(ref.exp, text=True),
    "clpl": ref.clpl,
    "likelihood": ref.likelihood,
    "cc": ref.cc,
    "cpe-f": ref.cpe_f,
    "cpe-t": ref.cc,  # which it is at first
    "lws": ref.lws,
    **dict.fromkeys(("proden", "rc", "cavl", "pop", "crosel"), ref.targeted),
    "balanced-proden": ref.targeted,
    **{f"conformal-{name}": ref.targeted for name in ("proden", "pop", "crosel")},
    **{name: partial(estimate, name) for name in ("mae", "mse", "gce", "phuber", "cce")},
}

PER_CLASS: dict[str, Callable[[Row, int], Any]] = {
    "free": ref.free,
    "pc": ref.pc,
    "pc-ramp": partial(ref.pc, binary_name="ramp"),
    "ova": ref.ova,
    "ova-ramp": partial(ref.ova, binary_name="ramp"),
    "forward": ref.forward,
    "scl-nl": ref.scl_nl,
    "scl-exp": ref.scl_exp,
    "l-uw": ref.l_uw,
    "l-w": ref.l_w,
    "op": ref.op,
    "op-w": ref.op_w,
    "cpe-i": ref.op,
}


def test_every_loss_has_a_reference() -> None:
    assert set(ro.losses.names()) == set(PER_EXAMPLE) | set(PER_CLASS)


@pytest.mark.parametrize(("logits", "excluded"), BATCHES)
@pytest.mark.parametrize("name", PER_EXAMPLE)
def test_loss_per_example(name: str, logits: Tensor, excluded: Tensor) -> None:
    rows = zip(logits.tolist(), excluded.tolist(), strict=True)
    agree(ro.losses.get(name)(logits, excluded), [PER_EXAMPLE[name](f, e) for f, e in rows])


@pytest.mark.parametrize(("logits", "excluded"), BATCHES)
@pytest.mark.parametrize("name", PER_CLASS)
def test_loss_per_class(name: str, logits: Tensor, excluded: Tensor) -> None:
    k = logits.shape[-1]
    expected = [[PER_CLASS[name](f, c) for c in range(k)] for f in logits.tolist()]
    agree(ro.losses.get(name)(logits, excluded), expected)
    agree(ro.losses.get(name).matrix(logits), expected)


@pytest.mark.parametrize(("logits", "_"), BATCHES)
@pytest.mark.parametrize("name", ["cce", "mae", "mse", "gce", "phuber"])
def test_base_loss_per_class(name: str, logits: Tensor, _: Tensor) -> None:
    agree(ro.losses.get(name).matrix(logits), [ref.base(name, f) for f in logits.tolist()])


def test_zero_one_loss() -> None:
    logits, _ = BATCHES[2]
    agree(ro.losses.zero_one(logits), [ref.base("zero-one", f) for f in logits.tolist()])


@pytest.mark.parametrize(
    ("name", "options"),
    [("gce", {"q": 0.3}), ("gce", {"q": 1.0}), ("phuber", {"tau": 1.5}), ("phuber", {"tau": 50.0})],
)
def test_options_of_base_losses(name: str, options: dict[str, float]) -> None:
    logits, _ = BATCHES[3]
    expected = [ref.base(name, f, **options) for f in logits.tolist()]
    agree(ro.losses.get(name, **options).matrix(logits), expected)


def test_options_of_other_losses() -> None:
    logits, excluded = BATCHES[2]
    rows = list(zip(logits.tolist(), excluded.tolist(), strict=True))
    logistic = ro.losses.get("clpl", psi="logistic")
    agree(logistic(logits, excluded), [ref.clpl(f, e, psi="logistic") for f, e in rows])
    noisy = ro.losses.get("likelihood", error=0.15)
    agree(noisy(logits, excluded), [ref.likelihood(f, e, 0.15) for f, e in rows])
    ramp = ro.losses.get("pc", binary="ramp")
    agree(ramp(logits), [[ref.pc(f, c, "ramp") for c in range(5)] for f, _ in rows])


def test_forward_with_a_transition_matrix() -> None:
    for logits, _ in (BATCHES[2], BATCHES[10]):
        k = logits.shape[-1]
        q = np.random.default_rng(5).random((k, k)) * (1 - np.eye(k))
        q /= q.sum(1, keepdims=True)
        expected = [[ref.forward(f, c, q.tolist()) for c in range(k)] for f in logits.tolist()]
        agree(ro.losses.get("forward", transition=q)(logits), expected)


@pytest.mark.parametrize("size", [1, 2, 3])
def test_cpe_f_with_a_transition_matrix(size: int) -> None:
    """Of one class it is Forward; of more, all sets of the size are listed."""
    q = biased_matrix("weak", 5)
    logits, excluded = batch(5, size, 2.0, size)
    rows = list(zip(logits.tolist(), excluded.tolist(), strict=True))
    found = ro.losses.get("cpe-f", transition=q)(logits, excluded)
    agree(found, [ref.cpe_f(f, e, q.tolist()) for f, e in rows])
    if size == 1:
        agree(found, [ref.forward(f, e.index(True), q.tolist()) for f, e in rows])


def test_a_class_that_cannot_make_a_set_of_that_size_has_no_chance() -> None:
    q = [[0.0, 1.0, 0.0], [0.5, 0.0, 0.5], [0.5, 0.5, 0.0]]
    f, out = [5.0, 0.0, 0.0], [True, True, False]
    for kind in (torch.float32, torch.float64):
        logits, excluded = torch.tensor([f], dtype=kind), torch.tensor([out])
        found = ro.losses.get("cpe-f", transition=q)(logits, excluded)
        assert float(found) == pytest.approx(-np.log(1 / (np.exp(5) + 2)), rel=1e-5)


def test_the_nearest_row_is_decoded() -> None:
    q = biased_matrix("strong", 6)
    seen = torch.from_numpy(0.9 * q + 0.1 / 6)
    assert nearest_row(seen, q).tolist() == list(range(6))
    even = (1 - np.eye(6)) / 5
    out = torch.tensor([0.3, 0.1, 0.2, 0.05, 0.2, 0.15]).double()
    assert int(nearest_row(out, even)) == int(out.argmin())


def test_forward_with_zeros_in_the_transition_matrix() -> None:
    """Each class ruled out by its neighbour only: most entries of Q are zero."""
    logits, _ = BATCHES[2]
    q = np.roll(np.eye(5), 1, axis=1)
    expected = [[ref.forward(f, c, q.tolist()) for c in range(5)] for f in logits.tolist()]
    agree(ro.losses.get("forward", transition=q)(logits), expected)


@pytest.mark.parametrize("binary", ["sigmoid", "ramp"])
def test_pc_block_by_block(binary: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Many comparisons are made in blocks: the same values, gradients and second derivatives."""
    logits = BATCHES[3][0].clone().requires_grad_()
    loss = ro.losses.get("pc", binary=binary)
    whole = loss.matrix(logits)
    (slope,) = torch.autograd.grad(whole.square().sum(), logits)
    monkeypatch.setattr("ruleout.losses.functions._COMPARISONS", 3 * logits.numel())
    parts = loss.matrix(logits)
    assert torch.equal(parts, whole)
    assert torch.allclose(torch.autograd.grad(parts.square().sum(), logits)[0], slope)
    assert torch.autograd.gradgradcheck(loss.matrix, (logits,)) or binary == "ramp"


@pytest.mark.parametrize("questions", [1, 2])
def test_answered(questions: int) -> None:
    logits, _ = BATCHES[2]
    asked = ro.propose(len(logits) * questions, 5, seed=3)
    items = np.arange(len(asked)) % len(logits)
    answers = ro.answer(asked, np.arange(len(logits)) % 5, items)
    _, sets, rates = answers.per_item()
    found = ro.losses.answered(ro.losses.get("mse").matrix(logits), sets, rates)
    expected = []
    for item, f in enumerate(logits.tolist()):
        rate: Any = 1
        for s in asked[items == item].sizes.tolist():
            rate *= ref.wrong_class_rate(5, s)
        possible = sets.candidates[item].tolist()
        expected.append(ref.answered(ref.base("mse", f), possible, rate))
    agree(found, expected)


# ---------------------------------------------------------------------- batches


def rule_reference(name: str, F: Any, E: Any, prior: Any, weight: Any) -> Any:
    kind, _, form = name.partition("-")
    if form == "by-excluded":
        parts = ref.excluded_parts(F, E, prior, weight)
    else:
        parts = ref.ordinary_parts(F, E, prior, weight, "2019" if form == "2019" else "theorem")
    if kind == "ga":
        return ref.ga_batch(parts, ref.counts(E, weight))
    return ref.free_batch(parts) if kind == "free" else ref.nn_batch(parts)


def reference(name: str, F: Any, E: Any, prior: Any = None, weight: Any = None) -> Any:
    if name in PER_EXAMPLE:
        return ref.mean_over_rows(PER_EXAMPLE[name], F, E, weight)
    base = name.removesuffix("-before").removesuffix("-after")
    if base == "scarce":
        return ref.scarce(F, E, weight=weight)
    if base.partition("-")[0] in ("free", "nn", "ga"):
        return rule_reference(base, F, E, prior, weight)
    return ref.mean_over_pairs(PER_CLASS[base], F, E, weight)


def single(excluded: Tensor) -> Tensor:
    """Keep the first ruled-out class of each row, as decomposition before shuffle gives them."""
    return torch.zeros_like(excluded).scatter_(1, excluded.int().argmax(1, keepdim=True), True)


@pytest.mark.parametrize("extra", ["plain", "prior", "weight", "both"])
@pytest.mark.parametrize("name", ro.approaches())
def test_approach_per_batch(name: str, extra: str) -> None:
    rng = np.random.default_rng(17)
    row = ro.approach(name)
    for logits, excluded in BATCHES:
        mask = single(excluded) if row.form == "pairs-before" else excluded
        n, k = logits.shape
        prior = rng.dirichlet(np.ones(k)) if extra in ("prior", "both") else None
        weight = rng.random(n) + 0.1 if extra in ("weight", "both") else None
        found = row.batch_loss(logits, mask, prior=prior, weight=weight)
        expected = reference(
            name,
            logits.tolist(),
            mask.tolist(),
            None if prior is None else prior.tolist(),
            None if weight is None else weight.tolist(),
        )
        # relative to the result, or at ±1e4 to the signed terms that it is made of
        terms = float(logits.abs().max()) * k * n if logits.abs().max() > 1e3 else 1.0
        assert abs(float(found) - float(expected)) <= CLOSE * max(1.0, terms, abs(float(expected)))


@pytest.mark.parametrize("extra", ["plain", "both"])
@pytest.mark.parametrize("split", ["ordinary", "excluded"])
@pytest.mark.parametrize("rule", ["free", "nn", "ga"])
def test_rules_with_a_transition_matrix(rule: str, split: str, extra: str) -> None:
    rng = np.random.default_rng(23)
    by = "" if split == "ordinary" or rule == "free" else "-by-excluded"
    for logits, excluded in BATCHES[1:10]:
        n, k = logits.shape
        q = rng.dirichlet(np.ones(k), k) * (1 - 0.9 * np.eye(k)) + 0.05 * np.roll(np.eye(k), 1, 1)
        q /= q.sum(1, keepdims=True)
        prior = rng.dirichlet(np.ones(k)) if extra == "both" else None
        weight = rng.random(n) + 0.1 if extra == "both" else None
        row = ro.approach(f"{rule}{by}-after", transition=q)
        found = row.batch_loss(logits, excluded, prior=prior, weight=weight)
        own = None if prior is None else prior.tolist()
        each = None if weight is None else weight.tolist()
        expected = ref.corrected_with_transition(
            logits.tolist(), excluded.tolist(), q.tolist(), rule, split, own, each
        )
        large = float(np.abs(np.linalg.inv(q)).max() * logits.abs().max()) * n * k
        assert abs(float(found) - float(expected)) <= CLOSE * max(1.0, large)


def test_scarce_with_class_shares() -> None:
    logits, excluded = BATCHES[2]
    shares = [0.1, 0.3, 0.2, 0.25, 0.15]
    found = ro.approach("scarce-after", class_prior=shares).batch_loss(logits, excluded)
    agree(found, ref.scarce(logits.tolist(), excluded.tolist(), shares))


def test_a_transition_matrix_without_an_inverse_is_refused() -> None:
    logits, excluded = BATCHES[2]
    with pytest.raises(ValueError, match="no inverse"):
        ro.approach("nn-after", transition=np.full((5, 5), 0.2)).batch_loss(logits, excluded)


def test_float32_stays_close_to_float64() -> None:
    for name in ro.approaches():
        row = ro.approach(name)
        for logits, excluded in BATCHES[:9]:
            mask = single(excluded) if row.form == "pairs-before" else excluded
            exact = row.batch_loss(logits, mask)
            rough = row.batch_loss(logits.float(), mask)
            assert float((rough - exact).abs()) <= 1e-4 * max(1.0, float(exact.abs()))
