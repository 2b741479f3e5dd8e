"""One person on the team page."""

from __future__ import annotations

import math
from datetime import datetime

from ruleout.report.formats import percent
from ruleout.web.records import User
from ruleout.web.team.charts import interval
from ruleout.web.team.gold import GoldScore, Rate
from ruleout.web.team.numbers import Numbers
from ruleout.web.team.views import PersonView, RateView, named

__all__ = ["guesses", "person_view"]

_ENOUGH = 5  # gold questions of each polarity before anything is said about guessing


def person_view(
    user: User, found: Numbers, door: tuple[bool, datetime | None] | None, now: datetime
) -> PersonView:
    """Put together what is known of one person; `door` is their password and invite."""
    did, agrees = found.annotators.get(user.name), found.agreement.each.get(user.name)
    score = found.gold.get(user.name)
    kinds = did.kinds if did else {}
    return PersonView(
        key=user.name,
        name=named(user.name),
        role=user.role,
        disabled=user.disabled,
        state=_state(user, door, now),
        answers=did.answers if did else 0,
        yes=kinds.get("yes", 0),
        no=kinds.get("no", 0),
        which=kinds.get("which", 0),
        excluded=kinds.get("excluded", 0),
        skips=kinds.get("skip", 0),
        late=did.late if did else 0,
        undone=did.undone if did else 0,
        items=did.items if did else 0,
        per_hour=found.paces.get(user.name),
        median_seconds=did.median_seconds if did else None,
        kappa=agrees.kappa if agrees else None,
        kappa_error=agrees.error if agrees else None,
        shared=agrees.things if agrees else 0,
        sensitivity=_rate(score.sensitivity) if score else None,
        specificity=_rate(score.specificity) if score else None,
        free=_rate(score.free) if score else None,
        guesses=guesses(score) if score else False,
    )


def _state(user: User, door: tuple[bool, datetime | None] | None, now: datetime) -> str:
    has_password, until = door or (False, None)
    if user.disabled:
        return "closed"
    if has_password:
        return "open"
    if until is not None and until > now:
        return f"invited until {until.day} {until:%B}"
    return "no password yet"


def _rate(rate: Rate) -> RateView | None:
    if rate.share is None:
        return None
    low, high = rate.interval()
    return RateView(
        right=rate.right,
        asked=rate.asked,
        share=rate.share,
        low=low,
        high=high,
        text=f"{percent(rate.share, 0)} ({100 * low:.0f}–{100 * high:.0f} %)",
        picture=interval(rate.share, low, high),
    )


def guesses(score: GoldScore) -> bool:
    """Tell whether answers to gold questions cannot be told from guessing.

    Who guesses says "yes" as often where it is right as where it is wrong: sensitivity and
    specificity add up to 1. The sum's lower bound is Newcombe's (1998), from Wilson's intervals.

    >>> good, coin = Rate(19, 20), Rate(10, 20)
    >>> guesses(GoldScore("Ann", good, good, Rate(0, 0))), guesses(
    ...     GoldScore("Bob", coin, coin, Rate(0, 0)))
    (False, True)
    """
    rates = score.sensitivity, score.specificity
    if any(rate.asked < _ENOUGH for rate in rates):
        return False
    total = sum(rate.right / rate.asked for rate in rates)
    slack = math.hypot(*(rate.right / rate.asked - rate.interval()[0] for rate in rates))
    return total - slack <= 1
