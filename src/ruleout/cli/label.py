"""``ruleout label``: people rule classes out, and every answer counts."""

from __future__ import annotations

import getpass
import math
import os
import secrets
import sys
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated, Any, Literal
from urllib.parse import urlsplit

import typer

from ruleout.cli.common import as_notes, friendly, open_project, parse_names, show_rows, tell
from ruleout.cli.shared_options import FeaturesFrom, declared
from ruleout.labels.classes import shown
from ruleout.labels.errors import InputError, counted

if TYPE_CHECKING:
    from ruleout.learning.planning import Forecast, Planned
    from ruleout.web import Item, Settings
    from ruleout.web.answer_log import AnswerLog
    from ruleout.web.items import Found
    from ruleout.web.project import Project
    from ruleout.web.project_progress import Progress


#: Where `ruleout label serve` answers unless told otherwise.
ADDRESS = "http://127.0.0.1:8765"

_GOLD_RATE = 0.05  # of the questions, where --gold is given alone

Place = Annotated[Path, typer.Argument(metavar="PROJECT", help="The folder of the project.")]
Gold = Annotated[
    Path | None,
    "FILE",
    "A table with columns item and class: items whose class is known, to test annotators with.",
]
GoldRate = Annotated[
    float | None, "R", f"The share of questions that are tests; {_GOLD_RATE} with --gold."
]
Text = Annotated[str | None, "COLUMN", "For a table: show only this column, as text."]
Name = Annotated[str | None, "COLUMN", "For a table: the column that names the items; never shown."]


def parse_origin(text: str) -> str:
    """Read the address of the service as browsers see it."""
    origin = text.rstrip("/")
    try:
        parts = urlsplit(origin)
        whole = f"{parts.scheme}://{parts.netloc}" == origin and parts.port != 0
    except ValueError:  # a port that is none
        whole = False
    if not whole or parts.scheme not in ("http", "https") or not parts.hostname or "@" in origin:
        raise typer.BadParameter(f"{text!r} is not an origin; write https://label.example.org")
    return origin


def in_time(seconds: float | None) -> str:
    from ruleout.report.number_format import duration

    return "unknown yet" if seconds is None else duration(seconds) if seconds else "none"


_MANY = 15  # classes in a question, on average: more takes long to read


@friendly()
def init(
    project: Annotated[Path, typer.Argument(metavar="PROJECT", help="The new folder.")],
    items: Annotated[
        Path,
        "FOLDER|FILE",
        "A folder of images; or a table (.csv, .tsv, .jsonl, .parquet) whose rows are labelled.",
    ],
    classes: Annotated[
        str, "FILE|A,B,…", "A text file with one class per line, or the class names."
    ],
    law: Annotated[
        str, "How many classes a question names: released, paper, a number."
    ] = "released",
    cap: Annotated[int | None, "N", "Name at most N classes in a question."] = None,
    mode: Annotated[
        Literal["propose", "rule-out"],
        "propose: is it one of these? rule-out: click away what it surely is not.",
    ] = "propose",
    rounds: Annotated[int, "N", "Answers that each item gets."] = 1,
    gold: Gold = None,
    gold_rate: GoldRate = None,
    which: Annotated[bool, "After a yes, ask which one it is."] = False,
    lease: Annotated[
        float, "MINUTES", "How long a question is kept for the person who got it."
    ] = 10.0,
    text: Text = None,
    name: Name = None,
    seed: Annotated[
        int | None,
        "N",
        "Of the questions and the order of items. By default a random one: anyone who "
        "knows it can tell which questions are gold.",
    ] = None,
    lead: Annotated[str | None, "NAME", "Who leads. By default your login name."] = None,
    database: Annotated[
        str | None,
        "URL",
        "An empty PostgreSQL database, as in postgresql://ann@host/labels. By default "
        "$RULEOUT_DATABASE, else a SQLite file in the project.",
    ] = None,
) -> None:
    """Make a labelling project in a new folder, and a link for its lead."""
    if gold is None and gold_rate:
        raise typer.BadParameter("--gold-rate needs --gold FILE, the items whose class is known")
    if which and mode == "rule-out":
        raise typer.BadParameter("--which follows a yes, and --mode rule-out asks for none")
    if not 0.1 <= lease <= 43_200:  # also where it is not a number
        say = "choose from 0.1 to 43200 minutes"
        raise ValueError(f"--lease {lease:g} is not a usable time; {say}")
    from ruleout.web import Settings  # late: it loads SQLAlchemy
    from ruleout.web.items import read_gold, read_items
    from ruleout.web.project import Project

    leader = _leader(lead)
    names = _classes(classes)
    found = read_items(items, names, text=text, name=name)
    if gold is not None:
        found = replace(found, items=read_gold(gold, found.items, names))
    settings = Settings(
        classes=names,
        law=f"fixed:{law}" if law.isascii() and law.isdigit() else law,
        cap=cap,
        mode=mode,
        rounds=rounds,
        gold_rate=_GOLD_RATE if gold is not None and gold_rate is None else gold_rate or 0.0,
        lease_seconds=round(60 * lease),
        ask_which=which,
        seed=secrets.randbelow(2**63) if seed is None else seed,
    )
    with Project.create(project, settings, found, items, database=database) as made:
        tell([*found.notes, *_advice(settings)])
        _print_made(made, found, project, leader, made.store.invite(leader, "lead"))


@friendly()
def add(
    project: Place,
    items: Annotated[
        Path | None,
        "FOLDER|FILE",
        "The folder of the project's images, for those that are new in it; or a table "
        "whose rows are new.",
    ] = None,
    classes: Annotated[str | None, "FILE|A,B,…", "Further classes, or a file of them."] = None,
    gold: Gold = None,
    gold_rate: GoldRate = None,
    rounds: Annotated[int | None, "N", "Answers that each item gets from now on."] = None,
    text: Text = None,
    name: Name = None,
) -> None:
    """Add items, classes, known classes or rounds to a project, also while it is served.

    All of it is added, or nothing. Answers stay what they are: of a class that was not there when
    somebody was asked, their answer says nothing.
    """
    if all(one is None for one in (items, classes, gold, gold_rate, rounds)):
        raise typer.BadParameter("say --items, --classes, --gold, --gold-rate or --rounds")
    from ruleout.web.items import read_gold

    with open_project(project) as opened:
        before = opened.store.settings
        rate = _GOLD_RATE if gold is not None and not before.gold_rate else before.gold_rate
        settings = replace(
            before,
            classes=before.classes + (() if classes is None else _classes(classes, before.classes)),
            rounds=before.rounds if rounds is None else rounds,
            gold_rate=rate if gold_rate is None else gold_rate,
        )
        given: tuple[Item, ...] = ()
        if items is not None:
            found = opened.found(items, settings, text=text, name=name)
            given = found.items
            tell(found.notes)
        if gold is not None:
            there = (item for _, item in opened.store.items())
            both = {one.name: one for one in (*there, *given)}
            given = read_gold(gold, list(both.values()), settings.classes)
        grown = opened.store.grow(settings, given)
    new = len(settings.classes) - len(before.classes)
    more = {"item(s)": grown.items, "known class(es)": grown.gold, "class(es)": new}
    added = ", ".join(f"{count:,} {what}" for what, count in more.items() if count)
    typer.echo(f"Added: {added or 'no items or classes'}.")
    each = f"{counted(settings.rounds, 'answer')} for each"
    typer.echo(f"The project has {len(settings.classes):,} classes, and asks for {each}.")


def _classes(text: str, known: tuple[str, ...] = ()) -> tuple[str, ...]:
    from ruleout.web.items import check_classes, read_classes

    absent = "," not in text and not Path(text).suffix and not os.path.lexists(text)
    if absent and not known:
        raise ValueError(f"{text}: there is no such file; check the name, or write --classes A,B,C")
    if not absent and ("," not in text or os.path.isfile(text)):
        return read_classes(text, known)
    names = [name.strip() for name in parse_names([text])]
    return check_classes(names, known, "separate names with single commas")


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


def _leader(name: str | None) -> str:
    """Return who leads, checked before anything is made."""
    from ruleout.web import RefusedError
    from ruleout.web.accounts import checked_name

    if name is not None:
        return checked_name(name)
    try:
        return checked_name(getpass.getuser())
    except (OSError, KeyError, ImportError, RefusedError):  # no login name, or a strange one
        return "lead"


def _print_made(made: Project, found: Found, folder: Path, lead: str, token: str) -> None:
    settings, tests = made.store.settings, sum(item.gold is not None for item in found.items)
    typer.echo(
        f"{counted(len(found.items), found.items[0].kind)}, {len(settings.classes):,} classes, "
        f"{counted(settings.rounds, 'answer')} for each"
    )
    if settings.gold_rate:
        typer.echo(f"{tests:,} of known class, in {100 * settings.gold_rate:g} % of the questions")
    typer.echo(f"Made: {folder}\n\nNext, serve the page:\n")
    typer.echo(f"  ruleout label serve {quote(str(folder))}\n")
    typer.echo(f"and let {lead}, who leads, choose a password (once, within seven days):\n")
    typer.echo(f"  {ADDRESS}/join/{token}")


@friendly()
def serve(
    project: Place,
    host: Annotated[str, "ADDRESS", "Where to listen; 0.0.0.0 for other machines."] = "127.0.0.1",
    port: Annotated[
        int,
        typer.Option(metavar="N", min=0, max=65535, help="Where to listen; 0 takes a free one."),
    ] = 8765,
    origin: Annotated[
        str | None, "URL", "What people type, where that differs, as in https://label.example.org."
    ] = None,
    certificate: Annotated[Path | None, "FILE", "For https: the certificate, PEM."] = None,
    key: Annotated[Path | None, "FILE", "For https: its key, PEM."] = None,
    behind_proxy: Annotated[
        bool, "A proxy on this machine speaks https and passes requests on."
    ] = False,
    session_hours: Annotated[
        float,
        typer.Option(
            metavar="HOURS",
            min=0.1,
            max=720,
            help="A login ends after this long without a request; an open page makes some.",
        ),
    ] = 12.0,
) -> None:
    """Serve the page of a project until Ctrl-C.

    Where nobody who leads has a password yet, a link is printed that lets them choose one.
    """
    if (certificate is None) != (key is None):
        raise typer.BadParameter("--certificate and --key go together")
    seen = None if origin is None else parse_origin(origin)
    from ruleout.web.service import Options
    from ruleout.web.service import serve as run
    from ruleout.web.service.server import is_loopback

    with open_project(project) as opened:
        if not (behind_proxy or certificate or is_loopback(host)):
            problem = "passwords and answers can be read on their way to other machines"
            remedy = "give --certificate and --key, or let a proxy speak https and give"
            tell([f"{problem}; {remedy} --behind-proxy"])
        if seen is None and host in ("0.0.0.0", "::"):
            tell(["links will not lead here from other machines; give --origin, what people type"])
        options = Options(
            name=opened.name,
            guidelines=opened.folder,
            origin=seen,
            behind_proxy=behind_proxy,
            session_hours=session_hours,
        )
        run(
            opened.store,
            images=opened.images,
            host=host,
            port=port,
            options=options,
            certificate=certificate,
            key=key,
            ready=lambda address: _greet(opened, address),
        )
    typer.echo("Ended.")


def _greet(opened: Project, address: str) -> None:
    store = opened.store
    leads = [user for user in store.users() if user.role == "lead" and not user.disabled]
    if not leads:
        tell(["nobody leads this project; add somebody with `ruleout label users`, --role lead"])
    elif not any((store.password(user.name) or (None, None))[1] for user in leads):
        token = store.invite(leads[0].name, "lead")
        typer.echo(f"{leads[0].name}, who leads, can choose a password (once, within seven days):")
        typer.echo(f"  {address}/join/{token}")
    typer.echo(f"{opened.name} is served at {address} until Ctrl-C.")
    sys.stdout.flush()  # somebody may wait for this line in a pipe


@friendly()
def users(
    project: Place,
    action: Annotated[
        Literal["list", "add", "invite", "close", "open"],
        "[ACTION]",
        "list; add: print a link that lets somebody choose a password; invite: a new link, also "
        "for a forgotten password; close: no longer let somebody in; open: let them in again.",
    ] = "list",
    name: Annotated[str | None, "[NAME]", "Who; for all but list."] = None,
    role: Annotated[
        Literal["annotator", "lead"] | None,
        "With add: annotators label, leads see the team page too.",
    ] = None,
    origin: Annotated[str, "URL", "Where people reach the service, for links."] = ADDRESS,
) -> None:
    """List the people of a project, add some, or close accounts.

    Nobody can sign up: a link lets one person in, once, within seven days.
    """
    address = parse_origin(origin)
    if (name is None) != (action == "list"):
        raise typer.BadParameter("write add, invite, close or open and then a name")
    if role is not None and action != "add":
        raise typer.BadParameter("--role goes with add")
    with open_project(project) as opened:
        store = opened.store
        if name is None:
            rows = []
            for user in store.users():
                _, password = store.password(user.name) or (None, None)
                account = "closed" if user.disabled else "open" if password else "no password yet"
                rows.append((user.name, user.role, account))
            show_rows(("name", "role", "account"), rows)
        elif action in ("add", "invite"):
            user = (
                store.add_user(name, role or "annotator") if action == "add" else store.user(name)
            )
            if user.disabled:
                remedy = "open it first: users PROJECT open NAME"
                raise ValueError(f"the account of {user.name!r} is closed; {remedy}")
            token = store.invite(user.name, user.role)
            typer.echo(f"For {user.name} ({user.role}), once, within seven days:")
            typer.echo(f"{address}/join/{token}")
        else:
            user = store.disable(name, action == "close")
            typer.echo(f"{user.name} ({user.role}) is {'closed' if user.disabled else 'open'}.")
            if not any(one.role == "lead" and not one.disabled for one in store.users()):
                tell(["no lead is left who can log in; open one, or add one with --role lead"])


@friendly()
def tokens(
    project: Place,
    action: Annotated[
        Literal["list", "add", "end"], "[ACTION]", "list; add: print a new token, once; end."
    ] = "list",
    name: Annotated[str | None, "[NAME]", "What the token is called."] = None,
    lead: Annotated[str | None, "NAME", "With add: in whose name; the first lead."] = None,
) -> None:
    """List the tokens with which programs read exports, make one, or end one.

    A token reads /team/status and /team/export/FILE, in the header Authorization: Bearer TOKEN.
    """
    if (name is None) != (action == "list"):
        raise typer.BadParameter("write add or end and then a name")
    with open_project(project) as opened:
        store = opened.store
        if name is None:
            rows = [(one, who, f"{made:%Y-%m-%d}") for one, who, made in store.tokens()]
            show_rows(("name", "lead", "made"), rows)
        elif action == "add":
            leads = (one.name for one in store.users() if one.role == "lead" and not one.disabled)
            typer.echo(store.add_token(name, store.user(lead or next(leads, "lead"))))
        else:
            store.end_token(name)
            typer.echo(f"The token {name} has ended.")


@friendly()
def backup(
    project: Place,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A new file, as in backup.zip.")],
) -> None:
    """Write a whole copy of a project to a ZIP file, also while it is served; unpack to restore.

    It holds the database, settings, guidelines and the hashes of the images, not the images.
    """
    with open_project(project) as opened:
        opened.backup(file)
    typer.echo(f"Written: {file}")


@friendly()
def status(
    project: Place, days: Annotated[bool, "Also say what everybody did each day, in UTC."] = False
) -> None:
    """Say how far a project is, who did what, and whether its database is sound.

    Exit code 1: the database is damaged, and a sentence says how.
    """
    with open_project(project) as opened:
        log = opened.store.answer_log()
        _print_totals(opened, log)
        if log:
            _print_people(log)
        if days:
            from ruleout.web.team.annotators import work_days

            worked = work_days(log, timedelta(seconds=opened.store.settings.lease_seconds))
            heads = ("day", "annotator", "answers", "hours")
            rows = [
                (one.day, one.annotator, f"{one.answers:,}", f"{one.hours:.1f}") for one in worked
            ]
            typer.echo()
            show_rows(heads, rows, right=heads[2:])
        try:
            _ = opened.images
        except InputError as error:
            tell([str(error)])
        damage = opened.store.check()
        for line in damage:
            typer.echo(f"ruleout: {opened.folder}: {line}; restore a backup", err=True)
        if damage:
            raise typer.Exit(1)
        typer.echo("\nThe database is sound.")


def _print_totals(opened: Project, log: AnswerLog) -> None:
    from ruleout.web.answer_log import in_force

    done, settings = opened.store.progress(), opened.store.settings
    share = 100 * done.given / done.wanted if done.wanted else 0
    rows = {
        "project": opened.folder,
        "items": f"{done.items:,} from {opened.source}",
        "asks": f"{settings.mode}, {len(settings.classes)} classes, law {settings.law}"
        + ("" if settings.cap is None else f", at most {settings.cap}"),
        "done": f"{done.done:,} of {counted(done.items, 'item')}",
        "answers": f"{done.given:,} of {done.wanted:,} wanted, {share:.0f} %; "
        f"{len(log.standing(gold=True)):,} as tests, {done.skips:,} skipped",
        "pace": "unknown yet" if done.per_hour is None else f"{done.per_hour:,.0f} an hour",
        "time left": in_time(done.seconds_left),
        "contradictions": f"{(log.candidates == 0).sum():,}",
        "decided": f"{len(in_force(log.decisions)):,} by leads",
    }
    show_rows(("", ""), rows.items())


def _print_people(log: AnswerLog) -> None:
    from ruleout.web.team.agreement import guessing
    from ruleout.web.team.annotators import annotators

    counts = ("answers", "yes", "no", "ruled out", "skipped", "late", "undone", "seconds")
    rows = []
    for one in annotators(log):
        kinds = (one.answers, one.yes, one.no, one.excluded, one.skips, one.late, one.undone)
        median = "" if one.median_seconds is None else f"{one.median_seconds:.1f}"
        rows.append((one.name, *(f"{count:,}" for count in kinds), median))
    typer.echo()
    show_rows(("annotator", *counts), rows, right=counts)
    if found := sorted(guessing(log.undecided())):
        tell([f"{shown(found)} may be guessing; the team page says more"])


@friendly()
def export(
    project: Place,
    out: Annotated[Path, "FOLDER", "A new folder."],
    how: Annotated[
        Literal["no", "intersection"],
        "no: what 'no' and rule-out answers rule out, as in the paper; intersection: "
        "what all answers leave possible.",
    ] = "no",
    form: Annotated[
        Literal["csv", "jsonl", "parquet", "npz"],
        typer.Option("--format", help="What the files are; with npz, tables are CSV."),
    ] = "csv",
    unlabelled: Annotated[bool, "Give items without an answer an empty row as well."] = False,
) -> None:
    """Write label sets, items, contradictions and the answer log to a new folder.

    Items whose answers leave no class are in a list of their own, and in no set.
    """
    from ruleout.web.project_export import write_bundle  # late: it loads SQLAlchemy

    with open_project(project) as opened:
        made, files = write_bundle(opened.store, out, how=how, form=form, unlabelled=unlabelled)
    found = made.known
    if wrong := found.contradictions:
        names = shown(wrong, 5)
        tell([f"the answers about {len(wrong):,} item(s) leave no class, such as {names}"])
    typer.echo(repr(found.sets))
    typer.echo(
        f"{len(found.unlabelled):,} unlabelled, {len(wrong):,} contradicting, "
        f"{len(found.tests):,} only asked as tests; {counted(len(made.log), 'answer')} in the log."
    )
    for name in files:
        typer.echo(f"Written: {out / name}")


@friendly()
def bring(
    project: Place,
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE",
            help="JSON of Label Studio; or a table (.csv, .tsv, .jsonl, .parquet) with columns "
            "item, annotator, kind, and proposed, excluded or which.",
        ),
    ],
    origin: Annotated[
        Literal["label-studio", "csv"] | None,
        typer.Option("--from", help="Where the file comes from. By default its suffix says so."),
    ] = None,
    meaning: Annotated[
        Literal["which", "candidates", "excluded"],
        "What a choice in Label Studio means: it is this class, it is one of these, or "
        "it is none of these.",
    ] = "which",
    control: Annotated[
        str | None,
        "NAME",
        "The choices in Label Studio that hold the classes, where there are several.",
    ] = None,
    key: Annotated[
        str | None,
        "KEY",
        "Where in a task's data the item is. By default the first value that matches.",
    ] = None,
    skip_unknown: Annotated[bool, "Leave out tasks of Label Studio that match no item."] = False,
) -> None:
    """Add earlier answers to a project: all of a file, or nothing.

    A file that is imported twice brings its answers once. Who answered gets a closed account:
    `users PROJECT open NAME`, then `invite`, lets them in.
    """
    from ruleout.web.importing import read_answers, read_label_studio

    with open_project(project) as opened:
        items = [item for _, item in opened.store.items()]
        known = opened.store.settings.classes
        if origin == "csv" or (origin is None and file.suffix.lower() != ".json"):
            found = read_answers(file, [item.name for item in items], known)
        else:
            told: Any = {"meaning": meaning, "control": control, "key": key}
            found = read_label_studio(file, items, known, skip_unknown=skip_unknown, **told)
        brought = opened.store.bring(found.answers)
    tell(found.notes)
    before = f", {brought.known:,} were there before" if brought.known else ""
    typer.echo(f"{counted(brought.added, 'answer')} added{before}.")
    if brought.users:
        typer.echo(f"New people: {', '.join(brought.users)}")


_WAYS = {
    "intersection": "yes and no, what is left possible",
    "answers": "yes and no, unbiased risk",
    "no": "no alone, as in the paper",
    "labels": "true labels",
}


@friendly()
def plan(
    project: Annotated[Path | None, "[PROJECT]", "Measure on the answers this project has."] = None,
    target: Annotated[float, "SHARE", "The accuracy to reach, as in 0.9."] = 0.9,
    labels: Annotated[
        int | None,
        typer.Option(metavar="N", min=1, help="Without a project: N true labels would do."),
    ] = None,
    model: Annotated[str, "With a project: linear or mlp."] = "linear",
    features_from: FeaturesFrom = None,
    seed: Annotated[int, typer.Option(min=0, help="The same seed measures the same.")] = 0,
) -> None:
    """Say how many questions a target accuracy will roughly take, with its uncertainty.

    With a project that has answers, models are trained on growing shares of them and tested on
    the rest, without true labels. Without one, the study in the documentation answers.
    """
    if not 0 < target < 1:
        raise typer.BadParameter(
            f"{target} is not a share; write --target 0.9", param_hint="--target"
        )
    if project is None:
        _from_study(target, labels)
        return
    if labels is not None:
        raise typer.BadParameter("--labels is for planning without a project")
    from ruleout.learning import read_review
    from ruleout.learning.planning import forecast, measure_curve
    from ruleout.learning.training_data import contradiction_notes

    with open_project(project) as opened, as_notes():
        review = read_review(opened, features_from)
        tell(review.table.notes)
        if not review.tests[1]:
            tell(contradiction_notes(review.contradictions, "they are left out"))
            tell(["No gold question was answered: answers count as never wrong."])
        progress = opened.store.progress()
        found = measure_curve(
            review,
            model=model,
            seed=seed,
            progress=lambda done, total: typer.echo(f"measured {done} of {total}", err=True),
        )
    typer.echo(f"Measured on this project ({model}), without true labels:")
    for point in found:
        typer.echo(f"  {point.questions:9,.0f} questions: {point.accuracy:.3f} ± {point.error:.3f}")
    _print_forecast(forecast(found, target, seed=seed), progress)


def _print_forecast(found: Forecast, progress: Progress) -> None:
    if math.isinf(found.questions):
        share = f"{100 * found.reachable:.0f} of 100 curves that fit as well reach it"
        typer.echo(f"{found.target:g} is beyond the curve; {share}.", nl=False)
        typer.echo(" Another model or better features may help.")
        return
    span = f"8 of 10 curves that fit as well: {_span(found)}"
    typer.echo(f"{found.target:g} takes about {_rounded(found.questions)} questions ({span}).")
    more = max(0, found.questions - progress.answers)
    pace = progress.per_hour
    if not more:
        typer.echo("That many were answered already.")
        return
    time = f", {in_time(3600 * more / pace)} at the pace of the last answers" if pace else ""
    typer.echo(f"That is {_rounded(more)} more than were answered{time}.")


def _span(found: Forecast | Planned) -> str:
    if math.isinf(found.low):
        return _rounded(found.low)
    upper = "or more" if math.isinf(found.high) else f"to {_rounded(found.high)}"
    return f"{_rounded(found.low)} {upper}"


def _rounded(value: float) -> str:
    """Return two digits of a number: more would be a lie."""
    if math.isinf(value):
        return "not reached"
    unit = 10 ** max(0, math.floor(math.log10(max(value, 1))) - 1)
    return f"{round(value / unit) * unit:,}"


def _from_study(target: float, labels: int | None) -> None:
    from ruleout.learning.planning import label_ratio, study_plans

    plans = study_plans(target)
    if not plans:
        raise ValueError(
            "this copy has no study to plan with; give a project that has some answers"
        )
    if labels is not None:
        typer.echo(f"Where {labels:,} true labels would do, the study's ratios say:")
        for way in ("intersection", "answers", "no"):
            ratio = label_ratio(way)
            span = f"{_rounded(labels * ratio.low)} to {_rounded(labels * ratio.high)}"
            middle = _rounded(labels * ratio.middle)
            typer.echo(f"  {middle} questions ({span}), learning from {_WAYS[way]}")
        return
    typer.echo(f"Questions until {target:g} in the study with a simulated annotator, 10 classes:")
    heads, numbers = ("data", "model", "learning from"), ("questions", "range")
    rows = [(p.data, p.model, _WAYS[p.way], _rounded(p.questions), _span(p)) for p in plans]
    show_rows((*heads, *numbers), rows, right=numbers)
    typer.echo("Your data differ: give --labels N, or a project that has some answers.")


label = typer.Typer(
    help="Label with a team: make a project, serve its page, export the answers.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
for command in (init, add, serve, users, tokens, status, export, backup, plan):
    label.command()(declared(command))
label.command(name="import")(declared(bring))  # "import" is a word of Python's own
