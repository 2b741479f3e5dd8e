"""On real data, where $RULEOUT_DATA has it: the counts of Table 5, and unbalanced classes."""

from __future__ import annotations

import os
from functools import lru_cache
from pathlib import Path

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from scipy.stats import chisquare

import ruleout as ro
from ruleout.datasets import Dataset, fetch, load, survey
from ruleout.labels import size_law
from ruleout.selection import split

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


# ---------------------------------------------------------------------- Table 5

IMAGES = {
    "mnist": (60_000, 10_000, 784, 10),
    "fashion-mnist": (60_000, 10_000, 784, 10),
    "kmnist": (60_000, 10_000, 784, 10),
    "cifar10": (50_000, 10_000, 3072, 10),
}
SPLIT = {  # at random, 90 to 10, by the paper
    "yeast": (1335, 149, 8, 10),
    "texture": (4950, 550, 40, 11),
    "dermatology": (329, 37, 34, 6),
    "synthetic-control": (540, 60, 60, 6),
}


def there(name: str) -> None:
    """Skip where files are missing: the tests never use the network."""
    if not next(one for one in survey(ROOT) if one.name == name).present:
        pytest.skip(
            f"{name} is not in {ROOT}: set RULEOUT_DATA to a folder with the original files"
        )


@lru_cache(1)
def real(name: str) -> Dataset:
    there(name)
    return load(name, ROOT)


@pytest.mark.parametrize("name", list(IMAGES))
def test_images_are_as_in_table_5(name: str) -> None:
    data = real(name)
    assert data.test is not None
    counts = len(data.x_train), len(data.test[0])
    assert (*counts, data.x_train.shape[1], len(data.classes)) == IMAGES[name]


def test_cifar_is_normalised() -> None:
    data = real("cifar10")
    assert data.test is not None
    assert np.bincount(data.y_train).tolist() == [5000] * 10
    assert np.bincount(data.test[1]).tolist() == [1000] * 10
    channels = data.x_train.reshape(-1, 3, 1024)
    for channel in range(3):
        values = channels[:5000, channel]
        assert abs(float(values.mean())) < 0.02
        assert abs(float(values.std()) - 1) < 0.02


@pytest.mark.parametrize("name", list(SPLIT))
def test_tables_are_as_in_table_5(name: str) -> None:
    data = real(name)
    assert data.test is None
    kept, aside = split(len(data.x_train), 0.1, seed=0)
    features = data.x_train.shape[1]
    assert (len(kept), len(aside), features, len(data.classes)) == SPLIT[name]
    assert np.isfinite(data.x_train).all()
    assert set(data.y_train.tolist()) == set(range(len(data.classes)))


def test_documents_are_as_in_table_5() -> None:
    there("20newsgroups")
    found = fetch("20newsgroups", ROOT)
    kept, aside = split(found.rows[0], 0.1, seed=0)
    assert (len(kept), len(aside), found.features, found.classes) == (16_961, 1885, 1000, 20)


def test_yeast_and_dermatology_hold_what_their_publishers_say() -> None:
    yeast = real("yeast")
    counts = dict(zip(yeast.classes, np.bincount(yeast.y_train).tolist(), strict=True))
    assert (counts["CYT"], counts["NUC"], counts["MIT"], counts["ERL"]) == (463, 429, 244, 5)
    assert yeast.x_train[0].tolist() == pytest.approx([0.58, 0.61, 0.47, 0.13, 0.5, 0, 0.48, 0.22])
    skin = real("dermatology")
    assert np.bincount(skin.y_train).tolist() == [112, 61, 72, 49, 52, 20]
    ages = skin.x_train[:, 33]
    filled = ages != ages.round()
    assert filled.sum() == 8
    assert np.allclose(ages[filled], ages[~filled].mean())


def test_synthetic_control_rows_follow_their_classes() -> None:
    """Trends rise or fall over time, by the names of the classes."""
    data = real("synthetic-control")
    assert data.y_train.tolist() == [row // 100 for row in range(600)]
    drift = data.x_train[:, 30:].mean(1) - data.x_train[:, :30].mean(1)
    for place, name in enumerate(data.classes):
        expected = {"increasing trend": 1, "upward shift": 1, "normal": 0, "cyclic": 0}.get(
            str(name), -1
        )
        mean = drift[data.y_train == place].mean()
        assert np.sign(mean) * (abs(mean) > 3) == expected


@pytest.mark.slow  # without kept features it takes a minute or two
def test_documents_can_be_told_apart() -> None:
    from sklearn.linear_model import LogisticRegression

    data = real("20newsgroups")
    assert data.x_train.shape == (18_846, 1000)
    kept, aside = split(len(data.x_train), 0.1, seed=0)
    model = LogisticRegression(max_iter=300).fit(data.x_train[kept], data.y_train[kept])
    assert 0.84 < model.score(data.x_train[aside], data.y_train[aside]) < 0.92
