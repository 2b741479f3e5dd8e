"""What the labelling service says when it cannot do as asked."""

from __future__ import annotations

from typing import Literal, TypeAlias

from ruleout.labels.errors import InputError

__all__ = ["Reason", "RefusedError", "StoreError", "UnavailableError"]

#: Why somebody was refused: nothing there by that name, it belongs to somebody else, it clashes
#: with what is recorded, or it makes no sense.
Reason: TypeAlias = Literal["unknown", "foreign", "conflict", "invalid"]


class StoreError(InputError):
    """A project that cannot be made or opened: what is wrong, and how to mend it."""


class RefusedError(InputError):
    """A request that is not carried out; nothing has changed.

    Examples
    --------
    >>> error = RefusedError("there is no question 7", "ask for the next", reason="unknown")
    >>> error.reason, str(error)
    ('unknown', 'there is no question 7; ask for the next')
    """

    def __init__(self, problem: str, remedy: str, *, reason: Reason = "invalid") -> None:
        super().__init__(problem, remedy)
        self.reason: Reason = reason


class UnavailableError(RuntimeError):
    """The database failed, so nothing was acknowledged; the same request may be sent again."""
