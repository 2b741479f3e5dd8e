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
from ruleout.estimator.targets import check_rows, known_target, per_row
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
            One label per row, or what was ruled out: label sets, a table of 0 and 1, or answers.
        sample_weight
            One weight per row.
        """
        return unbiased_accuracy(self, X, y, sample_weight)

    def resolve(self, X: Any, sets: Any = None, *, likelihood: Any = None) -> Resolved:
        """Return the most likely class among each row's candidates, with its probability.

        Parameters
        ----------
        X
            Rows.
        sets
            What was ruled out for each: label sets, a table of 0 and 1, or answers.
        likelihood
            ``[n, k]``, in the place of sets where answers may be wrong: the logarithm of how likely
            all that was said about a row is for each class, up to a constant. The confidence of
            the model is set first, by the one factor of its logits that makes all of it likeliest:
            who learns from wrong answers is right more often than sure.
        """
        logits = self._logits(X)
        evidence = self._evidence(sets, likelihood, logits)
        factor = 1.0 if likelihood is None else _confidence(logits, evidence)
        left = (factor * logits + evidence).log_softmax(-1)
        best, places = left.max(-1)
        before = logits.log_softmax(-1).gather(-1, places.unsqueeze(-1)).squeeze(-1)
        labels = np.asarray(self.classes_[places.numpy()])
        return Resolved(labels, best.exp().numpy(), before.exp().numpy())

    def _evidence(self, sets: Any, likelihood: Any, like: Tensor) -> Tensor:
        """Return what is added to the logits: minus infinity for what sets rule out."""
        if (sets is None) == (likelihood is None):
            raise ValueError("resolve takes sets or a likelihood; give one of the two")
        if likelihood is None:
            known = known_target(per_row(sets, len(like))[0], self.classes_)
            check_rows(len(like), known)
            excluded = torch.from_numpy(known.excluded)
            return torch.zeros_like(like).masked_fill(excluded, -torch.inf)
        found = torch.as_tensor(np.asarray(likelihood, float))
        if found.shape != like.shape or not (found.amax(-1) > -torch.inf).all():
            raise ValueError(
                f"likelihood has shape {tuple(found.shape)}, or a row without any class; "
                f"give {tuple(like.shape)} logarithms"
            )
        return found


def _confidence(logits: Tensor, evidence: Tensor) -> float:
    """Return the factor of the logits under which the evidence is likeliest, the one nearest 1."""
    factors = sorted(np.geomspace(1 / 16, 16, 65).tolist(), key=lambda f: abs(np.log(f)))
    likely = torch.stack(
        [((f * logits).log_softmax(-1) + evidence).logsumexp(-1).sum() for f in factors]
    )
    best = likely >= likely.max() - 1e-9 * len(logits)  # rounding decides nothing
    return float(factors[int(best.double().argmax())])
