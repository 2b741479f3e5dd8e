"""Which classes a question proposes: a pure function of the project's seed, the item, the round.

So a proposal cannot depend on who asks, when, or how often, and anybody can draw it again from
what the log says.
"""

from bisect import bisect_right
from math import comb
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ruleout.labels import size_law
from ruleout.labels.errors import LabelError
from ruleout.web.entities import Settings

_GOLD = 1  # tells the draw of "gold or not" from every other draw


class Proposal(NamedTuple):
    classes: tuple[int, ...]
    law: str
    seed: int


class Proposer:
    def __init__(self, settings: Settings, secret: int = 0) -> None:
        self._settings = settings
        self._key = (secret, settings.seed)
        self._k = len(settings.classes)
        self._law = capped_law(settings.law, self._k, settings.cap)
        cumulated = size_law(self._law, self._k).cumsum()
        self._cdf = (cumulated / cumulated[-1]).tolist()
        capped = settings.cap is not None and settings.cap < self._k - 1
        self._name = f"{settings.law}, at most {settings.cap}" if capped else settings.law

    def proposal(self, item: int, round: int, gold: int | None = None) -> Proposal:  # noqa: A002
        """Draw the set for a round of an item; with `gold`, half of them hold that class."""
        seed = _seed(*self._key, item, round)
        if self._settings.mode == "rule-out":
            return Proposal((), "", seed)
        if gold is not None:
            return Proposal(self._balanced(gold, seed), f"{self._name}, gold half the time", seed)
        return Proposal(self._drawn(seed), self._name, seed)

    def is_gold(self, user: int, last: int) -> bool:
        """Tell whether the question after the annotator's last one is a gold one."""
        return chance(*self._key, _GOLD, user, last) < self._settings.gold_rate

    def _drawn(self, seed: int) -> tuple[int, ...]:
        """Draw what :func:`ruleout.labels.propose` draws for one set, with less around it."""
        size, *chances = np.random.default_rng(seed).random(self._k + 1).tolist()
        wanted = 1 + bisect_right(self._cdf, size)
        chosen: list[int] = []
        for code, draw in enumerate(chances):
            if draw * (self._k - code) < wanted - len(chosen):
                chosen.append(code)
        return tuple(chosen)

    def _balanced(self, gold: int, seed: int) -> tuple[int, ...]:
        """Draw a size from the law, then toss a coin for whether `gold` is in the set."""
        rng = np.random.default_rng(seed)
        size = int(rng.choice(np.arange(1, self._k), p=self._law))
        inside = bool(rng.random() < 0.5)
        others = np.delete(np.arange(self._k), gold)
        chosen = {int(code) for code in rng.choice(others, size - inside, replace=False)}
        return tuple(sorted(chosen | {gold} if inside else chosen))


def capped_law(law: str, classes: int, cap: int | None) -> NDArray[np.float64]:
    """Return p(1), …, p(k-1) of the law given that the size is at most `cap`."""
    p = size_law(law, classes)
    if cap is None:
        return p
    if not 1 <= cap <= classes - 1:
        raise LabelError(f"sets of at most {cap} classes", f"choose a cap from 1 to {classes - 1}")
    kept = p[:cap]
    if law in ("paper", "released"):  # exact for any k, where p(s) is too small to write down
        counts = [comb(classes - (law == "paper"), size) for size in range(1, cap + 1)]
        kept = np.array([count / sum(counts) for count in counts])
    if not kept.sum() > 0:
        raise LabelError(f"law {law!r} has no sizes up to {cap}", "raise the cap")
    return np.concatenate([kept / kept.sum(), np.zeros(classes - 1 - cap)])


def _seed(*parts: int) -> int:
    """Mix whole numbers into a seed of 63 bits, which every database can hold."""
    return int(np.random.SeedSequence(parts).generate_state(1, np.uint64)[0] >> np.uint64(1))


def chance(*parts: int) -> float:
    """Return a number in [0, 1) that depends on `parts` alone."""
    return float(np.random.default_rng(_seed(*parts)).random())
