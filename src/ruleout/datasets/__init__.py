"""Data sets with true labels, from which sets are drawn: NumPy arrays from the original files.

``load("digits")`` needs no download. The others are read from :func:`data_root`, checked by the
sha256 of their content, and downloaded when absent.
"""

from ruleout.datasets.base import Dataset
from ruleout.datasets.errors import DataError
from ruleout.datasets.fetch import data_root
from ruleout.datasets.loading import load, names

__all__ = ["DataError", "Dataset", "data_root", "load", "names"]
