"""What the service says when a request is not carried out."""

from __future__ import annotations

from typing import Literal, TypeAlias

from ruleout.web.entities import RefusedError, UnavailableError

__all__ = ["STATUS", "ProblemError", "Word", "from_error"]

Word: TypeAlias = Literal[
    "login", "forbidden", "csrf", "foreign", "unknown", "method", "conflict", "large", "type",
    "host", "invalid", "rate", "failure", "unavailable",
]  # fmt: skip

#: The status of each reason.
STATUS: dict[Word, int] = {
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


class ProblemError(Exception):
    """A request that is answered with a sentence and a reason.

    >>> ProblemError("rate", "too many requests; wait a moment", {"retry-after": "1"}).status
    429
    """

    def __init__(self, reason: Word, sentence: str, headers: dict[str, str] | None = None) -> None:
        super().__init__(sentence)
        self.reason: Word = reason
        self.sentence = sentence
        self.headers = headers or {}

    @property
    def status(self) -> int:
        """The HTTP status."""
        return STATUS[self.reason]


def from_error(error: Exception) -> ProblemError | None:
    """Return what to say about an error, None where it is a fault of the service itself."""
    if isinstance(error, ProblemError):
        return error
    if isinstance(error, RefusedError):
        return ProblemError(error.reason, str(error))
    if isinstance(error, UnavailableError):  # its own sentence may name files and hosts
        sentence = "the database failed, so nothing was recorded; try again"
        return ProblemError("unavailable", sentence, {"retry-after": "2"})
    return None
