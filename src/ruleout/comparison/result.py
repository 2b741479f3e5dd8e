"""What a comparison is: rows of a table, how they came about, and roads out."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ruleout.comparison import tables
from ruleout.comparison.method import Method
from ruleout.comparison.pictures import Pictures
from ruleout.comparison.rows import Row
from ruleout.labels.atomic import atomic_write
from ruleout.labels.classes import ClassName
from ruleout.labels.errors import nearest
from ruleout.labels.laws import Law

if TYPE_CHECKING:
    import pandas

    from ruleout.report import Report

__all__ = ["Comparison"]


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Comparison:
    """Approaches side by side, each with the configuration that was chosen without true labels.

    Attributes
    ----------
    rows
        One per approach, in the order asked for.
    method
        How they were judged and compared.
    facts
        What was run: rows, classes, model, grid, epochs, device, precision, seed, versions.
    classes
        The class names.
    sizes
        ``[k]``: how many examples rule out 0, 1, …, k-1 classes, all trials together.
    pictures
        What is known about the predictions of the best approach.
    """

    rows: tuple[Row, ...]
    method: Method
    facts: Mapping[str, Any]
    classes: tuple[ClassName, ...]
    sizes: NDArray[np.intp]
    pictures: Pictures | None = field(default=None)

    @property
    def best(self) -> Row:
        """The row with the best score. The best of several scores is partly luck."""
        return self._top(lambda row: row.score, self.method.higher_is_better)

    @property
    def chosen(self) -> Row:
        """The row with the best criterion: picked before any score was seen.

        Its score is therefore as honest as its standard error says.
        """
        return self._top(lambda row: row.estimate, self.method.criterion_up)

    def _top(self, key: Callable[[Row], float], up: bool) -> Row:
        alive = [row for row in self.rows if not row.failed and not row.baseline]
        if not alive:
            raise ValueError("every approach diverged; try smaller learning rates")
        return max(alive, key=lambda row: key(row) if up else -key(row))

    @property
    def ranked(self) -> list[Row]:
        """The rows, best first; then those that diverged, then lines for comparison."""
        sign = -1 if self.method.higher_is_better else 1
        return sorted(
            self.rows, key=lambda r: (r.baseline, r.failed, 0 if r.failed else sign * r.score)
        )

    @property
    def notes(self) -> list[str]:
        """What must be known to read the table right."""
        return tables.notes(self)

    def __getitem__(self, approach: str) -> Row:
        """``comparison["log"]`` is the row of that approach."""
        for row in self.rows:
            if row.approach == approach:
                return row
        names = [row.approach for row in self.rows]
        say = nearest(approach, names, f"there are {', '.join(names)}")
        raise KeyError(f"no row {approach!r}; {say}")

    def __len__(self) -> int:
        return len(self.rows)

    def __repr__(self) -> str:
        return tables.text(self)

    def _repr_html_(self) -> str:
        return tables.html(self)

    def with_baseline(self, other: Comparison, *, label: str, family: str) -> Comparison:
        """Add the rows of another comparison as lines that only serve to compare.

        Such as ordinary training on true labels. They keep their scores, carry no mark, and are
        never the best.
        """
        added = tuple(
            replace(row, approach=label, label=label, family=family, form="", baseline=True,
                    mark="", p_value=np.nan, p_holm=np.nan)
            for row in other.rows
        )  # fmt: skip
        return replace(self, rows=self.rows + added)

    # ------------------------------------------------------------------ roads out

    def to_frame(self) -> pandas.DataFrame:
        """Return a pandas DataFrame, one row per approach, best first."""
        import pandas as pd

        return pd.DataFrame(tables.records(self))

    def to_csv(self, path: str | Path) -> None:
        """Write one line per approach, best first; the file appears whole or not at all."""
        _save(path, tables.csv(self))

    def to_markdown(self) -> str:
        """Return the table as Markdown, with what must be known to read it."""
        return tables.markdown(self)

    def to_dict(self) -> dict[str, Any]:
        """Return everything but the pictures as plain numbers, lists and text."""
        method = {name: getattr(self.method, name) for name in self.method.__dataclass_fields__}
        return {
            "method": method,
            "facts": dict(self.facts),
            "classes": list(self.classes),
            "sizes": self.sizes.tolist(),
            "rows": [row.to_dict() for row in self.rows],
        }

    def to_json(self) -> str:
        """Return :meth:`to_dict` as strict JSON."""
        return json.dumps(self.to_dict(), ensure_ascii=False, allow_nan=False, indent=1)

    def report(
        self,
        *,
        title: str = "Approaches side by side",
        law: Law | None = None,
        facts: Mapping[str, object] | None = None,
    ) -> Report:
        """Return a page: table, learning curves, set sizes, reliability, what was contradicted.

        Parameters
        ----------
        title
            The headline.
        law
            The size law to draw over the sizes, if it is known.
        facts
            More to say about the run, such as the name of the data.
        """
        from ruleout.comparison.pages import page

        return page(self, title, law, facts or {})

    def write(
        self,
        folder: str | Path,
        *,
        title: str = "Approaches side by side",
        law: Law | None = None,
        facts: Mapping[str, object] | None = None,
    ) -> Path:
        """Write ``report.html``, ``table.csv``, ``table.md`` and ``results.json``.

        The folder is made if there is none; each file appears whole or not at all. Returns the
        path of the page.
        """
        from ruleout.report import write

        place = Path(folder)
        place.mkdir(parents=True, exist_ok=True)
        self.to_csv(place / "table.csv")
        _save(place / "table.md", self.to_markdown())
        _save(place / "results.json", self.to_json() + "\n")
        return write(self.report(title=title, law=law, facts=facts), place / "report.html")


def _save(path: str | Path, content: str) -> None:
    with atomic_write(path) as out:
        out.write(content.encode())
