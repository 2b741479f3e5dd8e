"""Charts: what is drawn where, and nothing that numbers could break."""

from __future__ import annotations

import re
from importlib.resources import files
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from report.markup import Page, pictures, read, svgs
from report.samples import calibration, curves, pairs, ranks, sizes

from ruleout.labels.errors import InputError
from ruleout.report import (
    CellTable,
    Curves,
    Histogram,
    Line,
    Matrix,
    Part,
    Ranks,
    Reliability,
    Report,
    Score,
    ScoreTable,
    Section,
    TableCell,
    TableRow,
    render,
)
from ruleout.report.charts import _FAR, heat, lanes, thinned
from ruleout.report.number_format import labels
from ruleout.report.svg import reach, spread, ticks

NAN, INF = float("nan"), float("inf")
ANY = st.one_of(st.none(), st.floats(), st.integers(), st.just(10**400))


def show(*parts: Part) -> str:
    return render(Report("", sections=[Section("", parts)]))


def page(*parts: Part) -> Page:
    return read(show(*parts))


def picture(part: Part) -> Page:
    """Read the chart alone."""
    (found,) = [one for one in svgs(show(part)) if one.startswith('<svg class="chart')]
    return read(found)


def assert_sound(markup: str) -> None:
    assert not re.search(r'="[^"]*\b(nan|inf|None)\b', markup)
    assert pictures(markup)
    read(markup)


@given(st.lists(st.tuples(ANY, ANY, ANY, ANY), max_size=5), st.sampled_from(["percent", "number"]))
@settings(max_examples=40)
def test_no_number_breaks_a_chart(rows: list[tuple[float, float, float, float]], unit: str) -> None:
    columns = [list(column) for column in zip(*rows, strict=True)] or [[], [], [], []]
    a, b, c, d = columns
    parts: list[Part] = [
        Curves("", [Line("line", a, b, c, d)], unit=unit),  # type: ignore[arg-type]
        Curves("", [Line("line", a, b)], y_range=(0, 1e-320)),
        Histogram("", a, expected=b),
        Reliability("", a, b, c, error=d),
        Matrix("", a, "xyzw", rows),
        ScoreTable("", [Score("", *row[:2], p_value=row[2], seconds=row[3]) for row in rows]),
        Ranks("", ["approach"] * len(rows), a, p_values=b),
    ]
    line = Line("line", a, b, c, d)
    cells = [
        TableCell(*row[:2], paper_mean=row[2], paper_std=row[3], trials=a, curves=[line])
        for row in rows
    ]
    parts.append(CellTable("", ["column"], [TableRow("", "row", [cell]) for cell in cells]))
    assert_sound(show(*parts, ScoreTable("", [Score("", 1, trials=a)])))


@pytest.mark.parametrize(
    "part",
    [
        Curves("", []),
        Histogram("", []),
        Reliability("", [], [], []),
        Matrix("", [], [], []),
        Ranks("", [], []),
        Matrix("", "ab", "ab", np.zeros((2, 2))),
    ],
)
def test_a_chart_without_numbers_says_so(part: Part) -> None:
    assert "There is nothing to show." in show(part)


def test_lines_that_are_not_chosen_stay_grey_and_below() -> None:
    groups = [group.attributes["class"].split() for group in picture(curves()).all("g", "line")]
    assert ["on" in group for group in groups] == [False] * 13 + [True] * 5


def test_names_at_the_ends_of_lines_never_touch() -> None:
    lines = [Line(f"line {i}", [0, 1], [0, 0.5 + i / 1000]) for i in range(18)]
    chart = Curves("", lines, visible=[line.name for line in lines])
    heights = sorted(float(e.attributes["y"]) for e in picture(chart).all("text", "placed"))
    assert len(heights) == 18
    assert min(np.diff(heights)) >= 14.9


def test_more_names_than_fit_are_left_to_the_legend() -> None:
    lines = [Line(f"line {i}", [0, 1], [0, i]) for i in range(60)]
    chart = Curves("", lines, visible=[line.name for line in lines])
    assert 10 < len(picture(chart).all("text", "placed")) < 30
    assert len(page(chart).all("button", "")) >= 60


def test_of_many_lines_the_five_that_end_highest_are_chosen() -> None:
    lines = [Line(f"line {i}", [0, 1], [0, i]) for i in range(9)] + [Line("lost", [0, 1], [1, NAN])]
    groups = [g for g in page(Curves("", lines)).all("button") if "data-toggle" in g.attributes]
    on = [g.text.split()[1] for g in groups if g.attributes["aria-pressed"] == "true"]
    assert on == ["4", "5", "6", "7", "8"]


def test_the_legend_names_the_last_value_of_every_line() -> None:
    lines = [Line("a", [1, 2, 3], [0.1, 0.934, None]), Line("b", [1], [None])]
    text = page(Curves("", lines, unit="percent")).all("div", "legend")[0].text.split()
    assert text == ["a", "93.4", "%", "b", "–"]


def test_a_gap_interrupts_a_line_and_a_lonely_point_is_a_dot() -> None:
    chart = picture(Curves("", [Line("a", [1, 2, 3, 4], [1, NAN, 2, 3])]))
    (stroke,) = [path for path in chart.all("path") if path.attributes.get("id")]
    assert stroke.attributes["d"].count("M") == 2
    assert len(chart.all("circle", "lone")) == 1


@given(
    st.lists(st.floats(0, 300), min_size=2, max_size=400),
    st.lists(st.floats(0.01, 9), min_size=400, max_size=400),
)
@settings(max_examples=60)
def test_a_drawn_line_is_nowhere_far_from_its_data(heights: list[float], gaps: list[float]) -> None:
    x, y = np.cumsum(gaps)[: len(heights)], np.array(heights)
    keep = thinned(x, y, 0.4)
    assert (keep[0], keep[-1]) == (0, len(y) - 1)
    assert np.abs(np.interp(x, x[keep], y[keep]) - y).max() <= 0.4


def test_outliers_do_not_draw_points_from_the_rest_of_a_curve() -> None:
    """As the cells of the paper do: 250 epochs, noise, and a few epochs far off."""
    random = np.random.default_rng(0)
    mean = 0.9 - 0.8 * np.exp(-np.arange(250) / 9) + random.normal(0, 0.004, 250)
    mean[random.integers(0, 250, 12)] -= 0.3
    cell = TableCell(0.9, curves=[Line("test", np.arange(250), mean)])
    markup = show(CellTable("", ["a"], [TableRow("", "b", [cell])]))
    (d,) = re.findall(r'<g class="stroke"><path d="([^"]*)"', markup)
    steps = np.array([pair(step) for step in re.findall("[Ml]([^Ml]+)", d)]).cumsum(0)
    drawn = np.interp(1000 * np.arange(250) / 249, *steps.T)
    pixels = np.ptp(drawn) / np.ptp(mean)  # of a share of one
    assert np.abs((drawn - drawn.min()) - pixels * (mean.max() - mean)).max() < 1
    assert pixels > 150


def pair(step: str) -> tuple[float, float]:
    """Read two numbers as a path writes them."""
    a, b = re.findall(r"-?(?:\d+\.?\d*|\.\d+)", step)
    return float(a), float(b)


def test_of_a_very_long_curve_the_extremes_are_drawn() -> None:
    mean = np.random.default_rng(0).normal(0, 1, 90_000)
    keep = thinned(np.arange(90_000.0), mean, 0.0)
    assert len(keep) <= 602
    ends = np.searchsorted(keep, np.arange(0, 90_001, 300))
    for place, (first, last) in enumerate(pairwise(ends.tolist())):
        stretch, drawn = mean[300 * place : 300 * (place + 1)], mean[keep[first:last]]
        assert (drawn.min(), drawn.max()) == (stretch.min(), stretch.max())


def test_a_straight_curve_needs_two_points() -> None:
    assert thinned(np.arange(250.0), np.linspace(0, 1, 250), 0.1).tolist() == [0, 249]


def test_a_curve_that_goes_back_is_drawn_whole() -> None:
    assert len(thinned(np.array([0.0, 2, 1, 3]), np.zeros(4), 1.0)) == 4


def test_a_line_of_unequal_lengths_is_refused() -> None:
    with pytest.raises(InputError, match="line 'a': x has 2, mean has 1 entries"):
        Line("a", [1, 2], [1])


def test_a_visible_name_must_be_a_line() -> None:
    with pytest.raises(InputError, match="no line is named 'lgo'"):
        Curves("", [Line("log", [1], [1])], visible=["lgo"])


def test_bars_are_as_high_as_their_counts() -> None:
    chart = picture(Histogram("", [10, 20, 0]))
    heights = [float(rect.attributes["height"]) for rect in chart.all("rect")]
    assert heights[1] == pytest.approx(2 * heights[0], abs=0.2)
    assert heights[2] == 0


def test_what_was_expected_is_drawn_over_the_bars_and_told() -> None:
    chart = picture(sizes())
    assert len(chart.all("circle")) == 9
    assert "expected under the law" in chart.all("title")[1].text
    assert not picture(Histogram("", [1, 2])).all("circle")


def test_many_sizes_share_bars_and_no_count_is_lost() -> None:
    counts = np.arange(999)
    titles = [title.text for title in picture(Histogram("", counts)).all("title")[1:]]
    assert len(titles) <= 48
    told = [int(re.findall(r": ([\d,]+) observed", t)[0].replace(",", "")) for t in titles]
    assert sum(told) == counts.sum()


def test_estimates_outside_the_axes_become_arrows_and_the_page_says_so() -> None:
    text = page(calibration()).all("figure")[0].text
    assert "2 bins lie outside" in text
    assert "estimated from what was ruled out" in text
    chart = picture(calibration())
    assert len(chart.all("circle")) == 8
    heights = [float(e.attributes[y]) for e in chart.all("line", "error") for y in ("y1", "y2")]
    assert min(heights) >= 36


def test_with_true_labels_nothing_is_called_an_estimate() -> None:
    assert "estimate" not in page(Reliability("", [0.5], [0.5], [9])).all("figure")[0].text


def test_ten_classes_show_numbers_and_a_hundred_show_shades() -> None:
    assert len(picture(pairs(10)).all("g", "cell")) == 101  # and the legend
    assert len(picture(pairs(100)).all("g", "cell")) == 1
    assert len(picture(pairs(100)).all("g", "row")) == 100


def test_beyond_a_hundred_classes_the_page_says_what_it_shows() -> None:
    text = page(pairs(101)).all("figure")[0].text
    assert "Shown are the 40 of 101 rows and the 40 of 101 columns" in text


def test_the_classes_kept_are_those_with_the_largest_counts() -> None:
    counts = np.zeros((200, 200))
    counts[150:190, 150:190] = 1
    kept = heat(Matrix("", range(200), range(200), counts))
    assert kept.rows == kept.columns == [str(place) for place in range(150, 190)]
    assert kept.shares.sum() == pytest.approx(40)


def test_shades_are_shares_of_the_row() -> None:
    ready = heat(Matrix("", "ab", "ab", [[1, 3], [100, 100]]))
    assert ready.shares.tolist() == [[0.25, 0.75], [0.5, 0.5]]
    assert ready.strength.max() == 1


def test_the_runs_of_a_large_map_cover_every_cell_once() -> None:
    markup = show(pairs(30))
    paths = read(markup).all("path", "shade")
    runs = [
        run for path in paths for run in re.findall(r"M(\d+) (\d+)h(\d+)", path.attributes["d"])
    ]
    cells = [(int(y), int(x) + i) for x, y, n in runs for i in range(int(n))]
    filled = np.argwhere(np.asarray(pairs(30).counts) > 0)
    assert len(cells) == len(set(cells))
    assert set(cells) == {(int(y), int(x)) for y, x in filled}


def test_every_approach_has_a_dot_where_its_rank_is() -> None:
    chart = picture(ranks())
    places = [float(dot.attributes["cx"].rstrip("%")) for dot in chart.all("circle")]
    assert len(places) == 18
    steps = np.diff(places)
    assert steps.min() == pytest.approx(steps.max(), abs=0.02)  # the ranks are evenly apart
    assert chart.all("title")[1].text == "LOG (upper-bound): average rank 1.40"
    assert "<td>PC (before-shuffle)</td><td>10.69</td><td>0.394</td>" in show(ranks())


def test_a_bar_reaches_from_the_first_of_its_group_to_the_last() -> None:
    part = Ranks("", "abcd", [1, 2, 3, 4], groups=[(0, 1), (1, 3)])
    heights = [float(dot.attributes["cy"]) for dot in picture(part).all("circle")]
    (bars,) = picture(part).all("path", "joined")
    ends = [float(one) for one in re.findall(r"M\d+ (\d+)V(\d+)", bars.attributes["d"])[1]]
    assert heights[0] < ends[0] < heights[1] < heights[3] < ends[1]
    assert not picture(Ranks("", "ab", [1, 2])).all("path", "joined")[0].attributes["d"]


@given(st.lists(st.tuples(st.integers(0, 30), st.integers(1, 9)), max_size=12))
def test_bars_of_one_lane_never_touch(bars: list[tuple[int, int]]) -> None:
    groups = sorted((first, first + more) for first, more in bars)
    for one, other in pairwise(sorted(lanes(groups), key=lambda bar: (bar[2], bar[0]))):
        assert one[2] != other[2] or one[1] < other[0]


def test_ranks_must_fit_the_names() -> None:
    with pytest.raises(InputError, match="ranks: names has 2, ranks has 1 entries"):
        Ranks("", "ab", [1])


def test_counts_must_fit_the_names() -> None:
    with pytest.raises(InputError, match="do not fit 2 row and 1 column names"):
        Matrix("", "ab", "a", [[1]])


@given(st.lists(st.floats(0, 300), max_size=20))
def test_labels_keep_their_order_their_gap_and_the_picture(wanted: list[float]) -> None:
    placed = spread(wanted, 15, 0, 300)
    order = sorted(range(len(wanted)), key=lambda i: wanted[i])
    assert all(placed[b] - placed[a] >= 15 - 1e-6 for a, b in pairwise(order))
    assert all(-1e-6 <= place <= 300 + 1e-6 for place in placed)


@given(st.floats(-1e99, 1e99), st.floats(-1e99, 1e99), st.integers(2, 9))
def test_ticks_are_few_and_inside(a: float, b: float, most: int) -> None:
    low, high = reach(np.array([a, b]))
    found, slack = ticks(low, high, most), 1e-6 * (high - low)
    assert 1 <= len(found) <= most
    assert all(low - slack <= tick <= high + slack for tick in found)
    assert len(set(labels(found))) == len(found) or high - low < 1e-3 * max(abs(low), abs(high))


def test_the_script_leads_to_names_as_the_chart_does() -> None:
    script = files("ruleout.report").joinpath("templates", "script.js").read_text("utf-8")
    assert f"<= {_FAR};" in script
