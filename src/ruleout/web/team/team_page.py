"""The team page for leads: from a store to plain values, ready for the template."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import combinations
from typing import TYPE_CHECKING, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
from markupsafe import Markup
from sqlalchemy import Connection, func, select

from ruleout.labels.chisquare import Test
from ruleout.report import Histogram
from ruleout.report.formats import count, duration, percent
from ruleout.report.page import view
from ruleout.report.svg import clean
from ruleout.web import answer_log
from ruleout.web.answer_log import AnswerLog, Contradiction, Whole
from ruleout.web.entities import LogRow, Role, Settings, User
from ruleout.web.project_progress import Progress
from ruleout.web.proposals import capped_law
from ruleout.web.schema import invites, users
from ruleout.web.team import team_charts
from ruleout.web.team.agreement import Agreement, TeamAgreement, agreement, guessing
from ruleout.web.team.annotators import (
    Annotator,
    GoldScore,
    Growth,
    Rate,
    annotators,
    gold_scores,
    growth,
    paces,
)
from ruleout.web.team.proposal_uniformity import Uniformity, uniformity

if TYPE_CHECKING:
    from ruleout.web.store import Store

MOST = 12  # contradictions on the page; the download has them all
_ANSWERS, _CLASSES = 12, 8  # of one contradiction: answers, and classes of each
_SHORT, _FULL = 36, 500  # characters of a name

_DOWNLOADS = (
    ("sets.csv", "What each item is not, from “no” answers alone, as in the paper"),
    ("sets-intersection.csv", "What each item is not, from every answer"),
    ("log.csv", "Every answer ever given, with what was asked"),
    ("contradictions.csv", "The answers that leave no class"),
)


# ---------------------------------------------------------------------- what is counted


@dataclass(frozen=True, kw_only=True)
class Numbers:
    """The numbers of the page, by annotator's name where they are somebody's.

    `candidates` is how many classes are left for each item that is labelled, tests left out.
    """

    annotators: dict[str, Annotator]
    paces: dict[str, float]
    agreement: TeamAgreement
    guessing: set[str]
    gold: dict[str, GoldScore]
    tests: int
    growth: Growth
    candidates: Whole
    contradictions: tuple[Contradiction, ...]
    draws: Uniformity | None


_KEPT: WeakKeyDictionary[Store, tuple[tuple[int, int], Numbers]] = WeakKeyDictionary()


def numbers(store: Store) -> Numbers:
    """Count, or return what was counted if nothing was answered since.

    Two threads may count at once; both find the same, and one of them is kept.
    """
    with store.reading() as db:
        at = answer_log.extent(db)
        kept = _KEPT.get(store)
        if kept is not None and kept[0] == at:
            return kept[1]
        log = answer_log.read(db, store.settings.classes)
    found = _counted(log, store.settings)
    _KEPT[store] = at, found
    return found


def _counted(log: AnswerLog, settings: Settings) -> Numbers:
    tests = (log.gold_class >= 0) & bool(settings.gold_rate)
    asked = (log.answered > 0) | ~tests  # a test may have been labelled elsewhere
    law = capped_law(settings.law, log.k, settings.cap)
    return Numbers(
        annotators={one.name: one for one in annotators(log)},
        paces=paces(log, timedelta(seconds=settings.lease_seconds)),
        agreement=agreement(log),
        guessing=guessing(log),
        gold=gold_scores(log),
        tests=int(tests.sum()),
        growth=growth(log),
        candidates=log.candidates[asked],
        contradictions=log.contradictions(MOST),
        draws=uniformity(log, law) if settings.mode == "propose" else None,
    )


# ---------------------------------------------------------------------- the whole page


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
    return Name(line) if len(line) <= most else Name(_shortened(line, most), line[:_FULL])


def _shortened(line: str, most: int) -> str:
    if len(line) <= most:
        return line
    head = most // 2
    return f"{line[:head]}…{line[len(line) - (most - head - 1) :]}"


@dataclass(frozen=True, kw_only=True)
class TeamView:
    """All that the template shows."""

    totals: TotalsView
    people: tuple[PersonView, ...]
    agreement: Agreement
    agreement_missing: str | None
    gold_missing: str | None
    answers_missing: str | None
    growth: Markup | None
    clashes: tuple[ClashView, ...]
    clashes_total: int
    knowledge: KnowledgeView
    draws: DrawView | None
    draws_missing: str | None
    downloads: tuple[tuple[str, str], ...] = _DOWNLOADS


def team_view(store: Store, now: datetime | None = None) -> TeamView:
    """Return what the team page shows at this moment.

    Reading and counting takes a second for a hundred thousand answers; it is done again only
    after a new answer.
    """
    at = datetime.now(UTC) if now is None else now
    found, settings, people = numbers(store), store.settings, store.users()
    with store.reading() as db:
        states = _states(db, people, at)
    return TeamView(
        totals=_totals(store.progress()),
        people=tuple(_person(user, found, states[user.id]) for user in people),
        agreement=found.agreement.whole,
        agreement_missing=_agreement_missing(found, settings),
        gold_missing=_gold_missing(found, settings),
        answers_missing=None if found.growth.times else _NO_ANSWERS,
        growth=team_charts.timeline(found.growth) if found.growth.times else None,
        clashes=tuple(_clash(one, settings.classes) for one in found.contradictions),
        clashes_total=int((found.candidates == 0).sum()),
        knowledge=_knowledge(found.candidates, len(settings.classes)),
        draws=_drawn(found.draws, settings) if found.draws and found.draws.draws else None,
        draws_missing=_draws_missing(found),
    )


# ---------------------------------------------------------------------- what is missing

_NO_ANSWERS = "There are no answers yet: invite somebody below and send them their link."
_NO_RATE = (
    "This project asks no gold questions, so nobody's error rate is known: make it with "
    "--gold-rate and with items whose class is known."
)
_NO_ITEMS = (
    "No item has a known class, so there are no gold questions: make the project with a "
    "column or file of known classes."
)
_NOT_ASKED = "No gold question has been answered yet: they come up as people go on labelling."


def _agreement_missing(found: Numbers, settings: Settings) -> str | None:
    if sum(one.answers > 0 for one in found.annotators.values()) < 2:
        return "Agreement needs two people who answer: invite another annotator."
    if not found.agreement.each:
        remedy = "go on labelling" if settings.rounds > 1 else "make the project with --rounds 2"
        return f"No two people have answered about the same item, so κ is unknown: {remedy}."
    return None


def _gold_missing(found: Numbers, settings: Settings) -> str | None:
    if found.gold:
        return None
    return _NO_RATE if not settings.gold_rate else _NOT_ASKED if found.tests else _NO_ITEMS


def _draws_missing(found: Numbers) -> str | None:
    if found.draws is None:
        return "People choose themselves what to rule out, so no set is proposed at random here."
    return None if found.draws.draws else "No set has been proposed and answered yet."


# ---------------------------------------------------------------------- totals, people


@dataclass(frozen=True, kw_only=True)
class TotalsView(Progress):
    """How far the project is, also in words and in percent."""

    time_left: str
    percent: int


def _totals(progress: Progress) -> TotalsView:
    left = progress.seconds_left
    words = "done" if left == 0 else "not known yet" if left is None else duration(left)
    share = progress.given / progress.wanted if progress.wanted else 1.0
    return TotalsView(**vars(progress), time_left=words, percent=int(100 * share))


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

    `key` is the name as forms send it back. `kappa` is with the rest of the team, on `shared`
    items, give or take `kappa_error`. `guesses` is whether the answers look like guesses.
    """

    key: str
    name: Name
    role: Role
    disabled: bool
    state: str
    did: Annotator
    per_hour: float | None
    kappa: float | None
    kappa_error: float | None
    shared: int
    sensitivity: RateView | None
    specificity: RateView | None
    free: RateView | None
    guesses: bool


def _person(user: User, found: Numbers, state: str) -> PersonView:
    agrees = found.agreement.each.get(user.name, Agreement(items=0))
    nothing = Rate(0, 0)
    score = found.gold.get(user.name, GoldScore(nothing, nothing, nothing))
    return PersonView(
        key=user.name,
        name=named(user.name),
        role=user.role,
        disabled=user.disabled,
        state=state,
        did=found.annotators.get(user.name, Annotator(name=user.name)),
        per_hour=found.paces.get(user.name),
        kappa=agrees.kappa,
        kappa_error=agrees.error,
        shared=agrees.items,
        sensitivity=_rate(score.sensitivity),
        specificity=_rate(score.specificity),
        free=_rate(score.free),
        guesses=user.name in found.guessing,
    )


def _rate(rate: Rate) -> RateView | None:
    if not rate.asked:
        return None
    share, (low, high) = rate.right / rate.asked, rate.interval()
    return RateView(
        right=rate.right,
        asked=rate.asked,
        share=share,
        low=low,
        high=high,
        text=f"{percent(share, 0)} ({100 * low:.0f}–{100 * high:.0f} %)",
        picture=team_charts.interval(share, low, high),
    )


def _states(db: Connection, people: Sequence[User], now: datetime) -> dict[int, str]:
    """Say of each account whether it is open."""
    query = (
        select(users.c.id, users.c.password.is_not(None), func.max(invites.c.expires))
        .outerjoin(invites, invites.c.user == users.c.id)
        .group_by(users.c.id, users.c.password)
    )
    access = {number: (bool(has), until) for number, has, until in db.execute(query)}
    states = {}
    for user in people:
        has_password, until = access.get(user.id, (False, None))
        waits = until is not None and until > now
        states[user.id] = (
            "closed" if user.disabled
            else "open" if has_password
            else f"invited until {until.day} {until:%B}" if waits
            else "no password yet"
        )  # fmt: skip
    return states


# ---------------------------------------------------------------------- what is known


@dataclass(frozen=True, kw_only=True)
class KnowledgeView:
    """How much is known of the items that are labelled, tests left out.

    An item whose answers leave c classes has log2 c bits left; the mean is over items without
    contradictions.
    """

    items: int
    settled: int
    narrowed: int
    untouched: int
    contradicting: int
    mean_bits: float | None
    most_bits: float
    counts: tuple[int, ...]
    picture: Markup


def _knowledge(candidates: Whole, k: int) -> KnowledgeView:
    counts = np.bincount(candidates, minlength=k + 1)
    chart = Histogram(
        "Classes still possible",
        counts=counts[1:].tolist(),
        x_label="Classes that the answers leave",
        y_label="Items",
        counts_label="items",
    )
    good = candidates[candidates > 0]
    return KnowledgeView(
        items=len(candidates),
        settled=int(counts[1]),
        narrowed=int(counts[2:k].sum()),
        untouched=int(counts[k]),
        contradicting=int(counts[0]),
        mean_bits=float(np.log2(good).mean()) if len(good) else None,
        most_bits=float(np.log2(k)),
        counts=tuple(counts.tolist()),
        picture=view(chart, "known", {}),
    )


# ---------------------------------------------------------------------- contradictions


class AnswerView(NamedTuple):
    """One of the answers about an item."""

    who: Name
    words: str
    classes: tuple[Name, ...]
    more: int


@dataclass(frozen=True, kw_only=True)
class ClashView:
    """An item whose answers leave no class.

    `pairs` are people who contradict each other outright. It may be empty: three answers can
    leave nothing while any two leave something.
    """

    item: Name
    said: tuple[AnswerView, ...]
    more: int
    pairs: tuple[tuple[Name, Name], ...]


def _clash(clash: Contradiction, classes: tuple[str, ...]) -> ClashView:
    every = range(len(classes))
    left = [
        (one.user_name, {code for code in every if _leaves(one, code)}) for one in clash.answers
    ]
    opposed = {
        (min(one, other), max(one, other))
        for (one, a), (other, b) in combinations(left, 2)
        if not a & b
    }
    return ClashView(
        item=named(clash.item, 60),
        said=tuple(_said(one, classes) for one in clash.answers[:_ANSWERS]),
        more=max(len(clash.answers) - _ANSWERS, 0),
        pairs=tuple((named(one), named(other)) for one, other in sorted(opposed)[:_ANSWERS]),
    )


def _leaves(answer: LogRow, code: int) -> bool:
    if answer.kind == "which":
        return code == answer.which
    if answer.kind == "excluded":
        return code not in answer.excluded
    return (code in answer.proposed) == (answer.kind == "yes")


_WORDS = {"yes": "one of", "no": "none of", "which": "it is", "excluded": "ruled out"}


def _said(one: LogRow, classes: tuple[str, ...]) -> AnswerView:
    codes = one.excluded if one.kind == "excluded" else one.proposed
    codes = (one.which,) if one.kind == "which" and one.which is not None else codes
    shown = tuple(named(classes[code], 24) for code in codes[:_CLASSES])
    return AnswerView(named(one.user_name), _WORDS[one.kind], shown, len(codes) - len(shown))


# ---------------------------------------------------------------------- draws

_CLASSES_SHOWN = 20  # in the picture
_DOUBT = 0.01  # a smaller p-value is worth a look


@dataclass(frozen=True, kw_only=True)
class DrawView:
    """Whether proposals were drawn as the law says: counts, tests and pictures."""

    draws: int
    sizes: tuple[tuple[int, int, float], ...]
    sizes_p: float | None
    sizes_says: str
    classes: tuple[tuple[Name, int, float], ...]
    classes_p: float | None
    classes_says: str
    pictures: Sequence[Markup]


def _drawn(drawn: Uniformity, settings: Settings) -> DrawView:
    sizes = zip(drawn.sizes.tolist(), drawn.sizes_expected.tolist(), strict=True)
    classes = zip(drawn.classes.tolist(), drawn.classes_expected.tolist(), strict=True)
    return DrawView(
        draws=drawn.draws,
        sizes=tuple((s, seen, mean) for s, (seen, mean) in enumerate(sizes, 1)),
        sizes_p=drawn.sizes_test.p if drawn.sizes_test else None,
        sizes_says=sentence("sizes", drawn.sizes_test, "the law gives"),
        classes=tuple(
            (named(name), *pair) for name, pair in zip(settings.classes, classes, strict=True)
        ),
        classes_p=drawn.classes_test.p if drawn.classes_test else None,
        classes_says=sentence("classes", drawn.classes_test, "an even draw gives"),
        pictures=(_sizes_picture(drawn), _classes_picture(drawn, settings.classes)),
    )


def sentence(what: str, test: Test | None, source: str) -> str:
    """Say in plain words what a test found.

    >>> print(sentence("sizes", None, "the law gives"))
    Too few sets were drawn to test their sizes.
    >>> print(sentence("sizes", Test(3.0, 2), "the law gives"))
    The sizes are as the law gives: differences as large come by chance 22 times in 100.
    """
    if test is None:
        return f"Too few sets were drawn to test their {what}."
    if test.p >= _DOUBT:
        often = f"{round(100 * test.p)} times" if test.p >= 0.015 else "once"
        return f"The {what} are as {source}: differences as large come by chance {often} in 100."
    rarely = "fewer than once in 1,000 projects" if test.p < 0.001 else (
        f"in {max(round(1000 * test.p), 1)} of 1,000 projects"
    )  # fmt: skip
    return (
        f"The {what} are not as {source}: differences this large come by chance {rarely}. "
        "See whether the log was edited or mixed with that of another project."
    )


def _sizes_picture(drawn: Uniformity) -> Markup:
    busy = np.flatnonzero((drawn.sizes > 0) | (drawn.sizes_expected >= 0.05))
    last = int(busy[-1]) + 1 if len(busy) else len(drawn.sizes)  # a cap leaves a long empty tail
    chart = Histogram(
        "Sizes of the proposed sets",
        counts=drawn.sizes[:last].tolist(),
        expected=drawn.sizes_expected[:last].tolist(),
        x_label="Classes proposed",
        y_label="Proposals",
        counts_label="proposed",
        expected_label="expected under the law",
    )
    return view(chart, "sizes", {})


def _classes_picture(drawn: Uniformity, names: tuple[str, ...]) -> Markup:
    off = np.abs(drawn.classes - drawn.classes_expected)
    kept = np.sort(np.argsort(-off, kind="stable")[:_CLASSES_SHOWN])
    rows = [
        team_charts.ClassCount(
            _shortened(names[at], 100), int(drawn.classes[at]), float(drawn.classes_expected[at])
        )
        for at in kept.tolist()
    ]
    note = "Each class should come up equally often, given the sizes that were drawn."
    if len(names) > _CLASSES_SHOWN:
        shown = f"the {_CLASSES_SHOWN} of {count(len(names))} classes that are furthest off"
        note += f" Shown are {shown}."
    return team_charts.bars(rows, note)
