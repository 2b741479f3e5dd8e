"""The store: everything a labelling project knows, in SQLite or PostgreSQL."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from datetime import datetime
from types import TracebackType
from typing import TYPE_CHECKING

from sqlalchemy import Connection
from sqlalchemy.exc import IntegrityError

from ruleout.labels.errors import brief
from ruleout.web import answer_log, projects, schema
from ruleout.web.database import Database, make, one_by_one, upgrade
from ruleout.web.earlier_answers import Bringing
from ruleout.web.entities import (
    MOST_HELD,
    Brought,
    Item,
    LogRow,
    Question,
    Receipt,
    RefusedError,
    Reply,
    Settings,
    StoreError,
    Turn,
    TurnRequest,
    UnavailableError,
    User,
)
from ruleout.web.people import People, moment, number_of
from ruleout.web.progress import Progress, progress
from ruleout.web.proposals import Proposer
from ruleout.web.turns import Sitting

if TYPE_CHECKING:  # its reader needs pyarrow, which the service does without
    from ruleout.web.importing import Earlier

__all__ = ["Store"]


class Store(People):
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
        super().__init__(database)
        self._settings = settings
        with database.looking() as db:
            self._identity = projects.identity(db)
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
                projects.write_settings(db, settings, moment(None))
                projects.add_items(db, settings, items)
                database.settle(db, schema.items, schema.slots)
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

    @property
    def lanes(self) -> int:
        """How many calls of :meth:`turns` are worth running at a time."""
        return self._database.lanes

    @property
    def identity(self) -> str:
        """16 hex digits, the same for the life of the project."""
        return self._identity

    # ------------------------------------------------------------------ asking and answering

    def next(self, user: User | int, count: int = 1, now: datetime | None = None) -> list[Question]:
        """Return up to `count` questions for the annotator: those still open, then new ones."""
        _check_count(count, 1)
        wish = TurnRequest(user=number_of(user), hold=count, now=moment(now))
        return self._one(wish).questions

    def answer(self, user: User | int, reply: Reply, now: datetime | None = None) -> Receipt:
        """Record a reply and return its receipt; the same reply again gets the same receipt."""
        return self.turn(user, reply, 0, now).receipt

    def turn(self, user: User | int, reply: Reply, hold: int, now: datetime | None = None) -> Turn:
        """Record a reply and return up to `hold` questions that are then open, in one step."""
        _check_count(hold, 0)
        return self._one(TurnRequest(user=number_of(user), hold=hold, now=moment(now), reply=reply))

    def _one(self, wish: TurnRequest) -> Turn:
        found = self.turns([wish])[0]
        if isinstance(found, BaseException):
            raise found
        return found

    def turns(self, wishes: Sequence[TurnRequest]) -> list[Turn | BaseException]:
        """Do what many want, at best in one transaction; return what each gets, or is to raise."""
        if len(wishes) > 1:
            try:
                with self._database.writing() as db:
                    return [*self._sitting(db).turns(wishes)]
            except Exception as error:  # of one of them, who must not harm the others
                if not one_by_one(error):
                    raise
        return [self._tried(wish) for wish in wishes]

    def _tried(self, wish: TurnRequest) -> Turn | BaseException:
        try:
            try:
                return self._alone(wish)
            except IntegrityError:  # somebody else wrote the same a moment ago: now it is there
                return self._alone(wish)
        except Exception as error:
            return error

    def _alone(self, wish: TurnRequest) -> Turn:
        with self._database.writing() as db:
            return self._sitting(db).alone(wish)

    def _sitting(self, db: Connection) -> Sitting:
        self._database.by_index(db)
        return Sitting(db, self._settings, self._proposer)

    def bring(self, answers: Iterable[Earlier], now: datetime | None = None) -> Brought:
        """Import answers that were given elsewhere; those that are known are not added again."""
        given, at = list(answers), moment(now)
        with self._database.writing() as db:
            self._database.alone(db)
            brought = Bringing(db, self._settings, at).bring(given)
            if brought.added:
                self._database.settle(db, schema.slots, schema.questions, schema.answers)
            return brought

    # ------------------------------------------------------------------ looking

    def reading(self) -> AbstractContextManager[Connection]:
        """One view of the database for several queries, whatever is written meanwhile."""
        return self._database.reading()

    def log(self) -> Iterator[LogRow]:
        """Yield every answer as it stood when reading began, in the order of arrival."""
        with self._database.reading() as db:
            yield from answer_log.rows(db)

    def progress(self, user: User | int | None = None) -> Progress:
        """Return how far the project is, with the counts and the pace of one annotator or all."""
        with self._database.reading() as db:
            return progress(db, self._settings, None if user is None else number_of(user))

    def items(self, first: int = 1, last: int | None = None) -> Iterator[tuple[int, Item]]:
        """Yield the items with their numbers, in the order they were given."""
        with self._database.reading() as db:
            yield from projects.items(db, first, last)

    def item(self, number: int) -> Item:
        """Return one item by its number."""
        with self._database.looking() as db:
            return projects.item(db, number)

    def some_items(self, numbers: Iterable[int]) -> dict[int, Item]:
        """Return the items of these numbers."""
        with self._database.looking() as db:
            return projects.some_items(db, numbers)

    def item_for(self, user: User, number: int) -> Item:
        """Return one item that this user may see: a lead any, others what they were asked about."""
        with self._database.looking() as db:
            return projects.item_for(db, user, number)

    def check(self) -> list[str]:
        """Return what is broken, one sentence each; empty: nothing is."""
        with self._database.reading() as db:
            return self._database.damage(db) + answer_log.disagreements(db)

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


def _check_count(count: int, least: int) -> None:
    if type(count) is not int or not least <= count <= MOST_HELD:
        raise RefusedError(f"{brief(count)} questions asked for", f"ask for {least} to {MOST_HELD}")


def _plain(database: Database, error: BaseException) -> BaseException:
    """Say that a database cannot be opened in a sentence for people; leave other errors."""
    if not isinstance(error, UnavailableError):
        return error
    cause = str(error).removeprefix("the database failed (").split(");")[0]
    return StoreError(f"cannot open {database.name} ({cause})", "check the address and the server")
