"""Cell tables on the page: cells, shades, what they open to, and how much room they take."""

from __future__ import annotations

import re
from importlib.resources import files

import pytest
from report.markup import Page, read
from report.samples import cells, hostile_cells

from ruleout.report import CellTable, Report, Section, TableCell, TableRow, render


def show(*tables: CellTable) -> str:
    return render(Report("", sections=[Section("", tables)]))


def page(*tables: CellTable) -> Page:
    return read(show(*tables))


def one(cell: TableCell, **more: object) -> CellTable:
    return CellTable("", ["MNIST"], [TableRow("upper-bound", "GCE", [cell])], **more)  # type: ignore[arg-type]


def opened(cell: TableCell, **more: object) -> str:
    (dialog,) = page(one(cell, **more)).all("dialog")
    return " ".join(dialog.text.split())


def test_every_cell_is_a_button_that_opens_its_own_dialog() -> None:
    reader = page(cells(), cells(2))
    buttons = [e for e in reader.all("button") if "aria-label" in e.attributes]
    wanted = [
        b.attributes["popovertarget"] for b in buttons if b.attributes["aria-label"] != "Close"
    ]
    assert wanted == [dialog.attributes["id"] for dialog in reader.all("dialog", "details")]
    assert len(wanted) == 18 * 6
    assert all("popover" in dialog.attributes for dialog in reader.all("dialog"))


def test_a_cell_says_in_words_what_its_shade_means() -> None:
    cell = TableCell(0.9, 0.01, paper_mean=0.8, paper_std=0.0, verdict="better")
    reader = page(one(cell))
    (button,) = [e for e in reader.all("button") if "GCE" in e.attributes.get("aria-label", "")]
    assert button.attributes["aria-label"] == (
        "GCE, MNIST: 90.00 ± 1.00; better than the paper: +10.00 points, "
        "10.0 combined standard deviations"
    )
    assert "▲" in button.text
    assert reader.all("td", "up3")


@pytest.mark.parametrize(
    ("mean", "kind"), [(0.9, ""), (0.915, "up1"), (0.87, "down2"), (0.8, "down3")]
)
def test_shades_follow_combined_standard_deviations(mean: float, kind: str) -> None:
    cell = TableCell(mean, 0.006, paper_mean=0.9, paper_std=0.008)
    (shown,) = page(one(cell)).all("td", "cell")
    assert shown.attributes["class"] == f"cell {kind}".strip()


def test_without_spread_the_verdict_gives_the_shade() -> None:
    cell = TableCell(0.8, paper_mean=0.9, verdict="worse")
    assert page(one(cell)).all("td", "down2")
    zero = TableCell(0.8, 0.0, paper_mean=0.9, paper_std=0.0)
    assert page(one(zero)).all("td", "down3")


def test_cells_carry_what_they_are_sorted_by() -> None:
    cell = TableCell(0.875, paper_mean=0.75)
    (shown,) = page(one(cell)).all("td", "cell")
    names = ("data-value", "data-paper", "data-gap")
    assert [shown.attributes[name] for name in names] == ["0.875", "0.75", "0.125"]
    (missing,) = page(one(TableCell(None))).all("td", "cell")
    assert missing.attributes["data-value"] == ""


def test_a_missing_cell_says_why() -> None:
    cell = TableCell(None, paper_mean=0.8, note="failed three times: overflow")
    (shown,) = page(one(cell)).all("td", "cell")
    assert shown.text == "–failed three times: overflow80.00"
    assert "failed three times: overflow" in opened(cell)


def test_an_opened_cell_shows_trials_configuration_facts_and_curves() -> None:
    reader = page(cells())
    dialog = reader.all("dialog")[0].text
    for words in ("LOG on Yeast", "upper-bound", "Ours", "Paper", "Difference", "learning rate"):
        assert words in dialog
    assert "0.001" in dialog
    assert "93.80 ± 0.41 %" in dialog
    assert "training ends at" in dialog
    assert len(reader.all("svg", "chart")) == 71


def test_an_opened_cell_explains_its_mark() -> None:
    cell = TableCell(0.5, mark="•", p_value=0.0123, p_holm=0.2)
    said = opened(cell, ours=["LOG"], test_label="t-test")
    assert (
        "LOG is significantly better, though not after the correction "
        "(t-test, p = 0.012, after Holm's correction p = 0.200)." in said
    )
    cell = TableCell(0.5, p_value=0.4)
    assert "No significant difference to LOG (t-test, p = 0.400)." in opened(
        cell, ours=["LOG"], test_label="t-test"
    )
    assert "significant" not in opened(cell, ours=["GCE"])


def test_a_table_without_the_paper_has_no_shades_and_no_switch() -> None:
    reader = page(one(TableCell(0.5, paper_mean=0.9, paper_std=0.1), compared=False))
    assert not reader.all("ul", "scale")
    assert not reader.all("span", "switches")
    assert "90.00" not in "".join(e.text for e in reader.all("main"))


def test_verdicts_are_counted_by_column_and_in_all() -> None:
    verdicts = ("agrees", "agrees", "better", "worse", "")
    rows = [
        TableRow("", "a", [TableCell(0.5, paper_mean=0.5, verdict=verdict)])  # type: ignore[arg-type]
        for verdict in verdicts
    ]
    reader = page(CellTable("", ["MNIST"], rows))
    assert "2 agree, 1 better ▲, 1 worse ▼" in reader.all("tfoot")[0].text
    said = reader.all("strong")[0].text
    assert said == "5 cells: 2 agree with the paper, 1 better, 1 worse, 1 without a verdict."


def test_marks_that_fall_to_the_correction_can_be_hidden() -> None:
    cells_ = [TableCell(0.5, mark="•", holm="•"), TableCell(0.5, mark="○")]
    reader = page(CellTable("", ["a", "b"], [TableRow("", "x", cells_)]))
    assert [span.text for span in reader.all("span", "k")] == ["•", "○"]
    assert [span.text for span in reader.all("span", "weak")] == ["○"]
    assert [b for b in reader.all("button") if b.attributes.get("data-cells") == "holm"]


def test_families_share_a_colour_and_open_with_a_rule() -> None:
    reader = page(cells(1))
    assert len(reader.all("tr", "opens")) == 6
    dots = [d.attributes["class"] for d in reader.all("span", "dot")][:4]
    assert dots == ["dot c0", "dot c0", "dot c1", "dot c1"]


def test_a_table_without_rows_says_so() -> None:
    assert "No rows." in show(CellTable("", ["a"], []))


def test_a_page_of_cells_stays_small() -> None:
    plain = len(show(CellTable("", [], [])))
    table = cells(6)
    assert (len(show(table).encode()) - plain) / len(table.cells) < 10_000


def test_what_cells_need_is_only_where_cells_are() -> None:
    assert ".details" in show(cells(1))
    assert ".details" not in render(Report("", sections=[Section("", [])]))


def test_style_and_script_know_every_class_and_switch() -> None:
    folder = files("ruleout.report").joinpath("templates")
    css, script, html = (
        folder.joinpath(f"cells.{kind}").read_text("utf-8") for kind in ("css", "js", "html")
    )
    for kind in ("up1", "up2", "up3", "down1", "down2", "down3", "details", "scale", "three"):
        assert f".{kind}" in css
    for name in re.findall('data-cells="(ours|paper|gap|holm|order)"', html):
        assert name in ("ours", "paper", "gap") or f'"{name}"' in script


def test_hostile_names_stay_text() -> None:
    reader = page(hostile_cells())
    assert len(reader.all("script")) == 1
    assert not [n for e in reader.elements for n in e.attributes if re.match("on|style", n)]
