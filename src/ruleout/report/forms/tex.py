r"""LaTeX: ``\usepackage{booktabs,multirow,graphicx}`` is all it needs."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from ruleout.report.celltable import CellTable, TableCell, TableRow
from ruleout.report.formats import MISSING, known, points
from ruleout.report.forms.words import arrow, families, legend, one_line, remarks, signed

__all__ = ["escape", "latex"]

_SIGNS = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "$": r"\$",
    "&": r"\&",
    "#": r"\#",
    "%": r"\%",
    "_": r"\_",
    "^": r"\textasciicircum{}",
    "~": r"\textasciitilde{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    '"': r"{\char34}",
    "[": "{[}",  # else an argument of the line before
    "]": "{]}",
    "*": "{*}",
    "`": "{`}",  # else ?` becomes ¿
    "•": r"$\bullet$",
    "○": r"$\circ$",
    "±": r"$\pm$",
    "−": "$-$",
    "↑": r"$\uparrow$",
    "↓": r"$\downarrow$",
    "√": r"$\surd$",
    "ʰ": r"\textsuperscript{h}",
    "×": r"$\times$",
    "≤": r"$\leq$",
    "≥": r"$\geq$",
    "–": "--",
    "—": "---",
    "…": r"\dots{}",
    "\N{NON-BREAKING HYPHEN}": "-",
    "\N{REPLACEMENT CHARACTER}": "?",
}
_TABLE = str.maketrans(_SIGNS)
_EMPTY = r"\phantom{$\bullet$}"  # as wide as a mark, so that numbers stay in line


def escape(name: object) -> str:
    r"""Write any text so that LaTeX prints it as it is.

    Letters beyond Latin need LuaLaTeX or XeLaTeX and a font that has them.

    >>> print(escape("50 % of [x]_1 & {y}"))
    50 \% of {[}x{]}\_1 \& \{y\}
    """
    return one_line(name).replace("--", "-\N{ZERO WIDTH SPACE}-").translate(_TABLE | {0x200B: "{}"})


def latex(table: CellTable) -> str:
    r"""Write a table as LaTeX, in the paper's shape.

    Families share a first column, the best of a column is bold, • and ○ are the marks. Where the
    paper has a number, it stands beneath ours in smaller type with the difference: so the table
    stays as narrow as the paper's. It is shrunk only if it is wider than the page.

    >>> row = TableRow("upper-bound", "LOG", [TableCell(0.9258, 0.0009, mark="•")])
    >>> "92.58$\\pm$0.09$\\bullet$" in latex(CellTable("Linear", ["MNIST"], [row]))
    True
    """
    heads = "".join(rf" & \multicolumn{{1}}{{c}}{{{escape(name)}}}" for name in table.columns)
    body = [line for group in families(table) for line in _family(table, *group)]
    return "\n".join(
        [
            r"% needs \usepackage{booktabs,multirow,graphicx}",
            r"\begin{table*}[t]",
            r"\centering",
            rf"\caption{{{_caption(table)}}}",
            rf"\label{{{_label(table.name)}}}",
            r"\vspace{4pt}",
            r"\resizebox{\ifdim\width>\textwidth\textwidth\else\width\fi}{!}{%",
            rf"\begin{{tabular}}{{ll{'r' * len(table.columns)}}}",
            r"\toprule",
            rf"\multicolumn{{2}}{{l}}{{Approach}}{heads} \\",
            *body,
            r"\bottomrule",
            r"\end{tabular}}",
            *(rf"\par\smallskip{{\footnotesize {escape(line)}}}" for line in remarks(table)),
            r"\end{table*}",
            "",
        ]
    )


def _caption(table: CellTable) -> str:
    title = one_line(table.title)
    if title and title[-1] not in ".!?":
        title += "."
    return " ".join(escape(line) for line in [title, *legend(table)] if line)


def _label(name: str) -> str:
    return re.sub("[^A-Za-z0-9:.-]+", "-", name).strip("-") or "table"


def _family(table: CellTable, name: str, rows: Sequence[TableRow]) -> Iterator[str]:
    """Yield the lines of one family; its name spans them all."""
    yield r"\midrule"
    lines = [line for row in rows for line in _row(table, row)]
    head = escape(name)
    if len(lines) > 1 and head:
        head = rf"\multirow{{{len(lines)}}}{{*}}{{{head}}}"
    for place, line in enumerate(lines):
        yield f"{'' if place else head} & {line}".lstrip()


def _row(table: CellTable, row: TableRow) -> Iterator[str]:
    """Yield one line, and one beneath it where the paper has numbers."""
    ours = " & ".join([escape(row.label), *map(_ours, row.cells)])
    if not table.beside_paper:
        yield rf"{ours} \\"
        return
    yield rf"{ours} \\[-2pt]"
    yield rf"{' & '.join(['', *map(_paper, row.cells)]).strip()} \\[1pt]"


def _ours(cell: TableCell) -> str:
    shown = _number(cell.mean, cell.std)
    if cell.best:
        shown = rf"\textbf{{{shown}}}"
    return f"{shown}{_SIGNS[cell.mark] if cell.mark else _EMPTY}" + (
        r"\rlap{\textsuperscript{h}}" if cell.holm else ""
    )


def _paper(cell: TableCell) -> str:
    if not known(cell.paper_mean):
        return ""
    shown = _number(cell.paper_mean, cell.paper_std)
    if cell.difference is not None:
        shown += f" ({escape(signed(cell.difference) + arrow(cell))})"
    return rf"{{\scriptsize {shown}}}{_EMPTY}"


def _number(mean: object, std: object) -> str:
    shown = points(mean)
    if shown == MISSING or not known(std):
        return escape(shown)
    return rf"{escape(shown)}$\pm${points(std)}"
