"""Learn classifiers from what things are not.

``import ruleout as ro`` brings label sets at once; torch is loaded when a loss is first asked for.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from ruleout import labels
from ruleout.labels import Answers, LabelError, LabelSets, answer, draw, propose, size_law
from ruleout.version import __version__

if TYPE_CHECKING:
    from ruleout import datasets, losses, models, testing, theory
    from ruleout.methods import approach, approaches
    from ruleout.selection import criterion

__all__ = [
    "Answers",
    "LabelError",
    "LabelSets",
    "__version__",
    "answer",
    "approach",
    "approaches",
    "criterion",
    "datasets",
    "draw",
    "labels",
    "losses",
    "models",
    "propose",
    "size_law",
    "testing",
    "theory",
]

_LATE = {  # name: the module it is, or is found in
    "approach": "ruleout.methods",
    "approaches": "ruleout.methods",
    "criterion": "ruleout.selection",
    "datasets": "ruleout.datasets",
    "losses": "ruleout.losses",
    "models": "ruleout.models",
    "testing": "ruleout.testing",
    "theory": "ruleout.theory",
}


def __getattr__(name: str) -> Any:
    if name not in _LATE:
        raise AttributeError(f"module 'ruleout' has no attribute {name!r}")
    module = import_module(_LATE[name])
    return module if module.__name__ == f"ruleout.{name}" else getattr(module, name)


def __dir__() -> list[str]:
    return __all__
