"""The fitted attributes: what a training leaves on a classifier."""

from __future__ import annotations

from hashlib import sha256
from typing import Any, NamedTuple

import numpy as np

from ruleout.estimator.fitting import Course, Fitted, Progress
from ruleout.selection import Search

__all__ = ["Judged", "keep", "keep_on", "keep_search", "printer"]


class Judged(NamedTuple):
    """A criterion on the rows that were held out."""

    name: str
    estimate: float
    standard_error: float


def keep(clf: Any, found: Fitted, course: Course) -> None:
    """Keep the model of a fit."""
    clf.module_ = found.module
    clf.configuration_ = found.configuration
    clf.history_ = {"epoch": found.fit.epochs, "loss": found.fit.history["loss"][0, 0]}
    clf.n_iter_ = int(found.fit.epochs[-1])
    clf.record_ = found.fit.record
    clf._course = course
    _forget(clf, "reading_")


def keep_on(clf: Any, found: Fitted, course: Course) -> None:
    """Keep the model of one more walk; what was judged before no longer holds."""
    now = Course(course.seed, course.calls + 1, clf.optimizer, found.fit.state)
    if course.calls == 0:
        keep(clf, found, now)
        return
    history, record, done = clf.history_, clf.record_, clf.n_iter_ + 1
    keep(clf, found, now)
    clf.n_iter_ = done
    clf.history_ = {
        "epoch": np.append(history["epoch"], done),
        "loss": np.append(history["loss"], clf.history_["loss"]),
    }
    both = record["data"] + clf.record_["data"]  # of all rows ever seen, in their order
    clf.record_ |= {"model": record["model"], "epochs": done, "seed": course.seed}
    clf.record_["data"] = sha256(both.encode()).hexdigest()
    keep_search(clf, None)


def keep_search(clf: Any, found: Search | None) -> None:
    """Keep what was tried and how it was judged; without a search there is nothing to keep."""
    _forget(clf, "criterion_", "search_", "search_history_")
    if found is None:
        return
    grid, place = found.grid, int(found.chosen[0])
    clf.criterion_ = Judged(found.criterion.name, *found.estimate)
    columns = {n: np.array([one[n] for one in grid.configurations]) for n in found.configuration}
    clf.search_ = columns | {
        "estimate": found.estimates[0],
        "standard_error": found.errors[0],
        "epochs": grid.stopped[0],
        "diverged": grid.diverged[0],
    }
    name = f"held out/{found.criterion.name}"
    clf.search_history_ = {
        "epoch": grid.epochs,
        "estimate": grid.history[name][0, place],
        "standard_error": grid.errors[name][0, place],
    }


def _forget(clf: Any, *names: str) -> None:
    for name in names:
        if hasattr(clf, name):
            delattr(clf, name)


def printer() -> Progress:
    """Return a function that prints a line for every tenth of a stage."""
    last = ("", -1)

    def call(stage: str, done: int, total: int) -> None:
        nonlocal last
        tenth = (stage, 10 * done // total)
        if tenth != last:
            print(f"{stage}: epoch {done} of {total}")
        last = tenth

    return call
