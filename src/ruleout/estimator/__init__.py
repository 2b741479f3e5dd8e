"""The scikit-learn face: a classifier, its scorers, and models on disk."""

from ruleout.estimator.classifier import RuleOutClassifier
from ruleout.estimator.folder import load
from ruleout.estimator.outcome import Judged
from ruleout.estimator.prediction import Resolved
from ruleout.estimator.scorers import consistency, unbiased_accuracy

__all__ = ["Judged", "Resolved", "RuleOutClassifier", "consistency", "load", "unbiased_accuracy"]
