"""From answers to a model.

:func:`read_lesson` turns a labelling project into what a classifier is trained on, and
:func:`read_review` reads all its items with what is known about them. Both need the extra
``label``, so they are loaded when first asked for.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ruleout.learning.training_data import (
        Lesson,
        Review,
        read_features,
        read_lesson,
        read_review,
    )

__all__ = ["Lesson", "Review", "read_features", "read_lesson", "read_review"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'ruleout.learning' has no attribute {name!r}")
    from ruleout.learning import training_data

    return getattr(training_data, name)


def __dir__() -> list[str]:
    return __all__
