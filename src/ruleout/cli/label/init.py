"""``ruleout label init``: a new project, from what is to be labelled and what it may be."""

from __future__ import annotations

import getpass
import os
import secrets
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ruleout.cli.common import parse_names, tell
from ruleout.cli.label.common import join_link, labelling

if TYPE_CHECKING:
    from ruleout.web import Settings
    from ruleout.web.items import Found
    from ruleout.web.project import Project

__all__ = ["init"]

_MANY = 15  # classes in a question, on average: more takes long to read
_GOLD_RATE = 0.05  # of the questions, where --gold is given alone


class Mode(StrEnum):
    """How a project asks."""

    propose = "propose"
    rule_out = "rule-out"


@labelling()
def init(
    project: Annotated[Path, typer.Argument(metavar="PROJECT", help="The new folder.")],
    items: Annotated[
        Path,
        typer.Option(
            "--items",
            metavar="FOLDER|FILE",
            help="A folder of images; or a table (.csv, .tsv, .jsonl, .parquet) whose rows are "
            "labelled.",
        ),
    ],
    classes: Annotated[
        str,
        typer.Option(
            "--classes",
            metavar="FILE|A,B,…",
            help="A text file with one class per line, or the class names.",
        ),
    ],
    law: Annotated[
        str,
        typer.Option("--law", help="How many classes a question names: released, paper, a number."),
    ] = "released",
    cap: Annotated[
        int | None,
        typer.Option("--cap", metavar="N", help="Name at most N classes in a question."),
    ] = None,
    mode: Annotated[
        Mode,
        typer.Option(
            "--mode",
            help="propose: is it one of these? rule-out: click away what it surely is not.",
        ),
    ] = Mode.propose,
    rounds: Annotated[
        int, typer.Option("--rounds", metavar="N", help="Answers that each item gets.")
    ] = 1,
    gold: Annotated[
        Path | None,
        typer.Option(
            "--gold",
            metavar="FILE",
            help="A table with columns item and class: items whose class is known, to test "
            "annotators with.",
        ),
    ] = None,
    gold_rate: Annotated[
        float | None,
        typer.Option(
            "--gold-rate",
            metavar="R",
            help=f"The share of questions that are tests; {_GOLD_RATE} with --gold.",
        ),
    ] = None,
    which: Annotated[
        bool, typer.Option("--which", help="After a yes, ask which one it is.")
    ] = False,
    lease: Annotated[
        float,
        typer.Option(
            "--lease", metavar="MINUTES", help="How long a question waits for who got it."
        ),
    ] = 10.0,
    text: Annotated[
        str | None,
        typer.Option(
            "--text", metavar="COLUMN", help="Of a table: show this column alone, as text."
        ),
    ] = None,
    name: Annotated[
        str | None,
        typer.Option(
            "--name", metavar="COLUMN", help="Of a table: what items are called; never shown."
        ),
    ] = None,
    seed: Annotated[
        int | None,
        typer.Option(
            "--seed",
            metavar="N",
            help="Of the questions and the order of items. By default a random one: who knows it "
            "can tell which questions are gold.",
        ),
    ] = None,
    lead: Annotated[
        str | None,
        typer.Option("--lead", metavar="NAME", help="Who leads. By default your login name."),
    ] = None,
    database: Annotated[
        str | None,
        typer.Option(
            "--database",
            metavar="URL",
            help="An empty PostgreSQL database, as in postgresql://ann@host/labels. By default "
            "$RULEOUT_DATABASE, else a SQLite file in the project.",
        ),
    ] = None,
) -> None:
    """Make a labelling project in a new folder, and a link for who leads it."""
    if gold is None and gold_rate:
        raise typer.BadParameter("--gold-rate needs --gold FILE, the items whose class is known")
    if which and mode is Mode.rule_out:
        raise typer.BadParameter("--which follows a yes, and --mode rule-out asks for none")
    from ruleout.web import Settings  # late: it loads SQLAlchemy
    from ruleout.web.project import Project

    leader = _leader(lead)
    names = _classes(classes)
    found = _found(items, names, text, name, gold)
    settings = Settings(
        classes=names,
        law=f"fixed:{law}" if law.isascii() and law.isdigit() else law,
        cap=cap,
        mode=mode.value,
        rounds=rounds,
        gold_rate=_GOLD_RATE if gold is not None and gold_rate is None else gold_rate or 0.0,
        lease_seconds=_seconds(lease),
        ask_which=which,
        seed=secrets.randbelow(2**63) if seed is None else seed,
    )
    with Project.create(project, settings, found, items, database=database) as made:
        tell([*found.notes, *_advice(settings)])
        _print(made, found, project, leader, made.store.invite(leader, "lead"))


def _classes(text: str) -> tuple[str, ...]:
    from ruleout.labels.classes import class_names
    from ruleout.web.items import check_name, read_classes
    from ruleout.web.names import unique

    if "," not in text and not Path(text).suffix and not os.path.lexists(text):
        raise ValueError(f"{text}: there is no such file; check the name, or write --classes A,B,C")
    if "," not in text or os.path.isfile(text):
        return read_classes(text)
    names = tuple(name.strip() for name in parse_names([text]))
    meet = unique("class name", "name each class once", None)
    for one in names:
        check_name(one, "class name", "separate names with single commas", longest=200)
        meet(one)
    class_names(names)
    return names


def _found(
    items: Path, classes: tuple[str, ...], text: str | None, name: str | None, gold: Path | None
) -> Found:
    from dataclasses import replace

    from ruleout.web.items import read_gold, read_items

    found = read_items(items, classes, text=text, name=name)
    return found if gold is None else replace(found, items=read_gold(gold, found.items, classes))


def _advice(settings: Settings) -> list[str]:
    from ruleout.web.proposals import capped_law

    chances = capped_law(settings.law, len(settings.classes), settings.cap)
    mean = sum(size * float(p) for size, p in enumerate(chances, 1))
    if settings.mode == "rule-out" or settings.cap is not None or mean < _MANY + 0.25:
        return []
    return [
        f"questions will name {mean:.0f} classes on average, which takes long to read; "
        "a new project with --cap 8 would name fewer"
    ]


def _seconds(minutes: float) -> int:
    if not 0.1 <= minutes <= 43_200:  # also where it is not a number
        raise ValueError(f"--lease {minutes:g} is no usable time; choose from 0.1 to 43200 minutes")
    return round(60 * minutes)


def _leader(name: str | None) -> str:
    """Return who leads, checked before anything is made."""
    from ruleout.web import RefusedError
    from ruleout.web.users import checked_name

    if name is not None:
        return checked_name(name)
    try:
        return checked_name(getpass.getuser())
    except (OSError, KeyError, ImportError, RefusedError):  # no login name, or a strange one
        return "lead"


def _print(made: Project, found: Found, folder: Path, lead: str, token: str) -> None:
    from shlex import quote

    settings, tests = made.store.settings, sum(item.gold is not None for item in found.items)
    kinds = {"image": "images", "text": "texts", "row": "rows"}
    typer.echo(
        f"{len(found.items):,} {kinds[found.items[0].kind]}, {len(settings.classes):,} classes, "
        f"{settings.rounds:,} answer{'s' if settings.rounds > 1 else ''} for each"
    )
    if settings.gold_rate:
        typer.echo(f"{tests:,} of known class, in {100 * settings.gold_rate:g} % of the questions")
    typer.echo(f"Made: {folder}\n\nNext, serve the page:\n")
    typer.echo(f"  ruleout label serve {quote(str(folder))}\n")
    typer.echo(f"and let {lead}, who leads, choose a password (once, within seven days):\n")
    typer.echo(f"  {join_link(token)}")
