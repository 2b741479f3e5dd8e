"""The store: everything a labelling project knows, in SQLite or PostgreSQL."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from types import TracebackType

from sqlalchemy.exc import IntegrityError

from ruleout.web import logbook, projects, users
from ruleout.web.answering import Answering
from ruleout.web.engines import Database
from ruleout.web.errors import StoreError, UnavailableError
from ruleout.web.leases import Asking
from ruleout.web.progress import Progress, progress
from ruleout.web.proposals import Proposer
from ruleout.web.records import Item, LogRow, Question, Receipt, Reply, Role, Settings, User
from ruleout.web.upgrading import make, upgrade

__all__ = ["Store"]


class Store:
    """A labelling project; :meth:`create` makes one and :meth:`open` opens it.

    Every method may be called from any thread, and any number of processes may have the same
    project open. What a method returns is on disk; where it raises, nothing has changed.
    Times come from `now`, by default this machine's clock.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> folder = TemporaryDirectory()
    >>> settings = Settings(classes=("cat", "dog", "fish"), law="fixed:1")
    >>> made = [Item(name=f"{n}.png", kind="image") for n in range(5)]
    >>> with Store.create(f"sqlite:///{folder.name}/labels.sqlite", settings, made) as store:
    ...     ann = store.add_user("Ann")
    ...     question = store.next(ann, 1)[0]
    ...     receipt = store.answer(ann, Reply(id="r-1", kind="no", question=question.id))
    ...     receipt.status, [row.kind for row in store.log()], store.progress().done
    ('recorded', ['no'], 1)
    >>> folder.cleanup()
    """

    def __init__(self, database: Database, settings: Settings) -> None:
        self._database = database
        self._settings = settings
        self._proposer = Proposer(settings)

    @classmethod
    def create(cls, url: str, settings: Settings, items: Iterable[Item]) -> Store:
        """Make a project in an empty database; the file, where it is one, is made too."""
        database = Database(url)
        try:
            if database.file and not database.file.parent.is_dir():
                problem = f"there is no folder {str(database.file.parent)!r}"
                raise StoreError(problem, "make it first")
            with database.writing() as db:
                make(database, db)
                projects.write_settings(db, settings, _moment(None))
                projects.add_items(db, settings, items)
            database.keep_a_journal()
        except BaseException as error:
            database.close()
            raise _plain(database, error) from None
        return cls(database, settings)

    @classmethod
    def open(cls, url: str) -> Store:
        """Open a project; older tables are brought up to date first."""
        database = Database(url)
        try:
            if database.file and not database.file.is_file():
                problem = f"there is no file {str(database.file)!r}"
                raise StoreError(problem, "make a project with `ruleout label init`")
            with database.writing() as db:
                upgrade(database, db)
                settings = projects.read_settings(db)
            database.keep_a_journal()
        except BaseException as error:
            database.close()
            raise _plain(database, error) from None
        return cls(database, settings)

    @property
    def settings(self) -> Settings:
        """What the project asks, and how."""
        return self._settings

    # ------------------------------------------------------------------ people

    def add_user(self, name: str, role: Role = "annotator", now: datetime | None = None) -> User:
        """Add somebody; no two names may look alike."""
        with self._database.writing() as db:
            return users.add(db, name, role, _moment(now))

    def users(self) -> list[User]:
        """Return everybody, in the order of adding."""
        with self._database.reading() as db:
            return users.everyone(db)

    def user(self, name: str) -> User:
        """Return the user of that name."""
        with self._database.reading() as db:
            return users.by_name(db, name)

    def disable(self, name: str, disabled: bool = True, now: datetime | None = None) -> User:
        """Let somebody in no more (or again); their open questions may go to others."""
        with self._database.writing() as db:
            return users.set_disabled(db, name, disabled, _moment(now))

    # ------------------------------------------------------------------ asking and answering

    def next(self, user: User | int, count: int = 1, now: datetime | None = None) -> list[Question]:
        """Return up to `count` questions for the annotator: those still open, then new ones."""
        number, at = _number(user), _moment(now)
        with self._database.writing() as db:
            return Asking(db, self._settings, self._proposer, number, at).next(count)

    def answer(self, user: User | int, reply: Reply, now: datetime | None = None) -> Receipt:
        """Record a reply and return its receipt; the same reply again gets the same receipt."""
        number, at = _number(user), _moment(now)
        try:
            return self._answer(number, reply, at)
        except IntegrityError:  # somebody else recorded this id a moment ago: now it is there
            return self._answer(number, reply, at)

    def _answer(self, user: int, reply: Reply, now: datetime) -> Receipt:
        with self._database.writing() as db:
            return Answering(db, self._settings, user, reply, now).receipt()

    # ------------------------------------------------------------------ looking

    def log(self) -> Iterator[LogRow]:
        """Yield every answer as it stood when reading began, in the order of arrival."""
        with self._database.reading() as db:
            yield from logbook.rows(db)

    def progress(self, user: User | int | None = None) -> Progress:
        """Return how far the project is, with the counts and the pace of one annotator or all."""
        with self._database.reading() as db:
            return progress(db, self._settings, None if user is None else _number(user))

    def items(self, first: int = 1, last: int | None = None) -> Iterator[tuple[int, Item]]:
        """Yield the items with their numbers, in the order they were given."""
        with self._database.reading() as db:
            yield from projects.items(db, first, last)

    def item(self, number: int) -> Item:
        """Return one item by its number."""
        with self._database.reading() as db:
            return projects.item(db, number)

    def check(self) -> list[str]:
        """Return what is broken, one sentence each; empty: nothing is."""
        with self._database.reading() as db:
            return self._database.damage(db) + logbook.disagreements(db)

    def close(self) -> None:
        """Close every connection."""
        self._database.close()

    def __enter__(self) -> Store:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:  # fmt: skip
        self.close()


def _number(user: User | int) -> int:
    return user.id if isinstance(user, User) else user


def _moment(now: datetime | None) -> datetime:
    at = datetime.now(UTC) if now is None else now
    if at.tzinfo is None:
        raise ValueError("now has no time zone; use datetime.now(UTC)")
    return at


def _plain(database: Database, error: BaseException) -> BaseException:
    """Say that a database cannot be opened in a sentence for people; leave other errors."""
    if not isinstance(error, UnavailableError):
        return error
    cause = str(error).removeprefix("the database failed (").split(");")[0]
    return StoreError(f"cannot open {database.name} ({cause})", "check the address and the server")
