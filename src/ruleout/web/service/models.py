"""The shapes of what is sent and answered; strict, so that nothing is guessed."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from ruleout.web.entities import MOST_HELD, Kind, Mode, Reply, Role

__all__ = ["Answer", "Answered", "Error", "Health", "Next", "ProgressOf", "Project", "Questions"]

_Number = Annotated[int, Field(ge=0, lt=2**31)]
_Key = Annotated[str, Field(min_length=1, max_length=100, pattern=r"^[!-~]+$")]


class _Sent(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)


class Next(_Sent):
    """A wish for questions."""

    count: Annotated[int, Field(ge=1, le=MOST_HELD)] = 1


class Answer(_Sent):
    """A reply as the page sends it; the clock of the page may be wrong, so it is not refused."""

    id: _Key
    kind: Kind
    question: _Number | None = None
    excluded: list[_Number] = Field(default=[], max_length=1_000_000)
    which: _Number | None = None
    undoes: _Key | None = None
    took_ms: Annotated[int, Field(gt=-(2**53), lt=2**53)] | None = None
    sent: Annotated[str, Field(max_length=40)] | None = None
    hold: Annotated[int, Field(ge=0, le=MOST_HELD)] = 0

    def reply(self) -> Reply:
        """Return it as the store takes it."""
        return Reply(
            id=self.id, kind=self.kind, question=self.question, excluded=tuple(self.excluded),
            which=self.which, undoes=self.undoes, took_ms=self.took_ms, sent=_moment(self.sent),
        )  # fmt: skip


def _moment(text: str | None) -> datetime | None:
    try:
        return None if text is None else datetime.fromisoformat(text)
    except ValueError:
        return None


class Error(BaseModel):
    """A sentence for people and a word for programs."""

    error: str
    reason: str


class Health(BaseModel):
    """Says that the service runs."""

    ok: bool


class _Person(BaseModel):
    id: int
    name: str
    role: Role


class Project(BaseModel):
    """What is asked, and of whom."""

    id: str
    name: str
    classes: list[str]
    mode: Mode
    ask_which: bool
    user: _Person


class _Item(BaseModel):
    id: int
    kind: Literal["image", "text", "row"]
    image: str | None
    text: str | None
    cells: list[tuple[str, str]] | None


class _Question(BaseModel):
    id: int
    item: _Item
    mode: Mode
    proposed: list[int]
    expires: datetime


class Questions(BaseModel):
    """Open questions of who asks."""

    questions: list[_Question]


class _Receipt(BaseModel):
    id: str
    status: Literal["recorded", "late", "nothing"]
    question: int | None
    item: int | None


class Answered(Questions):
    """The receipt of an answer, and what comes next."""

    receipt: _Receipt


class ProgressOf(BaseModel):
    """How far things are; not how many items are done, which would tell gold questions apart."""

    wanted: int
    given: int
    answers: int
    skips: int
    per_hour: float | None
    seconds_left: float | None
