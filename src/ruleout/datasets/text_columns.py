"""Text columns as numbers: tf-idf of the words they hold, remembered as plain JSON."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ruleout.labels.classes import is_missing, plain
from ruleout.labels.errors import DataError, brief
from ruleout.labels.row_files import check_memory
from ruleout.labels.sets import chunks

_WORDS = 2000  # of a column, the most frequent; each is a column of numbers


def add_words(
    x: NDArray[Any], cells: Any, columns: Sequence[str], known: Mapping[str, Any]
) -> tuple[NDArray[np.float32], list[str], dict[str, Any]]:
    """Append numbers for the words of text `columns`, which `cells` holds, to the rows `x`.

    Returns the rows, the names of what was appended, and what was learned about the words of each
    column: given as `known`, other rows are read the same way.
    """
    parts, names, learned = list[Any](), list[str](), dict[str, Any]()
    for column in columns:
        texts = [_text(cell, row, column) for row, cell in enumerate(cells[column])]
        learned[column] = known[column] if column in known else _learned(texts, column)
        parts.append(_weighed(texts, learned[column], column))
        names += [f"{column}: {word}" for word in learned[column]["words"]]
    check_memory(len(x), x.shape[1] + len(names))
    whole, end = np.zeros((len(x), x.shape[1] + len(names)), np.float32), x.shape[1]
    whole[:, :end] = x
    for part in parts:
        start, end = end, end + part.shape[1]
        for rows in chunks(*part.shape):  # a copy of all would take twice the memory
            whole[rows, start:end] = part[rows].toarray()
    return whole, names, learned


def _text(cell: Any, row: int, column: str) -> str:
    cell = plain(cell)
    if isinstance(cell, list | dict):
        raise DataError(f"the cell holds {brief(cell)}", "give text", row=row, column=column)
    return "" if is_missing(cell) else str(cell)


def _learned(texts: list[str], column: str) -> dict[str, Any]:
    from sklearn.feature_extraction.text import TfidfVectorizer  # late: it takes a second

    try:
        made = TfidfVectorizer(max_features=_WORDS).fit(texts)
    except ValueError:
        problem = "no row holds a word of two letters or more"
        raise DataError(problem, "ignore the column", column=column) from None
    return {"words": made.get_feature_names_out().tolist(), "idf": made.idf_.tolist()}


def _weighed(texts: list[str], learned: Any, column: str) -> Any:
    from sklearn.feature_extraction.text import TfidfVectorizer

    try:
        words, idf = [str(word) for word in learned["words"]], np.array(learned["idf"], float)
        made = TfidfVectorizer(vocabulary=words, dtype=np.float32)
        made.idf_ = idf
        if not np.isfinite(idf).all() or idf.shape != (len(words),):
            raise ValueError
    except (TypeError, ValueError, KeyError):
        problem = "what the model knows about words is damaged"
        raise DataError(problem, "train it again", column=column) from None
    return made.transform(texts)
