"""All that the log says about a team, counted once for each state of the log."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from ruleout.web.proposals import capped_law
from ruleout.web.records import Settings
from ruleout.web.team import reading
from ruleout.web.team.columns import Columns
from ruleout.web.team.gold import GoldScore, gold_scores
from ruleout.web.team.growth import Growth, growth
from ruleout.web.team.knowledge import Clash, Knowledge, clashes, knowledge
from ruleout.web.team.people import Annotator, annotators, paces
from ruleout.web.team.rest import Team, decided_by_all, inferred_by_all
from ruleout.web.team.uniformity import Uniformity, uniformity

if TYPE_CHECKING:
    from ruleout.web.store import Store

__all__ = ["MOST", "Numbers", "numbers"]

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
        at = reading.extent(db)
        kept = _KEPT.get(store)
        if kept is not None and kept[0] == at:
            return kept[1]
        log, gold = reading.read(db), reading.gold_classes(db)
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
    agreement, is_inferred = _agreement(log, k)
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


def _agreement(log: Columns, k: int) -> tuple[Team, bool]:
    """Take what is inferred, unless only decisions about the same thing were shared."""
    inferred = inferred_by_all(log, k)
    return (inferred, True) if inferred.each else (decided_by_all(log, k), False)
