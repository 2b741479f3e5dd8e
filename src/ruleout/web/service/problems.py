"""What the service says when a request is not carried out, and its log."""

from __future__ import annotations

import logging
import traceback
from typing import Literal, TypeAlias

from ruleout.web.entities import RefusedError, UnavailableError

LOG = logging.getLogger("ruleout.web")

Word: TypeAlias = Literal[
    "login", "forbidden", "csrf", "foreign", "unknown", "method", "conflict", "large", "type",
    "host", "invalid", "rate", "failure", "unavailable",
]  # fmt: skip

_STATUS: dict[Word, int] = {
    "login": 401,
    "forbidden": 403,
    "csrf": 403,
    "foreign": 403,
    "unknown": 404,
    "method": 405,
    "conflict": 409,
    "large": 413,
    "type": 415,
    "host": 421,
    "invalid": 422,
    "rate": 429,
    "failure": 500,
    "unavailable": 503,
}
_FAILED = "the service failed, and its log says how; try again, or tell the lead of the project"


class ProblemError(Exception):
    """A request that is answered with a sentence for people and a word for programs.

    Headers are named as in ``retry_after=2``.
    """

    def __init__(self, reason: Word, sentence: str, **headers: int | str) -> None:
        super().__init__(sentence)
        self.reason: Word = reason
        self.sentence = sentence
        self.status = _STATUS[reason]
        self.headers = {name.replace("_", "-"): str(value) for name, value in headers.items()}

    @classmethod
    def of(cls, error: Exception) -> ProblemError:
        """Return what to say about any error."""
        if isinstance(error, ProblemError):
            return error
        if isinstance(error, RefusedError):
            return cls(error.reason, str(error))
        if isinstance(error, UnavailableError):  # its own sentence may name files and hosts
            sentence = "the database failed, so nothing was recorded; try again"
            return cls("unavailable", sentence, retry_after=2)
        return cls("failure", _FAILED)


def one_line(text: object) -> str:
    """Return what a stranger wrote so that it cannot forge a line of the log."""
    said = str(text)
    return ascii(said if len(said) <= 200 else f"{said[:200]}…")


def cause(error: Exception) -> str:
    """Say what failed, and where, in a line."""
    frames = traceback.extract_tb(error.__traceback__)
    place = f" at {frames[-1].filename}:{frames[-1].lineno}" if frames else ""
    return f"{type(error).__name__} {one_line(error)}{place}"
