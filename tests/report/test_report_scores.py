"""Score tables: order, best, marks, sorting, and what a row opens to."""

from __future__ import annotations

import pytest
from report.markup import Page, read
from report.samples import scores

from ruleout.labels.errors import InputError
from ruleout.report import Curves, Line, Part, Report, Score, ScoreTable, Section, render

NAN = float("nan")


def page(*parts: Part) -> Page:
    return read(render(Report("", sections=[Section("", parts)])))


def names(table: ScoreTable) -> list[str]:
    return [element.text for element in page(table).all("bdi", "id")]


def bold(table: ScoreTable) -> list[str]:
    rows = page(table).all("tr", "best")
    return [row.text.split()[0] for row in rows]


def test_the_best_comes_first_and_unknown_scores_last() -> None:
    rows = [Score("a", NAN), Score("b", 0.5), Score("c", 0.9)]
    assert names(ScoreTable("", rows)) == ["c", "b", "a"]
    assert names(ScoreTable("", rows, higher_is_better=False)) == ["b", "c", "a"]
    assert names(ScoreTable("", rows, order="given")) == ["a", "b", "c"]


def test_what_looks_equal_is_equally_bold_and_a_reference_never_is() -> None:
    rows = [
        Score("a", 0.90001),
        Score("b", 0.90002),
        Score("c", 0.8),
        Score("d", 1, reference=True),
    ]
    assert sorted(bold(ScoreTable("", rows))) == ["a", "b"]
    assert bold(ScoreTable("", rows, higher_is_better=False)) == ["c"]


def test_heads_sort_numbers_as_numbers() -> None:
    heads = {th.text.split("\N{NO-BREAK SPACE}")[0]: th for th in page(scores()).all("th")}
    assert heads["Approach"].attributes["data-sort"] == "text"
    assert heads["Learning rate"].attributes["data-sort"] == "number"
    assert heads["Test accuracy"].attributes["aria-sort"] == "none"


def test_cells_carry_the_number_they_are_sorted_by() -> None:
    reader = page(ScoreTable("", [Score("a", 0.25, seconds=3661), Score("b", None)]))
    found = [
        td.attributes["data-value"] for td in reader.all("td") if "data-value" in td.attributes
    ]
    assert found == ["0.25", "3661.0", "", ""]


def test_only_columns_that_some_row_fills_are_shown() -> None:
    few = page(ScoreTable("", [Score("a", 0.5)]))
    assert len([th for th in few.all("th") if "data-sort" in th.attributes]) == 2
    many = page(scores())
    assert len([th for th in many.all("th") if "data-sort" in th.attributes]) == 9


def test_scores_are_percents_with_their_spread() -> None:
    cell = page(ScoreTable("", [Score("a", 0.93421, 0.0031)])).all("td", "score")[0]
    assert cell.text == "93.42 ± 0.31"
    cell = page(ScoreTable("", [Score("a", 1.5, 0.25)], unit="number")).all("td", "score")[0]
    assert cell.text == "1.5 ± 0.25"


def test_a_column_of_learning_rates_is_written_one_way() -> None:
    rows = [
        Score("a", 1, chosen={"learning rate": 0.1}),
        Score("b", 0, chosen={"learning rate": 1e-5}),
    ]
    cells = page(ScoreTable("", rows)).all("td", "number")
    assert [cell.text for cell in cells if "e-" in cell.text] == ["1e-01", "1e-05"]


def test_a_configuration_may_be_words_and_may_be_missing() -> None:
    rows = [Score("a", 1, chosen={"optimiser": "adam"}), Score("b", 0)]
    assert [cell.text for cell in page(ScoreTable("", rows)).all("td", "text")] == ["adam", "–"]


def test_marks_speak_and_the_legend_explains_them() -> None:
    table = ScoreTable("", [Score("a", 0.5, mark="•"), Score("b", 0.9, mark="○")], ours="LOG")
    reader = page(table)
    said = [span.attributes["aria-label"] for span in reader.all("span", "mark")]
    assert said == ["ours is significantly worse", "ours is significantly better"]
    legend = reader.all("div", "under")[0].text
    assert "our best approach (LOG)" in legend
    assert "5 % level" in legend


def test_without_marks_no_test_is_mentioned() -> None:
    assert "test" not in page(ScoreTable("", [Score("a", 0.5)])).all("div", "under")[0].text


def test_a_row_opens_to_its_trials() -> None:
    reader = page(ScoreTable("", [Score("a", 0.5, trials=[0.4, None, 0.6])]))
    assert [li.text for li in reader.all("li")] == ["40.00", "–", "60.00"]
    assert len(reader.all("details")) == 1


def test_a_dot_and_its_error_lie_on_the_shared_axis() -> None:
    reader = page(ScoreTable("", [Score("a", 0.5, 0.1), Score("b", 0.9, 0.1)]))
    first, second = (float(dot.attributes["cx"]) for dot in reader.all("circle"))
    assert first > second  # the better one stands first
    ends = [
        (float(e.attributes["x1"]), float(e.attributes["x2"])) for e in reader.all("line", "error")
    ]
    assert all(0 <= left < right <= 170 for left, right in ends)


def test_an_empty_table_says_so() -> None:
    assert "No rows." in page(ScoreTable("Scores", [])).all("div", "scores")[0].text


def test_a_family_has_one_colour_all_over_the_page() -> None:
    line = Line("log", [1, 2], [0.1, 0.2], family="upper-bound")
    table = ScoreTable("", [Score("exp", 1, family="upper-bound"), Score("ga", 0, family="other")])
    reader = page(Curves("", [Line("x", [1], [1], family="other"), line]), table)
    dots = [dot.attributes["class"].split()[1] for dot in reader.all("span", "dot")]
    lines = [group.attributes["class"].split()[1] for group in reader.all("g", "line")]
    assert dots == ["c1", "c0"]
    assert lines[:2] == ["c0", "c1"]


def test_an_unknown_mark_is_refused() -> None:
    with pytest.raises(InputError, match="mark is '!'; use one of '', '•', '○'"):
        Score("a", 1, mark="!")  # type: ignore[arg-type]
