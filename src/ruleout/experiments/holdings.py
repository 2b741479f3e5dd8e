"""What a ledger holds, in memory: all that tables, figures and pages are made of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ruleout.experiments import parquet
from ruleout.experiments.ledger import Failure, Ledger
from ruleout.experiments.records import Record
from ruleout.experiments.specs import Spec

__all__ = ["Holdings", "gather"]


@dataclass(frozen=True)
class Holdings:
    """The tasks of one ledger or several, each once, and what came of them."""

    specs: tuple[Spec, ...]
    records: tuple[Record, ...]
    failures: tuple[Failure, ...] = ()

    def only(self, specs: Sequence[Spec]) -> Holdings:
        """Return what concerns these tasks."""
        keys = {spec.key for spec in specs}
        return Holdings(
            tuple(spec for spec in self.specs if spec.key in keys),
            tuple(record for record in self.records if record.spec.key in keys),
            tuple(one for one in self.failures if one.spec.key in keys),
        )


def gather(*ledgers: str | Path) -> Holdings:
    """Read ledgers: SQLite files, or folders that :func:`~ruleout.experiments.parquet.write` made.

    A task that several ledgers hold counts once; the first record found is taken.
    """
    parts = [_read(Path(one)) for one in ledgers]
    specs = {spec.key: spec for part in parts for spec in part.specs}
    records = {r.spec.key: r for part in reversed(parts) for r in part.records}
    failures = {f.spec.key: f for part in parts for f in part.failures if f.spec.key not in records}
    return Holdings(
        tuple(specs.values()),
        tuple(records[key] for key in specs if key in records),
        tuple(failures.values()),
    )


def _read(path: Path) -> Holdings:
    if path.is_dir():
        found = parquet.read(path)
        return Holdings(tuple(one.spec for one in found), tuple(found))
    with Ledger(path, make=False) as ledger:
        return Holdings(tuple(ledger.specs()), tuple(ledger.records()), tuple(ledger.failures()))
