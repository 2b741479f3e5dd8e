"""What the team page shows: plain values, ready for the template."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
from markupsafe import Markup

from ruleout.labels.chisquare import Test
from ruleout.report import Histogram
from ruleout.report.formats import count, duration, percent
from ruleout.report.svg import clean
from ruleout.web import answer_log
from ruleout.web.answer_log import Clash, Columns, Knowledge, Said, clashes, knowledge
from ruleout.web.entities import Role, Settings, User
from ruleout.web.project_progress import Progress
from ruleout.web.proposals import capped_law
from ruleout.web.reliability import GoldScore, Rate, gold_scores
from ruleout.web.team import charts
from ruleout.web.team.agreement import Team, decided_by_all, inferred_by_all
from ruleout.web.team.annotators import Annotator, Growth, annotators, growth, paces
from ruleout.web.team.charts import interval
from ruleout.web.team.proposal_uniformity import Uniformity, uniformity

if TYPE_CHECKING:
    from ruleout.web.store import Store


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


MOST = 12  # contradictions on the page; the download has them all


@dataclass(frozen=True, kw_only=True)
class Numbers:
    """The numbers of the page, by annotator's name where they are somebody's."""

    annotators: dict[str, Annotator]
    paces: dict[str, float]
    agreement: Team
    is_inferred: bool
    gold: dict[str, GoldScore]
    tests: int
    growth: Growth
    knowledge: Knowledge
    clashes: list[Clash]
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
        log, gold = answer_log.read(db), answer_log.gold_classes(db)
    found = counted(log, gold, store.settings)
    _KEPT[store] = at, found
    return found


def counted(log: Columns, gold: dict[str, int], settings: Settings) -> Numbers:
    """Count everything from the log; `gold` are the classes that are known, by item."""
    k = len(settings.classes)
    tests = set(gold) if settings.gold_rate else set()
    told = knowledge(log, log.items, k).answers > 0  # a test may have been labelled elsewhere
    asked = [
        name for name, is_told in zip(log.items, told, strict=True) if is_told or name not in tests
    ]
    law = capped_law(settings.law, k, settings.cap)
    agreement, is_inferred = _best_agreement(log, k)
    return Numbers(
        annotators={one.name: one for one in annotators(log)},
        paces=paces(log, timedelta(seconds=settings.lease_seconds)),
        agreement=agreement,
        is_inferred=is_inferred,
        gold={one.name: one for one in gold_scores(log, gold, k)},
        tests=len(tests),
        growth=growth(log),
        knowledge=knowledge(log, asked, k),
        clashes=clashes(log, k, MOST),
        draws=uniformity(log, k, law) if settings.mode == "propose" else None,
    )


def _best_agreement(log: Columns, k: int) -> tuple[Team, bool]:
    """Take what is inferred, unless only decisions about the same thing were shared."""
    inferred = inferred_by_all(log, k)
    return (inferred, True) if inferred.each else (decided_by_all(log, k), False)


_MOST = 20  # classes in the picture
_DOUBT = 0.01  # a smaller p-value is worth a look


def draw_view(drawn: Uniformity, settings: Settings) -> DrawView:
    """Return the counts, the tests and the pictures."""
    classes = [
        (named(name), seen, mean)
        for name, seen, mean in zip(
            settings.classes, drawn.classes.tolist(), drawn.classes_expected.tolist(), strict=True
        )
    ]
    sizes = zip(drawn.sizes.tolist(), drawn.sizes_expected.tolist(), strict=True)
    return DrawView(
        draws=drawn.draws,
        sizes=tuple((s, seen, mean) for s, (seen, mean) in enumerate(sizes, 1)),
        sizes_p=drawn.sizes_test.p if drawn.sizes_test else None,
        sizes_says=sentence("sizes", drawn.sizes_test, "the law gives"),
        classes=tuple(classes),
        classes_p=drawn.classes_test.p if drawn.classes_test else None,
        classes_says=sentence("classes", drawn.classes_test, "an even draw gives"),
        pictures=(_sizes(drawn), _classes(drawn, settings.classes)),
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


def _sizes(drawn: Uniformity) -> Markup:
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
    return charts.sizes("sizes", chart)


def _classes(drawn: Uniformity, names: tuple[str, ...]) -> Markup:
    off = np.abs(drawn.classes - drawn.classes_expected)
    kept = np.sort(np.argsort(-off, kind="stable")[:_MOST])
    rows = [
        charts.ClassCount(
            shortened(names[at], 100), int(drawn.classes[at]), float(drawn.classes_expected[at])
        )
        for at in kept.tolist()
    ]
    note = "Each class should come up equally often, given the sizes that were drawn."
    if len(names) > _MOST:
        note += f" Shown are the {_MOST} of {count(len(names))} classes that are furthest off."
    return charts.bars(rows, note)


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


_ANSWERS, _CLASSES = 12, 8  # of one contradiction: answers, and classes of each

_DOWNLOADS = (
    ("sets.csv", "What each item is not, from “no” answers alone, as in the paper"),
    ("sets-intersection.csv", "What each item is not, from every answer"),
    ("log.csv", "Every answer ever given, with what was asked"),
    ("contradictions.csv", "The answers that leave no class"),
)


def team_view(store: Store, now: datetime | None = None) -> TeamView:
    """Return what the team page shows at this moment.

    Reading and counting takes a second for a hundred thousand answers; it is done again only
    after a new answer.
    """
    at = datetime.now(UTC) if now is None else now
    found, settings, people = numbers(store), store.settings, store.users()
    with store.reading() as db:
        doors = answer_log.doors(db)
    return TeamView(
        totals=_totals(store.progress()),
        people=tuple(person_view(user, found, doors.get(user.id), at) for user in people),
        agreement=_agreement(found, settings),
        gold_missing=_gold_missing(found, settings),
        answers_missing=None if found.growth.times else _NO_ANSWERS,
        growth=charts.timeline(found.growth) if found.growth.times else None,
        clashes=tuple(_clash(one, settings.classes) for one in found.clashes),
        clashes_total=int((found.knowledge.candidates == 0).sum()),
        knowledge=_knowledge(found.knowledge, len(settings.classes)),
        draws=draw_view(found.draws, settings) if found.draws and found.draws.draws else None,
        draws_missing=_draws_missing(found),
        downloads=_DOWNLOADS,
    )


# ------------------------------------------------------------------ what is missing

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


def _gold_missing(found: Numbers, settings: Settings) -> str | None:
    if found.gold:
        return None
    return _NO_RATE if not settings.gold_rate else _NOT_ASKED if found.tests else _NO_ITEMS


def _draws_missing(found: Numbers) -> str | None:
    if found.draws is None:
        return "People choose themselves what to rule out, so no set is proposed at random here."
    return None if found.draws.draws else "No set has been proposed and answered yet."


# ------------------------------------------------------------------ agreement

_INFERRED = (
    "People were asked about different sets, so κ is inferred from what each answer leaves "
    "possible: 1 is what two people have who always have the same class in mind, 0 is chance. "
    "It is measured over the items that others answered about too, and can leave the range from "
    "−1 to 1 while those are few."
)
_DECIDED = (
    "Every decision is paired with those of others about the same thing (a class of an item kept "
    "or ruled out, or the same proposed set). Cohen's κ of those pairs is shown for each person "
    "and Fleiss' κ for the team: 1 is full agreement, 0 is chance."
)


def _agreement(found: Numbers, settings: Settings) -> AgreementView:
    whole = found.agreement.whole
    answering = sum(one.answers > 0 for one in found.annotators.values())
    missing = None
    if answering < 2:
        missing = "Agreement needs two people who answer: invite another annotator."
    elif not found.agreement.each:
        remedy = "go on labelling" if settings.rounds > 1 else "make the project with --rounds 2"
        missing = f"No two people have answered about the same item, so κ is unknown: {remedy}."
    return AgreementView(
        kappa=whole.kappa,
        error=whole.error,
        observed=whole.observed,
        shared=whole.things,
        unit="items" if found.is_inferred else "decisions",
        how=_INFERRED if found.is_inferred else _DECIDED,
        missing=missing,
    )


# ------------------------------------------------------------------ totals, knowledge


def _totals(progress: Progress) -> TotalsView:
    left = progress.seconds_left
    words = "done" if left == 0 else "not known yet" if left is None else duration(left)
    share = progress.given / progress.wanted if progress.wanted else 1.0
    return TotalsView(**vars(progress), time_left=words, percent=int(100 * share))


def _knowledge(known: Knowledge, k: int) -> KnowledgeView:
    left = known.candidates
    counts = np.bincount(left, minlength=k + 1)
    chart = Histogram(
        "Classes still possible",
        counts=counts[1:].tolist(),
        x_label="Classes that the answers leave",
        y_label="Items",
        counts_label="items",
    )
    return KnowledgeView(
        items=len(left),
        settled=int(counts[1]),
        narrowed=int(counts[2:k].sum()),
        untouched=int(counts[k]),
        contradicting=int(counts[0]),
        mean_bits=known.mean_bits,
        most_bits=float(np.log2(k)),
        counts=tuple(counts.tolist()),
        picture=charts.sizes("known", chart),
    )


# ------------------------------------------------------------------ contradictions


def _clash(clash: Clash, classes: tuple[str, ...]) -> ClashView:
    return ClashView(
        item=named(clash.item, 60),
        said=tuple(_said(one, classes) for one in clash.said[:_ANSWERS]),
        more=max(len(clash.said) - _ANSWERS, 0),
        pairs=tuple((named(one), named(other)) for one, other in clash.pairs[:_ANSWERS]),
    )


_WORDS = {"yes": "one of", "no": "none of", "which": "it is", "excluded": "ruled out"}


def _said(one: Said, classes: tuple[str, ...]) -> AnswerView:
    about = [named(classes[code], 24) for code in one.about]
    shown = tuple(about[:_CLASSES])
    return AnswerView(named(one.who), _WORDS[one.kind], shown, len(about) - len(shown))
