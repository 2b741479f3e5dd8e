"""Who may come in: invites, passwords and sessions.

Tokens are random and told once. The database knows their SHA-256 alone, which is enough for
something of 256 random bits, and finds them by index. Passwords arrive hashed.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import Connection, Row, Table, bindparam, delete, insert, select, update

from ruleout.labels.errors import brief
from ruleout.web import users
from ruleout.web.entities import RefusedError, Role, User
from ruleout.web.schema import Moment, invites, sessions
from ruleout.web.schema import users as people

__all__ = ["accept", "begin", "end", "end_all", "invite", "invited", "lengthen", "look", "rehash"]

#: The longest that a session lasts, however often it is used.
LONGEST = timedelta(days=30)

_RARELY = timedelta(minutes=1)  # how often a session that is in use is written down


def digest(token: str) -> str:
    """Return what the database knows of a token."""
    return hashlib.sha256(str(token).encode(errors="surrogatepass")).hexdigest()


def _token(db: Connection, table: Table, **row: Any) -> str:
    token = secrets.token_urlsafe(32)
    db.execute(insert(table).values(token=digest(token), **row))
    return token


# ---------------------------------------------------------------------- invites


def invite(db: Connection, name: str, role: Role, days: float, now: datetime) -> str:
    """Return the token of a new invite, which ends those before it; add who is absent."""
    if not 0 < days <= 366:
        raise RefusedError(f"an invite for {brief(days)} days", "choose from 1 to 366 days")
    user = users.find(db, name) or users.add(db, name, role, now)
    if user.disabled:
        problem = f"the account of {brief(user.name)} is closed"
        raise RefusedError(problem, "open it again first", reason="foreign")
    users.locked(db, user.id)
    if user.role != role:
        problem = f"{brief(user.name)} has the role {user.role!r}"
        raise RefusedError(problem, "invite them in that role", reason="conflict")
    db.execute(delete(invites).where(invites.c.user == user.id))
    return _token(db, invites, user=user.id, expires=now + timedelta(days=days))


_INVITED = (
    select(people)
    .join(invites, invites.c.user == people.c.id)
    .where(invites.c.token == bindparam("token"), ~people.c.disabled)
    .where(invites.c.expires > bindparam("now", type_=Moment()))
)


def invited(db: Connection, token: str, now: datetime) -> User | None:
    """Return whom the invite is for; None where it is used, expired or unknown."""
    row = db.execute(_INVITED, {"token": digest(token), "now": now}).first()
    return None if row is None else users.made(row)


def accept(db: Connection, token: str, password: str, now: datetime) -> User:
    """Use the invite up: set the hash of the password, end every session."""
    user = invited(db, token, now)
    if user is not None:  # locked before the invite, as everywhere: else two wait for each other
        users.locked(db, user.id)
    mine = delete(invites).where(invites.c.token == digest(token))
    if user is None or not db.execute(mine).rowcount:
        problem = "this invite has been used, or has expired"
        raise RefusedError(problem, "ask the lead for a new one", reason="unknown")
    rehash(db, user.id, password)
    end_all(db, user.id)
    return user


def rehash(db: Connection, user: int, password: str, before: str | None = None) -> None:
    """Keep the hash of a user's password; where `before` is given, in its place alone."""
    mine = update(people).where(people.c.id == user).values(password=password)
    db.execute(mine if before is None else mine.where(people.c.password == before))


# ---------------------------------------------------------------------- sessions


def begin(
    db: Connection, user: int, hours: float, now: datetime, password: str | None = None
) -> str:
    """Return the token of a new session; what has expired is swept out."""
    span = timedelta(hours=hours)
    if not timedelta(seconds=1) <= span <= LONGEST:
        raise ValueError(f"a session of {hours} hours; choose from 1 second to 30 days")
    users.locked(db, user)
    if password is not None and password != _password(db, user):
        remedy = "log in with the new one"
        raise RefusedError("the password has been changed just now", remedy, reason="conflict")
    for table in (sessions, invites):
        _sweep(db, table, now)
    times = {"began": now, "expires": now + span, "seconds": int(span.total_seconds())}
    return _token(db, sessions, user=user, **times)


def _password(db: Connection, user: int) -> object:
    return db.execute(select(people.c.password).where(people.c.id == user)).scalar_one()


def _sweep(db: Connection, table: Table, now: datetime) -> None:
    """Delete what has expired, but wait for nobody who does the same."""
    over = select(table.c.token).where(table.c.expires <= now).with_for_update(skip_locked=True)
    db.execute(delete(table).where(table.c.token.in_(over)))


_SESSIONS = (
    select(people, sessions.c.token, sessions.c.began, sessions.c.expires, sessions.c.seconds)
    .join(sessions, sessions.c.user == people.c.id)
    .where(sessions.c.token.in_(bindparam("tokens", expanding=True)))
)
_LENGTHEN = (
    update(sessions)
    .where(sessions.c.token == bindparam("of"))
    .values(expires=bindparam("until", type_=Moment()))
)


def look(
    db: Connection, tokens: Sequence[str], now: datetime
) -> list[tuple[User | None, datetime | None]]:
    """Return whose each session is, and until when it now lasts where that is worth writing."""
    digests = [digest(token) for token in tokens]
    rows = db.execute(_SESSIONS, {"tokens": sorted({*digests})})
    alive = {row.token: row for row in rows if not row.disabled and row.expires > now}
    return [_seen(alive[one], now) if one in alive else (None, None) for one in digests]


def _seen(row: Row[Any], now: datetime) -> tuple[User, datetime | None]:
    until = _until(row, now)
    return users.made(row), until if until - row.expires >= _RARELY else None


def _until(row: Row[Any], now: datetime) -> datetime:
    return min(now + timedelta(seconds=row.seconds), row.began + LONGEST)  # type: ignore[no-any-return]


def lengthen(db: Connection, token: str, until: datetime) -> None:
    """Write down until when a session lasts; one that has ended meanwhile stays ended."""
    db.execute(_LENGTHEN, {"of": digest(token), "until": until})


def end(db: Connection, token: str) -> None:
    """End a session."""
    db.execute(delete(sessions).where(sessions.c.token == digest(token)))


def end_all(db: Connection, user: int, *, invites_too: bool = False) -> None:
    """End the sessions of a user, and their invites where that is asked for."""
    for table in (sessions, invites) if invites_too else (sessions,):
        db.execute(delete(table).where(table.c.user == user))
