"""One table, four texts: exact for a small table, harmless for a hostile one."""

from __future__ import annotations

import csv as commas
import re
from collections.abc import Callable
from io import StringIO

import pytest
from report.samples import HOSTILE, cells, hostile_cells

from ruleout.labels.errors import InputError
from ruleout.report import CellTable, TableCell, TableRow, csv, latex, markdown, text

FORMS: list[Callable[[CellTable], str]] = [latex, markdown, csv, text]

SMALL = CellTable(
    "Linear model",
    ["MNIST", "20News"],
    [
        TableRow(
            "upper-bound",
            "LOG",
            [
                TableCell(
                    0.9258,
                    0.0009,
                    best=True,
                    paper_mean=0.9267,
                    paper_std=0.0011,
                    verdict="agrees",
                    trials=[0.925, 0.9266],
                    chosen={"learning rate": 0.001},
                ),
                TableCell(0.8406, 0.0057, best=True, paper_mean=0.82, verdict="better"),
            ],
        ),
        TableRow(
            "bounded",
            "GCE",
            [
                TableCell(0.9, 0.01, mark="•", holm="•", p_value=0.001, p_holm=0.004),
                TableCell(None, paper_mean=0.8178, paper_std=0.006, note="not run"),
            ],
        ),
    ],
    ours=["LOG", "LOG"],
    test_label="paired t-test",
    name="linear",
)

LATEX = r"""% needs \usepackage{booktabs,multirow,graphicx}
\begin{table*}[t]
\centering
\caption{Linear model. Accuracy in percent: mean $\pm$ standard deviation of 2 trials. Bold: the best of its column. $\bullet$/$\circ$: LOG is significantly better/worse than this cell (paired t-test). \textsuperscript{h}: so too after Holm's correction. Beneath each: the paper's number and ours less the paper's. $\uparrow$/$\downarrow$: better/worse than the paper by more than two combined standard deviations.}
\label{linear}
\vspace{4pt}
\resizebox{\ifdim\width>\textwidth\textwidth\else\width\fi}{!}{%
\begin{tabular}{llrr}
\toprule
\multicolumn{2}{l}{Approach} & \multicolumn{1}{c}{MNIST} & \multicolumn{1}{c}{20News} \\
\midrule
\multirow{2}{*}{upper-bound} & LOG & \textbf{92.58$\pm$0.09}\phantom{$\bullet$} & \textbf{84.06$\pm$0.57}\phantom{$\bullet$} \\[-2pt]
& & {\scriptsize 92.67$\pm$0.11 ($-$0.09)}\phantom{$\bullet$} & {\scriptsize 82.00 (+2.06$\uparrow$)}\phantom{$\bullet$} \\[1pt]
\midrule
\multirow{2}{*}{bounded} & GCE & 90.00$\pm$1.00$\bullet$\rlap{\textsuperscript{h}} & --\phantom{$\bullet$} \\[-2pt]
& &  & {\scriptsize 81.78$\pm$0.60}\phantom{$\bullet$} \\[1pt]
\bottomrule
\end{tabular}}
\par\smallskip{\footnotesize GCE (bounded) on 20News: not run.}
\end{table*}
"""  # noqa: E501

MARKDOWN = """**Linear model**

| family | approach | MNIST | 20News |
| :--- | :--- | ---: | ---: |
| upper-bound | LOG | **92.58 ± 0.09**<br>92.67 ± 0.11 (−0.09) | **84.06 ± 0.57**<br>82.00 (+2.06↑) |
| bounded | GCE | 90.00 ± 1.00 •ʰ | –<br>81.78 ± 0.60 |

Accuracy in percent: mean ± standard deviation of 2 trials. Bold: the best of its column. •/○: LOG \
is significantly better/worse than this cell (paired t-test). ʰ: so too after Holm's correction. \
Beneath each: the paper's number and ours less the paper's. ↑/↓: better/worse than the paper by \
more than two combined standard deviations.

GCE (bounded) on 20News: not run.
"""  # noqa: E501

CSV = """\
group,approach,dataset,mean,std,mark,mark_holm,p_value,p_holm,paper_mean,paper_std,difference,\
verdict,trials,best,note,learning_rate
upper-bound,LOG,MNIST,0.9258,0.0009,,,,,0.9267,0.0011,-0.0009,agrees,0.925|0.9266,\
yes,,0.001
upper-bound,LOG,20News,0.8406,0.0057,,,,,0.82,,0.0206,better,,yes,,
bounded,GCE,MNIST,0.9,0.01,•,•,0.001,0.004,,,,,,no,,
bounded,GCE,20News,,,,,,,0.8178,0.006,,,,no,not run,
"""

TEXT = """Linear model

                              MNIST                 20News
upper-bound  LOG       92.58 ± 0.09 *         84.06 ± 0.57 *
                  paper 92.67 −0.09      paper 82.00 +2.06 ↑
bounded      GCE       90.00 ± 1.00 •ʰ                   –
                                               paper 81.78

Accuracy in percent: mean ± standard deviation of 2 trials. *: the best of its column. •/○: LOG is
significantly better/worse than this cell (paired t-test). ʰ: so too after Holm's correction.
Beneath each: the paper's number and ours less the paper's. ↑/↓: better/worse than the paper by more
than two combined standard deviations.

GCE (bounded) on 20News: not run.
"""


@pytest.mark.parametrize(
    ("form", "expected"), [(latex, LATEX), (markdown, MARKDOWN), (csv, CSV), (text, TEXT)]
)
def test_a_small_table_word_for_word(form: Callable[[CellTable], str], expected: str) -> None:
    assert form(SMALL) == expected


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("table", [cells(), hostile_cells(), CellTable("", [], [])])
def test_the_same_table_gives_the_same_clean_text(
    form: Callable[[CellTable], str], table: CellTable
) -> None:
    shown = form(table)
    assert shown == form(table)
    assert shown.encode().decode() == shown
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e]", shown)


@pytest.mark.parametrize("table", [SMALL, cells(), cells(8), hostile_cells()])
def test_latex_is_balanced_and_every_row_is_full(table: CellTable) -> None:
    shown = re.sub(r"\\[{}&%$#_\\]", "", latex(table).replace("\\\\", "\n"))
    assert shown.count("{") == shown.count("}")
    assert shown.count("$") % 2 == 0
    assert shown.count(r"\begin") == shown.count(r"\end") == 2
    rows = [line for line in shown.splitlines() if "&" in line]
    wanted = len(table.columns) + 1
    assert {row.count("&") for row in rows if "multicolumn{2}" not in row} == {wanted}


@pytest.mark.parametrize("name", [*HOSTILE, "[2pt]", "*", "a & b % c $ d # e", r"\input{x}", "--"])
def test_latex_prints_a_name_as_it_is(name: str) -> None:
    shown = latex(CellTable(name, [name], [TableRow(name, name, [TableCell(0.5)])], name=name))
    known = {"textbackslash", "textasciicircum", "textasciitilde", "textless", "textgreater"}
    known |= {"textbar", "char", "textsuperscript", "bullet", "circ", "pm", "dots", "phantom"}
    known |= set(re.findall(r"\\([a-z]+)", LATEX))
    assert set(re.findall(r"\\([a-zA-Z]+)", shown)) <= known
    assert not re.search(r"(?<!\\)%(?! needs|$)|^\[|(?<!\\)&\s*\[", shown, re.MULTILINE)


def test_latex_without_the_paper_has_one_line_per_approach() -> None:
    table = CellTable("", ["a"], [TableRow("f", n, [TableCell(0.5, 0.1)]) for n in ("x", "y")])
    assert r"\multirow{2}{*}{f} & x & 50.00$\pm$10.00\phantom{$\bullet$} \\" in latex(table)
    assert "scriptsize" not in latex(table)


def test_numbers_of_the_paper_are_hidden_on_request() -> None:
    row = TableRow("", "LOG", [TableCell(0.5, paper_mean=0.7)])
    table = CellTable("", ["a"], [row], compared=False)
    assert all("70.00" not in form(table) for form in (latex, markdown, text))


def test_markdown_cells_cannot_break_out_of_their_column() -> None:
    lines = [line for line in markdown(hostile_cells()).splitlines() if line.startswith("|")]
    assert {len(re.findall(r"(?<!\\)\|", line)) for line in lines} == {5}
    assert not re.search(r"(?<!\\)<(?!br>)", markdown(hostile_cells()))


@pytest.mark.parametrize("name", ["=1+1", "+1", "-1", "@sum(a1)", "\t=1", "\r\n=1"])
def test_a_spreadsheet_computes_nothing(name: str) -> None:
    cell = TableCell(0.5, chosen={name: name}, note=name)
    shown = csv(CellTable("", [name], [TableRow(name, name, [cell])]))
    head, row = commas.reader(StringIO(shown))
    assert head[-1].startswith("'")
    assert {value[0] for value in (*row[:3], *row[-2:])} == {"'"}


def test_csv_keeps_every_digit_and_names_settings_apart() -> None:
    cell = TableCell(1 / 3, trials=[0.1, None], chosen={"mean": 2, "batch norm": True})
    shown = csv(CellTable("", ["a"], [TableRow("", "b", [cell])]))
    (row,) = commas.DictReader(StringIO(shown))
    assert float(row["mean"]) == 1 / 3
    assert (row["trials"], row["chosen_mean"], row["batch_norm"]) == ("0.1|", "2", "yes")


def test_a_terminal_keeps_columns_in_line_with_wide_letters() -> None:
    rows = [TableRow("", name, [TableCell(0.5, 0.1)]) for name in ("汉字", "LOG", "x" * 99)]
    lines = text(CellTable("", ["a"], rows)).splitlines()[1:4]
    assert [line.index("50.00") for line in lines] == [30, 32, 32]


def test_a_note_of_many_cells_is_said_once() -> None:
    row = TableRow("", "GA", [TableCell(None, note="not run")] * 9)
    shown = text(CellTable("", list("abcdefghi"), [row]))
    assert shown.count("not run") == 1
    assert "GA on a, GA on b, GA on c, and 6 more: not run." in shown


def test_ours_may_differ_by_column() -> None:
    row = TableRow("", "GA", [TableCell(0.5, mark="○")] * 3)
    table = CellTable("", ["a", "b", "c"], [row], ours=["LOG", "EXP", "LOG"])
    assert "•/○: ours (LOG, EXP on b) is significantly" in markdown(table)


def test_cells_that_do_not_fit_are_refused() -> None:
    with pytest.raises(InputError, match="row 'LOG' has 1 cells for 2 columns; give one cell per"):
        CellTable("", ["a", "b"], [TableRow("", "LOG", [TableCell(0.5)])])
    with pytest.raises(InputError, match="ours names 1 rows for 2 columns; name one row per"):
        CellTable("", ["a", "b"], [], ours=["LOG"])


def test_a_mark_after_correction_needs_one_before() -> None:
    with pytest.raises(InputError, match="holm is '•'; use one of '', ''"):
        TableCell(0.5, holm="•")
