"""The team page for leads: from a store to plain values, ready for the template."""

from __future__ import annotations

import math
from collections import Counter
from datetime import UTC, datetime, timedelta
from itertools import combinations
from types import SimpleNamespace as View
from typing import TYPE_CHECKING, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
from markupsafe import Markup
from sqlalchemy import Connection, func, select

from ruleout.labels.laws import EXPECTED, Test, pearson
from ruleout.labels.origins import wilson
from ruleout.report import Histogram, svg
from ruleout.report.number_format import count, duration, number, signed
from ruleout.report.page import view
from ruleout.report.svg import Scale, fill
from ruleout.web import answer_log
from ruleout.web.answer_log import AnswerLog, Contradiction, Whole
from ruleout.web.entities import Item, Settings, User
from ruleout.web.error_rates import Vector, gold_counts
from ruleout.web.project_progress import per_hour
from ruleout.web.proposals import capped_law
from ruleout.web.schema import invites, users
from ruleout.web.team.agreement import Agreement, agreement, guessing
from ruleout.web.team.annotators import Annotator, Growth, annotators, growth

if TYPE_CHECKING:
    from ruleout.web.store import Store

MOST = 12  # contradictions on the page; the download has them all


_KEPT: WeakKeyDictionary[Store, tuple[tuple[int, ...], View]] = WeakKeyDictionary()


def numbers(store: Store) -> View:
    """Count, or return what was counted if nothing was answered since.

    What is somebody's is by their name. Two threads may count at once; both find the same, and
    one of them is kept.
    """
    with store.reading() as db:
        at, settings = answer_log.extent(db), store.settings
        kept = _KEPT.get(store)
        if kept is not None and kept[0] == at:
            return kept[1]
        log, people = answer_log.read(db, settings), select(users.c.id, users.c.name)
        paces = {name: per_hour(db, settings, user) for user, name in db.execute(people)}
    tests = (log.gold_class >= 0) & bool(settings.gold_rate)
    asked = (log.answered > 0) | ~tests  # a test may have been labelled elsewhere
    law, given = capped_law(settings.law, log.k, settings.cap), log.undecided()
    found = View(
        annotators={one.name: one for one in annotators(log)},
        paces=paces,
        agreement=agreement(given),  # of all, and of each with the rest
        guessing=guessing(given),
        gold=gold_rates(log),
        tests=int(tests.sum()),
        growth=growth(log),
        candidates=log.candidates[asked],  # how many classes are left, tests left out
        contradictions=log.contradictions(MOST),
        decisions=tuple(answer_log.in_force(log.decisions)),
        seen=Counter(one.number for one in log.decisions),  # how many there were about each item
        draws=uniformity(log, law) if settings.mode == "propose" else None,
    )
    _KEPT[store] = at, found
    return found


def named(text: str, most: int = 36) -> tuple[str, str | None]:
    """Return a name as it is shown, and in full where that is longer.

    It is cut in the middle, since the end of a path says most.
    """
    line = " ".join(svg.clean(text).split()) or "(blank)"
    if len(line) <= most:
        return line, None
    head = most // 2
    return f"{line[:head]}…{line[len(line) - (most - head - 1) :]}", line[:500]


def team_view(store: Store, now: datetime | None = None) -> View:
    """Return what the team page shows at this moment; `missing` tells why a part is not there.

    Reading and counting takes a second for a hundred thousand answers; it is done again only
    after a new answer.
    """
    at = datetime.now(UTC) if now is None else now
    found, progress, settings = numbers(store), store.progress(), store.settings
    classes, wrong = settings.classes, found.contradictions
    items = store.some_items(one.answers[0].item for one in wrong)
    with store.reading() as db:
        states = _states(db, at)
    left, drawn = progress.seconds_left, found.draws if found.draws and found.draws.draws else None
    return View(
        progress=progress,
        time_left="done" if left == 0 else "not known yet" if left is None else duration(left),
        percent=int(100 * progress.given / progress.wanted) if progress.wanted else 100,
        people=[_person(user, found, states[user.id]) for user in store.users()],
        agreement=found.agreement[0],
        growth=_timeline(found.growth) if found.growth.times else None,
        clashes=[_clash(one, items[one.answers[0].item], len(classes)) for one in wrong],
        decided=found.decisions[::-1],
        left_out={one.number: one.voids for one in found.decisions},
        seen=found.seen,
        classes=classes,
        named=named,
        knowledge=_knowledge(found.candidates, len(classes)),
        draws=drawn,
        draws_pictures=(_sizes_picture(drawn), _classes_picture(drawn, classes)) if drawn else (),
        missing=_missing(found, settings),
    )


def _missing(found: View, settings: Settings) -> dict[str, str | None]:
    """Tell why a part is not there, in a word; the template has the sentences."""
    alone = sum(one.answers > 0 for one in found.annotators.values()) < 2
    apart = None if found.agreement[1] else "apart" if settings.rounds > 1 else "once"
    unasked = "unasked" if not settings.gold_rate else "untested" if found.tests else "unknown"
    return {
        "answers": None if found.growth.times else "unanswered",
        "agreement": "alone" if alone else apart,
        "gold": None if found.gold else unasked,
        "draws": "chosen" if found.draws is None else None if found.draws.draws else "undrawn",
    }


class Rate(NamedTuple):
    """How many of the answers that were asked for were right."""

    right: int
    asked: int

    @property
    def share(self) -> float:
        return self.right / self.asked

    @property
    def interval(self) -> tuple[float, float]:
        """Wilson's interval of 95 %; where rounding counts, the share is inside."""
        share, low, high = wilson(self.right, self.asked)
        return min(low, share), max(high, share)


class GoldRates(NamedTuple):
    """How right answers to gold questions are; None where nothing was asked.

    "Yes" where the proposed set holds the class, "no" where it does not, and "which" and rule-out
    answers that do not rule the class out.
    """

    sensitivity: Rate | None = None
    specificity: Rate | None = None
    free: Rate | None = None


def gold_rates(log: AnswerLog) -> dict[str, GoldRates]:
    right, asked = (one.tolist() for one in gold_counts(log))
    return {
        name: GoldRates(*(Rate(r, n) if n else None for r, n in zip(good, of, strict=True)))
        for name, good, of in zip(log.users, right, asked, strict=True)
        if any(of)
    }


def _person(user: User, found: View, state: str) -> View:
    name = user.name
    return View(
        user=user,
        state=state,
        did=found.annotators.get(name, Annotator(name=name)),
        per_hour=found.paces.get(name),
        agreement=found.agreement[1].get(name, Agreement(items=0)),  # with the rest of the team
        gold=found.gold.get(name, GoldRates()),
        guesses=name in found.guessing,
    )


def _states(db: Connection, now: datetime) -> dict[int, str]:
    """Say of each account whether it is open."""
    has_password = users.c.password.is_not(None)
    query = (
        select(users.c.id, users.c.disabled, has_password, func.max(invites.c.expires))
        .outerjoin(invites)
        .group_by(users.c.id, users.c.disabled, users.c.password)
    )
    return {
        user: "closed" if disabled
        else "open" if has
        else f"invited until {until.day} {until:%B}" if until is not None and until > now
        else "no password yet"
        for user, disabled, has, until in db.execute(query)
    }  # fmt: skip


def _knowledge(candidates: Whole, k: int) -> View:
    """Count how many items (tests left out) have how many classes left."""
    counts, good = np.bincount(candidates, minlength=k + 1).tolist(), candidates[candidates > 0]
    chart = Histogram(
        "Classes still possible",
        counts=counts[1:],
        x_label="Classes that the answers leave",
        y_label="Items",
        counts_label="items",
    )
    return View(
        items=len(candidates),
        settled=counts[1],
        narrowed=sum(counts[2:k]),
        untouched=counts[k],
        contradicting=counts[0],
        mean_bits=float(np.log2(good).mean()) if len(good) else None,
        most_bits=math.log2(k),
        picture=view(chart, "known", {}),
    )


def _clash(clash: Contradiction, item: Item, k: int) -> View:
    """Show an item whose answers leave no class, or deny the one that is known.

    `said` are these answers with the classes that they name, `pairs` people who contradict each
    other outright. There may be none: three answers can leave nothing while any two leave some.
    """
    said, left = [], []
    for one in clash.answers:
        codes = one.excluded if one.kind == "excluded" else one.proposed
        codes = (one.which,) if one.kind == "which" and one.which is not None else codes
        said.append((one, codes))
        is_kept = one.kind in ("yes", "which")
        left.append((one.user_name, {c for c in range(k) if (c in codes) == is_kept}))
    opposed = {
        (min(one, other), max(one, other))
        for (one, a), (other, b) in combinations(left, 2)
        if not a & b
    }
    text = item.text or ", ".join(f"{name}: {cell}" for name, cell in item.cells.items())
    number = clash.answers[0].item
    return View(number=number, item=item, text=text, said=said, pairs=sorted(opposed))


_CLASSES_SHOWN = 20  # in the picture


def uniformity(log: AnswerLog, law: Vector) -> View:
    r"""Compare the proposals in the log with the law p(1 … k-1) of the project, its cap included.

    Every draw counts once, whether its answer stands or not. Gold questions, whose sets are not
    drawn at random, imported answers, and draws from fewer classes than today's are left out.

    Sizes: Pearson's chi-square of how often each size was drawn against the law, neighbouring sizes
    taken together until five are expected. Classes: given its size s, a set is uniform among all
    :math:`\binom ks`. Over n sets, a class is then in :math:`ns/k` on average, and

    .. math:: \sum_a \Bigl(N_a - \frac{ns}{k}\Bigr)^2 \Big/ \frac{n s (k-s)}{k (k-1)}

    is chi-square with k-1 degrees of freedom: counts within a set are not independent, hence the
    denominator. Sizes are tested apart and their statistics added; those drawn too rarely are
    counted together, their denominators added. A test is None where too little was drawn.
    """
    k = log.k
    drawn = ~log.gold & ~log.imported & (log.asked_of == k)
    asked = np.flatnonzero(log.is_kind("yes", "no", "skip") & drawn)
    times = np.bincount(log.proposed[log.draws(asked)], minlength=len(log.sets))
    size, (place, code) = np.array([len(codes) for codes in log.sets], np.intp), log.members
    times[(size == 0) | (size == k)] = 0  # nothing was drawn
    sizes = np.bincount(size, times, k + 1)[:k].astype(np.intp)
    counts = np.zeros((k + 1, k), np.intp)
    np.add.at(counts, (size[place], code), times[place])
    total = int(sizes.sum())
    expected = total * np.asarray(law, np.float64)
    return View(
        draws=total,
        sizes=sizes[1:],  # for s = 1 … k-1
        sizes_expected=expected,
        sizes_test=_sizes(sizes[1:], expected),
        classes=counts.sum(0),
        classes_expected=np.full(k, float(np.arange(k) @ sizes) / k),  # given those sizes
        classes_test=_classes(sizes, counts[:k]),
    )


def _sizes(observed: Whole, expected: Vector) -> Test | None:
    if (observed[expected == 0] > 0).any():
        return Test(float("inf"), max(int((expected > 0).sum()) - 1, 1))
    return pearson(observed, expected)


def _classes(sizes: Whole, counts: Whole) -> Test | None:
    k = len(sizes)
    s = np.arange(k)
    spread = sizes * s * (k - s) / (k * (k - 1))
    thick = (sizes * np.minimum(s, k - s) / k >= EXPECTED) & (s > 0)
    groups = [(counts[one], spread[one]) for one in np.flatnonzero(thick)]
    if (spread[~thick]).sum() >= EXPECTED:
        groups.append((counts[~thick].sum(0), spread[~thick].sum()))
    statistic = sum(float(((seen - seen.mean()) ** 2).sum() / over) for seen, over in groups)
    return Test(statistic, len(groups) * (k - 1)) if groups else None


def _sizes_picture(drawn: View) -> Markup:
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


def _classes_picture(drawn: View, names: tuple[str, ...]) -> Markup:
    off = np.abs(drawn.classes - drawn.classes_expected)
    kept = np.sort(np.argsort(-off, kind="stable")[:_CLASSES_SHOWN])
    seen, mean = drawn.classes[kept].tolist(), drawn.classes_expected[kept].tolist()
    x, bars, rows = Scale(0, max([1.0, *seen, *mean]), 0, 100), [], []
    for code, n, expected in zip(kept.tolist(), seen, mean, strict=True):
        bars.append((x.percent(n), x.percent(expected)))
        off_by = f"{signed(n / expected - 1, 1)} %" if expected else "–"
        rows.append([named(names[code], 100)[0], count(n), number(expected), off_by])
    return fill("class_counts.html", "web/pages", bars=bars, rows=rows, classes=len(names))


_ROWS = 12  # of the table beneath the curve


def _timeline(grown: Growth) -> Markup:
    """Draw how answers, and items with an answer, grew; with a table of a few moments."""
    top, n, columns = max(grown.answers) * 1.04, len(grown.times), (grown.answers, grown.items)
    moments = [at.timestamp() for at in grown.times]
    begin, end = moments[0], max(moments[-1], moments[0] + 60)
    x, y = Scale(begin, end, 0, 100), Scale(0, top, 274, 18)
    until = grown.times[0] + timedelta(seconds=end - begin)
    wide = svg.STRETCH / 100 * x.all(np.array(moments))
    return fill(
        "timeline.html",
        "web/pages",
        times=grown.times,
        columns=columns,
        x=x,
        y=y,
        end=x.percent(moments[-1]),
        marks=svg.marks(0, top, 5),
        below=[(at.timestamp(), label) for at, label in time_ticks(grown.times[0], until, 8)],
        spots=svg.spread([y(column[-1]) for column in columns], 16, y.end, y.start),
        paths=[svg.path(wide, y.all(np.array(column, np.float64))) for column in columns],
        rows=[
            [f"{grown.times[at]:%Y-%m-%d %H:%M}", *(count(column[at]) for column in columns)]
            for at in sorted({n - 1 - place for place in svg.thin(n, _ROWS)})
        ],
    )


_MINUTE, _HOUR, _DAY = 60, 3600, 86400
_STEPS = (
    1, 5, 15, 30, _MINUTE, 5 * _MINUTE, 15 * _MINUTE, 30 * _MINUTE, _HOUR, 3 * _HOUR, 6 * _HOUR,
    12 * _HOUR, _DAY, 2 * _DAY, 7 * _DAY, 14 * _DAY, 28 * _DAY, 91 * _DAY, 182 * _DAY,
    365 * _DAY,
)  # fmt: skip


def time_ticks(begin: datetime, end: datetime, most: int) -> list[tuple[datetime, str]]:
    """Return at most `most` round moments from `begin` to `end`, with their labels, in UTC."""
    first, last = begin.timestamp(), end.timestamp()
    usual = [step for step in _STEPS if last // step - -(-first // step) < most]
    step = usual[0] if usual else int((last - first) // most) + 1
    places = range(int(-(-first // step)), int(last // step) + 1)
    found = [datetime.fromtimestamp(place * step, UTC) for place in places]
    found = found or [begin.astimezone(UTC)]
    return [(at, _label(at, step)) for at in found]


def _label(at: datetime, step: int) -> str:
    if step >= 91 * _DAY:
        return f"{at:%b %Y}"
    if at.hour == at.minute == at.second == 0:
        return f"{at.day} {at:%b}"
    return f"{at:%H:%M}" if step >= _MINUTE and not at.second else f"{at:%H:%M:%S}"
