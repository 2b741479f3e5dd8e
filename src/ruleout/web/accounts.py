"""Accounts: the people of a project, their invites, passwords and sessions.

Names are what strangers typed, so they are checked. Tokens are random and told once: the database
knows their SHA-256 alone, which is enough for something of 256 random bits. Passwords arrive
hashed.
"""

import hashlib
import re
import secrets
import unicodedata
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, TypeAlias

from sqlalchemy import Boolean, Connection, Row, Table, bindparam, delete, insert, select, update
from sqlalchemy.exc import IntegrityError

from ruleout.labels.errors import brief
from ruleout.web.database import Database
from ruleout.web.entities import Event, RefusedError, Role, User
from ruleout.web.schema import Moment, events, invites, key, sessions, slots, users

LONGEST_NAME = 64  # characters
_LONGEST_SESSION = timedelta(days=30)  # however often it is used
_LONGEST_TOKEN = timedelta(days=3650)
_RARELY = timedelta(minutes=1)  # how often a session that is in use is written down

#: Characters that count as letters or marks and leave no ink: fillers, joiners, variants.
_UNSEEN = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180d\u180f\u2800\u3164\ufe00-\ufe0f\uffa0"
    "\U000e0100-\U000e01ef]"
)

_INVITED = (
    select(users)
    .join(invites, invites.c.user == users.c.id)
    .where(invites.c.token == bindparam("token"), ~users.c.disabled)
    .where(invites.c.expires > bindparam("now", type_=Moment()))
)
_SESSIONS = (
    select(users, sessions.c.token, sessions.c.began, sessions.c.expires, sessions.c.seconds)
    .join(sessions, sessions.c.user == users.c.id)
    .where(sessions.c.token.in_(bindparam("tokens", expanding=True)))
    .where(sessions.c.name.is_not(None) == bindparam("named", type_=Boolean))
)


_Now: TypeAlias = datetime | None
_By: TypeAlias = User | None  # None: the command line


class Accounts:
    """Users, their invites and their sessions; the base of :class:`ruleout.web.Store`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def add_user(
        self, name: str, role: Role = "annotator", now: _Now = None, *, by: _By = None
    ) -> User:
        """Add somebody; no two names may look alike."""
        at = moment(now)
        with self._database.writing() as db:
            user = add_user(db, name, role, at)
            _note(db, at, by, "added", user)
            return user

    def users(self) -> list[User]:
        with self._database.reading() as db:
            return [_user(row) for row in db.execute(select(users).order_by(users.c.id))]

    def user(self, name: str) -> User:
        with self._database.reading() as db:
            return _by_name(db, name)

    def disable(
        self, name: str, disabled: bool = True, now: _Now = None, *, by: _By = None
    ) -> User:
        """Let somebody in no more, so that others may get their open questions; or again."""
        at = moment(now)
        with self._database.writing() as db:
            user = _by_name(db, name)
            db.execute(update(users).where(users.c.id == user.id).values(disabled=disabled))
            if disabled:
                mine = slots.c.holder == user.id, slots.c.answer.is_(None), slots.c.expires > at
                db.execute(update(slots).where(*mine).values(expires=at))
                for table in (sessions, invites):
                    db.execute(delete(table).where(table.c.user == user.id))
            _note(db, at, by, "closed" if disabled else "opened", user)
        return User(id=user.id, name=user.name, role=user.role, disabled=disabled)

    def events(self) -> list[Event]:
        """Return who let whom in or out, in the order of time."""
        who = users.alias()
        query = (
            select(events.c.at, events.c.action, who.c.name.label("by"), users.c.name.label("user"))
            .outerjoin(who, events.c.by == who.c.id)
            .join(users, events.c.user == users.c.id)
            .order_by(events.c.number)
        )
        with self._database.reading() as db:
            return [Event(**row) for row in db.execute(query).mappings()]

    def invite(
        self,
        name: str,
        role: Role = "annotator",
        *,
        days: float = 7,
        now: _Now = None,
        by: _By = None,
    ) -> str:
        """Return a token with which somebody may choose a password, for the first time or anew.

        Who is absent is added. Earlier invites of theirs end. Nobody can be told the token again.
        """
        if not 0 < days <= 366:
            raise RefusedError(f"an invite for {brief(days)} days", "choose from 1 to 366 days")
        at = moment(now)
        with self._database.writing() as db:
            user = _find(db, name) or add_user(db, name, role, at)
            if user.disabled:
                problem = f"the account of {brief(user.name)} is closed"
                raise RefusedError(problem, "open it again first", reason="foreign")
            row = lock_user(db, user.id)
            if user.role != role:
                problem = f"{brief(user.name)} has the role {user.role!r}"
                raise RefusedError(problem, "invite them in that role", reason="conflict")
            db.execute(delete(invites).where(invites.c.user == user.id))
            _note(db, at, by, "invited" if row.password is None else "reset", user)
            return _new_token(db, invites, user=user.id, expires=at + timedelta(days=days))

    def invited(self, token: str, now: _Now = None) -> User | None:
        """Return whom an invite is for; None where it is used, expired or unknown."""
        with self._database.looking() as db:
            return _invited(db, token, moment(now))

    def accept(self, token: str, password_hash: str, now: _Now = None) -> User:
        """Use an invite up: keep the hash of the password, end all sessions of the user."""
        at = moment(now)
        with self._database.writing() as db:
            user = _invited(db, token, at)
            if user is not None:  # locked before the invite, as everywhere: else two wait for ever
                lock_user(db, user.id)
            mine = delete(invites).where(invites.c.token == _digest(token))
            if user is None or not db.execute(mine).rowcount:
                problem = "this invite has been used, or has expired"
                raise RefusedError(problem, "ask the lead for a new one", reason="unknown")
            hers = users.c.id == user.id
            db.execute(update(users).where(hers).values(password=password_hash))
            db.execute(delete(sessions).where(sessions.c.user == user.id))
            _note(db, at, user, "accepted", user)
            return user

    def password(self, name: str) -> tuple[User, str | None] | None:
        """Return who logs in under a name, however it is written, and the hash to compare with."""
        try:
            typed = folded(checked_name(name.strip()))
        except RefusedError:
            return None
        with self._database.looking() as db:
            row = db.execute(select(users).where(users.c.folded == typed)).first()
        return None if row is None else (_user(row), row.password)

    def rehash(self, user: User, password_hash: str, *, before: str) -> None:
        """Keep a new hash of the same password; not if another than `before` is kept by now."""
        mine = update(users).where(users.c.id == user.id, users.c.password == before)
        with self._database.writing() as db:
            db.execute(mine.values(password=password_hash))

    def begin(
        self, user: User | int, *, hours: float, password_hash: str | None = None, now: _Now = None
    ) -> str:
        """Return the token of a new session, which lasts that long after each use.

        `password_hash` is what the password was compared with, which takes a while: where another
        was chosen meanwhile, there is no session for who knows the old one.
        """
        at, span, number = moment(now), timedelta(hours=hours), number_of(user)
        if not timedelta(seconds=1) <= span <= _LONGEST_SESSION:
            raise ValueError(f"a session of {hours} hours; choose from 1 second to 30 days")
        with self._database.writing() as db:
            row = lock_user(db, number)
            if password_hash is not None and password_hash != row.password:
                remedy = "log in with the new one"
                raise RefusedError("the password was changed just now", remedy, reason="conflict")
            for table in (sessions, invites):  # what has expired, waiting for nobody
                over = select(table.c.token).where(table.c.expires <= at)
                over = over.with_for_update(skip_locked=True)
                db.execute(delete(table).where(table.c.token.in_(over)))
            times = {"began": at, "expires": at + span, "seconds": int(span.total_seconds())}
            return _new_token(db, sessions, user=number, **times)

    def sessions(
        self, tokens: Sequence[str], now: _Now = None, *, named: bool = False
    ) -> list[tuple[User | None, datetime | None]]:
        """Return whose each session is, with the moment to :meth:`lengthen` it to, if any.

        None where it is unknown, over, or its user disabled. Each use makes it last longer, written
        down once a minute, up to 30 days after it began.
        """
        at, digests = moment(now), [_digest(token) for token in tokens]
        with self._database.looking() as db:
            asked = {"tokens": sorted({*digests}), "named": named}
            rows = db.execute(_SESSIONS, asked).all()
        alive: dict[str, tuple[User, datetime | None]] = {}
        for row in rows:
            if not row.disabled and row.expires > at:
                until = min(at + timedelta(seconds=row.seconds), row.began + _LONGEST_SESSION)
                alive[row.token] = _user(row), until if until - row.expires >= _RARELY else None
        return [alive.get(one, (None, None)) for one in digests]

    def add_token(self, name: str, lead: User | int, now: _Now = None) -> str:
        """Return a token with which programs read exports in the name of a lead, told once.

        It ends with :meth:`end_token`, with the account of the lead, and with their password.
        """
        kept, at = checked_name(name), moment(now)
        with self._database.writing() as db:
            if lock_user(db, number_of(lead)).role != "lead":
                raise RefusedError("tokens are for leads", "name one", reason="foreign")
            if db.execute(select(sessions).where(sessions.c.name == kept)).first():
                problem = f"there is a token {brief(kept)}"
                raise RefusedError(problem, "choose another name, or end it", reason="conflict")
            times = {"began": at, "expires": at + _LONGEST_TOKEN, "seconds": 0}
            return _new_token(db, sessions, user=number_of(lead), name=kept, **times)

    def tokens(self) -> list[tuple[str, str, datetime]]:
        """Return the name of each token, its lead, and when it was made."""
        query = select(sessions.c.name, users.c.name, sessions.c.began).join(users)
        query = query.where(sessions.c.name.is_not(None)).order_by(sessions.c.began)
        with self._database.reading() as db:
            return [(name, lead, began) for name, lead, began in db.execute(query)]

    def end_token(self, name: str) -> None:
        with self._database.writing() as db:
            if not db.execute(delete(sessions).where(sessions.c.name == name)).rowcount:
                problem = f"there is no token {brief(name)}"
                raise RefusedError(problem, "check the name", reason="unknown")

    def token_of(self, token: str, now: _Now = None) -> User | None:
        """Return whose token it is; None where it is unknown or has ended."""
        return self.sessions([token], now, named=True)[0][0]

    def lengthen(self, token: str, until: datetime) -> None:
        """Let a session last until then; one that has ended meanwhile stays ended."""
        mine = update(sessions).where(sessions.c.token == _digest(token))
        with self._database.writing() as db:
            db.execute(mine.values(expires=until))

    def end(self, token: str) -> None:
        with self._database.writing() as db:
            db.execute(delete(sessions).where(sessions.c.token == _digest(token)))


def number_of(user: User | int) -> int:
    """Return the number of a user; -1, which nobody has, for what cannot be one."""
    return key(user.id if isinstance(user, User) else user)


def moment(now: datetime | None) -> datetime:
    """Return the moment that is meant; None: this one."""
    at = datetime.now(UTC) if now is None else now
    if at.tzinfo is None:
        raise ValueError("now has no time zone; use datetime.now(UTC)")
    return at


def checked_name(name: str) -> str:
    """Return the name as it is kept (NFC), or raise."""
    kept = unicodedata.normalize("NFC", name) if isinstance(name, str) else ""
    if not 1 <= len(kept) <= LONGEST_NAME:
        remedy = f"use 1 to {LONGEST_NAME} letters"
        raise RefusedError(f"the name {brief(name)} is empty or too long", remedy)
    strange = any(unicodedata.category(c)[0] == "C" or c in "\u2028\u2029" for c in kept)
    if strange or kept != kept.strip() or not folded(kept):
        remedy = "use letters, digits, marks and single spaces between them"
        raise RefusedError(f"the name {brief(name)} has characters that cannot be seen", remedy)
    return kept


def folded(name: str) -> str:
    """Return a name without case, look-alike forms, and what cannot be seen in it."""
    plain = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", name).casefold())
    return " ".join(_UNSEEN.sub("", plain).split())


def add_user(db: Connection, name: str, role: Role, now: datetime, disabled: bool = False) -> User:
    if role not in ("annotator", "lead"):
        raise RefusedError(f"there is no role {brief(role)}", "use 'annotator' or 'lead'")
    kept = checked_name(name)
    row = {"name": kept, "folded": folded(kept), "role": role, "disabled": disabled, "added": now}
    try:
        number = db.execute(insert(users).values(row).returning(users.c.id)).scalar_one()
    except IntegrityError:
        problem = f"the name {brief(kept)} is taken, or looks like one that is"
        raise RefusedError(problem, "choose another name", reason="conflict") from None
    return User(id=number, name=kept, role=role, disabled=disabled)


def lock_user(db: Connection, user: int) -> Row[Any]:
    """Return a user who may act, while nobody else acts in their name."""
    mine = select(users).where(users.c.id == key(user)).with_for_update(key_share=True)
    return allowed(db.execute(mine).first(), user)


def allowed(row: Row[Any] | None, user: int) -> Row[Any]:
    """Return the row of a user who may act, or raise."""
    if row is None:
        raise RefusedError(f"there is no user {brief(user)}", "log in again", reason="unknown")
    if row.disabled:
        problem = f"the account of {brief(row.name)} is closed"
        raise RefusedError(problem, "ask the lead of the project", reason="foreign")
    return row


def _note(db: Connection, at: datetime, by: _By, action: str, user: User) -> None:
    db.execute(insert(events).values(at=at, by=by and by.id, action=action, user=user.id))


def _user(row: Row[Any]) -> User:
    return User(id=row.id, name=row.name, role=row.role, disabled=row.disabled)


def _find(db: Connection, name: str) -> User | None:
    row = db.execute(select(users).where(users.c.name == checked_name(name))).first()
    return None if row is None else _user(row)


def _by_name(db: Connection, name: str) -> User:
    user = _find(db, name)
    if user is None:
        remedy = "add them, or check the name"
        raise RefusedError(f"there is no user {brief(name)}", remedy, reason="unknown")
    return user


def _invited(db: Connection, token: str, now: datetime) -> User | None:
    row = db.execute(_INVITED, {"token": _digest(token), "now": now}).first()
    return None if row is None else _user(row)


def _digest(token: str) -> str:
    return hashlib.sha256(str(token).encode(errors="surrogatepass")).hexdigest()


def _new_token(db: Connection, table: Table, **row: Any) -> str:
    token = secrets.token_urlsafe(32)
    db.execute(insert(table).values(token=_digest(token), **row))
    return token
