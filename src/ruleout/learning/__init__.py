"""From answers to a model.

:func:`read_lesson` turns a labelling project into what a classifier is trained on, and
:func:`read_review` reads all its items with what is known about them. Both need the extra
``label``, so they are loaded when first asked for.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ruleout.learning.features import read_features
    from ruleout.learning.lessons import Lesson, read_lesson
    from ruleout.learning.reviews import Review, read_review

__all__ = ["Lesson", "Review", "read_features", "read_lesson", "read_review"]

_LATE = {
    "Lesson": "ruleout.learning.lessons",
    "Review": "ruleout.learning.reviews",
    "read_features": "ruleout.learning.features",
    "read_lesson": "ruleout.learning.lessons",
    "read_review": "ruleout.learning.reviews",
}


def __getattr__(name: str) -> Any:
    if name not in _LATE:
        raise AttributeError(f"module 'ruleout.learning' has no attribute {name!r}")
    return getattr(import_module(_LATE[name]), name)


def __dir__() -> list[str]:
    return __all__
