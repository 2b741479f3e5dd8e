"""What the team page shows: plain values, ready for the template."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from markupsafe import Markup

from ruleout.report.svg import clean
from ruleout.web.progress import Progress
from ruleout.web.records import Role

__all__ = [
    "AgreementView", "AnswerView", "ClashView", "DrawView", "KnowledgeView", "Name", "PersonView",
    "RateView", "TeamView", "TotalsView", "named", "shortened",
]  # fmt: skip

_SHORT, _FULL = 36, 500  # characters


class Name(NamedTuple):
    """What a person typed: as it is shown, and in full where that is longer."""

    short: str
    full: str | None = None


def named(text: str, most: int = _SHORT) -> Name:
    """Cut a name that is long, in the middle, since the end of a path says most.

    >>> named("cat.png").short, named("a" * 30 + "b" * 30, 11).short
    ('cat.png', 'aaaaa…bbbbb')
    """
    line = " ".join(clean(text).split()) or "(blank)"
    return Name(line) if len(line) <= most else Name(shortened(line, most), line[:_FULL])


def shortened(line: str, most: int) -> str:
    """Cut a line in the middle."""
    if len(line) <= most:
        return line
    head = most // 2
    return f"{line[:head]}…{line[len(line) - (most - head - 1) :]}"


@dataclass(frozen=True, kw_only=True)
class RateView:
    """How often somebody was right, with an interval of 95 %, as text and as a picture."""

    right: int
    asked: int
    share: float
    low: float
    high: float
    text: str
    picture: Markup


@dataclass(frozen=True, kw_only=True)
class PersonView:
    """One person; what is not known is None.

    `key` is the name as forms send it back. `kappa` is against the rest of the team, from `shared`
    items or decisions, give or take `kappa_error`. `guesses` is whether the answers to gold
    questions cannot be told from guessing.
    """

    key: str
    name: Name
    role: Role
    disabled: bool
    state: str
    answers: int = 0
    yes: int = 0
    no: int = 0
    which: int = 0
    excluded: int = 0
    skips: int = 0
    late: int = 0
    undone: int = 0
    items: int = 0
    per_hour: float | None = None
    median_seconds: float | None = None
    kappa: float | None = None
    kappa_error: float | None = None
    shared: int = 0
    sensitivity: RateView | None = None
    specificity: RateView | None = None
    free: RateView | None = None
    guesses: bool = False


@dataclass(frozen=True, kw_only=True)
class TotalsView(Progress):
    """How far the project is, also in words and in percent."""

    time_left: str
    percent: int


@dataclass(frozen=True, kw_only=True)
class AgreementView:
    """The κ of the team, and in a few sentences how it came about."""

    kappa: float | None
    error: float | None
    observed: float | None
    shared: int
    unit: str
    how: str
    missing: str | None


class AnswerView(NamedTuple):
    """One of the answers about an item."""

    who: Name
    words: str
    classes: tuple[Name, ...]
    more: int


@dataclass(frozen=True, kw_only=True)
class ClashView:
    """An item whose answers leave no class."""

    item: Name
    said: tuple[AnswerView, ...]
    more: int
    pairs: tuple[tuple[Name, Name], ...]


@dataclass(frozen=True, kw_only=True)
class KnowledgeView:
    """How much is known of the items that are labelled, tests left out."""

    items: int
    settled: int
    narrowed: int
    untouched: int
    contradicting: int
    mean_bits: float | None
    most_bits: float
    counts: tuple[int, ...]
    picture: Markup


@dataclass(frozen=True, kw_only=True)
class DrawView:
    """Whether proposals were drawn as the law says."""

    draws: int
    sizes: tuple[tuple[int, int, float], ...]
    sizes_p: float | None
    sizes_says: str
    classes: tuple[tuple[Name, int, float], ...]
    classes_p: float | None
    classes_says: str
    pictures: Sequence[Markup]


@dataclass(frozen=True, kw_only=True)
class TeamView:
    """The whole page."""

    totals: TotalsView
    people: tuple[PersonView, ...]
    agreement: AgreementView
    gold_missing: str | None
    answers_missing: str | None
    growth: Markup | None
    clashes: tuple[ClashView, ...]
    clashes_total: int
    knowledge: KnowledgeView
    draws: DrawView | None
    draws_missing: str | None
    downloads: tuple[tuple[str, str], ...]
