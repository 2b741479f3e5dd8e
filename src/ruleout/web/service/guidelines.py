"""Guidelines for annotators: ``guidelines.md`` and ``examples/CLASS/`` in the project's folder."""

import re
from pathlib import Path, PurePosixPath

from markupsafe import Markup, escape

from ruleout.labels.errors import InputError
from ruleout.labels.row_files import naming, text_lines
from ruleout.web.entities import Item
from ruleout.web.items import read_folder

_MOST = 2000  # pictures
_LONGEST = 100_000  # bytes of text


class Guidelines:
    """What annotators are told; pictures are read once, the text for every page."""

    def __init__(self, folder: Path | None, largest: int) -> None:
        self._file = None if folder is None else folder / "guidelines.md"
        self.root = None if folder is None else (folder / "examples").resolve()
        self.pictures: list[Item] = []
        if self.root is not None and self.root.is_dir():
            self.pictures, _ = read_folder(self.root, most=_MOST, largest=largest)
        self.text()  # what is wrong with it is said before anybody is served

    def text(self) -> Markup:
        """Return the text as HTML; empty where there is none."""
        if self._file is None or not self._file.is_file():
            return Markup()
        with naming(self._file):
            if self._file.stat().st_size > _LONGEST:
                raise InputError(f"there are more than {_LONGEST:,} bytes", "shorten the text")
            return rendered("".join(text_lines(self._file)))

    def examples(self, classes: tuple[str, ...]) -> dict[str, list[int]]:
        """Return the numbers of the pictures of each class that has some."""
        found: dict[str, list[int]] = {}
        for number, one in enumerate(self.pictures, 1):
            found.setdefault(PurePosixPath(one.name).parts[0], []).append(number)
        return {name: found[name] for name in classes if name in found}


def rendered(text: str) -> Markup:
    """Turn headings, lists, paragraphs and bold words into HTML; all else is text."""
    parts = []
    for block in re.split(r"\n\s*\n", str(escape(text.strip()))):
        heading, _, rest = block.partition("\n") if block.startswith("#") else ("", "", block)
        lines = [line.strip() for line in rest.splitlines()]
        if heading:
            parts.append(f"<h3>{heading.lstrip('# ')}</h3>")
        if lines and all(line.startswith(("- ", "* ")) for line in lines):
            parts.append(f"<ul>{''.join(f'<li>{line[2:]}</li>' for line in lines)}</ul>")
        elif lines:
            parts.append(f"<p>{'<br>'.join(lines)}</p>")
    return Markup(re.sub(r"\*\*(.+?)\*\*", r"<b>\1</b>", "".join(parts)))
