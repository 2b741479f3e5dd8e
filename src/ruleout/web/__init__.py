"""The labelling service: people rule classes out, and every answer counts.

:class:`Store` keeps a project in SQLite or PostgreSQL; it never loads torch.
"""

from ruleout.web.entities import (
    Brought,
    Event,
    Grown,
    Item,
    LogRow,
    Question,
    Receipt,
    RefusedError,
    Reply,
    Settings,
    StoreError,
    Turn,
    UnavailableError,
    User,
)
from ruleout.web.project_progress import Progress
from ruleout.web.store import Store

__all__ = ["Brought", "Event", "Grown", "Item", "LogRow", "Progress", "Question", "Receipt"]
__all__ += ["RefusedError", "Reply", "Settings", "Store", "StoreError", "Turn"]
__all__ += ["UnavailableError", "User"]
