"""Learn classifiers from what things are not.

``import ruleout as ro`` brings label sets at once; torch is loaded when a loss is first asked for.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from ruleout import labels
from ruleout.labels import Answers, LabelError, LabelSets, answer, draw, propose, size_law
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
    from ruleout.training import fit_grid

__all__ = [
    "Answers",
    "LabelError",
    "LabelSets",
    "RuleOutClassifier",
    "__version__",
    "answer",
    "approach",
    "approaches",
    "compare",
    "comparison",
    "criterion",
    "datasets",
    "draw",
    "estimator",
    "experiments",
    "fit_grid",
    "labels",
    "learning",
    "load",
    "losses",
    "methods",
    "models",
    "propose",
    "report",
    "selection",
    "size_law",
    "testing",
    "theory",
    "training",
]

_LATE = {  # name: the module it is, or is found in
    "RuleOutClassifier": "ruleout.estimator",
    "approach": "ruleout.methods",
    "approaches": "ruleout.methods",
    "compare": "ruleout.comparison",
    "comparison": "ruleout.comparison",
    "criterion": "ruleout.selection",
    "datasets": "ruleout.datasets",
    "estimator": "ruleout.estimator",
    "experiments": "ruleout.experiments",
    "fit_grid": "ruleout.training",
    "learning": "ruleout.learning",
    "load": "ruleout.estimator",
    "losses": "ruleout.losses",
    "methods": "ruleout.methods",
    "models": "ruleout.models",
    "report": "ruleout.report",
    "selection": "ruleout.selection",
    "testing": "ruleout.testing",
    "theory": "ruleout.theory",
    "training": "ruleout.training",
}


def __getattr__(name: str) -> Any:
    if name not in _LATE:
        raise AttributeError(f"module 'ruleout' has no attribute {name!r}")
    module = import_module(_LATE[name])
    return module if module.__name__ == f"ruleout.{name}" else getattr(module, name)


def __dir__() -> list[str]:
    return __all__
