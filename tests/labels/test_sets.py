"""LabelSets: what it holds, how it is indexed, and the roads in and out."""

from __future__ import annotations

import pickle
import sys
from copy import deepcopy

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import torch
from scipy import sparse
from sklearn.model_selection import KFold, train_test_split

import ruleout as ro

ANIMALS = ("cat", "dog", "bird", "fish")
MASK = np.array([[1, 1, 0, 0], [0, 0, 1, 0], [1, 0, 1, 1]], bool)


@pytest.fixture
def sets() -> ro.LabelSets:
    return ro.LabelSets(MASK, ANIMALS)


def test_holds_what_was_given(sets: ro.LabelSets) -> None:
    assert sets.shape == (3, 4)
    assert len(sets) == 3
    assert sets.classes == ANIMALS
    assert np.array_equal(sets.excluded, MASK)
    assert np.array_equal(sets.candidates, ~MASK)
    assert sets.sizes.tolist() == [2, 1, 3]


def test_array_is_the_mask(sets: ro.LabelSets) -> None:
    assert np.asarray(sets).dtype == bool
    assert np.array_equal(np.asarray(sets), MASK)
    assert np.asarray(sets, dtype=np.float32).dtype == np.float32


def test_classes_default_to_numbers() -> None:
    assert ro.LabelSets(MASK).classes == (0, 1, 2, 3)


@pytest.mark.parametrize(
    "source",
    [
        MASK,
        MASK.tolist(),
        MASK.astype(int),
        MASK.astype(np.uint8),
        MASK.astype(float),
        MASK.astype(object),
        np.asfortranarray(MASK),
        sparse.csr_array(MASK),
        sparse.coo_array(MASK.astype(float)),
        sparse.csc_matrix(MASK.astype(int)),
        pd.DataFrame(MASK, columns=ANIMALS),
        pd.DataFrame(MASK.astype(int), columns=ANIMALS),
        pl.DataFrame(MASK, schema=list(ANIMALS)),
        ro.LabelSets(MASK, ANIMALS),
    ],
    ids=lambda source: type(source).__name__,
)
def test_every_table_gives_the_same_sets(source: object, sets: ro.LabelSets) -> None:
    assert ro.LabelSets(source, ANIMALS) == sets


def test_frame_brings_its_class_names() -> None:
    assert ro.LabelSets(pd.DataFrame(MASK, columns=ANIMALS)).classes == ANIMALS
    assert ro.LabelSets(pl.DataFrame(MASK, schema=list(ANIMALS))).classes == ANIMALS


def test_lists_candidates_and_single_labels(sets: ro.LabelSets) -> None:
    lists = [["dog", "cat"], ["bird"], ["fish", "cat", "bird"]]
    assert ro.LabelSets.from_lists(lists, ANIMALS) == sets
    candidates = [["bird", "fish"], ["cat", "dog", "fish"], ["dog"]]
    assert ro.LabelSets.from_candidates(candidates, ANIMALS) == sets
    assert ro.LabelSets.from_candidates(~MASK, ANIMALS) == sets
    single = ro.LabelSets.from_single(["dog", "cat"], ANIMALS)
    assert single.to_lists() == [["dog"], ["cat"]]
    true = ro.LabelSets.from_labels(["dog", "cat"], ANIMALS)
    assert true.to_candidates() == [["dog"], ["cat"]]


def test_whole_numbers_are_positions_when_names_are_text() -> None:
    by_name = ro.LabelSets.from_lists([["dog"], ["bird"]], ANIMALS)
    assert ro.LabelSets.from_lists([[1], [np.int64(2)]], ANIMALS) == by_name
    assert ro.LabelSets.from_single([1, 2], ANIMALS) == by_name
    assert ro.LabelSets.from_single([1.0, 2.0], ANIMALS) == by_name


def test_whole_numbers_are_names_when_classes_are_numbers() -> None:
    sets = ro.LabelSets.from_lists([[30], [10]], classes=[10, 20, 30])
    assert sets.excluded.tolist() == [[False, False, True], [True, False, False]]


def test_sets_are_equal_only_with_the_same_rows_and_classes(sets: ro.LabelSets) -> None:
    assert sets == sets[:] == ro.LabelSets(MASK, ANIMALS)
    assert sets != sets[:2] != sets[[1, 0]]
    assert sets != ro.LabelSets(MASK)
    assert sets != MASK.tolist()


def test_roads_out(sets: ro.LabelSets) -> None:
    assert sets.to_lists() == [["cat", "dog"], ["bird"], ["cat", "bird", "fish"]]
    assert ro.LabelSets(sets.to_frame()) == sets
    assert ro.LabelSets(sets.to_polars()) == sets
    assert ro.LabelSets(sets.to_sparse(), ANIMALS) == sets
    assert ro.LabelSets.from_candidates(sets.to_candidates(), ANIMALS) == sets
    assert sets[[1]].to_single().tolist() == ["bird"]
    assert sets[[2]].to_labels().tolist() == ["dog"]


def test_rows(sets: ro.LabelSets) -> None:
    assert sets[0] == ("cat", "dog")
    assert sets[-1] == ("cat", "bird", "fish")
    assert sets[1:].to_lists() == sets.to_lists()[1:]
    assert sets[[2, 0, 2]].to_lists() == [sets.to_lists()[i] for i in (2, 0, 2)]
    assert sets[np.array([True, False, True])].sizes.tolist() == [2, 3]
    assert sets[[]].shape == (0, 4)
    with pytest.raises(IndexError):
        sets[3]
    with pytest.raises(IndexError, match="row number, a slice, or a list"):
        sets[1.5]  # type: ignore[call-overload]
    with pytest.raises(IndexError, match="by rows only"):
        sets[0, 1]


def test_iteration_gives_names(sets: ro.LabelSets) -> None:
    assert [list(row) for row in sets] == sets.to_lists()


def test_concatenation(sets: ro.LabelSets) -> None:
    assert ro.LabelSets.concatenate([sets[:1], sets[1:]]) == sets
    with pytest.raises(ro.LabelError, match="same class names in the same order"):
        ro.LabelSets.concatenate([sets, ro.LabelSets(MASK)])


def test_equality_reads_classes_and_rows(sets: ro.LabelSets) -> None:
    assert sets == ro.LabelSets(MASK, ANIMALS)
    assert sets != ro.LabelSets(MASK)
    assert sets != ro.LabelSets(MASK[::-1], ANIMALS)
    assert sets != "sets"


def test_cannot_be_changed(sets: ro.LabelSets) -> None:
    with pytest.raises(AttributeError, match="cannot be changed"):
        sets.classes = ("a", "b")  # type: ignore[misc]
    with pytest.raises(ValueError):
        sets.packed[0] = 0
    mask = MASK.copy()
    kept = ro.LabelSets(mask, ANIMALS)
    mask[:] = False
    assert kept == sets


def test_no_way_around_immutability(sets: ro.LabelSets) -> None:
    with pytest.raises(ValueError):
        sets.packed.flags.writeable = True
    with pytest.raises(AttributeError, match="cannot be changed"):
        del sets._packed
    with pytest.raises(AttributeError, match="cannot be changed"):
        sets.__init__(MASK[:1])
    own = np.array([[1], [2]], np.uint8)
    held = ro.LabelSets.from_packed(own, 3)
    with pytest.raises(ValueError):
        own[0, 0] = 7
    part = np.array([[1], [2], [4]], np.uint8)
    view = ro.LabelSets.from_packed(part[:2], 3)
    part[0, 0] = 7
    assert held.to_lists() == view.to_lists() == [[0], [1]]


def test_comparison_with_an_array_is_one_truth_value(sets: ro.LabelSets) -> None:
    assert (sets == MASK) is False
    with pytest.raises(TypeError):
        np.add(sets, 1)


def test_other_containers(sets: ro.LabelSets) -> None:
    table = pa.table({name: MASK[:, i] for i, name in enumerate(ANIMALS)})
    assert ro.LabelSets(table) == sets
    lists = sets.to_lists()
    assert ro.LabelSets.from_lists(pd.Series(lists), ANIMALS) == sets
    assert ro.LabelSets.from_lists(pa.array(lists).to_pylist(), ANIMALS) == sets
    assert ro.LabelSets.from_lists(pa.array(lists), ANIMALS) == sets
    assert ro.LabelSets.from_candidates(pd.Series(sets.to_candidates()), ANIMALS) == sets
    nullable = pd.DataFrame(MASK, columns=ANIMALS).astype("boolean")
    assert ro.LabelSets(nullable) == sets
    assert ro.LabelSets(torch.from_numpy(MASK), ANIMALS) == sets
    assert ro.LabelSets.from_single(torch.tensor([2]), ANIMALS) == sets[[1]]
    assert ro.LabelSets.from_single(pd.Series(["bird"], dtype="category"), ANIMALS) == sets[[1]]


def test_pairs_and_shares(sets: ro.LabelSets) -> None:
    rows, single = sets.pairs()
    assert rows.tolist() == [0, 0, 1, 2, 2, 2]
    assert single.to_single().tolist() == ["cat", "dog", "bird", "cat", "bird", "fish"]
    assert sets.shares.tolist() == [2 / 6, 1 / 6, 2 / 6, 1 / 6]
    assert sets[[]].pairs()[1].shape == (0, 4)


def test_pickles_and_copies(sets: ro.LabelSets) -> None:
    assert pickle.loads(pickle.dumps(sets)) == sets  # our own object, made in the line itself
    assert deepcopy(sets) == sets


def test_unlabelled_rows_need_permission() -> None:
    table = [[0, 0, 0], [1, 0, 0]]
    with pytest.raises(ro.LabelError, match="nothing is ruled out"):
        ro.LabelSets(table)
    sets = ro.LabelSets(table, unlabelled=True)
    assert sets.sizes.tolist() == [0, 1]
    with pytest.raises(ro.LabelError, match="every class is ruled out"):
        ro.LabelSets([[1, 1, 1]], unlabelled=True)


@pytest.mark.parametrize("k", [2, 7, 8, 9, 16, 17, 1000])
def test_any_number_of_classes(k: int) -> None:
    rng = np.random.default_rng(k)
    mask = rng.random((50, k)) < 0.5
    mask[:, 0], mask[:, -1] = True, False
    sets = ro.LabelSets(mask)
    assert np.array_equal(sets.excluded, mask)
    assert np.array_equal(sets.sizes, mask.sum(1))
    assert np.array_equal(ro.LabelSets.from_packed(sets.packed, k).excluded, mask)


def test_splitters_of_scikit_learn_take_it(sets: ro.LabelSets) -> None:
    x = np.arange(6).reshape(3, 2)
    left, right = train_test_split(sets, test_size=1, random_state=0)
    assert isinstance(left, ro.LabelSets)
    assert len(left) + len(right) == 3
    for train, test in KFold(3).split(x, sets):
        assert len(sets[train]) == 2
        assert len(sets[test]) == 1


def test_memory_is_an_eighth() -> None:
    sets = ro.draw(np.zeros(1000, int), classes=1000)
    assert sets.nbytes == 1000 * 125
    assert sys.getsizeof(sets) < 200


def test_repr_shows_counts_and_sizes(sets: ro.LabelSets) -> None:
    assert repr(sets) == "LabelSets(3 rows, 4 classes, 2.00 ruled out on average)\n  sizes 1 ███ 3"
    assert repr(sets[[]]) == "LabelSets(0 rows, 4 classes)"


def test_html_escapes_class_names() -> None:
    page = ro.LabelSets([[1, 0]], ["<script>", "b"])._repr_html_()
    assert "<script>" not in page
    assert "&lt;script&gt;" in page


def test_many_sizes_share_bars() -> None:
    text = repr(ro.LabelSets(np.tri(4999, 5000, dtype=bool)))
    assert text.endswith(f"\n  sizes 1–125 {'█' * 40} 4876–4999")
