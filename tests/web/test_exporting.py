"""From the log to label sets, answers, weights and files: nothing lost, nothing made up."""

from __future__ import annotations

import csv
import json
import math
from itertools import chain
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from web.logs import CLASSES, row, simulated

import ruleout as ro
from ruleout.labels.errors import InputError
from ruleout.web import answer_log, project_export, reliability
from ruleout.web.entities import LogRow
from ruleout.web.spreadsheet import FORMULA, inert, names_cell, unescaped

NAMES = ["a", "b", "c", "d", "e", "f", "g"]
LOG = [
    row("a", "no", (0, 1)),
    row("b", "yes", (0, 1)),
    row("c", "excluded", (3,)),
    row("c", "no", (0,), "bob", round=1),
    row("d", "yes", (1, 2)),
    row("d", "which", (2,)),
    row("e", "no", (0, 1)),
    row("e", "no", (2, 3), "bob", round=1),
    row("f", "skip", (0,)),
    row("f", "no", (1,), counts=False),
    row("f", "undo"),
    row("g", "no", (0,), gold=True),
]


def table(found: answer_log.Known) -> dict[str, list[Any]]:
    return dict(zip(found.items, found.sets.to_lists(), strict=True))


# ------------------------------------------------------------------ label sets


def test_no_alone_is_the_papers_way() -> None:
    found = answer_log.known(LOG, NAMES, CLASSES, "no")
    assert table(found) == {"a": ["cat", "dog"], "c": ["cat", "fish"]}
    assert [(one.item, len(one.answers)) for one in found.contradictions] == [("e", 2)]
    assert found.unlabelled == ("b", "d", "f")
    assert found.tests == ("g",)


def test_intersection_uses_every_answer() -> None:
    found = answer_log.known(LOG, NAMES, CLASSES, "intersection")
    assert table(found) == {
        "a": ["cat", "dog"],
        "b": ["bird", "fish"],
        "c": ["cat", "fish"],
        "d": ["cat", "dog", "fish"],
    }
    assert [one.item for one in found.contradictions] == ["e"]
    assert found.unlabelled == ("f",)


def test_unlabelled_items_get_empty_rows_when_asked() -> None:
    found = answer_log.known(LOG, NAMES, CLASSES, "no", unlabelled=True)
    assert table(found) == {"a": ["cat", "dog"], "b": [], "c": ["cat", "fish"], "d": [], "f": []}
    assert found.unlabelled == ("b", "d", "f")


def test_an_empty_log_leaves_everything_unlabelled() -> None:
    found = answer_log.known([], NAMES, CLASSES)
    assert (len(found.sets), found.items, found.unlabelled) == (0, (), tuple(NAMES))


answers = st.lists(
    st.tuples(
        st.sampled_from(NAMES),
        st.sampled_from(["yes", "no", "which", "excluded", "skip"]),
        st.sets(st.integers(0, 3), min_size=1, max_size=3),
        st.booleans(),
        st.booleans(),
    ),
    max_size=30,
)


@given(answers, st.sampled_from(get_args(answer_log.How)))
def test_every_item_is_in_exactly_one_list_and_rows_equal_a_plain_loop(
    said: list[tuple[str, Any, set[int], bool, bool]], how: answer_log.How
) -> None:
    log = [
        row(item, kind, tuple(sorted(about)), counts=counts, gold=gold)
        for item, kind, about, counts, gold in said
    ]
    found = answer_log.known(log, NAMES, CLASSES, how)
    lists = [found.items, [one.item for one in found.contradictions], found.unlabelled, found.tests]
    assert sorted(chain(*lists)) == NAMES
    left = {name: set(range(4)) for name in NAMES}
    for item, kind, about, counts, gold in said:
        if not counts or gold:
            continue
        if kind in ("no", "excluded"):
            left[item] -= about
        elif how == "intersection" and kind == "yes":
            left[item] &= about
        elif how == "intersection" and kind == "which":
            left[item] &= {min(about)}
    assert [one.item for one in found.contradictions] == [n for n in NAMES if not left[n]]
    for name, names in table(found).items():
        assert names == [CLASSES[c] for c in range(4) if c not in left[name]]


def test_a_truthful_team_never_rules_the_truth_out() -> None:
    truth = [n % 5 for n in range(200)]
    log = simulated(truth, ("ada", "bob"), 5)
    names = [f"item {n}" for n in range(200)]
    for how in get_args(answer_log.How):
        found = answer_log.known(log, names, list("vwxyz"), how)
        assert not found.contradictions
        y = [truth[names.index(item)] for item in found.items]
        assert not found.sets.excluded[np.arange(len(y)), y].any()


def test_a_log_of_other_items_or_classes_is_refused() -> None:
    with pytest.raises(InputError, match="about an item 'z' that is not there; give all items"):
        answer_log.known([row("z", "no", (0,))], NAMES, CLASSES)
    with pytest.raises(InputError, match="is about class 4, but there are 4 classes; use the"):
        answer_log.known([row("a", "no", (4,))], NAMES, CLASSES)


def test_ten_thousand_items_take_a_moment() -> None:
    truth = [n % 10 for n in range(10_000)]
    log = simulated(truth, ("ada", "bob"), 10)
    found = answer_log.known(log, [f"item {n}" for n in range(10_000)], list("abcdefghij"))
    assert len(found.items) > 5000


# ------------------------------------------------------------------ every answer


def test_every_answer_is_what_the_unbiased_risk_takes() -> None:
    answers, wrong = answer_log.every_answer(LOG, NAMES, CLASSES)
    assert [NAMES[item] for item in answers.items] == ["a", "b", "c", "d"]
    assert answers.yes.tolist() == [False, True, False, True]
    assert answers.asked.to_lists() == [["cat", "dog"]] * 2 + [["cat"], ["dog", "bird"]]
    assert [one.item for one in wrong] == ["e"]
    items, sets, rates = answers.per_item()
    assert items.tolist() == [0, 1, 2, 3]
    assert sets.to_lists()[1] == ["bird", "fish"]
    assert rates == pytest.approx([4 / 12, 4 / 12, 6 / 12, 4 / 12])


def test_a_draw_answered_twice_enters_once_and_imports_never() -> None:
    log = [
        row("a", "no", (0,), "ada", round=0),
        row("a", "no", (0,), "bob", round=0),
        row("a", "no", (0,), "bob", round=1),  # the same set, drawn anew
        row("b", "no", (0,), law="imported"),
    ]
    answers, _ = answer_log.every_answer(log, NAMES, CLASSES)
    assert answers.items.tolist() == [0, 0]
    assert answers.per_item()[2] == pytest.approx([0.25])


def test_answers_are_in_the_order_of_items_and_imports_contradict_nothing_there() -> None:
    log = [
        row("c", "no", (0,)),
        row("a", "yes", (1, 2), round=1),
        row("a", "no", (1, 2), law="imported"),
    ]
    answers, wrong = answer_log.every_answer(log, NAMES, CLASSES)
    assert answers.items.tolist() == [0, 2]
    assert wrong == ()


def test_the_risk_of_an_exported_log_is_unbiased() -> None:
    """Over many draws the estimate of a fixed loss comes to the loss of the true classes."""
    n, k = 20_000, 4
    truth = np.arange(n) % k
    log = simulated(truth.tolist(), ("ada",), k, seed=9)
    answers, _ = answer_log.every_answer(log, [f"item {i}" for i in range(n)], CLASSES)
    items, sets, rates = answers.per_item()
    losses = np.array([0.1, 1.0, 2.0, 4.0])
    each = (losses * (1 - sets.excluded - rates[:, None]) / (1 - rates[:, None])).sum(1)
    error = each.std() / math.sqrt(len(items))
    assert abs(each.mean() - losses[truth].mean()) < 4 * error


# ------------------------------------------------------------------ weights


def gold_log(right: int, wrong: int, user: str = "ada", kind: str = "free") -> list[LogRow]:
    """Answers to gold questions about item ``t``, whose class is 0."""
    good: tuple[str, tuple[int, ...]]
    bad: tuple[str, tuple[int, ...]]
    if kind == "free":
        good, bad = ("excluded", (1,)), ("excluded", (0,))
    elif kind == "yes":
        good, bad = ("yes", (0, 1)), ("no", (0, 1))
    else:
        good, bad = ("no", (1, 2)), ("yes", (1, 2))
    said = [good] * right + [bad] * wrong
    return [row("t", kind, about, user, gold=True) for kind, about in said]


def test_error_rates_by_hand() -> None:
    log = [*gold_log(8, 2, "ada"), *gold_log(10, 0, "bob"), *gold_log(3, 1, "ada", "yes")]
    found = reliability.reliabilities(log, {"t": 0}, 4, assumed=0.1)
    team = 3 / 22
    assert found.team == {"yes": pytest.approx(2 / 6), "no": 0.1, "free": pytest.approx(team)}
    assert found.error("ada", "free") == pytest.approx((2 + 2 * team) / 12)
    assert found.error("bob", "free") == pytest.approx((0 + 2 * team) / 12)
    assert found.error("cy", "free") == pytest.approx(team)
    assert found.error("ada", "yes") == pytest.approx((1 + 2 * 2 / 6) / 6)
    assert found.error("ada", "no") == 0.1


def weigh(log: list[LogRow], trust: reliability.Reliability, how: answer_log.How) -> list[float]:
    found = answer_log.known(log, NAMES, CLASSES, how)
    return list(reliability.weights(log, found.sets, found.items, trust))


TRUST = reliability.Reliability({"yes": 0.2, "no": 0.1, "free": 0.3})


def test_one_free_answer_weighs_what_its_annotator_is_right() -> None:
    log = [row("a", "excluded", (0, 1)), row("b", "which", (2,)), row("c", "excluded", (3,))]
    assert weigh(log, TRUST, "intersection") == pytest.approx([0.7, 0.7, 0.7])


def test_proposals_weigh_by_bayes_rule_by_hand() -> None:
    # "no" to two of four: right 0.9 where it is outside, said in error 0.2 where it is inside
    assert weigh([row("a", "no", (0, 1))], TRUST, "no") == pytest.approx([0.9 / 1.1])
    # "yes" to one of four: said 0.8 for that class, in error 0.1 for each of three
    assert weigh([row("a", "yes", (0,))], TRUST, "intersection") == pytest.approx([0.8 / 1.1])


def test_agreement_raises_a_weight_and_dissent_lowers_it() -> None:
    one = row("a", "no", (0, 1), "ada")
    alone = weigh([one], TRUST, "no")
    agreed = weigh([one, row("a", "no", (0, 1), "bob")], TRUST, "no")
    opposed = weigh([one, row("a", "yes", (0, 1), "bob")], TRUST, "no")
    assert opposed < alone < agreed
    assert agreed == pytest.approx([0.81 / 0.85])
    assert opposed == pytest.approx([0.09 / (0.09 + 0.16)])


def test_the_yes_before_which_is_not_heard_twice() -> None:
    log = [row("a", "yes", (0, 1)), row("a", "which", (0,))]
    assert weigh(log, TRUST, "intersection") == pytest.approx([0.7])


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["yes", "no", "excluded", "which"]),
            st.sets(st.integers(0, 3), min_size=1, max_size=3),
            st.sampled_from(["ada", "bob"]),
        ),
        min_size=1,
        max_size=5,
    )
)
def test_weights_equal_a_plain_loop_over_classes(said: list[tuple[Any, set[int], str]]) -> None:
    own: dict[Any, float] = {("ada", "yes"): 0.01, ("bob", "no"): 0.4, ("bob", "free"): 0.05}
    trust = reliability.Reliability(TRUST.team, own)
    log = [
        row("a", kind, tuple(sorted(about)), user, round=turn)
        for turn, (kind, about, user) in enumerate(said)
    ]
    found = answer_log.known(log, ["a"], CLASSES, "no")
    if not found.items:
        return
    chances = []
    for y in range(4):
        chance = 1.0
        for kind, about, user in said:
            if kind in ("yes", "no"):
                form: Any = "yes" if y in about else "no"
                error = trust.error(user, form)
                chance *= 1 - error if kind == form else error
            else:
                out = about if kind == "excluded" else set(range(4)) - {min(about)}
                error, s = trust.error(user, "free"), len(out)
                chance *= error / math.comb(3, s - 1) if y in out else (1 - error) / math.comb(3, s)
        chances.append(chance)
    left = [c for c in range(4) if CLASSES[c] not in found.sets.to_lists()[0]]
    wanted = sum(chances[c] for c in left) / sum(chances)
    assert reliability.weights(log, found.sets, found.items, trust) == pytest.approx([wanted])


def test_weights_are_calibrated_for_a_simulated_team() -> None:
    """Among rows of weight about w, about w of them hold the true class."""
    truth = np.random.default_rng(1).integers(0, 6, 4000).tolist()
    log = simulated(truth, ("ada", "bob"), 6, errors=0.2, seed=2)
    log += [
        row("t", one.kind, one.proposed, one.user_name, gold=True, item_name=f"t{one.item_name}")
        for one in simulated(truth[:1000], ("ada", "bob"), 6, errors=0.2, seed=3)
    ]
    gold = {f"titem {n}": y for n, y in enumerate(truth[:1000])}
    trust = reliability.reliabilities(log, gold, 6)
    names = [f"item {n}" for n in range(4000)]
    found = answer_log.known(log, names, list("uvwxyz"), "intersection")
    w = reliability.weights(log, found.sets, found.items, trust)
    y = [truth[int(item.split()[1])] for item in found.items]
    right = ~found.sets.excluded[np.arange(len(y)), y]
    for part in np.array_split(np.argsort(w), 5):
        error = math.sqrt(0.25 / len(part))
        assert abs(right[part].mean() - w[part].mean()) < 4 * error


# ------------------------------------------------------------------ files

HOSTILE = ["=1+1.png", "a|b,\"c'.png", "+x/é.png", "-7.png", "@sum", "'quoted'", "plain.png"]
EVIL = ("=cmd|' /C calc'!A0", "-dog", "a\\b", '@x,"y"')


@pytest.mark.parametrize("suffix", [".csv", ".jsonl", ".parquet", ".npz"])
@pytest.mark.parametrize("column", ["item", "file"])
def test_label_sets_are_read_back_whatever_the_names(
    tmp_path: Path, suffix: str, column: str
) -> None:
    sets = ro.LabelSets.from_lists(
        [[0], [1, 2], [0, 1, 3], [3], [1], [2, 3], []], EVIL, unlabelled=True
    )
    file = tmp_path / f"sets{suffix}"
    project_export.write_sets(sets, HOSTILE, file, weights=np.linspace(0.1, 1, 7), column=column)
    assert ro.LabelSets.read(file, unlabelled=True) == sets
    assert [one.name for one in tmp_path.iterdir()] == [file.name]


def test_names_and_weights_stand_beside_the_sets(tmp_path: Path) -> None:
    sets = ro.LabelSets.from_lists([["cat"], ["dog", "fish"]], CLASSES)
    for suffix in ("jsonl", "parquet", "npz"):
        project_export.write_sets(sets, ["=a", "b"], tmp_path / f"s.{suffix}", weights=[0.5, 1])
    lines = [json.loads(line) for line in (tmp_path / "s.jsonl").read_text().splitlines()]
    assert lines[1] == {"item": "=a", "excluded": ["cat"], "weight": 0.5}
    read = pq.read_table(tmp_path / "s.parquet").to_pylist()
    assert read[1] == {"item": "b", "excluded": ["dog", "fish"], "weight": 1.0}
    arrays = np.load(tmp_path / "s.npz")
    assert arrays["item"].tolist() == ["=a", "b"]
    assert arrays["weight"].tolist() == [0.5, 1.0]


@pytest.mark.parametrize("column", ["item", "file"])
def test_no_cell_of_a_csv_begins_like_a_formula(tmp_path: Path, column: str) -> None:
    sets = ro.LabelSets.from_lists([[0], [1], [3], [0, 1], [1], [3], [2]], EVIL)
    project_export.write_sets(sets, HOSTILE, tmp_path / "s.csv", column=column)
    log = [row(name, "no", (n % 4,), "=HYPERLINK()") for n, name in enumerate(HOSTILE)]
    log += [row("-1", "which", (0,), "+ada", id="@id", undoes="=1", law="-x")]
    project_export.write_log(log, EVIL, tmp_path / "log.csv")
    project_export.write_names(HOSTILE, tmp_path / "names.csv")
    for file in tmp_path.iterdir():
        with open(file, newline="", encoding="utf-8") as stream:
            cells = list(chain(*csv.reader(stream)))
        assert not [cell for cell in cells if cell.startswith(FORMULA)]


def test_the_file_column_is_one_that_the_readers_of_folders_take(tmp_path: Path) -> None:
    from PIL import Image

    folder = tmp_path / "images"
    folder.mkdir()
    for name in ("=1.png", "b.png"):
        Image.new("L", (2, 2)).save(folder / name)
    sets = ro.LabelSets.from_lists([["cat"], ["dog"]], CLASSES)
    project_export.write_sets(sets, ["=1.png", "b.png"], tmp_path / "labels.csv", column="file")
    read = ro.datasets.read_table(folder, excluded="excluded", labels_file=tmp_path / "labels.csv")
    assert read.sets == sets
    assert read.row_names == ("=1.png", "b.png")


def test_all_ways_to_begin_a_formula_are_known() -> None:
    for start in "=+-@\t\r\n＝＋－＠":
        assert inert(f"{start}1") == f"'{start}1"


@given(st.text())
def test_what_is_made_inert_is_the_same_when_read(text: str) -> None:
    assert not inert(text).startswith(FORMULA)
    if not text.startswith("'"):
        assert unescaped(inert(text)) == text


@given(st.lists(st.text(min_size=1).filter(lambda name: name.strip() != ""), min_size=1))
def test_cells_of_names_read_back(names: list[str]) -> None:
    from ruleout.labels.row_files import split

    cell = names_cell(names)
    assert not cell.startswith(FORMULA)
    assert split(cell) == names


def test_the_log_is_complete_in_every_kind_of_file(tmp_path: Path) -> None:
    log = [*LOG, row("a", "no", (0,), late=True, counts=False, took_ms=None, sent=None)]
    for suffix in ("csv", "jsonl", "parquet"):
        project_export.write_log(log, CLASSES, tmp_path / f"log.{suffix}")
    read = pq.read_table(tmp_path / "log.parquet").to_pylist()
    lines = [json.loads(line) for line in (tmp_path / "log.jsonl").read_text().splitlines()][1:]
    with open(tmp_path / "log.csv", newline="", encoding="utf-8") as stream:
        cells = list(csv.DictReader(stream))
    assert len(read) == len(lines) == len(cells) == len(log)
    for one, got, line, cell in zip(log, read, lines, cells, strict=True):
        proposed = [CLASSES[code] for code in one.proposed]
        assert got["proposed"] == line["proposed"] == proposed
        assert cell["proposed"] == "|".join(proposed)
        assert got["id"] == line["id"] == cell["id"] == one.id
        assert (got["received"], got["time"]) == (one.received, one.sent)
        assert line["received"] == cell["received"] == one.received.isoformat()
        assert (got["counts"], cell["counts"]) == (one.counts, "yes" if one.counts else "no")
        assert (got["which"] or "") == cell["which"]
        assert got["took_ms"] == line["took_ms"] == one.took_ms
    project_export.write_log([], CLASSES, tmp_path / "none.parquet")
    assert pq.read_table(tmp_path / "none.parquet").num_rows == 0


def test_contradictions_are_a_list_of_their_own(tmp_path: Path) -> None:
    found = answer_log.known(LOG, NAMES, CLASSES, "no")
    project_export.write_contradictions(found.contradictions, CLASSES, tmp_path / "c.jsonl")
    lines = [json.loads(line) for line in (tmp_path / "c.jsonl").read_text().splitlines()][1:]
    assert [(line["item"], line["annotator"]) for line in lines] == [("e", "ada"), ("e", "bob")]


def test_a_failed_writing_leaves_the_old_file(tmp_path: Path) -> None:
    file = tmp_path / "log.csv"
    file.write_text("old")
    with pytest.raises(InputError, match=r"a cell would be .* write \.parquet instead"):
        project_export.write_log([row("a", "no", (0,))], ("x" * 200_000, "y"), file)
    assert file.read_text() == "old"
    assert [one.name for one in tmp_path.iterdir()] == ["log.csv"]


def test_bad_requests_are_one_sentence(tmp_path: Path) -> None:
    sets = ro.LabelSets.from_lists([["cat"]], CLASSES)
    with pytest.raises(InputError, match="1 rows but 2 items; give one name per row"):
        project_export.write_sets(sets, ["a", "b"], tmp_path / "a.csv")
    with pytest.raises(InputError, match="the assumed error rate is 0; give one between 0 and 1"):
        reliability.reliabilities([], {}, 4, assumed=0)
    with pytest.raises(InputError, match=r"unknown file type '.xls'; use one of .csv, .tsv"):
        project_export.write_sets(sets, ["a"], tmp_path / "a.xls")
