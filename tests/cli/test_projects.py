"""From a labelled project to a model and back, by commands alone."""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from cli.fitted import run
from cli.labelled import ran
from learning.labelled import NAMES, annotate, digits, make, write_images, write_rows

import ruleout as ro
from ruleout.estimator import load
from ruleout.estimator.inputs import per_row
from ruleout.training import Trial
from ruleout.web.importing import Earlier
from ruleout.web.project import Project
from ruleout.web.project_export import write_sets
from ruleout.web.team.team_page import team_view

N = 160
X, Y = digits(N)
FRESH = digits(300, skip=N)
QUICK = ["--grid", "none", "--learning-rate", "0.02", "--epochs", "40"]


class Made(NamedTuple):
    """A labelled project, what its items came from, and the truth."""

    folder: Path
    source: Path
    truth: dict[str, int]


@pytest.fixture(scope="module")
def images(tmp_path_factory: pytest.TempPathFactory) -> Made:
    """Images, labelled without error: two answers about each."""
    place = tmp_path_factory.mktemp("images")
    source = write_images(place / "pictures", X)
    project, truth = make(place / "project", source, Y)
    with project:
        annotate(project, truth)
    return Made(place / "project", source, truth)


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> Made:
    """Rows of a table; one answer in twenty is wrong, and gold questions tell."""
    place = tmp_path_factory.mktemp("rows")
    source = write_rows(place / "rows.csv", X)
    project, truth = make(place / "project", source, Y, gold=30, gold_rate=0.2, rounds=3)
    with project:
        annotate(project, truth, people=3, error=0.05)
    return Made(place / "project", source, truth)


def fitted(made: Made, out: Path, *options: object) -> Any:
    result = run("fit", made.folder, "--out", out, *QUICK, *options)
    assert result.exit_code == 0, result.output
    return result


def right(file: Path, column: str, truth: dict[str, int]) -> float:
    """The share of items whose class a file names rightly; every item is there once."""
    with file.open(newline="") as stream:
        found = {row["item"]: row[column] for row in csv.DictReader(stream)}
    assert list(found) == list(truth)
    return float(np.mean([NAMES[truth[item]] == name for item, name in found.items()]))


@pytest.mark.parametrize("how", ["intersection", "answers", "no"])
@pytest.mark.parametrize("kind", ["images", "rows"])
def test_label_fit_evaluate_resolve(
    kind: str, how: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """A model of answers alone is far better than chance, and what was said adds to it."""
    made: Made = request.getfixturevalue(kind)
    model = tmp_path / "model"
    told = fitted(made, model, "--how", how)
    if kind == "rows":
        assert "answers to gold questions" in told.stderr
    assert "Trained on" in told.stdout
    result = run("evaluate", model, made.folder, "--json")
    assert result.exit_code == 0, result.output
    judged = json.loads(result.stdout)
    assert judged["answers"]["accuracy"]["estimate"] > 0.6
    assert ("labels" in judged) == (kind == "rows")
    for command in ("resolve", "predict"):
        result = run(command, model, made.folder, "--out", tmp_path / f"{command}.csv")
        assert result.exit_code == 0, result.output
    resolved = right(tmp_path / "resolve.csv", "resolved", made.truth)
    predicted = right(tmp_path / "predict.csv", "prediction", made.truth)
    assert resolved > max(predicted, 0.75)
    assert load(model).reading_["how"] == how
    learned = load(model).record_.get("learned_from")
    assert learned == ("every answer" if (kind, how) == ("images", "answers") else None)
    assert load(model).approach == ("likelihood" if kind == "rows" else "log")


def test_the_model_reads_fresh_rows_as_any_other(rows: Made, tmp_path: Path) -> None:
    fitted(rows, tmp_path / "model")
    fresh, labels = write_rows(tmp_path / "fresh.csv", FRESH[0]), [NAMES[y] for y in FRESH[1]]
    lines = fresh.read_text().splitlines()
    told = [f"{line},{label}" for line, label in zip(lines, ["is", *labels], strict=True)]
    fresh.write_text("\n".join(told))
    result = run("evaluate", tmp_path / "model", fresh, "--label", "is", "--json")
    assert json.loads(result.stdout)["labels"]["accuracy"]["estimate"] > 0.6


def test_the_estimate_is_that_of_the_answers(images: Made, tmp_path: Path) -> None:
    fitted(images, tmp_path / "model")
    result = run("evaluate", tmp_path / "model", images.folder, "--json")
    clf = load(tmp_path / "model")
    with Project.open(images.folder) as project:
        from ruleout.learning import read_review

        review = read_review(project, reading=clf.reading_)
    found = json.loads(result.stdout)["answers"]["accuracy"]["estimate"]
    sets, rate = per_row(review.answers, len(review.table))
    said, predicted = Trial(sets, rate=rate).said, clf.predict_proba(review.table.x).argmax(1)
    wanted: Any = said.judge(predicted)
    assert found == pytest.approx(wanted.estimate)  # rows count by what they say
    assert found == pytest.approx(clf.score(review.table.x, review.answers), abs=0.01)
    assert "these answers also trained the model" in result.stderr


def test_fit_from_the_export_is_fit_from_the_project(images: Made, tmp_path: Path) -> None:
    """The sets that an export writes, as labels of the folder, train the same model."""
    with Project.open(images.folder) as project:
        found = project.store.answer_log().known("no")
    write_sets(found.sets, found.items, tmp_path / "sets.csv", column="file")
    fitted(images, tmp_path / "one", "--how", "no")
    options = ["--excluded", "excluded", "--labels-file", tmp_path / "sets.csv"]
    result = run("fit", images.source, "--out", tmp_path / "two", *QUICK, *options)
    assert result.exit_code == 0, result.output
    one, two = load(tmp_path / "one"), load(tmp_path / "two")
    assert one.classes_.tolist() == two.classes_.tolist() == list(NAMES)
    assert np.array_equal(one.decision_function(X), two.decision_function(X))


def test_weights_of_an_export_weigh_the_rows_of_fit(tmp_path: Path) -> None:
    """Gold questions measure errors; the project and its export then train the same model."""
    source = write_images(tmp_path / "pictures", X[:60])
    project, truth = make(tmp_path / "project", source, Y[:60], gold=20, gold_rate=0.5)
    with project:
        annotate(project, truth, error=0.1)
    ran("export", project.folder, "--out", tmp_path / "export")
    sets = tmp_path / "export" / "sets.csv"
    made = Made(project.folder, source, truth)
    fitted(made, tmp_path / "one", "--how", "no", "--approach", "log")
    options = ["--excluded", "excluded", "--labels-file", sets]
    result = run("fit", source, "--out", tmp_path / "two", *QUICK, *options)
    assert "in fit, as 'weight' of sets.csv says" in result.stderr
    one, two = load(tmp_path / "one"), load(tmp_path / "two")
    assert np.allclose(one.decision_function(X), two.decision_function(X), atol=1e-4)
    plain = sets.read_text().replace(",weight,", ",other,", 1)
    sets.write_text(plain)
    run("fit", source, "--out", tmp_path / "three", *QUICK, *options)
    three = load(tmp_path / "three")
    assert not np.allclose(one.decision_function(X), three.decision_function(X), atol=1e-2)


def test_weights_that_are_none_are_left_alone(images: Made, tmp_path: Path) -> None:
    names = list(images.truth)
    lines = ["file,excluded,weight", *(f"{name},one|two,{3.5 + n}" for n, name in enumerate(names))]
    (tmp_path / "labels.csv").write_text("\n".join(lines))
    options = ["--excluded", "excluded", "--labels-file", tmp_path / "labels.csv"]
    options += ["--classes", ",".join(NAMES)]
    result = run("fit", images.source, "--out", tmp_path / "m", *QUICK, *options)
    assert result.exit_code == 0, result.output
    assert "'weight' of labels.csv is not used: not all are from 0 to 1" in result.stderr


def test_contradictions_are_the_same_number_everywhere(tmp_path: Path) -> None:
    """A "which" contradicts a "no" here, and no "yes": once nobody but `fit` noticed."""
    source = write_rows(tmp_path / "rows.csv", X[:40])
    project, truth = make(tmp_path / "project", source, Y[:40], rounds=1)
    with project:
        annotate(project, truth, people=1)
        log = project.store.answer_log()
        told = [row for row in project.store.log() if row.kind == "no"][:7]
        project.store.bring(
            Earlier(item=row.item_name, annotator="Zoe", kind="which", which=row.proposed[0])
            for row in told
        )
        assert not log.contradictions()
        assert team_view(project.store).knowledge.contradicting == 7
    assert re.search(r"contradictions +7\b", ran("status", project.folder))
    for how in ("no", "intersection", "answers"):
        result = fitted(Made(project.folder, source, truth), tmp_path / how, "--how", how)
        assert "The answers about 7 item(s) rule out every class" in result.stderr
    for command in ("evaluate", "resolve"):
        more = ["--out", tmp_path / "classes.csv"] if command == "resolve" else []
        result = run(command, tmp_path / "no", project.folder, *more)
        assert "The answers about 7 item(s) rule out every class" in result.stderr
    for how in ("no", "intersection"):
        out = tmp_path / f"export-{how}"
        said = ran("export", project.folder, "--out", out, "--how", how)
        assert "7 contradicting" in said
        assert len((out / "contradictions.csv").read_text().splitlines()) == 1 + 14
        assert (out / "items.csv").read_text().count("contradicting") == 7
        assert json.loads((out / "about.json").read_text())["counts"]["contradicting"] == 7
    _decide(project.folder)
    assert re.search(r"contradictions +0 *\n.*decided +7 by", ran("status", project.folder), re.S)
    result = fitted(Made(project.folder, source, truth), tmp_path / "decided")
    assert "rule out every class" not in result.stderr
    assert "rule out every class" not in run("evaluate", tmp_path / "no", project.folder).stderr
    said = ran("export", project.folder, "--out", tmp_path / "after")
    assert (", 0 contradicting" in said, len(told)) == (True, 7)


def _decide(folder: Path) -> None:
    """Let a lead side with whoever said which class it is."""
    with Project.open(folder) as opened:
        lea = opened.store.add_user("Lea", "lead")
        for one in opened.store.answer_log().contradictions():
            which = next(row.which for row in one.answers if row.kind == "which")
            opened.store.decide(one.answers[0].item, lea, which=which)


def test_features_of_ones_own(images: Made, tmp_path: Path) -> None:
    source = tmp_path / "embedding.npz"
    np.savez(source, x=2 * X[:, 8:56], item=np.array(list(images.truth)))
    given = ["--features-from", source]
    fitted(images, tmp_path / "model", *given)
    out = tmp_path / "resolved.csv"
    result = run("resolve", tmp_path / "model", images.folder, "--out", out, *given)
    assert result.exit_code == 0, result.output
    assert right(out, "resolved", images.truth) > 0.75
    result = run("predict", tmp_path / "model", images.folder)
    assert (result.exit_code, result.stdout) == (1, "")
    assert "the model reads columns, and the items are images; give numbers" in result.stderr


def test_the_grid_is_chosen_from_answers(rows: Made, tmp_path: Path) -> None:
    options = ["--how", "answers", "--grid", "paper", "--weight-decay", "1e-4", "--epochs", "20"]
    result = run("fit", rows.folder, "--out", tmp_path / "model", *options)
    assert result.exit_code == 0, result.output
    assert "Chosen of 6 by accuracy, without true labels" in result.stdout


def test_images_take_a_size(images: Made, tmp_path: Path) -> None:
    fitted(images, tmp_path / "model", "--size", "6x6")
    assert load(tmp_path / "model").reading_["shape"] == [1, 6, 6]
    assert run("predict", tmp_path / "model", images.folder).exit_code == 0


def test_contradictions_are_said_and_left_out(rows: Made, tmp_path: Path) -> None:
    """Where mistakes are expected they teach; an approach that has no place for that drops them."""
    every = fitted(rows, tmp_path / "every")
    result = fitted(rows, tmp_path / "model", "--approach", "log")
    with Project.open(rows.folder) as project:
        found = project.store.answer_log().known("intersection")
    assert found.contradictions
    assert "item(s) rule out every" not in every.stderr
    assert f"Trained on {len(found.items) + len(found.contradictions)} rows" in every.stdout
    assert f"The answers about {len(found.contradictions)} item(s) rule out every" in result.stderr
    assert f"Trained on {len(found.items)} rows" in result.stdout


@pytest.mark.parametrize(
    ("command", "options", "code", "sentence"),
    [
        ("fit", ["--out", "OUT", "--how", "all"], 1, "unknown way to learn 'all'"),
        ("fit", ["--out", "OUT", "--classes", "3"], 2, "--classes"),
        ("fit", ["--out", "OUT", "--unlabelled"], 2, "this is for tables and image folders"),
        ("fit", ["--out", "OUT", "--approach", "ga-after", "--how", "answers"], 1, "use log, exp"),
        ("fit", ["--out", "OUT", "--features-from", "none.csv"], 1, "there is no such file"),
        ("fit", ["--out", "OUT", "--features", "nope"], 1, "images have no columns"),
    ],
)
def test_what_cannot_be_done_is_one_sentence(
    command: str, options: list[str], code: int, sentence: str, images: Made, tmp_path: Path
) -> None:
    given = [str(tmp_path / "model") if one == "OUT" else one for one in options]
    result = run(command, images.folder, *QUICK, *given)
    assert result.exit_code == code
    assert sentence in " ".join(result.stderr.replace("│", " ").split())
    assert not (tmp_path / "model").exists()


def test_options_of_projects_are_refused_for_tables(rows: Made, tmp_path: Path) -> None:
    option = ["--how", "no"]
    result = run("fit", rows.source, "--out", tmp_path / "m", "--excluded", "p0", *option)
    assert result.exit_code == 2
    assert "labelling projects" in result.stderr


def test_a_model_of_other_classes_is_refused(rows: Made, tmp_path: Path) -> None:
    clf = ro.RuleOutClassifier(epochs=1).fit(X, ro.draw(Y, classes=10))
    reading = {"kind": "columns", "features": [f"p{i}" for i in range(64)]}
    clf.save(tmp_path / "model", reading=reading)
    for command in ("resolve", "evaluate", "predict"):
        result = run(command, tmp_path / "model", rows.folder)
        assert result.exit_code == 1
        assert "classes" in result.stderr.splitlines()[-1]


def test_names_cannot_become_formulas(tmp_path: Path) -> None:
    source = tmp_path / "rows.csv"
    lines = [f"=x{row}," + ",".join(map(str, X[row])) for row in range(30)]
    source.write_text("\n".join(["name," + ",".join(f"p{i}" for i in range(64)), *lines]))
    project, truth = make(tmp_path / "p", source, Y[:30], name="name")
    with project:
        annotate(project, truth)
    made = Made(tmp_path / "p", source, truth)
    fitted(made, tmp_path / "model")
    run("resolve", tmp_path / "model", made.folder, "--out", tmp_path / "out.csv")
    with (tmp_path / "out.csv").open(newline="") as stream:
        assert [row["item"] for row in csv.DictReader(stream)] == [f"'{name}" for name in truth]


def test_a_project_is_no_folder_of_images(rows: Made, tmp_path: Path) -> None:
    result = run("fit", rows.folder, "--excluded", "not", "--out", tmp_path / "model")
    assert result.exit_code == 1
    assert "this is a labelling project, not a folder of images" in result.stderr


def test_data_that_are_not_there_are_said_to_be(tmp_path: Path) -> None:
    result = run("fit", tmp_path / "nowhere", "--out", tmp_path / "model")
    assert result.exit_code == 1
    assert result.stderr.endswith("nowhere: there is no such file or folder; check the path\n")
