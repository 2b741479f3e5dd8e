"""The part of the store that is about people: who there is, and who may come in."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from ruleout.web import accounts, users
from ruleout.web.database import Database
from ruleout.web.entities import Role, User
from ruleout.web.schema import key

__all__ = ["People", "moment", "number_of"]


class People:
    """Users, their invites and their sessions; the base of :class:`ruleout.web.Store`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def add_user(self, name: str, role: Role = "annotator", now: datetime | None = None) -> User:
        """Add somebody; no two names may look alike."""
        with self._database.writing() as db:
            return users.add(db, name, role, moment(now))

    def users(self) -> list[User]:
        """Return everybody, in the order of adding."""
        with self._database.reading() as db:
            return users.everyone(db)

    def user(self, name: str) -> User:
        """Return the user of that name."""
        with self._database.reading() as db:
            return users.by_name(db, name)

    def disable(self, name: str, disabled: bool = True, now: datetime | None = None) -> User:
        """Let somebody in no more (or again).

        Their sessions and invites end, and their open questions may go to others.
        """
        with self._database.writing() as db:
            user = users.set_disabled(db, name, disabled, moment(now))
            if disabled:
                accounts.end_all(db, user.id, invites_too=True)
            return user

    # ------------------------------------------------------------------ invites and passwords

    def invite(
        self, name: str, role: Role = "annotator", *, days: float = 7, now: datetime | None = None
    ) -> str:
        """Return a token with which somebody may choose a password, for the first time or anew.

        Who is absent is added. Earlier invites of theirs end. Nobody can be told the token again.
        """
        with self._database.writing() as db:
            return accounts.invite(db, name, role, days, moment(now))

    def invited(self, token: str, now: datetime | None = None) -> User | None:
        """Return whom an invite is for; None where it is used, expired or unknown."""
        with self._database.looking() as db:
            return accounts.invited(db, token, moment(now))

    def accept(self, token: str, password_hash: str, now: datetime | None = None) -> User:
        """Use an invite up: keep the hash of the password, end all sessions of the user."""
        with self._database.writing() as db:
            return accounts.accept(db, token, password_hash, moment(now))

    def password(self, name: str) -> tuple[User, str | None] | None:
        """Return who logs in under a name, however it is written, and the hash to compare with."""
        with self._database.looking() as db:
            return users.with_password(db, name)

    def rehash(self, user: User | int, password_hash: str, *, before: str | None = None) -> None:
        """Keep a new hash of the same password; not if another than `before` is kept by now."""
        with self._database.writing() as db:
            accounts.rehash(db, number_of(user), password_hash, before)

    # ------------------------------------------------------------------ sessions

    def begin(
        self,
        user: User | int,
        *,
        hours: float,
        password_hash: str | None = None,
        now: datetime | None = None,
    ) -> str:
        """Return the token of a new session, which lasts so long after each use.

        `password_hash` is what the password was compared with, which takes a while: where another
        was chosen meanwhile, there is no session for who knows the old one.
        """
        with self._database.writing() as db:
            return accounts.begin(db, number_of(user), hours, moment(now), password_hash)

    def session(self, token: str, now: datetime | None = None) -> User | None:
        """Return whose session it is; None where it is unknown, over, or its user disabled.

        Each use makes it last longer, written down once a minute, up to 30 days after it began.
        """
        user, until = self.sessions([token], now)[0]
        if until is not None:
            self.lengthen(token, until)
        return user

    def sessions(
        self, tokens: Sequence[str], now: datetime | None = None
    ) -> list[tuple[User | None, datetime | None]]:
        """Return whose each session is, with the moment to :meth:`lengthen` it to, if any."""
        with self._database.looking() as db:
            return accounts.look(db, tokens, moment(now))

    def lengthen(self, token: str, until: datetime) -> None:
        """Let a session that is alive last until then."""
        with self._database.writing() as db:
            accounts.lengthen(db, token, until)

    def end(self, token: str) -> None:
        """End a session."""
        with self._database.writing() as db:
            accounts.end(db, token)

    def end_all(self, user: User | int) -> None:
        """End every session of a user."""
        with self._database.writing() as db:
            accounts.end_all(db, number_of(user))


def number_of(user: User | int) -> int:
    """Return the number of a user; -1, which nobody has, for what cannot be one."""
    return key(user.id if isinstance(user, User) else user)


def moment(now: datetime | None) -> datetime:
    """Return the moment that is meant; None: this one."""
    at = datetime.now(UTC) if now is None else now
    if at.tzinfo is None:
        raise ValueError("now has no time zone; use datetime.now(UTC)")
    return at
