"""From answers to a model.

:func:`read_lesson` turns a labelling project into what a classifier is trained on, and
:func:`read_review` reads all its items with what is known about them. Both need the extra
``label``, so they are loaded when first asked for.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ruleout.learning.item_features import read_features
    from ruleout.learning.training_data import Lesson, Review, read_lesson, read_review

__all__ = ["Lesson", "Review", "read_features", "read_lesson", "read_review"]

_LATE = {
    "Lesson": "ruleout.learning.training_data",
    "Review": "ruleout.learning.training_data",
    "read_features": "ruleout.learning.item_features",
    "read_lesson": "ruleout.learning.training_data",
    "read_review": "ruleout.learning.training_data",
}


def __getattr__(name: str) -> Any:
    if name not in _LATE:
        raise AttributeError(f"module 'ruleout.learning' has no attribute {name!r}")
    return getattr(import_module(_LATE[name]), name)


def __dir__() -> list[str]:
    return __all__
