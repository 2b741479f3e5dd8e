"""What commands share that read a labelling project in the place of a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ruleout.cli.common import parse_names, parse_size, tell
from ruleout.cli.label.common import labelling

if TYPE_CHECKING:
    from ruleout.datasets import Table
    from ruleout.estimator import RuleOutClassifier
    from ruleout.learning import Review

__all__ = ["How", "check_options", "is_project", "needs_column", "open_items", "open_lesson"]

How = Annotated[
    str | None,
    typer.Option(
        "--how",
        metavar="intersection|answers|no",
        help="For a labelling project: learn from what all answers leave possible (the default), "
        'from every yes and no by the unbiased risk, or from "no" alone as in the paper.',
    ),
]


def is_project(data: Path, *columns: str | None) -> bool:
    """Tell a labelling project from a folder of images; whoever names a label column means that."""
    return not any(columns) and (data.expanduser() / "project.json").is_file()


def needs_column(data: Path, options: str) -> Exception:
    """Return what is wrong where no column was named and the data are no project."""
    if not data.expanduser().exists():
        return ValueError(f"{data}: there is no such file or folder; check the path")
    return typer.BadParameter(
        "give one of the two; a labelling project alone needs neither", param_hint=options
    )


def check_options(
    project: bool, *, of_projects: Mapping[str, Any], of_tables: Mapping[str, Any]
) -> None:
    """Refuse an option that was given and belongs to the other kind of data."""
    kind = "tables and image folders" if project else "labelling projects"
    for option, value in (of_tables if project else of_projects).items():
        if value:
            raise typer.BadParameter(f"this is for {kind}; leave it out", param_hint=option)


def open_lesson(
    data: Path,
    how: str | None,
    source: Path | None,
    *,
    features: Sequence[str] | None,
    ignore: Sequence[str] | None,
    size: str | None,
) -> tuple[Table, Any, Any]:
    """Read what a project teaches: rows, what is known about them, and weights; print the notes."""
    with labelling(), ExitStack() as stack:
        from ruleout.learning.training_data import USUAL, read_lesson
        from ruleout.web.project import Project

        found = read_lesson(
            stack.enter_context(Project.open(data)),
            how or USUAL,  # type: ignore[arg-type]  # checked there
            source,
            features=parse_names(features) if features else None,
            ignore=parse_names(ignore or ()),
            size=parse_size(size),
        )
    tell(found.notes)
    return found.table, found.target, found.weight


def open_items(
    model: Path,
    data: Path,
    device: str,
    source: Path | None,
    *,
    features: Sequence[str] | None,
    ignore: Sequence[str] | None,
) -> tuple[RuleOutClassifier, Review]:
    """Load a model, and read all items of a project as it was trained on them."""
    from ruleout.cli.predict import load_model

    clf, reading, wanted = load_model(model, device, features)
    with labelling(), ExitStack() as stack:
        from ruleout.estimator.targets import known_target
        from ruleout.learning import read_review
        from ruleout.web.project import Project

        project = stack.enter_context(Project.open(data))
        found = read_review(
            project, source, reading=reading, features=wanted, ignore=parse_names(ignore or ())
        )
        known_target(found.sets, clf.classes_)  # raises for other classes
    tell(found.table.notes)
    return clf, found
