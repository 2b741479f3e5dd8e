"""Choosing a configuration by a criterion, and setting rows aside for it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ruleout.labels.errors import InputError, brief

__all__ = ["DivergedError", "Rule", "choose", "split"]

Rule: TypeAlias = Literal["best", "one-standard-error"]


class DivergedError(InputError):
    """No configuration has a finite estimate: all of them diverged."""


def split(n: int, share: float = 0.1, *, seed: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Set some rows aside at random.

    Parameters
    ----------
    n
        The number of rows.
    share
        How many of them to set aside, rounded up, at least one and not all.
    seed
        Of the choice.

    Returns
    -------
    kept, aside
        Row numbers, in order.

    Examples
    --------
    >>> kept, aside = split(25, 0.1, seed=0)
    >>> len(kept), len(aside)
    (22, 3)
    """
    if not 0 < share < 1:
        raise ValueError(f"the share to set aside must lie between 0 and 1, not {brief(share)}")
    if n < 2:
        raise InputError(f"{n} row cannot be split", "give at least two rows")
    count = min(n - 1, max(1, int(np.ceil(round(n * share, 9)))))
    order = np.random.default_rng([seed, 0]).permutation(n)
    return np.sort(order[count:]), np.sort(order[:count])


def choose(
    estimates: ArrayLike,
    errors: ArrayLike | None = None,
    *,
    higher_is_better: bool = True,
    rule: Rule = "best",
    configurations: Sequence[Mapping[str, Any]] | None = None,
) -> int:
    """Return the number of the configuration to take.

    Parameters
    ----------
    estimates
        ``[C]``, or ``[T, C]`` of several trials, whose mean decides. A configuration with an
        estimate that is not finite (it diverged) is never taken.
    errors
        Standard errors of the same shape, needed by ``"one-standard-error"``.
    higher_is_better
        As the criterion says.
    rule
        ``"best"``, or ``"one-standard-error"``: of all configurations within one standard error of
        the best, the one with the strongest weight decay, then the smallest learning rate.
    configurations
        What the configurations are, needed by ``"one-standard-error"``.

    Examples
    --------
    >>> choose([0.71, 0.80, 0.79])
    1
    >>> grid = [{"learning_rate": 0.1, "weight_decay": w} for w in (0.0, 0.01, 0.1)]
    >>> choose([0.71, 0.80, 0.79], [0.02] * 3, rule="one-standard-error", configurations=grid)
    2
    """
    table = np.atleast_2d(np.asarray(estimates, float))
    scores = table.mean(0) if higher_is_better else -table.mean(0)
    if not np.isfinite(scores).any():
        raise DivergedError("no configuration has a finite estimate", "try smaller learning rates")
    scores = np.where(np.isfinite(scores), scores, -np.inf)
    best = int(np.argmax(scores))
    if rule == "best":
        return best
    if rule != "one-standard-error":
        raise ValueError(f"unknown rule {brief(rule)}; say 'best' or 'one-standard-error'")
    if errors is None or configurations is None:
        raise ValueError("the one-standard-error rule needs errors and configurations")
    spread = np.atleast_2d(np.asarray(errors, float))
    error = float(np.sqrt(np.square(spread[:, best]).sum())) / len(spread)
    near = np.flatnonzero(np.isfinite(scores) & (scores >= scores[best] - error))
    return max(near.tolist(), key=lambda c: _simplicity(configurations[c], float(scores[c])))


def _simplicity(configuration: Mapping[str, Any], score: float) -> tuple[float, float, float]:
    rate, decay = configuration["learning_rate"], configuration["weight_decay"]
    return float(decay), -float(rate), score
