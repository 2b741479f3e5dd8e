"""On real labels: unbalanced classes, as the paper's tables have them."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from scipy.stats import chisquare

import ruleout as ro
from ruleout.labels import size_law

ROOT = Path(os.environ.get("RULEOUT_DATA", "no-such-folder"))


def labels(name: str) -> NDArray[np.str_]:
    path = ROOT / "uci" / name
    if not path.exists():
        pytest.skip(f"{path} is missing: set RULEOUT_DATA to a folder with the original files")
    rows = path.read_text().replace(",", " ").split("\n")
    return np.array([row.split()[-1] for row in rows if row.strip()])


@pytest.mark.parametrize(
    ("name", "n", "k"), [("yeast.data", 1484, 10), ("dermatology.data", 366, 6)]
)
def test_sets_drawn_for_real_labels_follow_the_law(name: str, n: int, k: int) -> None:
    y = labels(name)
    classes = sorted(set(y.tolist()))
    assert (len(y), len(classes)) == (n, k)
    many = np.tile(y, 30)
    sets = ro.draw(many, classes, "paper", seed=0)
    assert not sets.excluded[np.arange(len(many)), np.searchsorted(classes, many)].any()
    counts = np.bincount(sets.sizes, minlength=k)[1:]
    assert chisquare(counts, len(many) * size_law("paper", k)).pvalue > 1e-3


def test_the_2019_form_differs_on_yeast() -> None:
    """Yeast is unbalanced, and so are its ruled-out classes: the two forms of L_j part ways."""
    y = labels("yeast.data")
    classes = sorted(set(y.tolist()))
    sets = ro.draw(y, classes, 1, seed=0)
    shares = sets.excluded.mean(0)
    assert shares.max() / shares.min() > 1.3
    logits = torch.linspace(2, -2, 10, dtype=torch.float64).expand(len(y), 10)  # a leaning model
    new, old = (
        float(ro.approach(name).batch_loss(logits, sets, prior=shares / shares.sum()))
        for name in ("free-before", "free-2019-before")
    )
    assert abs(new - old) > 1e-2 * abs(new)
