"""``ruleout resolve``: the most likely class among what is left of each row."""

from __future__ import annotations

import typer

from ruleout.cli.common import (
    Data,
    ExcludedNeeded,
    Features,
    Ignore,
    LabelsFile,
    Unlabelled,
    friendly,
)
from ruleout.cli.predict import Device, Model, Out, answer, check_out, open_rows

__all__ = ["resolve"]


@friendly()
def resolve(
    model: Model,
    data: Data,
    excluded: ExcludedNeeded,
    out: Out = None,
    features: Features = None,
    ignore: Ignore = None,
    labels_file: LabelsFile = None,
    unlabelled: Unlabelled = False,
    device: Device = "cpu",
) -> None:
    """Name the most likely class that was not ruled out, with its probability.

    'probability' counts the classes that are left; 'before' is that of the same class among all.
    """
    check_out(out, data)
    clf, table = open_rows(
        model,
        data,
        device,
        features=features,
        ignore=ignore,
        excluded=excluded,
        labels_file=labels_file,
        unlabelled=unlabelled,
    )
    sets = table.sets
    assert sets is not None  # asked for above
    found = clf.resolve(table.x, sets)
    answer(
        table,
        {
            "resolved": found.labels,
            "probability": found.probability,
            "before": found.before,
            "candidates": len(sets.classes) - sets.sizes,
        },
        out,
    )
    if out is not None:
        alone = int((sets.sizes == len(sets.classes) - 1).sum())
        sure = int((found.probability >= 0.95).sum())
        typer.echo(
            f"{sure:,} of {len(sets):,} rows at 0.95 or above; {alone:,} had one class left."
        )
