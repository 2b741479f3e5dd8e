r"""How often people are wrong, told by how far they agree where several speak about one item.

Dawid and Skene's (1979) idea with one number for each person. What person a rules out holds the
true class with probability :math:`e_a`; given that it does, or does not, every set of its size is
equally likely. EM takes turns: all answers about an item give each class a probability,
:math:`p_{ic} \propto \pi_c \prod P(\bar Y \mid c)`; from these follow the classes' shares
:math:`\pi` and how often each person is wrong,
:math:`e_a = (\sum_{\bar Y} \sum_{c \in \bar Y} p_{ic} + 10 \bar e) / (n_a + 10)`: ten answers of
the mean of all come on top. With only two, which suit gold questions, the rates of people were
further from the truth than that mean is where items have two or three answers.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ruleout.labels.sets import LabelSets

Array = NDArray[np.float64]

_START, _PRIOR, _TURNS, _NEAR, _STEP = 0.05, 10, 200, 1e-4, 0.3


class LearntErrors(NamedTuple):
    """How often people are wrong."""

    own: Array  #: ``[people]``: of each
    #: of so many questions with a known answer (second) so many answered wrongly (first) would tell
    #: as much about the rate of all
    counts: tuple[int, int]


def learn_errors(
    sets: LabelSets, items: Any, people: Any, proposed: Any = False
) -> LearntErrors | None:
    """Learn how often each person is wrong from what others say of the same items.

    Returns None where that cannot be told: no item has two answers, or those that have rule out so
    little that more than half of the classes are left, were all of them right.

    Parameters
    ----------
    sets
        What was ruled out, an answer in each row; one that rules nothing out does not count.
    items, people
        ``[m]``: about what and by whom, numbers counted from 0.
    proposed
        ``[m]``: whether the set was drawn before the person said yes or no, so that a wrong answer
        is no less likely where it rules out little.
    """
    says, k = np.flatnonzero(sets.sizes), sets.shape[1]
    about, who, size = np.asarray(items)[says], np.asarray(people)[says], sets.sizes[says]
    drawn = np.broadcast_to(proposed, len(sets))[says]
    odds = np.where(drawn, 0, np.log(np.maximum(k - size, 1)) - np.log(size))
    heard, many = np.bincount(about), np.bincount(who, minlength=np.max(people, initial=0) + 1)
    with np.errstate(divide="ignore"):
        left = 1 + (k - 1) * np.exp(np.bincount(about, np.log(1 - size / (k - 1))))
    if heard.max(initial=0) < 2 or left[heard > 1].mean() > k / 2:
        return None
    answer, out = sets[says].nonzero()
    cell = about[answer] * k + out  # of items and classes
    own, share = np.full(len(many), _START), np.full(k, 1 / k)

    def score(own: Array) -> Array:  # the log of how likely each class with all answers is
        e = own[who]
        gap = np.log(e) - np.log1p(-e) + odds
        said = np.bincount(cell, gap[answer], len(heard) * k).reshape(-1, k)
        return np.asarray(said + np.log(share) + np.bincount(about, np.log1p(-e))[:, None])

    for _ in range(_TURNS):
        found = score(own)
        chance = np.exp(found - found.max(1, keepdims=True))
        chance *= (heard > 0)[:, None] / chance.sum(1, keepdims=True)
        share = (chance.sum(0) + 1) / (chance.sum() + k)
        wrong = np.bincount(answer, chance.ravel()[cell])
        mean = (wrong.sum() + 1) / (len(wrong) + 2)
        last, own = own, (np.bincount(who, wrong, len(many)) + _PRIOR * mean) / (many + _PRIOR)
        if np.abs(own - last).max() < _NEAR:
            break
    told = [
        (at, score(at)) for at in (own / (own + (1 - own) * np.exp(h)) for h in (_STEP, 0, -_STEP))
    ]
    likely = [float(np.logaddexp.reduce(one, 1).sum()) for _, one in told]
    low, mean, high = (float(at[who].mean()) for at, _ in told)
    bend = 2 * likely[1] - likely[0] - likely[2]
    # a change of all log odds by h moves the rate by (high - low) / (2 h) each
    asked = mean * (1 - mean) * 4 * bend / (high - low) ** 2
    asked = round(min(len(who), max(asked, 1)))
    return LearntErrors(own, (round(mean * asked), asked))
