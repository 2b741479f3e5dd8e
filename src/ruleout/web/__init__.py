"""The labelling service: people rule classes out, and every answer counts.

:class:`Store` keeps a project in SQLite or PostgreSQL; it never loads torch.
"""

from ruleout.web.errors import RefusedError, StoreError, UnavailableError
from ruleout.web.progress import Progress
from ruleout.web.records import (
    Brought,
    Item,
    LogRow,
    Question,
    Receipt,
    Reply,
    Settings,
    Turn,
    User,
)
from ruleout.web.store import Store

__all__ = [
    "Brought",
    "Item",
    "LogRow",
    "Progress",
    "Question",
    "Receipt",
    "RefusedError",
    "Reply",
    "Settings",
    "Store",
    "StoreError",
    "Turn",
    "UnavailableError",
    "User",
]
