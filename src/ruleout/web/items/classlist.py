"""The class list: a text file of one name per line."""

from __future__ import annotations

from pathlib import Path

from ruleout.labels.classes import class_names
from ruleout.labels.files.text import text_lines
from ruleout.web.items.names import check_name, unique
from ruleout.web.items.rows import placed

__all__ = ["read_classes"]

_LONGEST = 200  # characters of a class name: it has to fit on a button


def read_classes(file: str | Path) -> tuple[str, ...]:
    r"""Read class names, one per line, UTF-8; blank lines may only stand at the end.

    Raises
    ------
    InputError
        If there are fewer than two, or a name is blank, stands twice, is too long, or holds
        characters that would mislead a reader.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "classes.txt").write_text("cat\ndog\n")
    ...     read_classes(Path(folder, "classes.txt"))
    ('cat', 'dog')
    """
    path = Path(file)
    meet = unique("class name", "name each class once", path)
    with placed(path):
        lines = [line.strip() for line in text_lines(path)]
        while lines and not lines[-1]:
            lines.pop()
        names = tuple(_name(line, number) for number, line in enumerate(lines, 1))
        for number, name in enumerate(names, 1):
            meet(name, line=number)
        class_names(names)
    return names


def _name(line: str, number: int) -> str:
    remedy = "write one class name per line"
    return check_name(line, "class name", remedy, longest=_LONGEST, line=number)
