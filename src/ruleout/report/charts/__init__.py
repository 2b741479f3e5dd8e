"""Charts: numbers in, SVG markup out. Colours are classes; the page's style sheet owns them."""

from ruleout.report.charts.beside import Bar, beside
from ruleout.report.charts.curves import curves
from ruleout.report.charts.heat import Heat, heat
from ruleout.report.charts.histogram import histogram
from ruleout.report.charts.legend import COLOURS, end_of, last_of, style_of, swatch
from ruleout.report.charts.matrix import matrix, store
from ruleout.report.charts.reliability import outside, reliability
from ruleout.report.charts.strip import strip, strip_axis

__all__ = [
    "COLOURS",
    "Bar",
    "Heat",
    "beside",
    "curves",
    "end_of",
    "heat",
    "histogram",
    "last_of",
    "matrix",
    "outside",
    "reliability",
    "store",
    "strip",
    "strip_axis",
    "style_of",
    "swatch",
]
