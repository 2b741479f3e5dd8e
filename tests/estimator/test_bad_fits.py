"""The bad-input table: what users hand to a classifier, each with the exact sentence they read."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.exceptions import NotFittedError
from torch import nn, tensor
from torch.utils.data import DataLoader, TensorDataset

import ruleout as ro
from ruleout import LabelSets
from ruleout.estimator import RuleOutClassifier

X = np.arange(18.0).reshape(6, 3)
Y = np.array([0, 1, 2, 0, 1, 2])
SETS = ro.draw(Y, classes=3, seed=0)
NOTHING = LabelSets(np.zeros((6, 3)), unlabelled=True)


def _with(value: float) -> Any:
    x = X.copy()
    x[2, 1] = value
    return x


def _fit(x: Any = X, y: Any = SETS, weight: Any = None, **parameters: Any) -> RuleOutClassifier:
    clf = RuleOutClassifier(**{"epochs": 2, "random_state": 0, **parameters})
    return clf.fit(x, y, sample_weight=weight)


def _wide(shape: tuple[int, ...], classes: int) -> nn.Module:
    return nn.Linear(shape[0], classes + 1)


TABLE: list[tuple[str, Callable[[], object], str]] = [
    # ---------------------------------------------------------------- X
    (
        "NaN",
        lambda: _fit(_with(np.nan)),
        "row 2, column 1: X holds NaN; fill in or drop missing values",
    ),
    (
        "NaN in a frame",
        lambda: _fit(pd.DataFrame(_with(np.nan), columns=["a", "b", "c"])),
        "row 2, column 'b': X holds NaN; fill in or drop missing values",
    ),
    (
        "masked values",
        lambda: _fit(np.ma.masked_equal(X, 4)),
        "X has masked values; fill them in or drop their rows",
    ),
    (
        "NaN in a sparse matrix",
        lambda: _fit(sparse.csr_array(_with(np.nan))),
        "row 2, column 1: X holds NaN; fill in or drop missing values",
    ),
    (
        "inf",
        lambda: _fit(_with(np.inf)),
        "row 2, column 1: X holds infinity (inf) or a number beyond its precision; fix it, scale the features, or use precision='float64'",
    ),
    (
        "a number beyond float32",
        lambda: _fit(_with(1e300)),
        "row 2, column 1: X holds infinity (inf) or a number beyond its precision; fix it, scale the features, or use precision='float64'",
    ),
    (
        "inf in float64",
        lambda: _fit(_with(-np.inf), precision="float64"),
        "row 2, column 1: X holds infinity (inf) or a number beyond its precision; fix it, or drop the row",
    ),
    (
        "NaN to predict",
        lambda: _fit().predict(_with(np.nan)),
        "row 2, column 1: X holds NaN; fill in or drop missing values",
    ),
    (
        "no rows",
        lambda: _fit(X[:0], SETS[:0]),
        "Found array with 0 sample(s) (shape=(0, 3)) while a minimum of 1 is required by RuleOutClassifier.",
    ),
    ("an iterator of no rows", lambda: _fit(iter([])), "X has no rows; give at least one"),
    (
        "an iterator of rows",
        lambda: _fit(iter(X)),
        "X is a iterator; give all rows at once: an array, a tensor, a memory map or a sparse matrix",
    ),
    (
        "other features",
        lambda: _fit().predict(X[:, :2]),
        "X has 2 features, but RuleOutClassifier is expecting 3 features as input.",
    ),
    (
        "shape",
        lambda: _fit(shape=(3, 2, 2)),
        "X has 3 features, but shape=(3, 2, 2) holds 12; make them agree",
    ),
    (
        "a loader",
        lambda: _fit(DataLoader(TensorDataset(tensor(X)), shuffle=True)),
        "X is a DataLoader and shuffles its rows or leaves some out; read it in order and whole: "
        "shuffle=False, drop_last=False",
    ),
    # ---------------------------------------------------------------- y
    (
        "lists as labels",
        lambda: _fit(y=np.array(["a", "b", "a|c", "c", "b", "b|c"])),
        "row 2, column 'y': 'a|c' lists several classes, and y holds one label per row; where they are ruled out, give LabelSets.from_lists([t.split('|') for t in y], classes)",
    ),
    (
        "lists as labels of known classes",
        lambda: _fit(y=np.array(["a", "a", "a|c", "a", "a", "a"]), classes=["a", "b", "c"]),
        "row 2, column 'y': 'a|c' lists several classes, and y holds one label per row; where they are ruled out, give LabelSets.from_lists([t.split('|') for t in y], classes)",
    ),
    (
        "lists as labels, none of them alone",
        lambda: _fit(y=np.array(["a|b", "c|d", "e"] * 2)),
        "row 0, column 'y': 'a|b' lists several classes, and y holds one label per row; where they are ruled out, give LabelSets.from_lists([t.split('|') for t in y], classes)",
    ),
    (
        "sets as labels",
        lambda: _fit(y=[{"a"}, {"b"}] * 3),
        "row 0, column 'y': unknown class {'a'}; give one label; sets of labels go into LabelSets(...) or from_lists",
    ),
    (
        "sets as labels of known classes",
        lambda: _fit(y=[frozenset("a"), frozenset("b")] * 3, classes=["a", "b"]),
        "row 0, column 'y': unknown class frozenset({'a'}); give one label; sets of labels go into LabelSets(...) or from_lists",
    ),
    (
        "no labels",
        lambda: _fit(y=[None] * 6),
        "row 0, column 'y': unknown class None; fill in or drop missing labels",
    ),
    (
        "a label missing",
        lambda: _fit(y=["a", "b", None] * 2),
        "row 2, column 'y': unknown class None; fill in or drop missing labels",
    ),
    ("fewer sets", lambda: _fit(y=SETS[:5]), "X has 6 rows but y has 5; give one set for each row"),
    (
        "fewer labels",
        lambda: _fit(y=Y[:5]),
        "X has 6 rows but y has 5; give one label for each row",
    ),
    (
        "no y",
        lambda: _fit(y=None),
        "This RuleOutClassifier estimator requires y to be passed, but the target y is None.",
    ),
    (
        "one class",
        lambda: _fit(y=np.zeros(6, int)),
        "y holds one class, 0; name all classes, at least two, in classes=[...]",
    ),
    (
        "an unknown label",
        lambda: _fit(y=Y, classes=[0, 1]),
        "row 2, column 'y': unknown class 2; the classes are 0, 1",
    ),
    (
        "a class twice",
        lambda: _fit(y=Y, classes=["a", "a"]),
        "classes is 'a', 'a'; list every class once, at least two",
    ),
    (
        "too few classes for a table",
        lambda: _fit(y=SETS.excluded, classes=["a", "b"]),
        "the table is 3 wide, but there are 2 classes; give one column per class",
    ),
    (
        "classes that are not those of the sets",
        lambda: _fit(classes=["a", "b", "c"]),
        "the classes are 0, 1, 2, not 'a', 'b', 'c'; use the same class names in the same order",
    ),
    (
        "all ruled out",
        lambda: _fit(y=np.ones((6, 3))),
        "row 0: every class is ruled out; leave at least one class as a candidate (6 rows: rows 0, 1, 2, 3, 4, …)",
    ),
    (
        "nothing ruled out",
        lambda: _fit(y=NOTHING),
        "y rules nothing out; give at least one row with a ruled-out class",
    ),
    (
        "values of 2",
        lambda: _fit(y=2 * SETS.excluded),
        "row 0, column 1: 2 is neither 0 nor 1; 1 means ruled out, 0 means still a candidate",
    ),
    (
        "lists of names",
        lambda: _fit(y=[["a", "b"]] * 6),
        "row 0, column 0: 'a' is neither 0 nor 1; for lists of class names use LabelSets.from_lists",
    ),
    (
        "lists of one name and of two",
        lambda: _fit(y=[["a"], ["b", "c"]] * 3),
        "row 1: the row has 2 cells where row 0 has 1 cells; give every row one cell per class; "
        "lists of names go into LabelSets.from_lists",
    ),
    (
        "three dimensions",
        lambda: _fit(y=np.zeros((6, 3, 2))),
        "expected a table of n rows and k classes, got 3 dimension(s); give one row per example",
    ),
    # ---------------------------------------------------------------- weights
    (
        "short weights",
        lambda: _fit(weight=[1, 2]),
        "sample_weight has shape (2,); give 6, one for each row",
    ),
    (
        "negative weight",
        lambda: _fit(weight=[1, -1, 1, 1, 1, 1]),
        "row 1: sample_weight is -1.0; give numbers, zero or above",
    ),
    (
        "NaN weight",
        lambda: _fit(weight=[np.nan] * 6),
        "row 0: sample_weight is nan; give numbers, zero or above",
    ),
    (
        "zero weights",
        lambda: _fit(weight=np.zeros(6)),
        "every sample_weight is zero; give at least one row a weight",
    ),
    (
        "unknown class weight",
        lambda: _fit(y=np.array(["cat", "dog"] * 3), class_weight={"catt": 1}),
        "class_weight names an unknown class 'catt'; did you mean 'cat'?",
    ),
    (
        "negative class weight",
        lambda: _fit(class_weight={0: -1}),
        "class_weight of 0 is -1; give numbers, zero or above",
    ),
    (
        "text class weight",
        lambda: _fit(class_weight={0: "a"}),
        "class_weight of 0 is 'a'; give numbers, zero or above",
    ),
    (
        "zero class weights",
        lambda: _fit(class_weight={0: 0, 1: 0, 2: 0}),
        "every row weighs zero; give some class a weight above zero",
    ),
    (
        "class_weight misspelt",
        lambda: _fit(class_weight="balance"),
        "class_weight is 'balance'; give a dictionary, 'balanced' or None",
    ),
    # ---------------------------------------------------------------- parameters
    ("approach", lambda: _fit(approach="lgo"), "unknown approach 'lgo'; did you mean 'log'?"),
    (
        "half an approach",
        lambda: _fit(approach="ga"),
        "unknown approach 'ga'; did you mean 'ga-before' or 'ga-after'?",
    ),
    (
        "no approach",
        lambda: _fit(approach=3),
        "approach is 3; name one of ro.approaches(), or give an Approach",
    ),
    (
        "approach_options",
        lambda: _fit(approach_options=3),
        "approach_options is 3; give a dictionary or None",
    ),
    (
        "option",
        lambda: _fit(approach_options={"q": 1}),
        "loss 'log' has no option 'q'; it has no options",
    ),
    ("model", lambda: _fit(model="lineer"), "unknown model 'lineer'; did you mean 'linear'?"),
    (
        "no model",
        lambda: _fit(model=7),
        "model is 7; name one of linear, mlp, resnet32, densenet22, resnet34, or give a function that makes it: (shape, classes) → nn.Module",
    ),
    (
        "hidden",
        lambda: _fit(hidden=(3,)),
        "model 'linear' has no option 'hidden'; hidden layers belong to model='mlp'",
    ),
    (
        "hidden of 0",
        lambda: _fit(model="mlp", hidden=(0,)),
        "hidden is 0; give a whole number of at least 1",
    ),
    (
        "model option",
        lambda: _fit(model_options={"depth": 3}),
        "model 'linear' has no option 'depth'; it has none",
    ),
    (
        "flat rows for convolutions",
        lambda: _fit(model="resnet32"),
        "a convolutional model reads images (channels, height, width), not (3,); say shape=(channels, height, width), or use 'linear' or 'mlp' for flat features",
    ),
    (
        "a module",
        lambda: _fit(model=nn.Linear(3, 3)),
        "model is an nn.Module, Linear; name one of linear, mlp, resnet32, densenet22, resnet34, or give a function that makes it: (shape, classes) → nn.Module",
    ),
    (
        "a function of something else",
        lambda: _fit(model=lambda shape: nn.Linear(shape[0], 3)),
        "model((3,), 3) failed: <lambda>.<locals>.<lambda>() takes 1 positional argument but 2 were given; give a function that is called as model(shape, classes)",
    ),
    (
        "own model too wide",
        lambda: _fit(model=_wide),
        "the model reads 3 numbers and returns 4, the data have 3 and 3 classes; give one of that size",
    ),
    (
        "own model none",
        lambda: _fit(model=lambda *_: 3),
        "the model function returned a int; return an nn.Module",
    ),
    (
        "own model empty",
        lambda: _fit(model=lambda *_: nn.Identity()),
        "the model has no weights; give one that can be trained",
    ),
    ("epochs", lambda: _fit(epochs=0), "epochs is 0; give a whole number of at least 1"),
    (
        "batch_size",
        lambda: _fit(batch_size=2.5),
        "batch_size is 2.5; give a whole number of at least 1",
    ),
    (
        "learning_rate",
        lambda: _fit(learning_rate=-1),
        "learning_rate must be a number, zero or above, not -1",
    ),
    ("optimizer", lambda: _fit(optimizer="adm"), "unknown optimizer 'adm'; did you mean 'adam'?"),
    (
        "grid",
        lambda: _fit(grid="papr"),
        "unknown grid 'papr'; did you mean 'paper'?",
    ),
    (
        "empty grid",
        lambda: _fit(grid={"learning_rate": []}),
        "the grid has no value for 'learning_rate'; give at least one",
    ),
    (
        "criterion",
        lambda: _fit(grid="paper", criterion="acuracy"),
        "unknown criterion 'acuracy'; did you mean 'accuracy'?",
    ),
    (
        "rule",
        lambda: _fit(grid="paper", rule="bst"),
        "unknown rule 'bst'; say best, likeliest, one-standard-error",
    ),
    (
        "validation_fraction",
        lambda: _fit(grid="paper", validation_fraction=1.5),
        "validation_fraction is 1.5; give a share between 0 and 1",
    ),
    (
        "patience",
        lambda: _fit(early_stopping=True, patience=0),
        "patience is 0; give a whole number of at least 1",
    ),
    (
        "one row to choose by",
        lambda: _fit(X[:1], SETS[:1], grid="paper"),
        "1 row cannot be split; give at least two rows",
    ),
    ("device", lambda: _fit(device="gpu"), "unknown device 'gpu'; say 'cpu' or 'cuda'"),
    (
        "precision",
        lambda: _fit(precision="tf32"),
        "tf32 needs a CUDA device; use precision='float32' on a CPU",
    ),
    ("random_state", lambda: _fit(random_state=-1), "Seed must be between 0 and 2**32 - 1"),
    (
        "divergence",
        lambda: _fit(X * 1e6, approach="cce", optimizer="sgd", learning_rate=1e300, epochs=3),
        "training diverged in epoch 2; scale the features, or lower learning_rate (it was 1e+300)",
    ),
    # ---------------------------------------------------------------- later calls
    (
        "partial_fit without classes",
        lambda: RuleOutClassifier().partial_fit(X, Y),
        "the first call of partial_fit cannot know all classes from labels; give classes=[...]",
    ),
    (
        "partial_fit with other classes",
        lambda: RuleOutClassifier().partial_fit(X, SETS).partial_fit(X, Y, classes=[0, 1]),
        "classes differ from those of the first call; leave them out, or fit anew",
    ),
    (
        "partial_fit balanced",
        lambda: RuleOutClassifier(class_weight="balanced").partial_fit(X, SETS),
        "class_weight='balanced' needs all rows at once; give partial_fit a dictionary",
    ),
    (
        "score of an unknown label",
        lambda: _fit().score(X, [5] * 6),
        "row 0, column 'y': unknown class 5; the classes are 0, 1, 2",
    ),
    (
        "a list of one class for each row",
        lambda: _fit(y=[[0], [1], [2], [0], [1], [2]]),
        "y holds a list of one class for each row; give labels as [3, 5, …], or what is ruled out by LabelSets.from_lists",
    ),
    (
        "labels of two types",
        lambda: _fit(y=np.array([0, "b", 2, 0, 1, 2], object)),
        "y mixes text and numbers; give classes of one type",
    ),
    (
        "resolve nothing",
        lambda: _fit().resolve(X, NOTHING, cross=True),
        "y rules nothing out; give at least one row a ruled-out class",
    ),
    (
        "score of text",
        lambda: _fit().score(X, Y.astype(str)),
        "row 0, column 'y': unknown class '0'; the classes are whole numbers, and y holds text: give whole numbers",
    ),
    (
        "score of numbers",
        lambda: _fit(y=Y.astype(str)).score(X, Y),
        "row 0, column 'y': unknown class 0; the classes are text, and y holds whole numbers: give text",
    ),
    (
        "test labels that are text",
        lambda: ro.compare(X, SETS, test=(X, list(map(str, Y)))),
        "row 0, column 'y_test': unknown class '0'; the classes are whole numbers, and y_test holds text: give whole numbers",
    ),
    (
        "score of nothing",
        lambda: _fit().score(X, NOTHING),
        "no row with weight rules anything out; give rows to judge by",
    ),
    (
        "resolve fewer",
        lambda: _fit().resolve(X, SETS[:3]),
        "X has 6 rows but y has 3; give one set for each row",
    ),
    (
        "resolve other classes",
        lambda: _fit().resolve(X, ro.draw(Y, classes=4, seed=0)),
        "the classes are 0, 1, 2, 3, not 0, 1, 2; use the same class names in the same order",
    ),
    (
        "resolve infinitely likely",
        lambda: _fit().resolve(X, likelihood=np.where(np.eye(6, 3), np.inf, 0.0)),
        "likelihood has shape (6, 3), or a row without a finite maximum; give (6, 3) logarithms",
    ),
]


@pytest.mark.filterwarnings("ignore:a learning rate of")
@pytest.mark.parametrize(
    ("call", "sentence"), [row[1:] for row in TABLE], ids=[row[0] for row in TABLE]
)
def test_bad_input(call: Callable[[], object], sentence: str) -> None:
    with pytest.raises(ValueError) as caught:
        call()
    assert str(caught.value) == sentence


@pytest.mark.parametrize(
    "method", ["predict", "predict_proba", "predict_log_proba", "decision_function"]
)
def test_nothing_is_predicted_before_fit(method: str) -> None:
    with pytest.raises(NotFittedError, match="not fitted yet"):
        getattr(RuleOutClassifier(), method)(X)


def test_score_resolve_save_and_export_need_a_fit(tmp_path: Any) -> None:
    clf = RuleOutClassifier()
    for call in (
        lambda: clf.score(X, Y),
        lambda: clf.resolve(X, SETS),
        lambda: clf.save(tmp_path / "m"),
        lambda: clf.export(tmp_path / "m.onnx"),
    ):
        with pytest.raises(NotFittedError, match="not fitted yet"):
            call()
    assert not list(tmp_path.iterdir())
