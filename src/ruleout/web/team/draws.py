"""Whether proposals were drawn as the law says, in pictures and sentences."""

from __future__ import annotations

import numpy as np
from markupsafe import Markup

from ruleout.labels.chisquare import Test
from ruleout.report import Histogram
from ruleout.report.formats import count
from ruleout.web.records import Settings
from ruleout.web.team import charts
from ruleout.web.team.uniformity import Uniformity
from ruleout.web.team.views import DrawView, named, shortened

__all__ = ["draw_view", "sentence"]

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
