"""``ruleout resolve``: the most likely class among what is left of each row."""

from __future__ import annotations

from typing import Any

import typer

from ruleout.cli.common import (
    DataOrProject,
    Excluded,
    Features,
    FeaturesFrom,
    Ignore,
    LabelsFile,
    Unlabelled,
    check_options,
    friendly,
    is_project,
    open_items,
    tell,
)
from ruleout.cli.predict import Device, Model, Out, answer, check_out, open_rows

__all__ = ["resolve"]


@friendly()
def resolve(
    model: Model,
    data: DataOrProject,
    excluded: Excluded = None,
    out: Out = None,
    features: Features = None,
    ignore: Ignore = None,
    labels_file: LabelsFile = None,
    unlabelled: Unlabelled = False,
    features_from: FeaturesFrom = None,
    device: Device = "cpu",
) -> None:
    """Name the most likely class that was not ruled out, with its probability.

    'probability' counts the classes that are left; 'before' is that of the same class among all.
    Of a labelling project every item is named, by all answers about it. Where gold questions
    measured how often people err, a class that was ruled out by mistake can still be named.
    """
    check_out(out, data)
    project = is_project(data, excluded)
    check_options(
        project,
        of_projects={"--features-from": features_from},
        of_tables={"--labels-file": labels_file, "--unlabelled": unlabelled},
    )
    chosen: dict[str, Any] = {"features": features, "ignore": ignore}
    likelihood = None
    if project:
        clf, items = open_items(model, data, device, features_from, **chosen)
        table, sets, likelihood = items.table, items.sets, items.likelihood
        if likelihood is None:
            from ruleout.learning.training_data import said

            tell(said(items.contradictions, "they count as not asked about"))
    elif excluded is None:
        raise typer.BadParameter("name the column of what was ruled out", param_hint="--excluded")
    else:
        chosen |= {"labels_file": labels_file, "unlabelled": unlabelled}
        clf, table = open_rows(model, data, device, excluded=excluded, **chosen)
        assert table.sets is not None  # asked for
        sets = table.sets
    if likelihood is None:
        found = clf.resolve(table.x, sets)
    else:
        found = clf.resolve(table.x, likelihood=likelihood)
    answer(
        table,
        {
            "resolved": found.labels,
            "probability": found.probability,
            "before": found.before,
            "candidates": len(sets.classes) - sets.sizes,
        },
        out,
        "item" if project else "file",
    )
    if out is not None:
        alone = int((sets.sizes == len(sets.classes) - 1).sum())
        sure = int((found.probability >= 0.95).sum())
        typer.echo(
            f"{sure:,} of {len(sets):,} rows at 0.95 or above; {alone:,} had one class left."
        )
