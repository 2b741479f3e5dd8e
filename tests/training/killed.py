"""A run that the tests kill: it trains with checkpoints and writes the hash of its weights."""

from __future__ import annotations

import sys
from pathlib import Path

import ruleout as ro
from ruleout.training import fit_grid
from training.test_checkpoints import digest

if __name__ == "__main__":
    folder = Path(sys.argv[1])
    x, y = ro.datasets.load("digits").train
    sets = [ro.draw(y, classes=10, seed=seed) for seed in (0, 1)]
    (folder / "started").touch()
    fit = fit_grid(
        x,
        sets,
        model="mlp",
        model_options={"hidden": (50,)},
        approach="nn-after",
        grid={"learning_rate": [1e-2, 1e-3], "weight_decay": [0.0, 1e-2]},
        epochs=30,
        stack=2,
        checkpoint=folder / "run",
        checkpoint_seconds=0.0,
    )
    (folder / "digest").write_text(digest(fit))
