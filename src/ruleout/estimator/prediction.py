"""What a fitted classifier does with rows: predict, score, resolve."""

from __future__ import annotations

from copy import deepcopy
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from ruleout.estimator.features import check_x
from ruleout.estimator.scorers import unbiased_accuracy
from ruleout.estimator.targets import check_rows, known_target
from ruleout.training.asked import device
from ruleout.training.nets import dense_layers
from ruleout.training.result import predict as module_logits

__all__ = ["Predicting", "Resolved"]

Array = NDArray[np.float64]


class Resolved(NamedTuple):
    """The most likely class among the candidates of each row.

    Examples
    --------
    >>> Resolved(np.array(["cat"]), np.array([0.9]), np.array([0.3])).labels
    array(['cat'], dtype='<U3')
    """

    labels: NDArray[Any]  #: ``[n]``: class names
    probability: Array  #: ``[n]``: of the label, given that it is one of the candidates
    before: Array  #: ``[n]``: of the label among all classes, before what was ruled out is used


class Predicting:
    """The methods of a fitted classifier; the fitted attributes come with `fit`."""

    module_: nn.Module
    classes_: NDArray[Any]
    device: Any

    def _logits(self, X: Any) -> Tensor:
        """Return ``[n, k]`` in float64.

        Linear models and perceptrons are evaluated in float64, so that a row's result does not
        depend on the rows beside it; other models in the precision they were trained in.
        """
        x = check_x(self, X)
        module = self.module_
        if dense_layers(module) is not None:
            module = deepcopy(module).double()
        if self.device is not None:
            module = deepcopy(module).to(device(self.device, "float32"))
        return module_logits(module, x).double()

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the most likely class of each row."""
        places = self._logits(X).argmax(-1).numpy()
        return np.asarray(self.classes_[places])

    def predict_proba(self, X: Any) -> Array:
        """Return the probability of each class, ``[n, k]``, in the order of ``classes_``."""
        return np.asarray(self._logits(X).softmax(-1).numpy())

    def predict_log_proba(self, X: Any) -> Array:
        """Return the logarithm of each probability, ``[n, k]``."""
        return np.asarray(self._logits(X).log_softmax(-1).numpy())

    def decision_function(self, X: Any) -> Array:
        """Return the logits, ``[n, k]``; of two classes the second minus the first, ``[n]``."""
        logits = self._logits(X).numpy()
        return np.asarray(logits[:, 1] - logits[:, 0] if logits.shape[1] == 2 else logits)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the accuracy; of sets its unbiased estimate, which needs no true label.

        Parameters
        ----------
        X
            Rows.
        y
            One label per row, or what was ruled out: label sets or a table of 0 and 1.
        sample_weight
            One weight per row.
        """
        return unbiased_accuracy(self, X, y, sample_weight)

    def resolve(self, X: Any, sets: Any) -> Resolved:
        """Return the most likely class among each row's candidates, with its probability.

        Parameters
        ----------
        X
            Rows.
        sets
            What was ruled out for each: label sets or a table of 0 and 1.
        """
        logits = self._logits(X)
        known = known_target(sets, self.classes_)
        check_rows(len(logits), known)
        excluded = torch.from_numpy(known.excluded)
        left = logits.masked_fill(excluded, -torch.inf).log_softmax(-1)
        best, places = left.max(-1)
        before = logits.log_softmax(-1).gather(-1, places.unsqueeze(-1)).squeeze(-1)
        labels = np.asarray(self.classes_[places.numpy()])
        return Resolved(labels, best.exp().numpy(), before.exp().numpy())
