"""From the answer log to what can be learned from.

:func:`known` makes label sets, :func:`every_answer` what the unbiased risk needs, and
:func:`weights` says how far each row can be trusted. Questions about items whose class is known
test annotators: they are asked with a chosen polarity, not at random, so they enter none of
these but the error rates.
"""

from ruleout.web.exporting.evidence import ruled_out
from ruleout.web.exporting.known import Contradiction, How, Known, every_answer, known
from ruleout.web.exporting.log import write_contradictions, write_log, write_names
from ruleout.web.exporting.sets import write_sets
from ruleout.web.exporting.weights import Reliability, reliabilities, weights

__all__ = [
    "Contradiction",
    "How",
    "Known",
    "Reliability",
    "every_answer",
    "known",
    "reliabilities",
    "ruled_out",
    "weights",
    "write_contradictions",
    "write_log",
    "write_names",
    "write_sets",
]
