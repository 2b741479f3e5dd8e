"""A :class:`~ruleout.report.CellTable` as text: LaTeX, Markdown, CSV, and for a terminal."""

from ruleout.report.forms.pipes import markdown
from ruleout.report.forms.sheet import csv
from ruleout.report.forms.terminal import text
from ruleout.report.forms.tex import latex

__all__ = ["csv", "latex", "markdown", "text"]
