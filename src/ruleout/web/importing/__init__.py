"""Answers that were given elsewhere: Label Studio, or a plain table.

:func:`read_label_studio` and :func:`read_answers` return :class:`Earlier` rows that are checked
against the items and classes of the project.
"""

from ruleout.web.importing.answers import read_answers
from ruleout.web.importing.earlier import Earlier, Imported
from ruleout.web.importing.studio import Meaning, read_label_studio

__all__ = ["Earlier", "Imported", "Meaning", "read_answers", "read_label_studio"]
