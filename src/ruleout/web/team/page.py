"""The team page for leads: from a store to what the template shows."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

import numpy as np

from ruleout.report import Histogram
from ruleout.report.formats import duration
from ruleout.web.progress import Progress
from ruleout.web.records import Settings
from ruleout.web.team import charts, reading
from ruleout.web.team.draws import draw_view
from ruleout.web.team.knowledge import Clash, Knowledge, Said
from ruleout.web.team.numbers import Numbers, numbers
from ruleout.web.team.persons import person_view
from ruleout.web.team.views import (
    AgreementView,
    AnswerView,
    ClashView,
    KnowledgeView,
    TeamView,
    TotalsView,
    named,
)

if TYPE_CHECKING:
    from ruleout.web.store import Store

__all__ = ["team_view"]

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
        doors = reading.doors(db)
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
