"""A report as one HTML file that opens anywhere: plain data in, a page out.

The rows and charts it is made of are in :mod:`ruleout.report.parts`; :func:`render` returns the
page, :func:`write` saves it. A :class:`CellTable` is also written by :func:`latex`,
:func:`markdown`, :func:`csv` and :func:`text`. No torch, no matplotlib, and no request to anywhere.
"""

from ruleout.report.page import render, write
from ruleout.report.parts import (
    CellTable,
    Curves,
    Histogram,
    Line,
    Listing,
    Matrix,
    Note,
    Part,
    Ranks,
    Reliability,
    Report,
    Score,
    ScoreTable,
    Section,
    TableCell,
    TableRow,
    Verdict,
)
from ruleout.report.table_writers import csv, latex, markdown, text

__all__ = ["Listing", "Note", "Part", "Report", "Section", "render", "write"]
__all__ += ["CellTable", "Score", "ScoreTable", "TableCell", "TableRow", "Verdict"]
__all__ += ["csv", "latex", "markdown", "text"]
__all__ += ["Curves", "Histogram", "Line", "Matrix", "Ranks", "Reliability"]
