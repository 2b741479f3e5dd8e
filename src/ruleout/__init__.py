"""Learn classifiers from what things are not.

``import ruleout as ro`` brings label sets at once; torch is loaded when a loss is first asked for.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from ruleout import labels
from ruleout.labels import Answers, LabelError, LabelSets, answer, draw, evidence, propose, size_law
from ruleout.version import __version__

if TYPE_CHECKING:
    from ruleout import (
        comparison,
        datasets,
        estimator,
        experiments,
        learning,
        losses,
        methods,
        models,
        report,
        selection,
        testing,
        theory,
        training,
    )
    from ruleout.comparison import compare
    from ruleout.estimator import RuleOutClassifier, load
    from ruleout.methods import approach, approaches
    from ruleout.selection import criterion
    from ruleout.selection.origin_search import find_origin
    from ruleout.training import fit_grid

__all__ = ["Answers", "LabelError", "LabelSets", "answer", "draw", "evidence", "propose"]
__all__ += ["size_law"]
__all__ += ["RuleOutClassifier", "__version__", "compare", "criterion", "fit_grid", "load"]
__all__ += ["approach", "approaches", "find_origin"]
__all__ += ["comparison", "datasets", "estimator", "experiments", "labels", "learning", "losses"]
__all__ += ["methods", "models", "report", "selection", "testing", "theory", "training"]

_LATE = {  # name: the room it is found in
    "RuleOutClassifier": "estimator",
    "approach": "methods",
    "approaches": "methods",
    "compare": "comparison",
    "criterion": "selection",
    "find_origin": "selection.origin_search",
    "fit_grid": "training",
    "load": "estimator",
}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'ruleout' has no attribute {name!r}")
    room = import_module(f"ruleout.{_LATE.get(name, name)}")
    return getattr(room, name) if name in _LATE else room


def __dir__() -> list[str]:
    return __all__
