"""The labelling service: people rule classes out, and every answer counts.

:class:`Store` keeps a project in SQLite or PostgreSQL; it never loads torch.
"""

from ruleout.web.errors import RefusedError, StoreError, UnavailableError
from ruleout.web.progress import Progress
from ruleout.web.records import Item, LogRow, Question, Receipt, Reply, Settings, User
from ruleout.web.store import Store

__all__ = [
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
    "UnavailableError",
    "User",
]
