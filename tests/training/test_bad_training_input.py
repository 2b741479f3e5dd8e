"""Every sentence that `fit_grid` and `search` answer bad input with."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import numpy as np
import pytest
import torch
from scipy.sparse import csr_matrix
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import ruleout as ro
from ruleout.selection import choose, search, split
from ruleout.training import Stopping, Trial, Watch
from ruleout.training import fit_grid as typed_fit_grid

fit_grid: Any = typed_fit_grid  # bad types are the point here


class Odd(nn.Linear):
    """A layer with something done to what it returns."""

    def __init__(self, change: Callable[[nn.Module, torch.Tensor], Any]) -> None:
        super().__init__(3, 3)
        self.change = change

    def forward(self, x: torch.Tensor) -> Any:
        return self.change(self, super().forward(x))


X = np.arange(12.0).reshape(4, 3)
SETS = ro.LabelSets([[1, 0, 0], [0, 1, 0], [0, 0, 1], [1, 1, 0]])
HOLE = X.copy()
HOLE[2, 1] = np.nan
ENDLESS = X.copy()
ENDLESS[1, 0] = np.inf
FULL = np.full((4, 3), 1.0)

CASES: list[tuple[str, Callable[[], Any], str]] = [
    ("nan", lambda: fit_grid(HOLE, SETS), "row 2, column 1: x holds nan; fill in or leave out missing values first"),
    ("inf", lambda: fit_grid(ENDLESS, SETS), "row 1, column 0: x holds inf; fill in or leave out missing values first"),
    ("flat x", lambda: fit_grid(X[0], SETS), "x has shape (3,); give rows × features"),
    ("text", lambda: fit_grid([["a"]], SETS), "x has dtype <U1; give numbers"),
    ("rows", lambda: fit_grid(X[:3], SETS), "x has 3 rows but the label sets have 4; give one set for each row"),
    ("no sets", lambda: fit_grid(X, None), "sets is a NoneType; give LabelSets, or a list of them for trials"),
    ("array", lambda: fit_grid(X, [FULL]), "the label sets are a ndarray; make them with ro.LabelSets(excluded, classes)"),
    ("none", lambda: fit_grid(X[:0], SETS[:0]), "there are no rows to train on; give at least one"),
    ("classes", lambda: fit_grid(X, [SETS, ro.LabelSets(np.eye(4)[:, :2], classes=["a", "b"], unlabelled=True)]), "the classes of trial 1 are not those of trial 0; give all trials the same classes in the same order"),
    ("beyond", lambda: fit_grid(X, [Trial(SETS, np.array([0, 1, 2, 9]))]), "the rows go beyond x; give numbers from 0 to 3"),
    ("weights", lambda: fit_grid(X, [Trial(SETS, weight=np.ones(3))]), "the weights have shape (3,); give 4, one for each row"),
    ("negative", lambda: fit_grid(X, [Trial(SETS, weight=-np.ones(4))]), "the weights are negative, not finite or all zero; give numbers above zero"),
    ("approach", lambda: fit_grid(X, SETS, approach="lgo"), "unknown approach 'lgo'; did you mean 'log'?"),
    ("model", lambda: fit_grid(X, SETS, model="liner"), "unknown model 'liner'; did you mean 'linear'?"),
    ("optimizer", lambda: fit_grid(X, SETS, optimizer="adma"), "unknown optimizer 'adma'; did you mean 'adam'?"),
    ("precision", lambda: fit_grid(X, SETS, precision="float16"), "unknown precision 'float16'; did you mean 'float64'?"),
    ("tf32", lambda: fit_grid(X, SETS, precision="tf32"), "tf32 needs a CUDA device; use precision='float32' on a CPU"),
    ("device", lambda: fit_grid(X, SETS, device="gpu"), "unknown device 'gpu'; say 'cpu' or 'cuda'"),
    ("grid", lambda: fit_grid(X, SETS, grid="papers"), "unknown grid 'papers'; did you mean 'paper'?"),
    ("empty grid", lambda: fit_grid(X, SETS, grid={"learning_rate": []}), "the grid has no value for 'learning_rate'; give at least one"),
    ("no grid", lambda: fit_grid(X, SETS, grid=[]), "the grid holds no configuration; give at least one value for each name"),
    ("rate", lambda: fit_grid(X, SETS, grid={"learning_rate": -1}), "learning_rate must be a number, zero or above, not -1"),
    ("rate text", lambda: fit_grid(X, SETS, grid={"weight_decay": "a"}), "weight_decay must be a number, zero or above, not 'a'"),
    ("option", lambda: fit_grid(X, SETS, grid={"q": 0.3}), "the grid sets 'q', which is unknown; a grid of 'log' can set learning_rate, weight_decay, approach, batch_size, schedule, model.OPTION"),
    ("grid batch", lambda: fit_grid(X, SETS, grid={"batch_size": [2, 0]}), "batch_size must be a whole number of at least 1, not 0"),
    ("grid option", lambda: fit_grid(X, SETS, model="mlp", grid={"model.hiden": [2]}), "model 'mlp' has no option 'hiden'; its options are hidden, norm"),
    ("grid width", lambda: fit_grid(X, SETS, model="mlp", grid={"model.hidden": [2, "a"]}), "hidden is 'a'; give whole numbers of at least 1"),
    ("grid model", lambda: fit_grid(X, SETS, model=nn.Linear(3, 3), grid={"model.hidden": [2]}), "a module takes no model options; give a function that makes it"),
    ("lr", lambda: fit_grid(X, SETS, grid={"lr": 0.3}), "the grid sets 'lr', which is unknown; did you mean 'learning_rate'?"),
    ("near option", lambda: fit_grid(X, SETS, approach="phuber", grid={"taau": 3}), "the grid sets 'taau', which is unknown; did you mean 'tau'?"),
    ("loader", lambda: fit_grid(DataLoader(TensorDataset(torch.zeros(4, 3)), shuffle=True), SETS), "x is a DataLoader and shuffles its rows or leaves some out; read it in order and whole: shuffle=False, drop_last=False"),
    ("generator", lambda: fit_grid((row for row in X), SETS), "x is a generator; give all rows at once: an array, a tensor, a memory map or a sparse matrix"),
    ("sparse nan", lambda: fit_grid(csr_matrix(HOLE), SETS), "row 2, column 1: x holds nan; fill in or leave out missing values first"),
    ("no shape", lambda: fit_grid(X, SETS, model="resnet32"), "a convolutional model reads images (channels, height, width), not (3,); say shape=(channels, height, width), or use 'linear' or 'mlp' for flat features"),
    ("own CNN", lambda: fit_grid(X, SETS, model=nn.Sequential(nn.Tanh(), nn.Linear(4, 3))), "the model cannot read rows of shape (3,) (mat1 and mat2 shapes cannot be multiplied (2x3 and 4x3)); for one that reads images say shape=(channels, height, width)"),
    ("own width", lambda: fit_grid(X, SETS, model=nn.Sequential(nn.Tanh(), nn.Linear(3, 4))), "the model makes (2, 4) of 2 rows; return logits [rows, 3]"),
    ("native width", lambda: fit_grid(X, SETS, model=nn.Linear(3, 4)), "the model reads 3 numbers and returns 4, the data have 3 and 3 classes; give one of that size"),
    ("frozen", lambda: fit_grid(X, SETS, model=nn.Linear(3, 3).requires_grad_(False)), "the model has no weights; give one that can be trained"),
    ("detached", lambda: fit_grid(X, SETS, model=Odd(lambda module, out: out.detach())), "the logits have no gradient; do not detach them"),
    ("two outputs", lambda: fit_grid(X, SETS, model=Odd(lambda module, out: out if module.training else (out, out))), "the model makes tuple of 2 rows; return logits [rows, 3]"),
    ("no shape", lambda: fit_grid(X[:, :1], SETS, shape=()), "shape is (); give whole numbers, such as (3, 32, 32)"),
    ("no weights", lambda: fit_grid(X, SETS, model=nn.Sequential(nn.Tanh())), "the model has no weights; give one that can be trained"),
    ("one row", lambda: fit_grid(X[:1], SETS[:1], model=nn.Sequential(nn.BatchNorm1d(3), nn.Linear(3, 3))), "the model cannot train on a batch of one row; give larger batches"),
    ("module options", lambda: fit_grid(X, SETS, model=nn.Linear(3, 3), model_options={"bias": True}), "a module takes no model options; give a function that makes it"),
    ("mixed", lambda: fit_grid(X, SETS, grid=[{"q": 1}, {}]), "every configuration of a grid must set the same names"),
    ("words", lambda: fit_grid(X, SETS, approach="clpl", grid={"psi": ["logistic", "squared-hinge"]}), "the grid gives 'psi' values that are not numbers; train one grid for each value"),
    ("schedule", lambda: fit_grid(X, SETS, schedule="cosinus"), "unknown schedule 'cosinus'; did you mean 'cosine'?"),
    ("negative factor", lambda: fit_grid(X, SETS, schedule=lambda done: 0.5 - done), "the schedule makes -0.5 of 1; return zero or above"),
    ("warmup", lambda: fit_grid(X, SETS, epochs=2, warmup=3), "warmup must lie between 0 and the 2 epochs, not 3"),
    ("warmup text", lambda: fit_grid(X, SETS, epochs=2, warmup="1"), "warmup must lie between 0 and the 2 epochs, not '1'"),
    ("clip text", lambda: fit_grid(X, SETS, clip="1"), "clip must be a number above zero, not '1'"),
    ("clip", lambda: fit_grid(X, SETS, clip=0), "clip must be a number above zero, not 0"),
    ("callback", lambda: fit_grid(X, SETS, callback="print"), "callback must be a function of an EpochEnd, not 'print'"),
    ("epochs", lambda: fit_grid(X, SETS, epochs=0), "epochs must be a whole number of at least 1, not 0"),
    ("batch", lambda: fit_grid(X, SETS, batch_size=2.5), "batch_size must be a whole number of at least 1, not 2.5"),
    ("stack", lambda: fit_grid(X, SETS, stack=0), "stack must be a whole number of at least 1, not 0"),
    ("shape", lambda: fit_grid(X, SETS, shape=(2, 2)), "x has rows of shape (3,), and the model reads (2, 2); give as many numbers"),
    ("watch", lambda: fit_grid(X, SETS, watch={"v": Watch(SETS)}), "watch 'v' holds label sets but no measures; give measures={\"accuracy\": ro.criterion(\"accuracy\").values}"),
    ("watch rows", lambda: fit_grid(X, SETS, watch={"v": Watch([0, 1], x=X)}), "watch 'v' has 4 rows but 2 targets; give one target for each row, and at least one row"),
    ("watch x", lambda: fit_grid(X, SETS, watch={"v": Watch([0], x=X[:1, :2])}), "x of watch 'v' has 2 features, the training data 3; give the same features in the same order"),
    ("seed", lambda: fit_grid(X, SETS, seed=-1), "a seed must be a whole number, zero or above, not -1"),
    ("monitor", lambda: fit_grid(X, SETS, watch={"v": Watch([0] * 4)}, stopping=Stopping("v/acuracy")), "stopping asks for 'v/acuracy', which is not measured; did you mean 'v/accuracy'?"),
    ("start", lambda: fit_grid(X, SETS, start=fit_grid(X, [SETS, SETS], epochs=1)), "start holds 2 × 1 models, this fit asks for 1 × 1; go on with the same trials and grid"),
    ("mask", lambda: fit_grid(X, [Trial(SETS, rows=np.ones(4, bool))]), "the rows are not whole numbers; give numbers from 0 to 3"),
    ("huge seed", lambda: fit_grid(X, SETS, seed=2**64), "a seed must be a whole number, zero or above, not 18446744073709551616"),
    ("search seed", lambda: search(X, SETS, seed=-2), "a seed must be a whole number, zero or above, not -2"),
    ("no columns", lambda: fit_grid(X[:, :0], SETS), "x has shape (4, 0); give rows × features"),
    ("option list", lambda: fit_grid(X, SETS, approach="gce", grid={"q": [0.5, 5]}), "gce needs 0 < q <= 1, got q=5"),
    ("patience", lambda: fit_grid(X, SETS, watch={"v": Watch([0] * 4)}, stopping=Stopping("v/accuracy", 0)), "patience must be a whole number of at least 1, not 0"),
    ("nothing kept", lambda: fit_grid(X, SETS, start=fit_grid(X, SETS, epochs=1, moments=False)), "start kept nothing to go on from; fit with moments=True, without stopping"),
    ("other model", lambda: fit_grid(X[:, :2], SETS, start=fit_grid(X, SETS, epochs=1)), "start is of another model or optimizer; go on with the same"),
    ("other optimizer", lambda: fit_grid(X, SETS, optimizer="sgd", start=fit_grid(X, SETS, epochs=1)), "start is of another model or optimizer; go on with the same"),
    ("watch labels", lambda: fit_grid(X, SETS, watch={"v": Watch([0, 1, 2, 3])}), "watch 'v' holds labels that are not positions of classes; give whole numbers from 0 to 2"),
    ("watch words", lambda: fit_grid(X, SETS, watch={"v": Watch(list("abca"))}), "watch 'v' holds labels that are not positions of classes; give whole numbers from 0 to 2"),
    ("watch classes", lambda: fit_grid(X, SETS, watch={"v": Watch(ro.LabelSets(SETS.excluded, classes=[2, 1, 0]), {"a": ro.criterion("accuracy").values})}), "the classes of watch 'v' are not those of the training data; give the same classes in the same order"),
    ("watch places", lambda: fit_grid(X, SETS, watch={"v": Watch([0], rows=[9])}), "watch 'v' names rows that are not there; give whole numbers from 0 to 3"),
    ("watch trials", lambda: fit_grid(X, [SETS, SETS], watch={"v": Watch([[0] * 4])}), "watch 'v' lists 1 trials; give one entry for each trial"),
    ("split", lambda: split(1, seed=0), "1 row cannot be split; give at least two rows"),
    ("share", lambda: split(9, 1.5, seed=0), "the share to set aside must lie between 0 and 1, not 1.5"),
    ("all diverged", lambda: choose([np.nan, np.nan]), "no configuration has a finite estimate; try smaller learning rates"),
    ("rule", lambda: choose([1, 2], rule=cast(Any, "worst")), "unknown rule 'worst'; say 'best' or 'one-standard-error'"),
    ("criterion", lambda: search(X, SETS, criterion="acuracy"), "unknown criterion 'acuracy'; did you mean 'accuracy'?"),
]  # fmt: skip


@pytest.mark.parametrize(("call", "sentence"), [c[1:] for c in CASES], ids=[c[0] for c in CASES])
def test_bad_input_is_answered_in_one_sentence(call: Callable[[], Any], sentence: str) -> None:
    with pytest.raises(ValueError) as caught:
        call()
    assert str(caught.value) == sentence
