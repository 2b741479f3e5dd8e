"""Round trips of every format and conversion, for any sets and any class names."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import ruleout as ro

names = st.one_of(
    st.integers(2, 20).map(lambda k: tuple(range(k))),
    st.lists(st.integers(-(2**40), 2**40), min_size=2, max_size=12, unique=True).map(tuple),
    st.lists(
        st.text(
            st.characters(exclude_categories=["Cs"], exclude_characters="\0"),
            min_size=1,
            max_size=6,
        ).filter(str.strip),
        min_size=2,
        max_size=12,
        unique=True,
    ).map(tuple),
)


@st.composite
def label_sets(draw: Any, unlabelled: bool = False) -> ro.LabelSets:
    classes = draw(names)
    k = len(classes)
    row = st.integers(0 if unlabelled else 1, 2**k - 2)
    codes = draw(st.lists(row, max_size=20))
    mask = [[code >> j & 1 for j in range(k)] for code in codes]
    return ro.LabelSets(np.array(mask, int).reshape(-1, k), classes, unlabelled=unlabelled)


@pytest.mark.parametrize("suffix", [".csv", ".jsonl", ".parquet", ".npz"])
@given(sets=label_sets(unlabelled=True))
def test_files_give_back_what_was_written(suffix: str, sets: ro.LabelSets) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, f"sets{suffix}")
        sets.write(path)
        assert [p.name for p in path.parent.iterdir()] == [path.name]
        assert ro.LabelSets.read(path, unlabelled=True) == sets
        assert ro.LabelSets.read(path, classes=sets.classes, unlabelled=True) == sets


@given(sets=label_sets())
def test_conversions_give_back_what_was_converted(sets: ro.LabelSets) -> None:
    classes = sets.classes
    assert ro.LabelSets(sets.excluded, classes) == sets
    assert ro.LabelSets(np.asarray(sets, np.float32), classes) == sets
    assert ro.LabelSets.from_lists(sets.to_lists(), classes) == sets
    assert ro.LabelSets.from_candidates(sets.to_candidates(), classes) == sets
    assert ro.LabelSets.from_candidates(sets.candidates, classes) == sets
    assert ro.LabelSets.from_packed(sets.packed, classes) == sets
    assert ro.LabelSets(sets.to_sparse(), classes) == sets
    assert ro.LabelSets(sets.to_frame()) == sets
    text = tuple(str(name) for name in classes)
    assert ro.LabelSets(sets.to_polars()) == ro.LabelSets(sets.excluded, text)


@given(sets=label_sets())
def test_single_labels_and_true_labels(sets: ro.LabelSets) -> None:
    single = sets[sets.sizes == 1]
    assert ro.LabelSets.from_single(single.to_single(), sets.classes) == single
    true = sets[sets.sizes == len(sets.classes) - 1]
    assert ro.LabelSets.from_labels(true.to_labels(), sets.classes) == true


@given(sets=label_sets(), seed=st.integers(0, 2**32))
def test_renaming_the_order_of_classes_keeps_the_names(sets: ro.LabelSets, seed: int) -> None:
    order = np.random.default_rng(seed).permutation(len(sets.classes))
    turned = ro.LabelSets(sets.excluded[:, order], [sets.classes[i] for i in order])
    assert [set(row) for row in turned] == [set(row) for row in sets]
    assert np.array_equal(turned.sizes, sets.sizes)


@given(sets=label_sets(), data=st.data())
def test_rows_agree_with_the_mask(sets: ro.LabelSets, data: st.DataObject) -> None:
    rows = data.draw(
        st.lists(st.integers(0, max(len(sets) - 1, 0)), max_size=9 if len(sets) else 0)
    )
    assert np.array_equal(sets[rows].excluded, sets.excluded[rows].reshape(-1, len(sets.classes)))
    cut = data.draw(st.slices(len(sets)))
    assert np.array_equal(sets[cut].excluded, sets.excluded[cut])
