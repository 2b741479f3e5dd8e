"""Criteria that need no true labels: a model is judged by what was ruled out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import torch
from torch import Tensor

from ruleout import losses
from ruleout.labels.errors import nearest
from ruleout.losses.loss_registry import as_tensors, check_excluded, rates_of

__all__ = ["Criterion", "Estimate", "criterion"]


class Estimate(NamedTuple):
    """An estimate and its standard error, one per stacked model."""

    estimate: Tensor  #: ``[...]``
    standard_error: Tensor  #: ``[...]``, infinite for fewer than two rows


@dataclass(frozen=True)
class Criterion:
    """A mean over rows of held-out logits and what was ruled out there.

    Attributes
    ----------
    name
        ``accuracy``, ``consistency`` or ``risk``.
    higher_is_better
        Which end of the scale to choose.
    """

    name: str
    higher_is_better: bool
    values: Callable[..., Tensor]

    def __call__(self, logits: Tensor, excluded: Any, rate: Any = None) -> Estimate:
        """Return the mean and its standard error.

        Parameters
        ----------
        logits
            ``[..., n, k]``.
        excluded
            ``[..., n, k]``: 1 where a class was ruled out. A row that rules nothing out does not
            count. There is no place for true labels.
        rate
            ``[..., n]``: how likely a wrong class stays possible in each row, for sets that answers
            made (:meth:`ruleout.Answers.per_item`). None: as in sets drawn at random.

        Examples
        --------
        >>> logits = torch.tensor([[2.0, 0.0, 0.0], [0.0, 3.0, 0.0]])
        >>> found = criterion("accuracy")(logits, torch.tensor([[0, 1, 1], [0, 1, 1]]))
        >>> found.estimate, found.standard_error
        (tensor(0.5000), tensor(0.5000))
        """
        scores, mask = as_tensors(logits, excluded)
        check_excluded(mask)
        says = mask.amax(-1)
        known = (mask,) if rate is None else (mask, rates_of(rate, scores))
        values = self.values(scores, *known)
        n = says.sum(-1)
        mean = (says * values).sum(-1) / n
        spread = (says * (values - mean.unsqueeze(-1)).square()).sum(-1)
        error = (spread / (n * (n - 1).clamp(min=1))).sqrt()
        return Estimate(mean, torch.where(n > 1, error, torch.inf))


def _accuracy(logits: Tensor, excluded: Tensor, rate: Tensor | None = None) -> Tensor:
    wrong = losses.zero_one(logits)
    if rate is None:  # equal to what follows but for rounding, on which kept results rest
        return 1 - losses.unbiased(wrong, excluded)
    # Of answers the hits vary less than the errors: only the predicted class enters.
    return losses.unbiased(1 - wrong, excluded, rate)


def _consistency(logits: Tensor, excluded: Tensor, rate: Tensor | None = None) -> Tensor:
    del rate  # a share of predictions, whatever was to be expected
    predicted = 1 - losses.zero_one(logits)
    return 1 - (predicted * excluded).sum(-1)


def _risk(
    loss: losses.Loss, logits: Tensor, excluded: Tensor, rate: Tensor | None = None
) -> Tensor:
    return loss.per_example(logits, excluded, rate)


def criterion(name: str, *, loss: str = "cce", **options: Any) -> Criterion:
    r"""Return a criterion that judges models without true labels.

    Parameters
    ----------
    name
        - ``"accuracy"``: :math:`1 - \frac1n \sum_i \frac{k-1}{s_i} 1(\hat y_i \in \bar Y_i)`, an
          unbiased estimate of the ordinary accuracy (the 0-1 loss in Eq. 10). Single values can
          lie below 0, since a wrong prediction that was ruled out stands for those that were not.
          With rates q of answers :math:`1/(1-q_i)` takes the place of :math:`(k-1)/s_i`.
        - ``"consistency"``: the share of predictions that were not ruled out. Not an accuracy: a
          random guess scores high when few classes are ruled out.
        - ``"risk"``: the mean of a loss, by default the unbiased estimate of cross entropy. Any
          loss that reads whole sets can be named; lower is better.
    loss, options
        For ``"risk"``: the loss and its options.

    Examples
    --------
    >>> criterion("risk", loss="gce", q=0.5).higher_is_better
    False
    """
    if name == "accuracy":
        return Criterion(name, True, _accuracy)
    if name == "consistency":
        return Criterion(name, True, _consistency)
    if name != "risk":
        known = ("accuracy", "consistency", "risk")
        say = f"the criteria are {', '.join(known)}"
        raise ValueError(f"unknown criterion {name!r}; {nearest(name, known, say)}")
    chosen = losses.get(loss, **options)
    if chosen.kind == "single":
        raise ValueError(f"loss {loss!r} reads single labels; name one that reads whole sets")
    return Criterion(name, False, partial(_risk, chosen))
