"""The bad-input table: malformed inputs, each with the exact sentence a user reads."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse

import ruleout as ro
from ruleout import LabelError, LabelSets

ANIMALS = ["cat", "dog", "bird", "fish"]
NAN = float("nan")

TABLE: list[tuple[str, Callable[[], object], str]] = [
    (
        "empty row",
        lambda: LabelSets([[1, 0, 0], [0, 0, 0]]),
        "row 1: nothing is ruled out; rule out at least one class, drop the row, or pass unlabelled=True",
    ),
    (
        "full row",
        lambda: LabelSets([[1, 0, 0], [1, 1, 1]]),
        "row 1: every class is ruled out; leave at least one class as a candidate",
    ),
    (
        "value 2",
        lambda: LabelSets([[1, 0, 0], [0, 2, 0]]),
        "row 1, column 1: 2 is neither 0 nor 1; 1 means ruled out, 0 means still a candidate",
    ),
    (
        "value -1",
        lambda: LabelSets(np.array([[1, 0], [0, -1]])),
        "row 1, column 1: -1 is neither 0 nor 1; 1 means ruled out, 0 means still a candidate",
    ),
    (
        "value 0.5",
        lambda: LabelSets([[1.0, 0], [0.5, 1]]),
        "row 1, column 0: 0.5 is neither 0 nor 1; 1 means ruled out, 0 means still a candidate",
    ),
    (
        "NaN",
        lambda: LabelSets([[1.0, 0], [NAN, 1]]),
        "row 1, column 0: nan is neither 0 nor 1; fill in or drop missing values",
    ),
    (
        "inf",
        lambda: LabelSets([[1.0, 0], [float("inf"), 1]]),
        "row 1, column 0: inf is neither 0 nor 1; 1 means ruled out, 0 means still a candidate",
    ),
    (
        "None",
        lambda: LabelSets([[1, 0], [None, 1]]),
        "row 1, column 0: None is neither 0 nor 1; fill in or drop missing values",
    ),
    (
        "text cell",
        lambda: LabelSets([["1", "0"], ["0", "1"]]),
        "row 0, column 0: '1' is neither 0 nor 1; for lists of class names use LabelSets.from_lists",
    ),
    (
        "names in a table",
        lambda: LabelSets([["cat", "dog"], ["bird", "fish"]], ANIMALS),
        "row 0, column 0: 'cat' is neither 0 nor 1; for lists of class names use LabelSets.from_lists",
    ),
    (
        "ragged",
        lambda: LabelSets([[1, 0, 0], [1, 0]]),
        "row 1: the row has 2 cells where row 0 has 3 cells; give every row one cell per class; lists of names go into LabelSets.from_lists",
    ),
    (
        "ragged names",
        lambda: LabelSets([["cat", "dog"], ["bird"]], ANIMALS),
        "row 1: the row has 1 cells where row 0 has 2 cells; give every row one cell per class; lists of names go into LabelSets.from_lists",
    ),
    (
        "row not a list",
        lambda: LabelSets([[1, 0], 1]),
        "row 1: the row has no cells where row 0 has 2 cells; give every row one cell per class; lists of names go into LabelSets.from_lists",
    ),
    (
        "1-D",
        lambda: LabelSets([1, 0, 1]),
        "expected a table of n rows and k classes, got 1 dimension(s); one ruled-out class per row goes into LabelSets.from_single, true labels into LabelSets.from_labels",
    ),
    (
        "3-D",
        lambda: LabelSets(np.zeros((2, 2, 2))),
        "expected a table of n rows and k classes, got 3 dimension(s); give one row per example",
    ),
    (
        "scalar",
        lambda: LabelSets(3),
        "expected a table of n rows and k classes, got 0 dimension(s); one ruled-out class per row goes into LabelSets.from_single, true labels into LabelSets.from_labels",
    ),
    (
        "wrong width",
        lambda: LabelSets([[1, 0, 0]], ANIMALS),
        "the table is 3 wide, but there are 4 classes; give one column per class",
    ),
    (
        "complex",
        lambda: LabelSets(np.array([[1j, 0]])),
        "the table is of type complex128; 1 means ruled out, 0 means still a candidate",
    ),
    (
        "one column",
        lambda: LabelSets([[1], [1]]),
        "1 class(es) given; at least two classes are needed",
    ),
    (
        "frame NaN",
        lambda: LabelSets(pd.DataFrame({"cat": [1, 0], "dog": [0, NAN]})),
        "row 1, column 'dog': nan is neither 0 nor 1; fill in or drop missing values",
    ),
    (
        "polars null",
        lambda: LabelSets(pl.DataFrame({"cat": [1, 0], "dog": [0, None]})),
        "row 1, column 'dog': nan is neither 0 nor 1; fill in or drop missing values",
    ),
    (
        "frame other classes",
        lambda: LabelSets(pd.DataFrame({"cat": [1], "dog": [0]}), ["dog", "cat"]),
        "the classes are 'cat', 'dog', not 'dog', 'cat'; use the same class names in the same order",
    ),
    (
        "frame twice",
        lambda: LabelSets(pd.DataFrame([[1, 0]], columns=["cat", "cat"])),
        "class name 'cat' appears twice in classes; name each class once",
    ),
    (
        "sparse 2",
        lambda: LabelSets(sparse.coo_array(([1, 1], ([0, 0], [1, 1])), shape=(1, 3))),
        "row 0, column 1: 2 is neither 0 nor 1; 1 means ruled out, 0 means still a candidate",
    ),
    (
        "classes twice",
        lambda: LabelSets([[1, 0]], ["a", "a"]),
        "class name 'a' appears twice in classes; name each class once",
    ),
    (
        "classes one",
        lambda: LabelSets([[1]], ["a"]),
        "1 class(es) given; at least two classes are needed",
    ),
    (
        "classes mixed",
        lambda: LabelSets([[1, 0]], ["a", 1]),
        "class names mix text and whole numbers; use all of one kind, for example all text",
    ),
    (
        "classes text",
        lambda: LabelSets([[1, 0]], "ab"),
        "classes is 'ab'; give the number of classes or a list of class names; the order matters",
    ),
    (
        "classes float",
        lambda: LabelSets([[1, 0]], np.array([0.5, 1])),
        "class 0 is 0.5; a class name is a text or a whole number",
    ),
    (
        "classes empty name",
        lambda: LabelSets([[1, 0]], ["a", ""]),
        "class 1 is '', a blank; give every class a name",
    ),
    (
        "classes bool",
        lambda: LabelSets([[1, 0]], [True, False]),
        "class 0 is True; a class name is a text or a whole number",
    ),
    (
        "classes number 1",
        lambda: ro.draw([0], 1),
        "1 class(es) given; at least two classes are needed",
    ),
    (
        "classes nul",
        lambda: LabelSets([[1, 0]], ["a", "b\0"]),
        "class 1 is 'b\\x00', which files and NumPy cannot hold; leave out NUL characters and lone surrogates",
    ),
    (
        "unknown name",
        lambda: LabelSets.from_lists([["cat"], ["dgo"]], ANIMALS),
        "row 1: unknown class 'dgo'; did you mean 'dog'?",
    ),
    (
        "unknown name far",
        lambda: LabelSets.from_lists([["cat"], ["zebra"]], ANIMALS),
        "row 1: unknown class 'zebra'; the classes are 'cat', 'dog', 'bird', 'fish'",
    ),
    (
        "position out",
        lambda: LabelSets.from_lists([[4]], ANIMALS),
        "row 0: unknown class 4; the classes are 'cat', 'dog', 'bird', 'fish'",
    ),
    (
        "negative position",
        lambda: LabelSets.from_lists([[-1]], ANIMALS),
        "row 0: unknown class -1; the classes are 'cat', 'dog', 'bird', 'fish'",
    ),
    (
        "bool label",
        lambda: LabelSets.from_lists([[True]], ANIMALS),
        "row 0: unknown class True; the classes are 'cat', 'dog', 'bird', 'fish'",
    ),
    (
        "None label",
        lambda: LabelSets.from_lists([[None]], ANIMALS),
        "row 0: unknown class None; fill in or drop missing labels",
    ),
    (
        "list label",
        lambda: LabelSets.from_lists([[["cat"]]], ANIMALS),
        "row 0: unknown class ['cat']; give one label; sets of labels go into LabelSets(...) or from_lists",
    ),
    (
        "duplicate in row",
        lambda: LabelSets.from_lists([["cat"], ["dog", "dog"]], ANIMALS),
        "row 1: class 'dog' appears twice; name each class once",
    ),
    (
        "row is text",
        lambda: LabelSets.from_lists(["cat", "dog"], ANIMALS),
        "row 0: the row is 'cat', not a list; give a list of class names per row; for one label per row use from_single",
    ),
    (
        "row is None",
        lambda: LabelSets.from_lists(np.array([["cat"], None], object), ANIMALS),
        "row 1: the row is None, not a list; give a list of class names per row; for one label per row use from_single",
    ),
    (
        "empty list",
        lambda: LabelSets.from_lists([["cat"], []], ANIMALS),
        "row 1: nothing is ruled out; rule out at least one class, drop the row, or pass unlabelled=True",
    ),
    (
        "all names",
        lambda: LabelSets.from_lists([ANIMALS], ANIMALS),
        "row 0: every class is ruled out; leave at least one class as a candidate",
    ),
    (
        "no candidates",
        lambda: LabelSets.from_candidates([["cat"], []], ANIMALS),
        "row 1: every class is ruled out; leave at least one class as a candidate",
    ),
    (
        "all candidates",
        lambda: LabelSets.from_candidates([ANIMALS], ANIMALS),
        "row 0: nothing is ruled out; rule out at least one class, drop the row, or pass unlabelled=True",
    ),
    (
        "candidates without classes",
        lambda: LabelSets.from_candidates([["cat"]]),
        "no classes given; pass classes=[...] with every class name",
    ),
    (
        "single unknown",
        lambda: LabelSets.from_single(["cat", "cow"], ANIMALS),
        "row 1, column 'excluded': unknown class 'cow'; the classes are 'cat', 'dog', 'bird', 'fish'",
    ),
    (
        "single NaN",
        lambda: LabelSets.from_single([1.0, NAN], 3),
        "row 1, column 'excluded': unknown class nan; fill in or drop missing labels",
    ),
    (
        "single half",
        lambda: LabelSets.from_single([0.5], 3),
        "row 0, column 'excluded': unknown class 0.5; the classes are 0, 1, 2",
    ),
    (
        "single 2-D",
        lambda: LabelSets.from_single([[0, 1]], 3),
        "row 0, column 'excluded': unknown class [0, 1]; give one label; sets of labels go into LabelSets(...) or from_lists",
    ),
    (
        "label range",
        lambda: ro.draw([0, 1, 10], 10),
        "row 2, column 'y': unknown class 10; the classes are 0, 1, 2, 3, 4, 5, 6, 7, … (10 in all)",
    ),
    (
        "label negative",
        lambda: ro.draw([-1], 10),
        "row 0, column 'y': unknown class -1; the classes are 0, 1, 2, 3, 4, 5, 6, 7, … (10 in all)",
    ),
    (
        "law name",
        lambda: ro.draw([0], 4, law="papre"),
        "unknown size law 'papre'; did you mean 'paper'?",
    ),
    (
        "law size",
        lambda: ro.draw([0], 4, law=4),
        "size 4 is impossible with 4 classes; choose a size from 1 to 3",
    ),
    (
        "law zero",
        lambda: ro.draw([0], 4, law=0),
        "size 0 is impossible with 4 classes; choose a size from 1 to 3",
    ),
    (
        "law fixed",
        lambda: ro.size_law("fixed:x", 4),
        "unknown size law 'fixed:x'; did you mean 'fixed:1'?",
    ),
    (
        "law length",
        lambda: ro.size_law([0.5, 0.5], 4),
        "the size law has shape (2,); with 4 classes give 3 probabilities, for sizes 1 to 3",
    ),
    (
        "law sum",
        lambda: ro.size_law([0.5, 0.2, 0.1], 4),
        "the size law sums to 0.8; divide it by its sum",
    ),
    (
        "law negative",
        lambda: ro.size_law([1.5, -0.5, 0], 4),
        "p(s=2) is -0.5; probabilities are numbers from 0 to 1",
    ),
    (
        "law NaN",
        lambda: ro.size_law([NAN, 0.5, 0.5], 4),
        "p(s=1) is nan; probabilities are numbers from 0 to 1",
    ),
    (
        "law object",
        lambda: ro.size_law(np.array({"a": 1}), 4),
        "size law array({'a': 1}, dtype=object) is not a list of numbers; give 3 probabilities",
    ),
    (
        "packed dtype",
        lambda: LabelSets.from_packed(np.zeros((2, 1), int), 4),
        "packed bits of int64 with shape (2, 1); 4 classes need uint8 of shape (n, 1)",
    ),
    (
        "packed padding",
        lambda: LabelSets.from_packed(np.array([[1], [255]], np.uint8), 4),
        "row 1: a bit beyond the last class is set; pack with numpy.packbits(..., axis=1, bitorder='little')",
    ),
    ("propose negative", lambda: ro.propose(-1, 4), "-1 sets asked for; ask for zero or more"),
    (
        "answer lengths",
        lambda: ro.answer(ro.propose(3, 4), [0, 1]),
        "3 questions but 2 labels; give one label per question, or say with items= which item each is about",
    ),
    (
        "answer items",
        lambda: ro.answer(ro.propose(2, 4), [0, 1], items=[0, 5]),
        "row 1: item 5 has no label; there are 2 labels",
    ),
    (
        "concatenate nothing",
        lambda: LabelSets.concatenate([]),
        "nothing to concatenate; give a list of LabelSets",
    ),
    (
        "to_single",
        lambda: LabelSets([[1, 1, 0]]).to_single(),
        "row 0: the row rules out 2 classes, not one; keep rows with sizes == 1",
    ),
    (
        "to_labels",
        lambda: LabelSets([[1, 0, 0]]).to_labels(),
        "row 0: the row leaves 2 classes, not one; keep rows with sizes == k - 1",
    ),
    (
        "suffix",
        lambda: LabelSets.read("x.txt"),
        "x.txt: unknown file type '.txt'; use one of .csv, .tsv, .jsonl, .parquet, .npz",
    ),
    (
        "bound counts",
        lambda: ro.theory.error_bound(1, 3, "paper", [1], 0.1, 1, lambda n: 1),
        "counts is [1]; give 2 whole numbers, for sizes 1 to 2",
    ),
    (
        "bound delta",
        lambda: ro.theory.error_bound(1, 3, "paper", [1, 1], 2, 1, lambda n: 1),
        "delta is 2; choose it between 0 and 1",
    ),
    (
        "enumerate",
        lambda: ro.theory.every_set(40),
        "40 classes cannot be enumerated; use k from 2 to 20",
    ),
    (
        "nullable missing",
        lambda: LabelSets(pd.DataFrame({"a": [1, None], "b": [0, 1]}, dtype="Int64")),
        "row 1, column 'a': <NA> is neither 0 nor 1; fill in or drop missing values",
    ),
    (
        "id column",
        lambda: LabelSets(pd.DataFrame({"id": [17, 18], "a": [0, 1]})),
        "row 0, column 'id': 17 is neither 0 nor 1; 1 means ruled out, 0 means still a candidate; leave out columns that are not classes",
    ),
    (
        "masked table",
        lambda: LabelSets(np.ma.array([[1, 0], [1, 0]], mask=[[False, False], [True, False]])),
        "the table has masked values; fill them in or drop their rows",
    ),
    (
        "masked labels",
        lambda: LabelSets.from_single(np.ma.array([1, 0], mask=[True, False]), 3),
        "excluded has masked values; fill them in or drop their rows",
    ),
    (
        "too many classes",
        lambda: LabelSets.from_single([0], 10**18),
        "1000000000000000000 classes given; at most 1,000,000 are possible",
    ),
    (
        "wide empty table",
        lambda: LabelSets(np.empty((0, 10**8), np.uint8)),
        "100000000 classes given; at most 1,000,000 are possible",
    ),
    (
        "classes a set",
        lambda: LabelSets([[1, 0]], cast(Any, frozenset(["b"]))),
        "classes is frozenset({'b'}); give the number of classes or a list of class names; the order matters",
    ),
    (
        "classes bytes",
        lambda: LabelSets([[1, 0]], b"ab"),
        "classes is b'ab'; give the number of classes or a list of class names; the order matters",
    ),
    (
        "classes huge",
        lambda: LabelSets([[1, 0]], [2**63, 1]),
        "class 0 is 9223372036854775808; use numbers below 2^63, or text",
    ),
    (
        "dates",
        lambda: LabelSets(np.zeros((2, 2), "datetime64[ns]")),
        "the table is of type datetime64[ns]; 1 means ruled out, 0 means still a candidate",
    ),
    (
        "date labels",
        lambda: LabelSets.from_single(np.zeros(2, "datetime64[ns]"), 3),
        "excluded is of type datetime64[ns]; give class names or whole numbers, one per row",
    ),
    (
        "truth values as labels",
        lambda: ro.draw(np.array([True, False]), 2),
        "y is of type bool; give class names or whole numbers, one per row",
    ),
    (
        "complex label",
        lambda: LabelSets.from_lists([[1 + 0j]], 3),
        "row 0: unknown class (1+0j); the classes are 0, 1, 2",
    ),
    (
        "missing among names",
        lambda: LabelSets.from_single(["cat", NAN], ["cat", "nan"]),
        "row 1, column 'excluded': unknown class nan; fill in or drop missing labels",
    ),
    (
        "ragged labels",
        lambda: LabelSets.from_single([[1], [1, 2]], 3),
        "row 0, column 'excluded': unknown class [1]; give one label; sets of labels go into LabelSets(...) or from_lists",
    ),
    (
        "huge label",
        lambda: LabelSets.from_lists([[10**5000]], 3),
        "row 0: unknown class a int; the classes are 0, 1, 2",
    ),
    (
        "no rows at all",
        lambda: LabelSets.from_lists(cast(Any, None), 3),
        "expected lists of class names, got None; give one per row",
    ),
    (
        "sparse vector",
        lambda: LabelSets(sparse.coo_array(np.array([1, 0, 1]))),
        "expected a table of n rows and k classes, got 1 dimension(s); one ruled-out class per row goes into LabelSets.from_single, true labels into LabelSets.from_labels",
    ),
    (
        "sets as candidates",
        lambda: LabelSets.from_candidates(LabelSets([[1, 0]])),
        "these are label sets already; use them as they are",
    ),
    (
        "answer an array",
        lambda: ro.answer(cast(Any, np.eye(2)), [0, 1]),
        "asked is array([[1., 0.],\n       [0., 1.]]); give LabelSets, as propose(...) makes them",
    ),
    (
        "impossible rate",
        lambda: ro.labels.wrong_class_rate([99], 4),
        "a size is impossible; with 4 classes, sizes go from 1 to 3",
    ),
    (
        "law overflow",
        lambda: ro.size_law([10**400, 1], 3),
        "size law [10000000000000000000000000000000000000000000000000000000000… is not a list of numbers; give 2 probabilities",
    ),
]


@pytest.mark.parametrize(
    ("call", "sentence"), [case[1:] for case in TABLE], ids=[case[0] for case in TABLE]
)
def test_malformed_input_is_named(call: Callable[[], object], sentence: str) -> None:
    with pytest.raises(LabelError) as caught:
        call()
    assert str(caught.value) == sentence
