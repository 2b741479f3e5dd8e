"""A small table on disk and a model trained from it, for the commands that need one."""

from __future__ import annotations

import csv
import tempfile
from functools import cache
from pathlib import Path

from typer.testing import CliRunner, Result

import ruleout as ro
from ruleout.cli import app

NAMES = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"]
QUICK = ["--grid", "none", "--learning-rate", "0.1", "--epochs", "5"]
_DIGITS = ro.datasets.load("digits")
X, Y = _DIGITS.x_train[:200], _DIGITS.y_train[:200]
SETS = ro.LabelSets(ro.draw(Y, classes=10, seed=0).excluded, NAMES)


def run(*arguments: object) -> Result:
    return CliRunner().invoke(app, [str(one) for one in arguments])


def write_table(path: Path) -> Path:
    """Write the features, then what was ruled out, and the true label."""
    with path.open("w", newline="") as stream:
        lines = csv.writer(stream)
        lines.writerow([*(f"p{i}" for i in range(64)), "not", "is"])
        for row, ruled_out, label in zip(X, SETS.to_lists(), Y, strict=True):
            lines.writerow([*row, "|".join(map(str, ruled_out)), NAMES[label]])
    return path


_FOLDER = tempfile.TemporaryDirectory(prefix="ruleout-")


@cache
def trained() -> tuple[Path, Path]:
    """Return a model and the table it was trained from; tests do not change them."""
    data, model = write_table(Path(_FOLDER.name, "data.csv")), Path(_FOLDER.name, "model")
    options = ["--excluded", "not", "--ignore", "is", "--classes", ",".join(NAMES), *QUICK]
    result = run("fit", data, "--out", model, *options)
    assert result.exit_code == 0, result.output
    return model, data
