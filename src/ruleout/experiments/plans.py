"""Plans: which specs make up a table of the paper."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from ruleout.experiments.printed import TABLES, Printed, printed
from ruleout.experiments.protocols import protocol as find_protocol
from ruleout.experiments.specs import Spec
from ruleout.labels.errors import brief, nearest

__all__ = ["plan"]


def plan(
    table: str,
    *,
    datasets: Collection[str] | None = None,
    approaches: Collection[str] | None = None,
    protocol: str = "released",
    **settings: Any,
) -> list[Spec]:
    """Return one spec for each cell of a table, data set by data set, in the order of its rows.

    Parameters
    ----------
    table
        A name of :data:`~ruleout.experiments.TABLES`.
    datasets, approaches
        Only these, by the names of the paper or of code.
    protocol, settings
        For :class:`Spec`: features, grid, trials, epochs, seed, precision, ...

    Examples
    --------
    >>> specs = plan("uci")
    >>> len(specs), str(specs[0])
    (72, 'yeast, linear, exp')
    >>> [spec.law for spec in plan("fixed-linear", approaches=["LOG"])][:2]
    ['fixed:1', 'fixed:2']
    """
    if table not in TABLES:
        say = nearest(table, TABLES, f"the tables are {', '.join(TABLES)}")
        raise ValueError(f"unknown table {brief(table)}; {say}")
    cells = [one for one in printed() if one.table == TABLES[table]]
    cells = _only(cells, "data set", datasets, lambda c: {c.dataset, c.place[0]})
    cells = _only(cells, "approach", approaches, lambda c: {c.approach, c.row})
    law = find_protocol(protocol).law
    order = list(dict.fromkeys((c.dataset, c.model, c.sizes) for c in cells))
    cells.sort(key=lambda c: order.index((c.dataset, c.model, c.sizes)))
    return [_spec(cell, law, protocol=protocol, **settings) for cell in cells]


def _spec(cell: Printed, law: str, **settings: Any) -> Spec:
    dataset, model, approach, sizes = cell.place
    drawn = f"fixed:{sizes[2:]}" if sizes.startswith("s=") else law
    return Spec(dataset=dataset, model=model, approach=approach, law=drawn, **settings)


def _only(
    cells: list[Printed], what: str, wanted: Collection[str] | None, names: Any
) -> list[Printed]:
    """Keep the cells that were asked for; a name that no cell has is refused."""
    if wanted is None:
        return cells
    if not wanted:
        raise ValueError(f"no {what} is named; name some, or leave the option out")
    known = list(dict.fromkeys(name for cell in cells for name in sorted(names(cell))))
    lower = {name.lower(): name for name in known}
    found = set()
    for name in wanted:
        if name.lower() not in lower:
            say = nearest(name, known, f"it has {', '.join(known)}")
            raise ValueError(f"the table has no {what} {brief(name)}; {say}")
        found.add(name.lower())
    return [cell for cell in cells if found & {name.lower() for name in names(cell)}]
