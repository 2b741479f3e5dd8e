"""The pieces that pages and tables share: numbers as text, SVG, escaped texts, laid-out tables."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from ruleout.report import (
    CellTable,
    Curves,
    Histogram,
    Line,
    Matrix,
    Note,
    Reliability,
    Score,
    ScoreTable,
    TableCell,
    TableRow,
    number_format,
    svg,
)
from ruleout.report.charts import end_of, heat, last_of, thinned
from ruleout.report.number_format import signed, value
from ruleout.report.page import cell_view, score_csv, score_view, view
from ruleout.report.svg import fill
from ruleout.report.table_writers import (
    escape_latex,
    escape_markdown,
    legend,
    one_line,
    remarks,
)

NAN = float("nan")


@pytest.mark.parametrize(
    ("show", "given", "expected"),
    [
        (number_format.known, [0.5, 3, None, NAN, float("inf")], [True, True, False, False, False]),
        (number_format.percent, [0.9342, None], ["93.4 %", "–"]),
        (number_format.points, [0.9342, NAN], ["93.42", "–"]),
        (
            number_format.number,
            [0.25, 1e-5, 0, 12345.678, 3e9, None],
            ["0.25", "1e-05", "0", "12,346", "3e+09", "–"],
        ),
        (number_format.count, [60000, 2.5, None], ["60,000", "2.5", "–"]),
        (number_format.compact, [7, 9999, 12345, 1_250_000], ["7", "9999", "12k", "1.2M"]),
        (
            number_format.duration,
            [0.042, 12.34, 245, 7265, None],
            ["0.04 s", "12.3 s", "4 min 05 s", "2 h 01 min", "–"],
        ),
        (number_format.p_value, [0.0412, 1e-9, None], ["0.041", "<0.001", "–"]),
        (
            number_format.text,
            [None, True, 1797, 1e-5, "digits", NAN],
            ["–", "yes", "1,797", "1e-05", "digits", "–"],
        ),
        (signed, [0.0123, -0.0123, 0.00001, None], ["+1.23", "−1.23", "0.00", "–"]),
        (svg.percent, [12.3456, -0.0, 50], ["12.35%", "0%", "50%"]),
    ],
)
def test_a_number_is_shown_as(
    show: Callable[[object], object], given: list[object], expected: list[object]
) -> None:
    assert [show(each) for each in given] == expected


def test_what_is_not_known_becomes_nan() -> None:
    np.testing.assert_array_equal(number_format.values([1, None, float("inf")]), [1, NAN, NAN])


def test_a_column_of_numbers_looks_the_same_throughout() -> None:
    assert number_format.numbers([0.01, 1e-5]) == ["1e-02", "1e-05"]
    assert number_format.numbers([0.01, 0.5]) == ["0.01", "0.5"]
    assert number_format.numbers(["adam", 1e-5]) == ["adam", "1e-05"]


def test_an_axis_has_as_many_digits_as_it_needs() -> None:
    assert number_format.labels([100.0, 100.05]) == ["100.00", "100.05"]
    assert number_format.labels([0.0, 0.5], "percent") == ["0 %", "50 %"]
    assert number_format.labels([0.0, 1e-7]) == ["0", "1e-07"]


def test_a_mean_with_its_standard_deviation() -> None:
    assert value(0.9342, 0.0011) == "93.42 ± 0.11"
    assert value(0.9342, None) == "93.42"
    assert value(None, 0.1) == "–"


def test_a_template_escapes_texts_and_writes_numbers_as_pixels() -> None:
    assert svg.clean("a\x00b") == "a\ufffdb"
    assert fill("note.html", part=Note("a < b")).strip() == '<p class="note">a &lt; b</p>'
    assert [svg.short(each) for each in (1.25, 3.0, -0.01, 7)] == ["1.2", "3", "0", "7"]


def test_a_chart_says_what_it_shows() -> None:
    picture = str(view(Histogram("Sizes < 3", [1, 2, 3]), "c1", {}))
    assert (
        '<svg class="chart left3 right1" height="320" role="img" aria-labelledby="c1-t c1-d">'
        in (picture)
    )
    assert '<title id="c1-t">Sizes &lt; 3</title><desc id="c1-d">3 bars, ' in picture


def test_a_missing_point_interrupts_a_path() -> None:
    assert svg.path(np.array([0.0, 1, 2, 3]), np.array([5.0, 4.25, NAN, 4])) == "M0 5l1 -0.8M3 4"


def test_texts_are_measured_and_clipped() -> None:
    assert svg.width_of("log") < svg.width_of("汉字汉字")
    assert svg.clip("a name that goes on", 60) == "a name…"
    assert svg.gutter([(0, "0"), (50, "50")]) == 30


def test_scales_and_their_ticks() -> None:
    assert svg.Scale(0, 10, 100, 200)(2.5) == 125
    assert svg.Scale(0, 10, 0, 100).percent(2.5) == "25%"
    assert svg.reach(np.array([2.0, NAN, 4.0]), margin=0.5) == (1, 5)
    assert svg.reach(np.array([])) == (0, 1)
    assert svg.reach(np.array([4.0])) == (3, 5)
    assert svg.ticks(0.13, 0.94) == [0.2, 0.4, 0.6, 0.8]
    assert svg.ticks(0, 100, 3) == [0, 50, 100]
    assert list(svg.thin(10, 4)) == [0, 3, 6, 9]
    assert svg.spread([50.0, 52.0, 90.0], 10, 0, 100) == [46, 56, 90]


def test_lines_end_at_the_last_value_known() -> None:
    assert end_of(Line("log", x=[1, 2, 3], mean=[0.5, 0.9, None]), 0.0) == 0.9
    assert last_of(Line("log", x=[1, 2], mean=[0.5, 0.934]), "percent") == "93.4 %"


def test_corners_are_kept_when_points_are_thinned() -> None:
    assert thinned(np.arange(6.0), np.array([0.0, 0, 0, 5, 5, 5]), 0.1).tolist() == [0, 2, 3, 5]


def test_a_swatch_has_colour_and_dashes() -> None:
    lines = [Line(name, [1, 2], [0, 1], family="family") for name in "ab"]
    assert (
        '<svg class="swatch c2" viewBox="0 0 24 8" aria-hidden="true"><path d="M1 4H23" '
        'stroke-dasharray="7 3"/></svg>'
    ) in view(Curves("", lines), "p1", {"family": 2})


def test_dots_are_drawn_where_a_mean_is_known() -> None:
    def dots(*scores: Score) -> int:
        return view(ScoreTable("", scores), "p1", {}).count("<circle")

    assert dots(Score("a", 0.9, 0.01, trials=[0.89, 0.91])) == 1
    assert dots(Score("a", None, 0.1)) == 0


def test_bins_outside_are_counted() -> None:
    page = view(Reliability("", [0.5, 0.9], [-0.1, 0.9], [3, 40]), "p1", {})
    assert "1 bin lies outside: it is drawn at the edge" in page


def test_a_row_without_counts_has_no_shares() -> None:
    ready = heat(Matrix("", ["a", "b"], ["a", "b"], [[1, 3], [0, 0]]))
    np.testing.assert_array_equal(ready.shares, [[0.25, 0.75], [NAN, NAN]])
    assert ready.most == 0.75


def test_texts_are_escaped_for_each_form() -> None:
    assert one_line("two\nlines \u202e\x1b[31m") == "two lines \ufffd[31m"
    assert escape_markdown("a|b *c* <d> https://e") == r"a\|b \*c\* \<d\> https\://e"
    assert escape_latex("50 % of [x]_1 & {y}") == r"50 \% of {[}x{]}\_1 \& \{y\}"


def test_the_legend_tells_only_what_occurs() -> None:
    cell = TableCell(0.9, 0.1, trials=[0.8, 1.0])
    told = legend(CellTable("", ["MNIST"], [TableRow("", "LOG", [cell])]))
    assert told == {"numbers": "Accuracy in percent: mean ± standard deviation of 2 trials."}


def test_the_legend_names_ours_by_column_where_they_differ() -> None:
    row = TableRow("", "GCE", [TableCell(0.5, mark="•")] * 3)
    told = legend(CellTable("", ["a", "b", "c"], [row], ours=["LOG", "EXP", "LOG"]))
    assert "ours (LOG, EXP on b) is significantly" in told["marks"]


def test_a_remark_names_three_cells_at_most() -> None:
    row = TableRow("bounded", "GCE", [TableCell(None, note="not run")] * 5)
    (remark,) = remarks(CellTable("", list("abcde"), [row]))
    places = "GCE (bounded) on a, GCE (bounded) on b, GCE (bounded) on c"
    assert remark == f"{places}, and 2 more: not run."


@pytest.mark.parametrize(
    ("cell", "kind"),
    [
        (TableCell(0.9, 0.01, paper_mean=0.8, paper_std=0.01), "cell up3"),
        (TableCell(0.93, 0.01, paper_mean=0.9, paper_std=0.01), "cell up2"),
        (TableCell(0.9, paper_mean=0.93, verdict="worse"), "cell down2"),
        (TableCell(0.9), "cell"),
    ],
)
def test_the_shade_is_the_distance_from_the_paper(cell: TableCell, kind: str) -> None:
    beside = TableCell(0.5, paper_mean=0.5)
    view = cell_view(CellTable("", ["a", "b"], [TableRow("", "LOG", [cell, beside])]), "p1", {})
    assert view["rows"][0][0]["kind"] == kind


def test_a_cell_says_how_it_compares_with_the_paper() -> None:
    cell = TableCell(0.93, 0.03, paper_mean=0.9, paper_std=0.04, verdict="agrees")
    view = cell_view(CellTable("", ["MNIST"], [TableRow("", "LOG", [cell])]), "p1", {})
    told = "grees with the paper: +3.00 points, 0.6 combined standard deviations"
    details = view["rows"][0][0]
    assert details["said"] == f"LOG, MNIST: 93.00 ± 3.00; a{told}"
    assert details["verdict"] == f"A{told}."
    assert view["total"] == "1 cell: 1 agrees with the paper."


def test_scores_are_ordered_with_the_best_first() -> None:
    view = score_view(ScoreTable("", [Score("log", 0.934), Score("exp", 0.95)]), {})
    found = [(row.name, best) for row, best in zip(view["rows"], view["best"], strict=True)]
    assert found == [("exp", True), ("log", False)]


def test_scores_as_csv_have_every_field() -> None:
    table = score_csv(ScoreTable("", [Score("log", 0.5)]))
    assert table.splitlines()[1] == "log,,,,0.5,,,,,,,no"
