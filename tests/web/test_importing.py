"""Answers from elsewhere: read as they were meant, or refused in one sentence."""

from __future__ import annotations

import json
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from web.logs import CLASSES, row

from ruleout.labels.errors import InputError
from ruleout.web import importing, project_export
from ruleout.web.entities import Item
from ruleout.web.importing import Matcher

NAMES = ["pets/cat.png", "wild/cat.png", "dog.png", "=1.png"]
IMAGES = [Item(name=name, kind="image", path=name) for name in NAMES]
TEXTS = [Item(name=f"row {n}", kind="text", text=text) for n, text in enumerate(["hi", "ho"])]


def annotation(*choices: Any, **more: Any) -> dict[str, Any]:
    result = {
        "type": "choices",
        "from_name": "kind",
        "to_name": "img",
        "value": {"choices": list(choices)},
    }
    return {"id": 1, "completed_by": 10, "result": [result], **more}


def task(item: Any = "dog.png", *annotations: Any, **more: Any) -> dict[str, Any]:
    return {"id": 1, "data": {"image": item}, "annotations": list(annotations), **more}


def studio(folder: Path, content: Any, **options: Any) -> importing.Imported:
    file = folder / "export.json"
    file.write_text(content if isinstance(content, str) else json.dumps(content))
    return importing.read_label_studio(file, options.pop("items", IMAGES), CLASSES, **options)


def answers(folder: Path, content: str, name: str = "a.csv") -> importing.Imported:
    (folder / name).write_text(content)
    return importing.read_answers(folder / name, NAMES, CLASSES)


# ------------------------------------------------------------------ Label Studio


def test_a_choice_is_the_class(tmp_path: Path) -> None:
    one = annotation("bird", created_at="2021-03-09T22:16:08.728353Z", lead_time=4.288)
    two = annotation("dog", completed_by={"id": 3, "email": "ada@example.org"})
    found = studio(tmp_path, [task("dog.png", one, two)])
    assert found.notes == ()
    assert found.answers == (
        importing.Earlier(
            item="dog.png",
            annotator="10",
            kind="which",
            which=2,
            time=datetime(2021, 3, 9, 22, 16, 8, 728353, UTC),
            took_ms=4288,
        ),
        importing.Earlier(item="dog.png", annotator="ada@example.org", kind="which", which=1),
    )


@pytest.mark.parametrize(("meaning", "excluded"), [("excluded", (0, 1)), ("candidates", (2, 3))])
def test_choices_may_be_what_it_is_not_or_what_it_may_be(
    tmp_path: Path, meaning: importing.Meaning, excluded: tuple[int, ...]
) -> None:
    found = studio(tmp_path, [task("dog.png", annotation("dog", "cat"))], meaning=meaning)
    assert [(one.kind, one.excluded) for one in found.answers] == [("excluded", excluded)]


def test_cancelled_and_empty_annotations_are_skips(tmp_path: Path) -> None:
    cancelled = annotation("cat", was_cancelled=True)
    found = studio(tmp_path, [task("dog.png", cancelled), task("=1.png", {"result": []})])
    assert [(one.item, one.kind) for one in found.answers] == [
        ("dog.png", "skip"),
        ("=1.png", "skip"),
    ]
    assert found.answers[1].annotator == "label-studio"


def test_predictions_drafts_and_other_results_are_no_answers(tmp_path: Path) -> None:
    box = {"type": "rectanglelabels", "from_name": "box", "value": {"x": 1}}
    mixed = annotation("cat")
    mixed["result"].append(box)
    content = [task("dog.png", mixed, predictions=[annotation("dog")], drafts=[annotation("fish")])]
    assert [one.which for one in studio(tmp_path, content).answers] == [0]


@pytest.mark.parametrize(
    ("value", "wanted"),
    [
        ("dog.png", "dog.png"),
        ("/data/upload/3/0a1b2c3d-dog.png", "dog.png"),
        ("/data/local-files/?d=wild/cat.png", "wild/cat.png"),
        ("https://example.org/images/pets/cat.png?token=1", "pets/cat.png"),
        ("s3://bucket/dog.png", "dog.png"),
        ("/data/upload/3/%3D1.png", "=1.png"),
        ("C:/photos/dog.png", "dog.png"),
    ],
)
def test_images_are_found_by_the_end_of_their_path(value: str, wanted: str) -> None:
    assert Matcher(IMAGES).find({"image": value}, None, False) == wanted


def test_an_image_that_may_be_two_is_refused() -> None:
    with pytest.raises(InputError, match=r"may be any of 'pets/cat\.png', 'wild/cat\.png'; name"):
        Matcher(IMAGES).find({"image": "/data/upload/3/0a1b2c3d-cat.png"}, None, False)


def test_texts_are_found_by_what_they_say(tmp_path: Path) -> None:
    content = [{"data": {"id": 4, "text": "ho"}, "annotations": [annotation("cat")]}]
    assert studio(tmp_path, content, items=TEXTS).answers[0].item == "row 1"


@given(st.text())
def test_no_value_breaks_the_matching(value: str) -> None:
    assert Matcher(IMAGES).find({"image": f"x{value}x"}, None, True) in (None, *NAMES)


def test_unknown_tasks_may_be_left_out_with_a_note(tmp_path: Path) -> None:
    content = [task("cow.png", annotation("cat")), task("dog.png", annotation("cat"))]
    found = studio(tmp_path, content, skip_unknown=True)
    assert len(found.answers) == 1
    assert found.notes == ("1 task(s) that match no item: left out.",)


def test_one_of_several_sets_of_choices_is_chosen_by_name(tmp_path: Path) -> None:
    both = annotation("cat")
    both["result"].append(annotation("good")["result"][0] | {"from_name": "quality"})
    with pytest.raises(InputError, match="2 sets of choices, 'kind', 'quality'; name the one"):
        studio(tmp_path, [task("dog.png", both)])
    assert studio(tmp_path, [task("dog.png", both)], control="kind").answers[0].which == 0


BOMB = "[" * 100_000 + "]" * 100_000
BAD_EXPORTS: list[tuple[Any, str]] = [
    ("", "export.json: this is not valid JSON; fix or remove it"),
    (BOMB, "export.json: this is not valid JSON; fix or remove it"),
    ('[{"data": {"a": ' + "9" * 5000 + "}}]", "export.json: this is not valid JSON; fix"),
    ({"a": 1}, "export.json: the file is not a list of tasks; export as JSON from Label Studio"),
    ([1], "export.json, row 0: this is not a task with data; export as JSON, not JSON-MIN"),
    ([{"image": "x", "choice": "cat"}], "export.json, row 0: this is not a task with data; export"),
    ([task(), {"data": {}, "annotations": 3}], "export.json, row 1: annotations is 3, not a list"),
    ([task("dog.png", 5)], "export.json, row 0: an annotation is 5, not an object; export it"),
    ([task("dog.png", {"result": [7]})], "export.json, row 0: a result is 7, not an object"),
    (
        [task("dog.png", {"result": [{"type": "choices", "value": 3}]})],
        "export.json, row 0: value is 3, not an object",
    ),
    (
        [task("dog.png", {"result": [{"type": "choices", "value": {"choices": "cat"}}]})],
        "export.json, row 0: choices is 'cat', not a list; export it again",
    ),
    (
        [task("dog.png", annotation("cta"))],
        "export.json, row 0: unknown class 'cta'; did you mean 'cat'?",
    ),
    ([task("dog.png", annotation({"a": 1}))], "export.json, row 0: unknown class {'a': 1}; the"),
    (
        [task("dog.png", annotation("cat", "cat"))],
        "export.json, row 0: class 'cat' appears twice; name each class once",
    ),
    (
        [task("dog.png", annotation("cat", "dog"))],
        "export.json, row 0: 2 classes are chosen, 'cat', 'dog'; say whether they",
    ),
    ([task("dgo.png", annotation("cat"))], "export.json, row 0: no item matches ['dgo.png']; did"),
    ([task([1], annotation("cat"))], "export.json, row 0: no item matches [[1]]; check the export"),
    (
        [task("dog.png", annotation("cat", lead_time=-1))],
        "export.json, row 0, column 'lead_time': -1 is not a duration; give a number from 0",
    ),
    (
        [task("dog.png", annotation("cat", lead_time=float("nan")))],
        "export.json, row 0, column 'lead_time': nan is not a duration; give a number from 0",
    ),
    (
        [task("dog.png", annotation("cat", created_at="yesterday"))],
        "export.json, row 0, column 'created_at': 'yesterday' is not a time; write it like 2026-01",
    ),
    (
        [task("dog.png", annotation("cat", completed_by="a\u202eb"))],
        "export.json, row 0, column 'completed_by': the annotator 'a\\\\u202eb' holds a character",
    ),
    (
        [task("dog.png", annotation("cat", completed_by=[1]))],
        "export.json, row 0, column 'completed_by': the annotator is blank; say who answered",
    ),
]


@pytest.mark.parametrize(("content", "sentence"), BAD_EXPORTS)
def test_bad_exports_are_one_sentence(tmp_path: Path, content: Any, sentence: str) -> None:
    with pytest.raises(InputError) as caught:
        studio(tmp_path, content)
    assert str(caught.value).removeprefix(f"{tmp_path}/").startswith(sentence)


def test_a_wrong_key_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"row 0: data has no key 'imag'; did you mean 'image'\?"):
        studio(tmp_path, [task("dog.png", annotation("cat"))], key="imag")
    with pytest.raises(InputError, match="every class is ruled out; leave a class unchosen"):
        studio(tmp_path, [task("dog.png", annotation(*CLASSES))], meaning="excluded")


scalars = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5)
anything = st.recursive(
    scalars | st.just("dog.png") | st.just("choices"),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["data", "annotations", "result", "value", "choices", "type", "image"]),
            inner,
            max_size=4,
        )
    ),
    max_leaves=20,
)


@given(st.lists(anything, max_size=3))
def test_no_export_raises_anything_but_a_sentence(
    tmp_path_factory: pytest.TempPathFactory, content: list[Any]
) -> None:
    with suppress(InputError):
        studio(tmp_path_factory.getbasetemp(), content)


# ------------------------------------------------------------------ plain tables


def test_every_kind_of_answer_is_read(tmp_path: Path) -> None:
    found = answers(
        tmp_path,
        "item,annotator,kind,proposed,excluded,which,time,seconds\n"
        "dog.png,ada,no,cat|dog,,,2026-01-02 03:04:05,1.5\n"
        "dog.png,ada,yes,bird|fish,,,2026-01-02T04:04:05+01:00,\n"
        "dog.png,bob,which,,,fish,,\n"
        "=1.png,bob,excluded,,fish| cat,,,\n"
        "'=1.png,cy,skip,,,,,\n",
    )
    time = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
    assert [(one.kind, one.proposed, one.excluded, one.which) for one in found.answers] == [
        ("no", (0, 1), (), None),
        ("yes", (2, 3), (), None),
        ("which", (), (), 3),
        ("excluded", (), (0, 3), None),
        ("skip", (), (), None),
    ]
    assert [one.time for one in found.answers] == [time, time, None, None, None]
    assert [one.took_ms for one in found.answers] == [1500, None, None, None, None]
    assert [one.item for one in found.answers] == ["dog.png"] * 3 + ["=1.png"] * 2
    assert {one.law for one in found.answers} == {"imported"}


def test_reading_twice_gives_the_same_ids_and_repeats_are_one(tmp_path: Path) -> None:
    line = "dog.png,ada,excluded,cat|dog\n"
    found = answers(tmp_path, "item,annotator,kind,excluded\n" + line * 2)
    again = answers(tmp_path, "item,annotator,kind,excluded\ndog.png,ada,excluded,dog|cat\n")
    assert [one.id for one in found.answers] == [one.id for one in again.answers]
    assert found.notes == ("1 answer(s) occur in the file twice: read once.",)


@pytest.mark.parametrize("suffix", ["csv", "jsonl", "parquet"])
def test_an_exported_log_can_be_imported(tmp_path: Path, suffix: str) -> None:
    classes = ("=cat", "-dog|x", "bird", "'fish'")
    log = [
        row("=1.png", "no", (0, 1), "+ada"),
        row("dog.png", "yes", (1, 2)),
        row("dog.png", "which", (0,)),
        row("dog.png", "which", (1,), "bob"),
        row("pets/cat.png", "excluded", (0,), "bob"),
        row("pets/cat.png", "excluded", (3,), "cy"),
        row("dog.png", "no", (0,), counts=False),
        row("dog.png", "undo"),
    ]
    project_export.write_log(log, classes, tmp_path / f"log.{suffix}")
    found = importing.read_answers(tmp_path / f"log.{suffix}", NAMES, classes)
    assert found.notes == ("2 row(s) that do not count: left out.",)
    assert len(found.answers) == 6
    for one, got in zip(log, found.answers, strict=False):
        assert (got.item, got.annotator, got.kind) == (one.item_name, one.user_name, one.kind)
        assert (got.proposed, got.excluded, got.which) == (one.proposed, one.excluded, one.which)
        assert (got.time, got.took_ms) == (one.sent, one.took_ms)


HEAD = "item,annotator,kind,proposed,excluded,which,time,seconds\n"
BAD_TABLES = [
    ("item,kind\n", None),
    ("item,kind,annotator\ndog.png,no,a\n", "line 2: there is no column 'proposed'; the"),
    (
        "item,kind,proposed\ndog.png,no,cat\n",
        "line 2: there is no column 'annotator'; the columns are",
    ),
    (
        HEAD + "dgo.png,a,no,cat,,,,\n",
        "line 2, column 'item': there is no item 'dgo.png'; d",
    ),
    (
        HEAD + "dog.png,,no,cat,,,,\n",
        "line 2, column 'annotator': the annotator is blank; sa",
    ),
    (HEAD + "dog.png,a,nope,cat,,,,\n", "line 2, column 'kind': unknown kind 'nope'; "),
    (
        HEAD + "dog.png,a,no,,,,,\n",
        "line 2, column 'proposed': no class is named; name the",
    ),
    (HEAD + "dog.png,a,no,cow,,,,\n", "line 2, column 'proposed': unknown class 'cow'; "),
    (
        HEAD + "dog.png,a,no,cat|dog|bird|fish,,,,\n",
        "line 2, column 'proposed': every class",
    ),
    (HEAD + "dog.png,a,which,,,cat|dog,,\n", "line 2, column 'which': which names several"),
    (
        HEAD + "dog.png,a,no,cat,,,soon,\n",
        "line 2, column 'time': 'soon' is not a time; write",
    ),
    (
        HEAD + "dog.png,a,no,cat,,,0001-01-01T00:00:00+23:00,\n",
        "line 2, column 'time': '0001",
    ),
    (
        HEAD + "dog.png,a,no,cat,,,,x\n",
        "line 2, column 'seconds': 'x' is not a duration; give",
    ),
]


@pytest.mark.parametrize(("content", "sentence"), BAD_TABLES)
def test_bad_tables_are_one_sentence(tmp_path: Path, content: str, sentence: str | None) -> None:
    if sentence is None:
        assert answers(tmp_path, content).answers == ()
        return
    with pytest.raises(InputError) as caught:
        answers(tmp_path, content)
    assert str(caught.value).removeprefix(f"{tmp_path}/a.csv, ").startswith(sentence)


def test_wrong_types_in_json_lines_are_one_sentence(tmp_path: Path) -> None:
    good = {"item": "dog.png", "annotator": "ada", "kind": "no", "proposed": ["cat"]}
    wrong: list[tuple[str, Any]] = [
        ("item", {"a": 1}),
        ("item", None),
        ("annotator", [1]),
        ("annotator", True),
        ("kind", ["no"]),
        ("kind", 1e300),
        ("proposed", 5),
        ("proposed", [["cat"]]),
        ("proposed", [None]),
        ("time", 10**30),
        ("took_ms", "inf" * 3),
        ("took_ms", True),
    ]
    assert len(answers(tmp_path, json.dumps(good), "a.jsonl").answers) == 1
    for key, value in wrong:
        with pytest.raises(InputError, match=r"line 1, column") as caught:
            answers(tmp_path, json.dumps(good | {key: value}), "a.jsonl")
        assert caught.value.column == key
