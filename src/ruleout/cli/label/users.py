"""``ruleout label users``: who labels, who leads, and how they get in."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from ruleout.cli.common import tell
from ruleout.cli.label.common import ADDRESS, Place, join_link, labelling, parse_origin, show

if TYPE_CHECKING:
    from ruleout.web import Store

__all__ = ["users"]


class Action(StrEnum):
    """What to do with somebody."""

    list = "list"
    add = "add"
    invite = "invite"
    close = "close"
    open = "open"


class Role(StrEnum):
    """Who somebody is."""

    annotator = "annotator"
    lead = "lead"


@labelling()
def users(
    project: Place,
    action: Annotated[
        Action,
        typer.Argument(
            metavar="[ACTION]",
            help="list; add: print a link that lets somebody choose a password; invite: a new "
            "link, also for a forgotten password; close: let somebody in no more; open: let them "
            "in again.",
        ),
    ] = Action.list,
    name: Annotated[
        str | None, typer.Argument(metavar="[NAME]", help="Whom; for all but list.")
    ] = None,
    role: Annotated[
        Role | None,
        typer.Option("--role", help="With add: annotators label, leads see the team page too."),
    ] = None,
    origin: Annotated[
        str,
        typer.Option("--origin", metavar="URL", help="Where people reach the service, for links."),
    ] = ADDRESS,
) -> None:
    """List the people of a project, add some, or close accounts.

    Nobody can sign up: a link lets one person in, once, within seven days.
    """
    address = parse_origin(origin)
    if (name is None) != (action is Action.list):
        raise typer.BadParameter("write add, invite, close or open and then a name")
    if role is not None and action is not Action.add:
        raise typer.BadParameter("--role goes with add")
    from ruleout.web.project import Project  # late: it loads SQLAlchemy

    with Project.open(project) as opened:
        if name is None:
            _print(opened.store)
        elif action in (Action.add, Action.invite):
            _invite(opened.store, action, name, role or Role.annotator, address)
        else:
            _close(opened.store, name, action is Action.close)


def _invite(store: Store, action: Action, name: str, role: Role, origin: str) -> None:
    add = action is Action.add
    user = store.add_user(name, role.value) if add else store.user(name)
    if user.disabled:
        raise ValueError(
            f"the account of {user.name!r} is closed; open it first: users PROJECT open NAME"
        )
    token = store.invite(user.name, user.role)
    typer.echo(f"For {user.name} ({user.role}), once, within seven days:")
    typer.echo(join_link(token, origin))


def _close(store: Store, name: str, closed: bool) -> None:
    user = store.disable(name, closed)
    typer.echo(f"{user.name} ({user.role}) is {'closed' if closed else 'open'}.")
    if not any(one.role == "lead" and not one.disabled for one in store.users()):
        tell(["no lead is left who can log in; open one, or add one with --role lead"])


def _print(store: Store) -> None:
    from rich.markup import escape
    from rich.table import Table

    grid = Table(box=None, header_style="bold", pad_edge=False)
    for column in ("name", "role", "account"):
        grid.add_column(column, overflow="fold")
    for user in store.users():
        found = store.password(user.name)
        joined = found is not None and found[1] is not None
        account = "closed" if user.disabled else "open" if joined else "no password yet"
        grid.add_row(escape(user.name), user.role, account)
    show(grid)
