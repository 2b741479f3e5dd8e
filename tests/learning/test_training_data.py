"""From a project to what is trained on: which items, which answers, which features."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from learning.labelled import NAMES, annotate, digits, make, write_images, write_rows

import ruleout as ro
from ruleout.datasets import Table
from ruleout.labels.errors import InputError
from ruleout.labels.origins import Evidence
from ruleout.learning import planning, read_lesson, read_review
from ruleout.learning.training_data import _aligned
from ruleout.web.answer_log import HEARD
from ruleout.web.entities import Item, Reply
from ruleout.web.error_rates import error_rates, evidence, gold_counts, told_rates, weights
from ruleout.web.importing import Earlier
from ruleout.web.project import Project

N = 24
X, Y = digits(N)


@pytest.fixture(scope="module")
def images(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Images with contradictions: people who err often, tested by gold questions."""
    place = tmp_path_factory.mktemp("images")
    source = write_images(place / "pictures", X)
    project, truth = make(place / "project", source, Y, gold=6, gold_rate=0.3, rounds=3, seed=3)
    annotate(project, truth, people=3, error=0.3)
    yield project
    project.close()


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Rows of numbers and a note, of which half are answered."""
    place = tmp_path_factory.mktemp("rows")
    source = write_rows(place / "rows.csv", X, ["seen"] * N)
    project, truth = make(place / "project", source, Y, rounds=1)
    annotate(project, truth, people=1, most=N // 2)
    yield project
    project.close()


@pytest.fixture(scope="module")
def texts(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Texts, all answered."""
    place = tmp_path_factory.mktemp("texts")
    source = place / "texts.csv"
    source.write_text("\n".join(["text", *(f"digit number {row}" for row in range(N))]))
    project, truth = make(place / "project", source, Y, rounds=1, text="text")
    annotate(project, truth, people=1)
    yield project
    project.close()


def names_of(project: Any) -> list[str]:
    return [item.name for _, item in project.store.items()]


def pixels(lesson: Any) -> Any:
    """The digits that the rows of a lesson should be, by the names of the items."""
    return X[[int("".join(filter(str.isdigit, name))) for name in lesson.table.row_names]]


@pytest.mark.parametrize("how", ["no", "intersection"])
def test_sets_are_those_of_the_export(images: Any, how: Any) -> None:
    found = read_lesson(images, how)
    wanted = images.store.answer_log().known(how)
    assert found.table.row_names == wanted.items
    assert found.target == wanted.sets
    assert np.abs(found.table.x - pixels(found)).max() < 1 / 500  # PNG holds bytes
    assert found.table.reading["how"] == how


def test_answers_are_those_that_the_unbiased_risk_takes(images: Any) -> None:
    found = read_lesson(images, "answers")
    wanted = images.store.answer_log().every_answer()
    items, sets, rates = wanted.per_item()
    assert found.table.row_names == tuple(names_of(images)[row] for row in items)
    again = found.target.per_item()  # type: ignore[union-attr]
    assert again[0].tolist() == list(range(len(items)))
    assert again[1] == sets
    assert np.array_equal(again[2], rates)


@pytest.mark.parametrize("how", ["no", "answers", "intersection"])
def test_contradictions_are_left_out_and_named(images: Any, how: Any) -> None:
    found = read_lesson(images, how)
    wrong = images.store.answer_log().known("intersection").contradictions
    assert wrong
    assert not set(wrong) & set(found.table.row_names or ())
    assert f"The answers about {len(wrong)} item(s) rule out every class" in found.notes[0]
    assert repr(wrong[0]) in found.notes[0]


def test_gold_questions_weigh_the_rows_and_are_no_rows(images: Any) -> None:
    found = read_lesson(images, "intersection")
    log, sets = images.store.answer_log(), found.target
    wanted = weights(log, sets, found.table.row_names or (), error_rates(log))  # type: ignore[arg-type]
    assert found.weight is not None
    assert np.allclose(found.weight, wanted)
    assert any("answers to gold questions" in note for note in found.notes)


@pytest.mark.parametrize("how", ["intersection", "answers", "no"])
def test_where_gold_questions_were_answered_contradictions_teach(images: Any, how: Any) -> None:
    """The likelihood is of just these answers."""
    found, log = read_lesson(images, how, graded=True), images.store.answer_log()
    said, names = found.target, found.table.row_names or ()
    assert isinstance(said, Evidence)
    assert found.weight is None
    assert {one.item for one in log.contradictions()} & {*names}
    places = np.array([log.items.index(name) for name in names])
    wanted = evidence(log, places, *HEARD[how])
    np.testing.assert_array_equal(said.likelihood, wanted.likelihood)
    asked = gold_counts(log)[1].sum()
    assert said.gold is not None
    assert said.gold[1] == asked
    assert any("answers to gold questions were wrong" in note for note in found.notes)


def test_without_gold_questions_agreement_tells_how_often_people_err(tmp_path: Path) -> None:
    """Three answers about each item, of which every fifth is wrong."""
    x, y = digits(150)
    project, truth = make(tmp_path / "project", write_rows(tmp_path / "rows.csv", x), y, rounds=3)
    with project:
        annotate(project, truth, people=4, error=0.2)
        log = project.store.answer_log()
        found = read_lesson(project, "intersection", graded=True)
        assert {one.item for one in log.contradictions()} & {*(found.table.row_names or ())}
        assert read_review(project).evidence is not None
        lead = project.store.add_user("Lea", "lead")
        for number, item in project.store.items():
            project.store.decide(number, lead, which=truth[item.name])
        after = told_rates(project.store.answer_log())
    said: Any = found.target
    rates = told_rates(log)
    assert (after.counts, after.own[:4].tolist()) == (rates.counts, rates.own.tolist())
    again = said.at_error(float(rates.team.mean()))  # the rate that it has already
    np.testing.assert_allclose(again.likelihood, said.likelihood)
    assert not rates.measured.any()
    assert 0.1 < rates.team[0] < 0.3
    assert said.gold == rates.counts
    assert any("People agree as if" in note for note in found.notes)
    best = said.likelihood.argmax(1)
    names = found.table.row_names or ()
    assert np.mean([truth[name] == c for name, c in zip(names, best, strict=True)]) > 0.2


@pytest.fixture(scope="module")
def gold(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Items of known class that everybody answers about: by import, and before it was known."""
    place = tmp_path_factory.mktemp("gold")
    x, y = digits(140)
    source = write_rows(place / "rows.csv", x)
    project, truth = make(place / "project", source, y, gold=6, gold_rate=0.3, rounds=1)
    annotate(project, truth, people=2)
    others = {name: tuple({*range(10)} - {code, (code + 1) % 10}) for name, code in truth.items()}
    told: Any = {"annotator": "Zoe"}
    given = [Earlier(item=one, kind="no", proposed=out, **told) for one, out in others.items()]
    more = [Earlier(item=one, kind="excluded", excluded=out, **told) for one, out in others.items()]
    project.store.bring([*given, *more])
    late = [item for _, item in project.store.items()][:20]
    now = (replace(item, gold=truth[item.name]) for item in late)
    project.store.grow(project.store.settings, now)
    known = {item.name for _, item in project.store.items() if item.gold is not None}
    assert len(known) == 26
    yield project, known
    project.close()


@pytest.mark.parametrize("how", ["intersection", "answers", "no"])
def test_what_is_known_never_trains(gold: Any, how: Any) -> None:
    project, known = gold
    found = read_lesson(project, how)
    told = project.store.answer_log().known("intersection")
    assert known <= {*told.tests}  # everybody answered about them
    assert not known & {*told.items}
    assert len(found.table) == 140 - len(known)
    assert not known & {*(found.table.row_names or ())}


def test_what_is_known_never_plans(gold: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    project, known = gold
    review, seen = read_review(project), set[str]()
    names = review.table.row_names or ()

    def noting(_: Table, known: Any, rows: Any, *__: Any) -> Any:
        seen.update(names[row] for row in rows)
        return np.zeros(len(known), np.intp)

    monkeypatch.setattr(planning, "_crossed", noting)
    planning.measure_curve(review)
    assert len(seen) >= 110
    assert not known & seen


def test_without_gold_questions_all_rows_weigh_alike(texts: Any, tmp_path: Path) -> None:
    source = tmp_path / "some.npz"
    np.savez(source, x=X, item=np.array(names_of(texts)))
    assert read_lesson(texts, source=source).weight is None


def test_only_numbers_among_the_cells_are_features(rows: Any) -> None:
    with pytest.raises(InputError, match=r"column 'more': 'seen' is not a number; ignore"):
        read_lesson(rows)
    found = read_lesson(rows, ignore=["more"])
    assert np.allclose(found.table.x, pixels(found))
    assert found.table.features == tuple(f"p{i}" for i in range(64))
    assert len(found.table) == N // 2
    some = read_lesson(rows, features=["p9", "p3"])
    assert np.allclose(some.table.x, pixels(some)[:, [9, 3]])


def test_text_is_read_where_its_words_are_asked_for(texts: Any) -> None:
    with pytest.raises(InputError, match="the items of the project are text; take their words"):
        read_lesson(texts)
    found = read_lesson(texts, text=["text"])
    assert all(name.startswith("text: ") for name in found.table.features)
    again = read_lesson(texts, reading=found.table.reading)
    np.testing.assert_array_equal(found.table.x, again.table.x)
    with pytest.raises(InputError, match="there is no column 'title'"):
        read_lesson(texts, text=["title"])


def test_a_column_of_text_beside_numbers_is_read_too(rows: Any) -> None:
    found = read_lesson(rows, text=["more"])
    assert found.table.features[64:] == ("more: seen",)


@pytest.mark.parametrize("suffix", ["csv", "parquet", "npz", "jsonl"])
def test_features_of_ones_own_are_found_by_name(texts: Any, suffix: str, tmp_path: Path) -> None:
    source, names, order = tmp_path / f"some.{suffix}", names_of(texts), np.arange(N)[::-1]
    kept = order[2:]  # the last two items are not there, and there is one that is no item
    item = [*(names[row] for row in kept), "stranger"]
    columns = {f"v{i}": [*X[kept, i].tolist(), 0.0] for i in (20, 21, 22)}
    if suffix == "npz":
        x = np.stack(list(columns.values()), 1)
        np.savez(source, x=x, item=np.array(item), features=np.array(list(columns)))
    elif suffix == "parquet":
        pq.write_table(pa.table({"item": item, **columns}), source)
    else:
        table = pa.table({"item": item, **columns})
        if suffix == "csv":
            pa.csv.write_csv(table, source)
        else:
            import json

            source.write_text("".join(json.dumps(row) + "\n" for row in table.to_pylist()))
    found = read_lesson(texts, source=source)
    assert found.table.row_names == tuple(names[:-2])
    assert np.allclose(found.table.x, X[: N - 2, 20:23])
    assert found.target == read_known(texts)[: N - 2]
    assert f"2 of {N} items are not in" in found.notes[0]


@pytest.mark.parametrize("spelled", [["'=1", "''=1", "x"], ["=1", "'=1", "x"]])
def test_features_of_names_that_differ_by_an_apostrophe(spelled: list[str]) -> None:
    """A file may spell names as exports of CSV do, or as they are."""
    x = np.arange(3, dtype=np.float32)[:, None]
    table = Table(x=x, shape=(1,), features=("v",), source=Path("f.csv"), sha256="",
                  row_names=tuple(spelled))  # fmt: skip
    items = [Item(name=name, kind="text") for name in ("x", "'=1", "=1")]
    assert _aligned(table, items).x.ravel().tolist() == [2, 1, 0]


def read_known(project: Project) -> ro.LabelSets:
    return project.store.answer_log().known("intersection").sets


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ("item,v\na,1\n", "the column 'item' names none of the items"),
        ("name,v\nrow 0,1\n", "there is no column 'item'"),
        ("item,v\nrow 0,1\nrow 0,2\n", "the name 'row 0' appears twice; give every row a name"),
        ("item,v\nrow 0,x\n", "'x' is not a number"),
        ("item\nrow 0\n", "no column is left as a feature"),
        ("item,v\n,1\n", "the name is empty"),
    ],
)
def test_a_bad_file_of_features_is_one_sentence(
    texts: Any, content: str, sentence: str, tmp_path: Path
) -> None:
    source = tmp_path / "bad.csv"
    source.write_text(content)
    with pytest.raises(InputError, match=sentence):
        read_lesson(texts, source=source)


def test_nothing_answered_yet(tmp_path: Path) -> None:
    project, _ = make(tmp_path / "p", write_rows(tmp_path / "rows.csv", X), Y)
    with project, pytest.raises(InputError, match=r"no item has an answer .* label some items"):
        read_lesson(project)


def test_classes_that_were_clicked_away_are_no_random_questions(tmp_path: Path) -> None:
    source = write_rows(tmp_path / "rows.csv", X)
    project, _ = make(tmp_path / "p", source, Y, mode="rule-out", rounds=1)
    with project:
        ann = project.store.add_user("Ann")
        for place, question in enumerate(project.store.next(ann, 3)):
            reply = Reply(id=f"r-{place}", kind="excluded", question=question.id, excluded=(1, 2))
            project.store.answer(ann, reply)
        with pytest.raises(InputError, match="teaches by 'answers'; try --how intersection"):
            read_lesson(project, "answers")
        lesson = read_lesson(project)
        assert lesson.target.to_lists() == [["one", "two"]] * 3  # type: ignore[union-attr]
        assert "Classes that people clicked away were not drawn at random" in lesson.notes[0]


def test_answers_to_random_sets_need_no_warning(images: Any) -> None:
    assert not any("at random" in note for note in read_lesson(images).notes)


def test_an_unknown_way_is_named(rows: Any) -> None:
    with pytest.raises(InputError, match="unknown way to learn 'answer'; did you mean 'answers'"):
        read_lesson(rows, "answer")  # type: ignore[arg-type]


def test_an_image_that_is_gone_is_named(tmp_path: Path) -> None:
    source = write_images(tmp_path / "pictures", X)
    project, truth = make(tmp_path / "p", source, Y, rounds=1)
    with project:
        annotate(project, truth, people=1)
        (source / "0003.png").unlink()
        with pytest.raises(InputError, match=r"there is no image '0003\.png' in the folder"):
            read_lesson(project)


def test_images_that_changed_since_do_not_teach(tmp_path: Path) -> None:
    """What was said is about the picture that was shown."""
    x, y = digits(40)
    source = write_images(tmp_path / "images", x)
    project, truth = make(tmp_path / "project", source, y, rounds=1)
    annotate(project, truth, people=1)
    before = names_of(project)
    changed = source / before[3]
    changed.write_bytes((source / before[5]).read_bytes())
    for found in (read_lesson(project), read_review(project)):
        assert changed.name not in (found.table.row_names or ())
    lesson = read_lesson(project)
    assert f"1 image changed since the project was made ('{changed.name}')" in lesson.notes[-1]
    for name in truth:
        (source / name).write_bytes(changed.read_bytes()[:-1])
    with pytest.raises(InputError, match="40 images changed"):
        read_lesson(project)
    project.close()


def test_images_that_cannot_be_read_do_not_teach(tmp_path: Path) -> None:
    """They were cut off before the project was made, which shows only when they are decoded."""
    x, y = digits(40)
    source = write_images(tmp_path / "images", x)
    for name in ("0000.png", "0003.png"):
        (source / name).write_bytes((source / name).read_bytes()[:-30])
    project, truth = make(tmp_path / "project", source, y, rounds=1)
    annotate(project, truth, people=1)
    for found in (read_lesson(project).table, read_review(project).table):
        assert "2 images cannot be read ('0000.png', '0003.png'): left out." in found.notes
        names = found.row_names or ()
        assert not {"0000.png", "0003.png"} & {*names}
        np.testing.assert_allclose(found.x, x[[int(name[:4]) for name in names]], atol=0.01)
    project.close()


def test_a_review_knows_all_that_is_known(images: Any) -> None:
    found, names = read_review(images), names_of(images)
    assert found.table.row_names == tuple(names)
    assert found.gold.tolist() == [-1] * (N - 6) + Y[N - 6 :].tolist()
    assert (found.sets.sizes[N - 6 :] == 9).all()
    rest = images.store.answer_log().known("intersection")
    for place, name in enumerate(names[: N - 6]):
        if name in rest.items:
            assert found.sets[place] == rest.sets[rest.items.index(name)]
        else:
            assert found.sets.sizes[place] == 0
    wanted = images.store.answer_log().every_answer()
    assert np.array_equal(found.answers.items, wanted.items)


def test_likelihoods_are_those_behind_the_weights(images: Any) -> None:
    """What they leave on one class is the weight of a row whose only candidate that is."""
    found, names = read_review(images), names_of(images)[: N - 6]
    log = images.store.answer_log()
    assert found.evidence is not None
    likely = found.evidence.likelihood
    chance = np.exp(likely[: N - 6])
    for code in range(10):
        alone = ro.LabelSets(1 - np.eye(10, dtype=int)[[code] * len(names)], NAMES)
        wanted = weights(log, alone, names, error_rates(log))
        assert np.allclose(chance[:, code] / chance.sum(1), wanted)
    assert np.array_equal(likely[N - 6 :].argmax(1), Y[N - 6 :])
    assert np.isneginf(likely[N - 6 :]).sum() == 6 * 9


def test_without_gold_questions_nobody_is_said_to_err(rows: Any) -> None:
    assert read_review(rows, ignore=["more"]).evidence is None


def test_items_asked_before_a_class_was_added_say_nothing_of_it_and_do_not_train(
    tmp_path: Path,
) -> None:
    """They could not rule it out, so that a model would call everything by its name."""
    source = write_images(tmp_path / "pictures", X)
    project, truth = make(tmp_path / "project", source, Y, rounds=1)
    annotate(project, truth, people=1)
    before = len(read_lesson(project).table)
    settings = project.store.settings
    project.store.grow(replace(settings, classes=(*settings.classes, "none of these")))
    with pytest.raises(InputError, match="asked about again"):
        read_lesson(project)
    project.store.grow(replace(project.store.settings, rounds=2))
    annotate(project, truth, people=1, most=N // 2, first=1)
    found = read_lesson(project)
    log = project.store.answer_log()
    again = {log.items[item] for item in log.item[log.asked_of == 11].tolist()}
    assert set(found.table.row_names or ()) == again
    assert 0 < len(again) < before
    assert f"{before - len(again)} item(s) were asked about only before" in found.notes[0]
    project.close()
