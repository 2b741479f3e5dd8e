"""Rows that come in batches: torch's Datasets and DataLoaders, Arrow's record batches."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import torch
from estimator.small import NAMES, SETS, X, Y, classifier
from numpy.testing import assert_array_equal
from torch.utils.data import DataLoader, Dataset, IterableDataset, TensorDataset

import ruleout as ro

ROWS = torch.from_numpy(X)
TABLE = pa.table({f"p{i}": X[:, i] for i in range(64)})
PARTS = TABLE.to_batches(max_chunksize=70)


class Digits(Dataset[Any]):
    """Images with the names of their classes, as a user would write it."""

    def __len__(self) -> int:
        return len(X)

    def __getitem__(self, row: int) -> tuple[Any, str]:
        return X[row].reshape(1, 8, 8), str(NAMES[Y[row]])


class Streamed(IterableDataset[Any]):
    def __len__(self) -> int:
        return len(X)

    def __iter__(self) -> Iterator[Any]:
        return iter(ROWS)


class Endless(IterableDataset[Any]):
    def __iter__(self) -> Iterator[Any]:
        while True:
            yield torch.zeros(64)


@pytest.mark.parametrize(
    "rows",
    [
        lambda: TensorDataset(ROWS),
        lambda: TensorDataset(ROWS, torch.from_numpy(Y)),
        lambda: DataLoader(TensorDataset(ROWS), batch_size=7),
        lambda: Streamed(),
        lambda: PARTS,
        lambda: iter(PARTS),
        lambda: pa.RecordBatchReader.from_batches(TABLE.schema, PARTS),
        lambda: TABLE,
    ],
)
def test_they_are_the_array_of_all_rows(rows: Callable[[], Any]) -> None:
    wanted, found = classifier().fit(X, SETS), classifier().fit(rows(), SETS)
    assert_array_equal(found.predict_proba(rows()), wanted.predict_proba(X))
    assert found.score(rows(), SETS) == wanted.score(X, SETS)


def test_labels_that_come_along_are_used() -> None:
    """Of these rows any order is right; images keep their shape."""
    wanted = classifier().fit(X.reshape(-1, 1, 8, 8), NAMES[Y])
    found = classifier().fit(Digits())
    assert found.module_.example_shape == (1, 8, 8)
    assert_array_equal(found.predict(Digits()), wanted.predict(X))
    torch.manual_seed(0)
    mixed = classifier(epochs=20).fit(DataLoader(Digits(), batch_size=64, shuffle=True))
    assert mixed.score(Digits(), NAMES[Y]) > 0.9


def test_the_engine_takes_them() -> None:
    told: dict[str, Any] = {"grid": {"learning_rate": 0.1}, "epochs": 2}
    one = ro.fit_grid(TensorDataset(ROWS), SETS, **told)
    assert_array_equal(one.history["loss"], ro.fit_grid(X, SETS, **told).history["loss"])


class Ragged(Digits):
    def __getitem__(self, row: int) -> Any:
        return torch.zeros(row + 1)


@pytest.mark.parametrize(
    ("rows", "y", "sentence"),
    [
        (lambda: Endless(), SETS, "X is a Endless and has no length; give one with __len__"),
        (lambda: DataLoader(Endless()), SETS, "X is a DataLoader and has no length"),
        (lambda: TensorDataset(ROWS), None, "X is a TensorDataset and has no labels; give them as"),
        (lambda: DataLoader(Digits(), drop_last=True), SETS, "shuffles its rows or leaves some"),
        (lambda: Ragged(), SETS, "does not make one array .*; give tensors of one shape"),
        (lambda: TensorDataset(ROWS[:0]), SETS, "does not make one array .*at least one row"),
        (lambda: TensorDataset(ROWS[:9]), SETS, "X has 9 rows but y has 300"),
        (lambda: [PARTS[0], 3], SETS, "the batches of X differ; give record batches alone"),
        (lambda: [PARTS[0], PARTS[1].select(["p0"])], SETS, "the batches of X differ"),
    ],
)
def test_what_cannot_be_gathered_is_one_sentence(rows: Any, y: Any, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        classifier().fit(rows(), y)


def test_predictions_keep_the_order_of_the_rows() -> None:
    clf = classifier().fit(X, SETS)
    with pytest.raises(ValueError, match="X is a DataLoader and shuffles its rows"):
        clf.predict(DataLoader(Digits(), shuffle=True))


def test_a_model_read_from_a_table_finds_its_columns_in_arrow(tmp_path: Any) -> None:
    clf = classifier().fit(X, SETS)
    clf.save(tmp_path / "model", reading={"kind": "columns", "features": TABLE.column_names})
    again = ro.load(tmp_path / "model")
    turned = TABLE.select(TABLE.column_names[::-1])
    assert_array_equal(again.predict(turned.to_batches(50)), clf.predict(X))
    with pytest.raises(ValueError, match="X lacks the column 'p0'"):
        again.predict(turned.select(["p1"]))
    assert np.isfinite(again.predict_proba(TABLE)).all()
