"""What the rooms of the labelling service hand each other: plain, frozen, without a database."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal, TypeAlias

from ruleout.labels.errors import InputError

#: The law of proposals that came from elsewhere: nobody knows how they were drawn.
IMPORTED = "imported"

#: The most questions somebody may have open through one request.
MOST_HELD = 100

#: ``propose``: "is it one of these?", the process of Section 3.2. ``rule-out``: click away what it
#: surely is not.
Mode: TypeAlias = Literal["propose", "rule-out"]
Role: TypeAlias = Literal["annotator", "lead"]

#: ``yes`` and ``no`` answer a proposal; ``which`` says after a yes which class it is;
#: ``excluded`` answers rule-out; ``skip`` says nothing; ``undo`` takes an earlier answer back.
Kind: TypeAlias = Literal["yes", "no", "which", "excluded", "skip", "undo"]


@dataclass(frozen=True, kw_only=True)
class Settings:
    """What a project asks, and how."""

    classes: tuple[str, ...]  # k names
    law: str = "released"  # how sizes of proposed sets are drawn: a law of ruleout.size_law as text
    cap: int | None = None  # the law given that the size is at most this; None: k - 1
    mode: Mode = "propose"
    rounds: int = 1  # answers of each item, from different annotators where there are enough
    gold_rate: float = 0.0  # the share of questions about items whose class is known
    lease_seconds: int = 600  # how long a question belongs to who got it
    ask_which: bool = False  # whether "which one?" is asked after a yes
    seed: int = 0  # of the proposals, beside the project's own secret
    #: (q, k): up to question q there were k classes; of later ones those answers say nothing.
    grown: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True, kw_only=True)
class Item:
    """Something to label: an image by its path, or text, or the cells of a row."""

    name: str  # a relative path, or the row's own name; unique in a project
    kind: Literal["image", "text", "row"]
    path: str | None = None
    text: str | None = None
    cells: Mapping[str, Any] = field(default_factory=dict)
    sha256: str = ""
    gold: int | None = None  # its class, where that is known and may be used to test annotators


@dataclass(frozen=True, kw_only=True)
class User:
    id: int
    name: str
    role: Role
    disabled: bool = False


@dataclass(frozen=True, kw_only=True)
class Event:
    """Who let somebody in or out; `by` is None for the command line."""

    at: datetime
    by: str | None
    action: Literal["added", "invited", "reset", "accepted", "closed", "opened"]
    user: str


@dataclass(frozen=True, kw_only=True)
class Question:
    """A lease: an item, asked of one annotator in one round, until a moment."""

    id: int
    item: int
    user: int
    round: int
    mode: Mode
    proposed: tuple[int, ...]  # drawn from the law with the seed; empty for rule-out
    law: str
    seed: int
    gold: bool
    expires: datetime


@dataclass(frozen=True, kw_only=True)
class Reply:
    """What a client sends; `id` is made by the client, so that sending twice is one answer."""

    id: str
    kind: Kind
    question: int | None = None
    excluded: tuple[int, ...] = ()
    which: int | None = None
    undoes: str | None = None
    took_ms: int | None = None
    sent: datetime | None = None


@dataclass(frozen=True, kw_only=True)
class Receipt:
    """What the service says to a reply; the same reply always gets the same receipt.

    ``status``: ``recorded``; ``late`` (kept, but the lease had gone to somebody else or the round
    was answered, so it does not count); for an undo that has nothing left to undo ``nothing``.
    """

    id: str
    status: Literal["recorded", "late", "nothing"]
    item: int | None = None
    question: int | None = None


@dataclass(frozen=True, kw_only=True)
class TurnRequest:
    """What an annotator sends: a reply or none, and how many questions to hold after it."""

    user: int
    hold: int
    now: datetime
    reply: Reply | None = None


@dataclass(frozen=True, kw_only=True)
class Turn:
    """What became of a reply, and the questions that are now open."""

    receipt: Receipt
    questions: list[Question]


@dataclass(frozen=True, kw_only=True)
class Brought:
    """What an import did: answers that are new, answers that were there, users it added."""

    added: int
    known: int
    users: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Grown:
    """What was added to a project: items and known classes that are new, items that were there."""

    items: int
    known: int
    gold: int


@dataclass(frozen=True, kw_only=True)
class LogRow:
    """One row of the answer log, everything included, nothing ever deleted."""

    id: str
    number: int
    item: int
    item_name: str
    user: int
    user_name: str
    round: int
    kind: Kind
    mode: Mode
    proposed: tuple[int, ...]
    law: str
    seed: int
    excluded: tuple[int, ...]
    which: int | None
    undoes: str | None
    gold: bool
    late: bool
    counts: bool  # it still stands: neither late, nor undone, nor itself an undo
    took_ms: int | None
    sent: datetime | None
    received: datetime


@dataclass(frozen=True, kw_only=True)
class Decision:
    """What a lead decided about an item: its class, answers to leave out by number, or neither."""

    at: datetime
    by: str
    number: int
    item: str
    which: int | None
    voids: tuple[int, ...]


#: Nothing is there by that name, it is somebody else's, it clashes with what is recorded, or it
#: makes no sense.
Reason: TypeAlias = Literal["unknown", "foreign", "conflict", "invalid"]


class StoreError(InputError):
    """A project that cannot be made or opened: what is wrong, and how to fix it."""


class RefusedError(InputError):
    """A request that is not carried out; nothing has changed."""

    def __init__(self, problem: str, remedy: str, *, reason: Reason = "invalid") -> None:
        super().__init__(problem, remedy)
        self.reason: Reason = reason


class UnavailableError(RuntimeError):
    """The database failed, so nothing was acknowledged; the same request may be sent again."""

    def __init__(self, cause: str) -> None:
        super().__init__(f"the database failed ({cause}); nothing was acknowledged, try again")
        self.cause = cause
