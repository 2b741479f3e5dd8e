"""The scikit-learn face: a classifier, its scorers, and models on disk."""

from ruleout.estimator.classifier import Judged, Resolved, RuleOutClassifier
from ruleout.estimator.model_folder import load
from ruleout.estimator.scorers import consistency, unbiased_accuracy

__all__ = ["Judged", "Resolved", "RuleOutClassifier", "consistency", "load", "unbiased_accuracy"]
