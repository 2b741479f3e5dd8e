"""Targets that move from all candidates towards one: each revision equals its reference."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
import references as ref
import torch
from torch import Tensor

import ruleout as ro
from ruleout.losses import Seen, conformal_candidates
from ruleout.losses.loss_registry import Loss
from ruleout.losses.progressive import shares


def rows(n: int, k: int, epochs: int, scale: float = 2.0, seed: int = 0) -> tuple[Tensor, Tensor]:
    """Return logits ``[epochs, n, k]`` that grow surer, and what was ruled out, ``[n, k]``."""
    rng = np.random.default_rng(seed)
    y = rng.integers(k, size=n)
    sure = np.linspace(0, scale, epochs)[:, None, None] * np.eye(k)[y]
    logits = sure + 0.3 * scale * rng.normal(size=(epochs, n, k))
    return torch.from_numpy(logits), torch.from_numpy(ro.draw(y, k, seed=seed).excluded).double()


def revised(loss: Loss, logits: Tensor, excluded: Tensor) -> list[Tensor]:
    """Revise the target after every epoch, as training does."""
    assert loss.memory is not None
    target, kept, found = loss.start(excluded).expand_as(logits[0]), dict[str, Tensor](), []
    for epoch, own in enumerate(logits, 1):
        target = loss.revise(Seen(own, excluded, target, epoch, kept))
        found.append(target.clone())
    return found


def close(found: Tensor, expected: Sequence[Any]) -> None:
    want = torch.tensor([[float(v) for v in row] for row in expected], dtype=torch.float64)
    assert (found - want).abs().max() < 1e-10 * max(1.0, float(want.max()))


ROWS = {"proden": ref.revise_proden, "rc": ref.revise_proden, "lws": ref.revise_lws}


@pytest.mark.parametrize("scale", [2.0, 1e4])
@pytest.mark.parametrize("name", [*ROWS, "cavl"])
def test_a_row_is_revised_by_its_last_logits(name: str, scale: float) -> None:
    reference = ROWS.get(name, ref.revise_cavl)
    logits, excluded = rows(30, 5, 1, scale)
    (found,) = revised(ro.losses.get(name), logits, excluded)
    both = zip(logits[0].tolist(), excluded.bool().tolist(), strict=True)
    close(found, [reference(f, e) for f, e in both])


@pytest.mark.parametrize("options", [{}, {"balance": 1.0}, {"balance": 0.0}])
def test_shares_are_brought_nearer_to_those_of_the_sets(options: dict[str, float]) -> None:
    """Class 0 takes rows from the others, and nobody was left class 4."""
    logits, excluded = rows(30, 5, 1)
    logits[..., 0] += 3
    excluded[:, 4], excluded[:, 0] = 1, 0
    (found,) = revised(ro.losses.get("balanced-proden", **options), logits, excluded)
    close(found, ref.share_out(logits[0].tolist(), excluded.bool().tolist(), **options))
    (plain,) = revised(ro.losses.get("proden"), logits, excluded)
    if options.get("balance") == 0:
        assert torch.allclose(found, plain, atol=1e-12)
    else:
        assert found[:, 0].mean() < plain[:, 0].mean()


@pytest.mark.parametrize("law", ["fixed:1", "released"])
def test_a_matrix_is_learnt_as_all_sets_listed_say(law: str) -> None:
    """Three epochs of CPE-T, two models at once, each against loops over every set."""
    k, n = 4, 12
    y = np.arange(n) % k
    excluded = torch.from_numpy(ro.draw(y, k, law, seed=1).excluded).double()
    logits = torch.from_numpy(np.random.default_rng(0).normal(size=(3, 2, n, k)) * 2)
    sets = excluded.bool().tolist()
    loss = ro.losses.get("cpe-t")
    assert loss.memory is not None
    target, kept = loss.memory.start(excluded).expand_as(logits[0]), dict[str, Tensor]()
    known = [[ref.even_row(k, y) for y in range(k)]] * 2
    for epoch in range(3):
        target = loss.revise(Seen(logits[epoch], excluded, target, epoch + 1, kept))
        known = [ref.revise_transition(logits[epoch, m].tolist(), sets, known[m]) for m in (0, 1)]
        for m in (0, 1):
            close(kept["transition"][m, 0].view(k, k), known[m])
            chances = [[ref.chance_of_set(e, known[m][c]) for c in range(k)] for e in sets]
            close((-target[m]).exp(), chances)


def test_equal_activations_share_the_target() -> None:
    logits, excluded = torch.tensor([[[2.0, 2.0, 0.0, 5.0]]]), torch.tensor([[0.0, 0, 0, 1]])
    assert revised(ro.losses.get("cavl"), logits, excluded)[0].tolist() == [[0.5, 0.5, 0, 0]]


@pytest.mark.parametrize("options", [{}, {"theta": 0.05}, {"theta": 0.3, "increase": 0.5}])
def test_pop_purifies_as_its_authors_do(options: dict[str, float]) -> None:
    logits, excluded = rows(25, 6, 43, 4.0)
    found = revised(ro.losses.get("pop", **options), logits, excluded)
    flags = excluded.bool().tolist()
    for own, expected in zip(
        found, ref.pop_epochs(logits.tolist(), flags, **options, authors=True), strict=True
    ):
        close(own, expected)


@pytest.mark.parametrize("options", [{}, {"threshold": 0.6, "strength": 1.0}, {"threshold": 1.0}])
def test_crosel_selects_sure_rows(options: dict[str, float]) -> None:
    logits, excluded = rows(25, 4, 16, 6.0)
    found = revised(ro.losses.get("crosel", **options), logits, excluded)
    expected = ref.crosel_epochs(logits.tolist(), excluded.bool().tolist(), **options)
    for own, want in zip(found, expected, strict=True):
        close(own, want)


@pytest.mark.parametrize("strength", [0.1, 2.0])
def test_rows_that_rule_nothing_out_learn_from_the_model(strength: float) -> None:
    logits, excluded = rows(25, 4, 14, 6.0)
    excluded[::3] = 0
    found = revised(ro.losses.get("log-unlabelled", strength=strength), logits, excluded)
    expected = ref.self_taught_epochs(logits.tolist(), excluded.bool().tolist(), strength)
    for own, want in zip(found, expected, strict=True):
        close(own, want)


def test_their_loss_is_added_to_the_mean_of_the_others() -> None:
    """Without targets, and at a strength of 0, what is left is LOG."""
    logits, excluded = rows(8, 4, 1)
    excluded[5:] = 0
    target = torch.zeros(8, 4, dtype=torch.float64)
    plain = ro.approach("log").batch_loss(logits[0, :5], excluded[:5])
    row = ro.approach("log-unlabelled")
    for empty in (None, target):
        assert float(row.batch_loss(logits[0], excluded, target=empty)) == pytest.approx(plain)
    target[5:] = torch.rand(3, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    rest = zip(logits[0, 5:].tolist(), [[False] * 4] * 3, target[5:].tolist(), strict=True)
    own = float(sum(ref.targeted(*one) for one in rest))
    for weight in (None, torch.full((8,), 0.5)):
        found = row.batch_loss(logits[0], excluded, weight=weight, target=target)
        assert float(found) == pytest.approx(float(plain) + own / 5)
    alone = row.batch_loss(logits[0, 5:], excluded[5:], target=target[5:])  # no other is there
    assert float(alone) == pytest.approx(own / 3)


def test_shares_are_believed_as_far_as_they_can_be_told() -> None:
    y = np.repeat([0, 1, 2, 3], [700, 100, 100, 100])
    for law, n, off in ((3, 1000, 0.0), ("released", 1000, 0.1), (1, 20, 0.3)):
        some = np.random.default_rng(0).permutation(1000)[:n]
        excluded = torch.from_numpy(ro.draw(y[some], 4, law, seed=0).excluded).double()
        found = shares(excluded)[0]
        assert float(found.sum()) == pytest.approx(1)
        assert abs(float(found[0]) - 0.7) <= off + 1e-3
        close(found[None], [ref.shares(excluded.bool().tolist())])


@pytest.mark.parametrize("law", ["released", 3])
@pytest.mark.parametrize("alpha", [0.05, 0.3])
def test_conformal_prediction_cleans_candidates(law: Any, alpha: float) -> None:
    """With sets of three of four classes every row calibrates; else a random fifth does."""
    rng = np.random.default_rng(3)
    y = rng.integers(4, size=140)
    logits = torch.from_numpy(3 * np.eye(4)[y] + rng.normal(size=(140, 4)))
    excluded = torch.from_numpy(ro.draw(y, 4, law, seed=1).excluded).double()
    drawn = torch.randperm(140, generator=torch.Generator().manual_seed(0))[:100].tolist()
    single = torch.nonzero(excluded.sum(-1) == 3).flatten().tolist()
    calibrate = single if len(single) >= 100 else drawn
    for epoch in (11, 13, 20):
        seen = Seen(logits, excluded, torch.zeros_like(logits), epoch, {})
        flags = excluded.bool().tolist()
        want = ref.conformal_candidates(logits.tolist(), flags, calibrate, epoch, alpha)
        assert torch.equal(conformal_candidates(seen, alpha).bool(), torch.tensor(want))


REMEMBER = [name for name in ro.approaches() if ro.approach(name).memory]


@pytest.mark.parametrize("name", REMEMBER)
def test_stacked_targets_are_those_of_each_model(name: str) -> None:
    loss = ro.losses.get(name)
    parts = [rows(40, 5, 24, scale, seed=7)[0] for scale in (1.0, 3.0, 9.0)]
    excluded = rows(40, 5, 24, seed=7)[1]
    together = revised(loss, torch.stack(parts, 1), excluded)
    for place, own in enumerate(parts):
        for whole, alone in zip(together, revised(loss, own, excluded), strict=True):
            assert torch.allclose(whole[place], alone, atol=1e-12)


@pytest.mark.parametrize("name", REMEMBER)
def test_targets_stay_finite_and_on_candidates(name: str) -> None:
    logits, excluded = rows(40, 5, 30, 1e4)
    for target in revised(ro.losses.get(name), logits.float(), excluded.float()):
        assert target.isfinite().all()
        assert (target >= 0).all()
        assert name in ("lws", "cpe-t") or not (target * excluded).any()  # cpe-t: costs


def test_a_target_is_what_the_loss_reads() -> None:
    logits, excluded = rows(6, 4, 1)
    target = torch.rand(6, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    triples = list(zip(logits[0].tolist(), excluded.bool().tolist(), target.tolist(), strict=True))
    found = ro.approach("proden").batch_loss(logits[0], excluded, target=target)
    assert float(found) == pytest.approx(float(sum(ref.targeted(*t) for t in triples) / 6))
    found = ro.approach("lws", beta=2.0).batch_loss(logits[0], excluded, target=target)
    want = sum(ref.lws(*t, beta=2.0) for t in triples) / 6
    assert float(found) == pytest.approx(float(want))


def test_an_approach_without_memory_refuses_a_target() -> None:
    logits, excluded = rows(6, 4, 1)
    with pytest.raises(ValueError, match="approach 'log' remembers nothing"):
        ro.approach("log").batch_loss(logits[0], excluded, target=logits[0])
