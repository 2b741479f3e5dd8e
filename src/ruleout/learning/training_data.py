"""From a labelling project to what a classifier is trained on, and to what it is tried on."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import file_digest, sha256
from pathlib import Path
from typing import Any, Literal, TypeAlias, TypeVar, get_args

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ruleout.datasets import Table, read_table
from ruleout.datasets.tables import KEY, Request, choose, to_matrix, with_words
from ruleout.labels import Answers, LabelSets
from ruleout.labels.classes import shown
from ruleout.labels.errors import InputError, brief, counted, nearest
from ruleout.labels.files import as_column
from ruleout.labels.origins import Evidence
from ruleout.labels.row_files import naming
from ruleout.labels.sets import complement, one_hot
from ruleout.web.answer_log import HEARD, Contradiction
from ruleout.web.entities import Item
from ruleout.web.error_rates import error_rates, evidence, gold_counts, told_rates, weights
from ruleout.web.project import Project
from ruleout.web.spreadsheet import FORMULA, inert

#: Which answers teach, and how. ``no``: the sets of "no" and rule-out answers, as in the paper.
#: ``answers``: every "yes" and "no" to a random set, with the rate that makes the risk unbiased.
#: ``intersection``: what all answers of any kind leave possible, as one set.
How: TypeAlias = Literal["intersection", "answers", "no"]

#: What is done unless asked otherwise.
USUAL: How = "intersection"


_ASK_AGAIN = "have them asked about again (`ruleout label add --rounds`)"


@dataclass(frozen=True, kw_only=True, eq=False)
class Lesson:
    """What a classifier is trained on."""

    table: Table  #: the features of each item that teaches; ``row_names`` are the items' names
    #: what was ruled out for each row, or the answers about the rows, or what all of them say
    target: LabelSets | Answers | Evidence
    weight: NDArray[np.float64] | None  #: how likely each row is right; None: nothing tells
    notes: tuple[str, ...]  #: sentences that a user should see once


def read_lesson(
    project: Project,
    how: How = USUAL,
    source: str | Path | None = None,
    *,
    graded: bool = False,
    unlabelled: bool = False,
    **reading: Any,
) -> Lesson:
    """Read what a project teaches; items whose answers contradict each other do not, and are named.

    Parameters
    ----------
    how
        Which answers teach: see :data:`How`.
    source, reading
        Of the features: see :func:`~ruleout.learning.read_features`.
    graded
        Where gold questions were answered, or enough items by several people, return all that
        these answers say of every class, as the approach ``"likelihood"`` reads it, in the place of
        sets and weights. Then items whose answers contradict each other teach as well.
    unlabelled
        Where the target is label sets, also return the items that nobody was asked about, which
        rule nothing out.
    """
    if how not in get_args(How):
        say = nearest(how, get_args(How), f"say one of {', '.join(get_args(How))}")
        raise InputError(f"unknown way to learn {brief(how)}", say)
    log = project.store.answer_log()
    target: LabelSets | Answers | Evidence
    rates, early = told_rates(log) if graded else error_rates(log), log.early(*HEARD[how])
    if graded := graded and rates.counts[1] > 0:
        told = np.bincount(log.item[log.standing(*HEARD[how])], minlength=len(log.items)) > 0
        used = np.flatnonzero((told | (log.decided >= 0)) & ~early)
        names, target = tuple(log.items[row] for row in used), evidence(log, used, *HEARD[how])
    elif how == "answers":
        answers = log.every_answer()
        used = np.unique(answers.items).tolist()
        names, target = tuple(log.items[row] for row in used), part(answers, used)
    else:
        known = log.known(how)
        names, target = known.items, known.sets
    gold = {log.items[at] for at in np.flatnonzero(log.gold_class >= 0).tolist()}
    kept = [row for row, name in enumerate(names) if name not in gold]  # by these it is judged
    names, target = tuple(names[row] for row in kept), part(target, kept)
    if not names:
        remedy = "label some items first" if how == USUAL else f"try --how {USUAL}"
        remedy = _ASK_AGAIN if early.any() else remedy
        raise InputError(
            f"no item has an answer that teaches by {how!r}", remedy, file=project.folder
        )
    apart = () if graded else log.contradictions()
    if unlabelled and isinstance(target, LabelSets):
        heard = {*names, *gold, *(one.item for one in apart)}
        rest = [name for name, late in zip(log.items, early, strict=True) if not late]
        more = [name for name in rest if name not in heard]
        packed = np.pad(target.packed, ((0, len(more)), (0, 0)))
        names, target = (*names, *more), LabelSets.from_packed(packed, log.classes, unlabelled=True)
    items = {item.name: item for _, item in project.store.items()}
    table = read_features(project, [items[name] for name in names], source, **reading)
    notes = contradiction_notes(apart, "they are left out")
    decided = {log.items[at] for at in np.flatnonzero(log.decided >= 0).tolist()} & {*names}
    if decided:
        notes.append(f"The class of {len(decided):,} item(s) is known: leads decided it.")
    if early.any():
        notes.append(
            f"{early.sum():,} item(s) were asked about only before the last classes were added, "
            f"and say nothing of those: left out. To use them, {_ASK_AGAIN}."
        )
    if len(log.standing("excluded")):
        notes.append(
            "Classes that people clicked away were not drawn at random: the accuracy estimated "
            "from them may be wrong."
        )
    weight = None
    if isinstance(target, Evidence):
        wrong, asked = rates.counts
        errors = f"{wrong:,} of {counted(asked, 'answer')} to gold questions were wrong"
        if not rates.measured.any():
            errors = f"People agree as if {wrong / asked:.1%} of their answers were wrong"
        then = "mistakes are expected, and items whose answers contradict each other teach, too."
        if 2 * wrong >= asked:
            then = "next to nothing follows from them. See on the team page who may be guessing."
        notes.append(f"{errors}: {then}")
    elif rates.measured.any():
        sets = target if isinstance(target, LabelSets) else target.per_item()[1]
        weight = weights(log, sets, names, rates)
        notes.append(
            f"Rows weigh {weight.min():.2f} to {weight.max():.2f}, how likely their answers are "
            f"right by {counted(rates.counts[1], 'answer')} to gold questions."
        )
    place = {name: row for row, name in enumerate(names)}
    rows = [place[name] for name in table.row_names or ()]
    return Lesson(
        table=replace(
            table, reading={**table.reading, "project": project.store.identity, "how": how}
        ),
        target=part(target, rows),
        weight=None if weight is None else weight[rows],
        notes=(*notes, *table.notes),
    )


@dataclass(frozen=True, kw_only=True, eq=False)
class Review:
    """The items of a project that have features, with all that is known about them."""

    table: Table  #: the features; ``row_names`` are the items' names
    sets: LabelSets  #: what is ruled out, by all answers together and by a class that is known
    #: what all answers about an item, and a class that is known, say of every class; None where
    #: neither gold questions nor agreement tell how often people err
    evidence: Evidence | None
    answers: Answers  #: every "yes" and "no" to a set drawn at random; items are rows of the table
    said: Answers  #: the same with the items whose answers contradict each other
    tests: tuple[int, int]  #: how many gold questions were answered wrongly by yes or no, of all
    gold: NDArray[np.intp]  #: the position of the class where it is known beforehand, else -1
    #: items whose answers, of any kind, leave no class together: `answers` is without them, and
    #: `sets` rules nothing out there
    contradictions: tuple[Contradiction, ...]


def read_review(project: Project, source: str | Path | None = None, **reading: Any) -> Review:
    """Read all items with what is known about them.

    `source` and `reading` are those of :func:`~ruleout.learning.read_features`.
    """
    log, items = project.store.answer_log(), [item for _, item in project.store.items()]
    table = read_features(project, items, source, **reading)
    place = {name: row for row, name in enumerate(log.items)}
    rows = np.array([place[name] for name in table.row_names or ()], np.intp)
    out = np.where(log.candidates[:, None] > 0, log.excluded_by_all, np.uint8(0))
    gold = log.gold_class >= 0
    out[gold] = complement(one_hot(log.gold_class[gold], log.k), log.k)
    right, asked = gold_counts(log)
    sure = log.changed(decided=np.where(gold, log.gold_class, log.decided))
    return Review(
        table=replace(table, reading={**table.reading, "project": project.store.identity}),
        sets=LabelSets.from_packed(out, log.classes, unlabelled=True)[rows],
        evidence=evidence(sure, rows) if told_rates(log).counts[1] else None,
        answers=part(log.every_answer(), rows.tolist()),
        said=part(log.every_answer(contradicting=True), rows.tolist()),
        tests=(int((asked - right)[:, :2].sum()), int(asked[:, :2].sum())),
        gold=log.gold_class[rows],
        contradictions=log.contradictions(),
    )


Target = TypeVar("Target", bound=LabelSets | Answers | Evidence)


def part(known: Target, rows: Sequence[int]) -> Target:
    """Return what is known about some rows alone, numbered anew."""
    found: Any = known
    if not isinstance(known, Answers):
        return found[np.asarray(rows, np.intp)]  # type: ignore[no-any-return]
    place = np.full(max([-1, *known.items.tolist(), *rows]) + 1, -1, np.intp)
    place[list(rows)] = np.arange(len(rows))
    about = place[known.items]
    found = known.asked[about >= 0], known.yes[about >= 0], about[about >= 0]
    return type(known)(*found)


def contradiction_notes(contradictions: Sequence[Contradiction], then: str) -> list[str]:
    """Say which items have answers that contradict each other, and what becomes of them."""
    if not contradictions:
        return []
    names = shown([one.item for one in contradictions])
    return [
        f"The answers about {len(contradictions):,} item(s) rule out every class, or the known "
        f"one, {names}: {then}. "
        "`ruleout label export` lists those answers."
    ]


_REMEDY = f"give numbers for each item with --features-from FILE, whose column {KEY!r} names it"
_TEXT = f"take their words with --text text, or {_REMEDY}"


def read_features(
    project: Project,
    items: Sequence[Item],
    source: str | Path | None = None,
    *,
    features: Sequence[str] | None = None,
    ignore: Sequence[str] = (),
    text: Sequence[str] = (),
    size: tuple[int, int] | None = None,
    reading: Mapping[str, Any] | None = None,
) -> Table:
    """Read the features of some items, in their order; ``row_names`` are the items' names.

    Parameters
    ----------
    source
        A CSV, TSV, JSONL, Parquet or NPZ file with a column (an array) ``item``: an embedding, or
        any other numbers. Items it does not name are left out, and a note says so. Without it
        images are decoded, and the cells of rows read as numbers.
    features, ignore, text, size, reading
        As in :func:`ruleout.datasets.read_table`; the texts of items are a column ``text``.
    """
    options: Any = {"features": features, "ignore": ignore, "text": text, "reading": reading}
    if source is not None:
        return _aligned(read_table(source, names=KEY, size=size, **options), items)
    kinds = {item.kind for item in items}
    if kinds == {"image"} and project.images is not None:
        if reading is not None and reading.get("kind") != "images":
            problem = "the model reads columns, and the items are images"
            raise InputError(problem, _REMEDY, file=project.images)
        items, changed = _unchanged(project.images, items)
        names = {item.path or item.name: item.name for item in items}
        options |= {"files": [*names], "skip_bad_rows": True}
        found = read_table(project.images, size=size, **options)
        rows = tuple(names[file] for file in found.row_names or ())
        return replace(found, row_names=rows, notes=(*changed, *found.notes))
    ask = Request(**options)
    if kinds != {"row"} and not (kinds == {"text"} and ask.texts):
        raise InputError("the items of the project are text", _TEXT, file=project.folder)
    if size is not None:
        raise InputError("rows of a table have no size", "leave --size out", file=project.folder)
    return _cells(project, items, ask)


def _unchanged(folder: Path, items: Sequence[Item]) -> tuple[Sequence[Item], list[str]]:
    """Leave out images that are not those that people were asked about; say which they are."""
    changed, kept = list[str](), list[Item]()
    for item in items:
        try:
            with open(folder / (item.path or item.name), "rb") as stream:
                if item.sha256 and file_digest(stream, "sha256").hexdigest() != item.sha256:
                    changed.append(item.name)
                    continue
        except OSError:  # reading it will say so
            pass
        kept.append(item)
    if not changed:
        return items, []
    what = f"{counted(len(changed), 'image')} changed since the project was made ({shown(changed)})"
    if not kept:
        raise InputError(what, "bring the old ones back", file=folder)
    return kept, [f"{what}: left out."]


def _aligned(found: Table, items: Sequence[Item]) -> Table:
    """Pick the rows of a file in the order of the items; what is missing is said."""
    place = {name: row for row, name in enumerate(found.row_names or ())}
    is_plain = any(name.startswith(FORMULA) for name in place)  # not spelled as exports do
    rows = {
        item.name: place.get(item.name if is_plain else inert(item.name), place.get(item.name))
        for item in items
    }
    kept = {name: row for name, row in rows.items() if row is not None}
    if not kept:
        problem = f"the column {KEY!r} names none of the items"
        raise InputError(problem, "name items as the project does", file=found.source)
    notes = list(found.notes)
    if left := len(rows) - len(kept):
        notes.append(f"{left:,} of {len(rows):,} items are not in {found.source}: left out.")
    x = found.x[list(kept.values())]
    return replace(found, x=x, row_names=tuple(kept), notes=tuple(notes))


def _cells(project: Project, items: Sequence[Item], ask: Request) -> Table:
    """Read the cells that annotators see as numbers, by the rules of a table file.

    The file they came from is not read again: it may hold the true class in another column.
    """
    if ask.reading is not None and ask.reading.get("kind") != "columns":
        raise InputError("the model reads images, and the items are rows", _REMEDY)
    rows = [{"text": item.text} if item.kind == "text" else item.cells for item in items]
    with naming(project.folder):
        ask.check()
        names = choose(list(dict.fromkeys(name for row in rows for name in row)), ask)
        columns = {name: as_column([row.get(name) for row in rows]) for name in names}
        x, coarse = to_matrix(pa.table(columns))
        texts = {name: [row.get(name) for row in rows] for name in ask.texts}
        held = with_words(x, names, len(items), texts, ask)
    notes = [f"Columns {brief(coarse)} lose digits as float32."] if coarse else []
    return Table(
        **held,
        row_names=tuple(item.name for item in items),
        source=project.folder,
        sha256=sha256(held["x"].tobytes()).hexdigest(),
        notes=tuple(notes),
    )
