"""Data as NumPy arrays: well-known sets with true labels, and a user's own.

``load("digits")`` needs no download. The others are read from :func:`data_root`, checked by the
sha256 of their content, and downloaded when absent; :func:`survey` lists them and
:func:`fetch` gets them. :func:`read_table` reads a user's own data, and :func:`inspect` says what
is in it.
"""

from ruleout.datasets.data_checks import Finding, Findings, inspect
from ruleout.datasets.data_formats import Dataset, data_root
from ruleout.datasets.registry import Stock, fetch, load, names, register, survey
from ruleout.datasets.tables import Table, draw_table, read_batches, read_table
from ruleout.labels.errors import DataError

__all__ = ["DataError", "Dataset", "data_root", "fetch", "load", "names", "register", "survey"]
__all__ += ["Finding", "Findings", "Stock", "Table", "draw_table", "inspect"]
__all__ += ["read_batches", "read_table"]
