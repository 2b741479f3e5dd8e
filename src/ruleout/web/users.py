"""The people of a project. Their names are what strangers typed, so they are checked."""

from __future__ import annotations

import re
import unicodedata
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, Row, insert, select, update
from sqlalchemy.exc import IntegrityError

from ruleout.labels.errors import brief
from ruleout.web import queries
from ruleout.web.entities import RefusedError, Role, User
from ruleout.web.schema import key, slots
from ruleout.web.schema import users as table

__all__ = [
    "LONGEST",
    "add",
    "allowed",
    "by_name",
    "checked_name",
    "everyone",
    "find",
    "folded",
    "locked",
    "made",
    "set_disabled",
    "with_password",
]

#: The longest name, in characters.
LONGEST = 64

#: Characters that count as letters or marks and leave no ink: fillers, joiners, variants.
_UNSEEN = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180d\u180f\u2800\u3164\ufe00-\ufe0f\uffa0"
    "\U000e0100-\U000e01ef]"
)


def checked_name(name: str) -> str:
    """Return the name as it is kept (NFC), or raise.

    >>> checked_name("Ann")
    'Ann'
    """
    kept = unicodedata.normalize("NFC", name) if isinstance(name, str) else ""
    if not 1 <= len(kept) <= LONGEST:
        raise RefusedError(
            f"the name {brief(name)} is empty or too long", f"use 1 to {LONGEST} letters"
        )
    strange = any(unicodedata.category(c)[0] == "C" or c in "\u2028\u2029" for c in kept)
    if strange or kept != kept.strip() or not folded(kept):
        raise RefusedError(
            f"the name {brief(name)} has characters that cannot be seen",
            "use letters, digits, marks and single spaces between them",
        )
    return kept


def folded(name: str) -> str:
    """Return a name without case, look-alike forms, and what cannot be seen in it.

    >>> folded("Zoë Fisher") == folded("ZOË ﬁsher")
    True
    """
    plain = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", name).casefold())
    return " ".join(_UNSEEN.sub("", plain).split())


def add(db: Connection, name: str, role: Role, now: datetime, *, disabled: bool = False) -> User:
    """Add somebody."""
    if role not in ("annotator", "lead"):
        raise RefusedError(f"there is no role {brief(role)}", "use 'annotator' or 'lead'")
    kept = checked_name(name)
    row = {"name": kept, "folded": folded(kept), "role": role, "disabled": disabled, "added": now}
    try:
        number = db.execute(insert(table).values(row)).inserted_primary_key
    except IntegrityError:
        problem = f"the name {brief(kept)} is taken, or looks like one that is"
        raise RefusedError(problem, "choose another name", reason="conflict") from None
    assert number is not None
    return User(id=number[0], name=kept, role=role, disabled=disabled)


def everyone(db: Connection) -> list[User]:
    """Return all users, in the order of adding."""
    return [made(row) for row in db.execute(select(table).order_by(table.c.id))]


def by_name(db: Connection, name: str) -> User:
    """Return the user of that name."""
    user = find(db, name)
    if user is None:
        raise RefusedError(
            f"there is no user {brief(name)}", "add them, or check the name", reason="unknown"
        )
    return user


def find(db: Connection, name: str) -> User | None:
    """Return the user of that very name, None where there is none."""
    row = db.execute(select(table).where(table.c.name == checked_name(name))).first()
    return None if row is None else made(row)


def with_password(db: Connection, name: str) -> tuple[User, str | None] | None:
    """Return the user of a name as people type it, and the hash of their password."""
    try:
        typed = folded(checked_name(name.strip()))
    except RefusedError:
        return None
    row = db.execute(select(table).where(table.c.folded == typed)).first()
    return None if row is None else (made(row), row.password)


def set_disabled(db: Connection, name: str, disabled: bool, now: datetime) -> User:
    """Let somebody in no more, or again; questions they had open may go to others at once."""
    user = by_name(db, name)
    db.execute(update(table).where(table.c.id == user.id).values(disabled=disabled))
    mine = slots.c.holder == user.id, slots.c.answer.is_(None), slots.c.expires > now
    if disabled:
        db.execute(update(slots).where(*mine).values(expires=now))
    return User(id=user.id, name=user.name, role=user.role, disabled=disabled)


def locked(db: Connection, user: int) -> User:
    """Return a user who may act, while nobody else acts in their name."""
    return made(allowed(db.execute(queries.USER, {"user": key(user)}).first(), user))


def allowed(row: Row[Any] | None, user: int) -> Row[Any]:
    """Return the row of a user who may act, or raise."""
    if row is None:
        raise RefusedError(f"there is no user {brief(user)}", "log in again", reason="unknown")
    if row.disabled:
        problem = f"the account of {brief(row.name)} is closed"
        raise RefusedError(problem, "ask the lead of the project", reason="foreign")
    return row


def made(row: Row[Any]) -> User:
    """Return the user of a row."""
    return User(id=row.id, name=row.name, role=row.role, disabled=row.disabled)
