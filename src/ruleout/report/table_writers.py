"""Writers of tables: one table object, and its terminal, Markdown, LaTeX, CSV and HTML forms.

A :class:`Table` holds plain text; every writer escapes it. A :class:`~ruleout.report.CellTable` and
a comparison lay themselves out as one.
"""

import csv as csv_files
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from io import StringIO
from itertools import groupby
from textwrap import wrap
from typing import Any, NamedTuple, TypeAlias

from rich.cells import cell_len

from ruleout.report.number_format import known, points, signed, value
from ruleout.report.parts import CellTable, TableCell
from ruleout.report.svg import clean, fill

HOLM = "ʰ"  # behind a mark that holds after the correction
_ARROWS = {"": "", "agrees": "", "better": "↑", "worse": "↓"}
_DIRECTIONS = dict.fromkeys([*range(0x202A, 0x202F), *range(0x2066, 0x206A), 0x200E, 0x200F])
_NAMED = 3  # cells named in a remark
_NAME, _LINE = 28, 100  # columns of a name and of a paragraph in a terminal


class Cell(NamedTuple):
    """A number with its signs; `beneath` is a second line in smaller type."""

    text: str
    bold: bool = False
    mark: str = ""
    beneath: str = ""


Value: TypeAlias = Cell | str | float | None


@dataclass(frozen=True)
class Table:
    """Rows of cells under heads, with writers; a line break in a paragraph stays one."""

    heads: Sequence[str]
    rows: Sequence[Sequence[Value]]
    title: str = ""  # the caption
    legend: str = ""  # a paragraph that belongs to it
    notes: Sequence[str] = ()  # further paragraphs
    names: int = 1  # columns that hold names, aligned left; the others hold numbers
    grouped: bool = False  # whether equal names in the first column are written once
    name: str = "table"  # for LaTeX's labels

    def _paragraphs(self) -> list[str]:
        return [each for each in (self.legend, *self.notes) if each]

    def _groups(self) -> Iterator[tuple[str, list[Sequence[Value]]]]:
        """Yield the rows that share a first cell; all of them where the table is not grouped."""
        for key, rows in groupby(self.rows, key=lambda row: row[0] if self.grouped else ""):
            yield _plain(key), list(rows)

    def _shown(self) -> Iterator[list[Cell]]:
        for _, rows in self._groups():
            for place, row in enumerate(rows):
                cells = [one if isinstance(one, Cell) else Cell(_plain(one)) for one in row]
                yield [Cell(""), *cells[1:]] if self.grouped and place else cells

    def text(self) -> str:
        """Lay the table out in columns; bold is a star."""
        lines = list(self._lines())
        widths = [max(map(cell_len, column)) for column in zip(*lines, strict=True)]
        rows = "\n".join(self._aligned(line, widths) for line in lines)
        notes = [
            "\n".join(part for line in each.splitlines() for part in wrap(line, _LINE))
            for each in self._paragraphs()
        ]
        return "\n\n".join([*([self.title] if self.title else []), rows, *notes]) + "\n"

    def _lines(self) -> Iterator[list[str]]:
        places = range(len(self.heads))
        signed = [any(isinstance(row[place], Cell) for row in self.rows) for place in places]
        yield [f"{h}    " if s else h for h, s in zip(self.heads, signed, strict=True)]
        for row in self._shown():
            yield [
                f"{one.text} {'*' * one.bold + one.mark:<3}" if sign else one.text
                for one, sign in zip(row, signed, strict=True)
            ]
            if self._double:
                yield [one.beneath for one in row]

    def _aligned(self, line: list[str], widths: list[int]) -> str:
        cells = []
        for place, (cell, width) in enumerate(zip(line, widths, strict=True)):
            room = " " * (width - cell_len(cell))
            cells.append(cell + room if place < self.names else room + cell)
        return "  ".join(cells).rstrip()

    def markdown(self) -> str:
        """Write the table with pipes, as GitHub and MyST read it."""
        sides = [":---"] * self.names + ["---:"] * (len(self.heads) - self.names)
        lines = [[escape_markdown(head) for head in self.heads], sides]
        lines += [[_markdown(one) for one in row] for row in self._shown()]
        body = "\n".join(f"| {' | '.join(line)} |" for line in lines)
        title = [f"**{escape_markdown(self.title)}**"] if self.title else []
        notes = [
            "  \n".join(map(escape_markdown, each.splitlines())) for each in self._paragraphs()
        ]
        return "\n\n".join([*title, body, *notes]) + "\n"

    def csv(self) -> str:
        """Write every value; a text that a spreadsheet would compute begins with an apostrophe."""
        out = StringIO()
        writer = csv_files.writer(out, lineterminator="\n")
        writer.writerow(map(_inert, self.heads))
        writer.writerows([_field(one) for one in row] for row in self.rows)
        return out.getvalue()

    def html(self) -> str:
        """Write the table for a notebook."""
        notes = [line for each in self._paragraphs() for line in each.splitlines()]
        return str(fill("table.html", table=self, rows=self._shown(), notes=notes))

    def latex(self) -> str:
        r"""Write the table for ``\usepackage{booktabs,multirow,graphicx}``.

        It is shrunk only if it is wider than the page.
        """
        title = self.title + "." * (self.title[-1:] not in ("", ".", "!", "?"))
        names = [escape_latex(head) for head in self.heads[: self.names]]
        if self.grouped:
            names = [rf"\multicolumn{{{self.names}}}{{l}}{{{names[-1].capitalize()}}}"]
        told: dict[str, Any] = {
            "caption": " ".join(escape_latex(each) for each in (title, self.legend) if each),
            "label": re.sub("[^A-Za-z0-9:.-]+", "-", self.name).strip("-") or "table",
            "columns": "l" * self.names + "r" * (len(self.heads) - self.names),
            "names": names,
            "heads": [escape_latex(head) for head in self.heads[self.names :]],
            "groups": [self._latex_group(*group) for group in self._groups()],
            "notes": [escape_latex(line) for note in self.notes for line in note.splitlines()],
        }
        return f"{fill('table.tex', **told)}\n"

    def _latex_group(self, name: str, rows: Sequence[Sequence[Value]]) -> list[str]:
        """Return the lines of a group; its name spans them all."""
        lines = []
        for row in rows:
            cells = row[1:] if self.grouped else row
            first = " & ".join(map(_latex, cells))
            if self._double:
                under = " & ".join(map(_latex_beneath, cells)).strip()
                lines += [rf"{first} \\[-2pt]", rf"{under} \\[1pt]"]
            else:
                lines.append(rf"{first} \\")
        if not self.grouped:
            return lines
        head = escape_latex(name)
        if len(lines) > 1 and head:
            head = rf"\multirow{{{len(lines)}}}{{*}}{{{head}}}"
        return [f"{head} & {lines[0]}".lstrip(), *(f"& {line}" for line in lines[1:])]

    @property
    def _double(self) -> bool:
        return any(isinstance(one, Cell) and one.beneath for row in self.rows for one in row)


def one_line(name: object) -> str:
    """Bring any text to one line, without control characters and changes of direction."""
    return " ".join(clean(name).translate(_DIRECTIONS).split())


def _plain(value: Value) -> str:
    return value.text if isinstance(value, Cell) else "" if value is None else str(value)


def escape_markdown(name: object) -> str:
    """Write any text so that Markdown shows it as it is."""
    line = re.sub(r"([\\`*_{}\[\]<>#|~!&$])", r"\\\1", one_line(name))
    return line.replace("://", r"\://").replace("www.", r"www\.")  # else GitHub makes links


def _markdown(cell: Cell) -> str:
    shown = escape_markdown(cell.text)
    shown = f"**{shown}**" if cell.bold else shown
    shown += f" {cell.mark}" * bool(cell.mark)
    return shown + f"<br>{escape_markdown(cell.beneath)}" * bool(cell.beneath)


def _field(value: Value) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, Cell | str):
        return _inert(_plain(value))
    if isinstance(value, int):
        return str(value)
    return repr(float(value)) if known(value) else ""


def _inert(text: str) -> str:
    """Bring a text to one line that no spreadsheet computes."""
    line = one_line(text)
    return f"'{line}" if line[:1] in tuple("=+-@") else line


# [ and ] would be arguments of the line before, and ?` becomes another letter.
_SIGNS = dict(
    pair.split(" ", 1)
    for pair in r"""
\ \textbackslash{}, { \{, } \}, $ \$, & \&, # \#, % \%, _ \_, ^ \textasciicircum{}, | \textbar{}
~ \textasciitilde{}, < \textless{}, > \textgreater{}, " {\char34}, [ {[}, ] {]}, * {*}, ` {`}
• $\bullet$, ○ $\circ$, ± $\pm$, − $-$, ↑ $\uparrow$, ↓ $\downarrow$, √ $\surd$, × $\times$
≤ $\leq$, ≥ $\geq$, – --, — ---, … \dots{}, ʰ \textsuperscript{h}, ‑ -
""".strip()
    .replace("\n", ", ")
    .split(", ")
) | {"\ufffd": "?"}  # written so, since mypy's parser fails on the character itself
_LATEX = str.maketrans(_SIGNS) | {0x200B: "{}"}
_NO_MARK = r"\phantom{$\bullet$}"  # as wide as a mark, so that numbers stay in line


def escape_latex(name: object) -> str:
    """Write any text so that LaTeX prints it as it is.

    Letters beyond Latin need LuaLaTeX or XeLaTeX and a font that has them.
    """
    return one_line(name).replace("--", "-\N{ZERO WIDTH SPACE}-").translate(_LATEX)


def _latex(value: Value) -> str:
    if not isinstance(value, Cell):
        return escape_latex(_plain(value))
    shown = escape_latex(value.text.replace(" ± ", "±"))
    shown = rf"\textbf{{{shown}}}" if value.bold else shown
    holm = r"\rlap{\textsuperscript{h}}" * value.mark.endswith(HOLM)
    return shown + _SIGNS.get(value.mark[:1], _NO_MARK) + holm


def _latex_beneath(value: Value) -> str:
    if not isinstance(value, Cell) or not value.beneath:
        return ""
    return rf"{{\scriptsize {escape_latex(value.beneath.replace(' ± ', '±'))}}}{_NO_MARK}"


def text(table: CellTable) -> str:
    """Lay a table out for a terminal; the paper's number and the difference stand beneath ours."""
    return _laid(table, short=True).text()


def markdown(table: CellTable) -> str:
    """Write a table as Markdown; the paper's number and the difference stand beneath ours.

    >>> from ruleout.report import TableRow
    >>> row = TableRow("upper-bound", "LOG", [TableCell(0.9258, 0.0009, best=True)])
    >>> print(markdown(CellTable("Linear", ["MNIST"], [row])))
    **Linear**
    <BLANKLINE>
    | family | approach | MNIST |
    | :--- | :--- | ---: |
    | upper-bound | LOG | **92.58 ± 0.09** |
    <BLANKLINE>
    Accuracy in percent: mean ± standard deviation of the trials. Bold: the best of its column.
    <BLANKLINE>
    """
    return _laid(table).markdown()


def latex(table: CellTable) -> str:
    r"""Write a table as LaTeX, in the paper's shape.

    Families share a first column, the best of a column is bold, • and ○ are the marks. Where the
    paper has a number, it stands beneath ours in smaller type with the difference: so the table
    stays as narrow as the paper's. It is shrunk only if it is wider than the page.

    >>> from ruleout.report import TableRow
    >>> row = TableRow("upper-bound", "LOG", [TableCell(0.9258, 0.0009, mark="•")])
    >>> "92.58$\\pm$0.09$\\bullet$" in latex(CellTable("Linear", ["MNIST"], [row]))
    True
    """
    return _laid(table).latex()


_HEADS = (
    *("group", "approach", "dataset", "mean", "std", "mark", "mark_holm", "p_value", "p_holm"),
    *("paper_mean", "paper_std", "difference", "verdict", "trials", "best", "note"),
)


def csv(table: CellTable) -> str:
    """Write a table as CSV, one row per cell: shares with every digit, trials separated by ``|``.

    Chosen settings follow, one column each. A text that a spreadsheet would take for a formula
    begins with an apostrophe.

    >>> from ruleout.report import TableRow
    >>> row = TableRow("upper-bound", "LOG", [TableCell(0.5, trials=[0.25, 0.75])])
    >>> print(csv(CellTable("", ["MNIST"], [row])).splitlines()[1])
    upper-bound,LOG,MNIST,0.5,,,,,,,,,,0.25|0.75,no,
    """
    settings = list(dict.fromkeys(name for cell in table.cells for name in cell.chosen))
    heads = [one_line(name).replace(" ", "_") for name in settings]
    heads = [f"chosen_{name}" if name in _HEADS else name for name in heads]
    rows = [
        [row.group, row.label, column, *_fields(cell), *map(cell.chosen.get, settings)]
        for row in table.rows
        for column, cell in zip(table.columns, row.cells, strict=True)
    ]
    return Table([*_HEADS, *heads], rows).csv()  # type: ignore[arg-type]  # settings are values


def _fields(cell: TableCell) -> list[Value]:
    gap = cell.difference
    return [
        *(cell.mean, cell.std, cell.mark, cell.holm, cell.p_value, cell.p_holm),
        *(cell.paper_mean, cell.paper_std),
        *(None if gap is None else round(gap, 12), cell.verdict),  # 0.02, not 0.0200…03
        *("|".join(map(_field, cell.trials)), cell.best, cell.note),
    ]


def _laid(table: CellTable, *, short: bool = False) -> Table:
    """Lay a table out; in short for a terminal, with names clipped and a star for bold."""
    spelt = _clipped if short else one_line
    heads = ["", ""] if short else ["family", "approach"]
    return Table(
        heads + [_clipped(head) if short else head for head in table.columns],
        [
            [spelt(row.group), spelt(row.label), *(_cell(table, one, short) for one in row.cells)]
            for row in table.rows
        ],
        one_line(table.title),
        " ".join(legend(table, bold="*" if short else "Bold").values()),
        remarks(table),
        names=2,
        grouped=True,
        name=table.name,
    )


def _cell(table: CellTable, cell: TableCell, short: bool) -> Cell:
    beneath, arrow = "", _ARROWS[cell.verdict]
    if table.beside_paper and known(cell.paper_mean):
        apart = "" if cell.difference is None else signed(cell.difference)
        if short:
            beneath = f"paper {' '.join(filter(None, [points(cell.paper_mean), apart]))} {arrow:<3}"
        else:
            beneath = value(cell.paper_mean, cell.paper_std) + (apart and f" ({apart}{arrow})")
    return Cell(value(cell.mean, cell.std), cell.best, cell.mark + HOLM * bool(cell.holm), beneath)


def _clipped(name: str) -> str:
    line = one_line(name)
    while cell_len(line) > _NAME:
        line = f"{line.rstrip('…')[:-1]}…"
    return line


def legend(table: CellTable, *, bold: str = "Bold") -> dict[str, str]:
    """Explain what the table shows: a sentence for each thing that occurs in it."""
    cells = table.cells
    sizes = {len(cell.trials) for cell in cells if len(cell.trials)}
    size = sizes.pop() if len(sizes) == 1 else None
    trials = "the trials" if size is None else f"{size} trials" if size > 1 else "one trial"
    lines = {"numbers": f"Accuracy in percent: mean ± standard deviation of {trials}."}
    if any(cell.best for cell in cells):
        lines["best"] = f"{bold}: the best of its column."
    if any(cell.mark for cell in cells):
        lines["marks"] = (
            f"•/○: {_ours(table)} is significantly better/worse than this cell "
            f"({one_line(table.test_label)})."
        )
    if any(cell.holm for cell in cells):
        lines["holm"] = f"{HOLM}: so too after Holm's correction."
    if table.beside_paper:
        lines["paper"] = "Beneath each: the paper's number and ours less the paper's."
        if any(_ARROWS[cell.verdict] for cell in cells):
            told = one_line(table.verdict_label)
            lines["verdicts"] = f"↑/↓: better/worse than the paper {told}."
    return lines


def _ours(table: CellTable) -> str:
    """Name the row that marks compare with; where columns differ, the rarer ones by column."""
    names = [one_line(name) for name in table.ours]
    if not any(names):
        return "our best approach"
    if len(set(names)) == 1:
        return names[0]
    often = max(filter(None, names), key=names.count)
    pairs = zip(names, map(one_line, table.columns), strict=True)
    rest = [f"{name} on {column}" for name, column in pairs if name not in ("", often)]
    return f"ours ({', '.join([often, *rest])})"


def remarks(table: CellTable) -> list[str]:
    """Collect the notes of cells, each once with the cells it belongs to, then the table's own."""
    found: dict[str, list[str]] = {}
    for row in table.rows:
        family = f" ({one_line(row.group)})" if row.group else ""
        for column, cell in zip(table.columns, row.cells, strict=True):
            if cell.note:
                place = f"{one_line(row.label)}{family} on {one_line(column)}"
                found.setdefault(one_line(cell.note), []).append(place)
    lines = []
    for note, places in found.items():
        more = [f"and {len(places) - _NAMED} more"] if len(places) > _NAMED else []
        lines.append(f"{', '.join(places[:_NAMED] + more)}: {note.rstrip('.')}.")
    return [*lines, one_line(table.note)] if table.note else lines
