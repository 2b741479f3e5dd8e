# the sentences stand as users read them
"""``ruleout fit``: a table in, a model folder out."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import numpy as np
import pytest
from cli.fitted import NAMES, QUICK, SETS, X, Y, run, trained, write_table
from numpy.testing import assert_array_equal

from ruleout.estimator import RuleOutClassifier, load

ASK = ["--excluded", "not", "--ignore", "is", "--classes", ",".join(NAMES)]


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return write_table(tmp_path / "data.csv")


def test_the_model_is_that_of_the_classifier(data: Path) -> None:
    out = data.with_name("model")
    result = run("fit", data, "--out", out, *ASK, *QUICK, "--seed", "3")
    assert result.exit_code == 0, result.output
    assert result.stdout == (
        "Trained on 200 rows of 64 features, 10 classes.\n"
        "Settings: learning_rate 0.1, weight_decay 1e-05.\n"
        f"Epochs: 5.\nWritten: {out}\n"
    )
    wanted = RuleOutClassifier(learning_rate=0.1, epochs=5, random_state=3).fit(X, SETS)
    assert_array_equal(load(out).predict_proba(X), wanted.predict_proba(X))
    assert load(out).reading_ == {"kind": "columns", "features": [f"p{i}" for i in range(64)]}


@pytest.mark.parametrize(("options", "count"), [([], 8), (["--grid", "paper"], 36)])
def test_a_grid_is_searched_unless_there_is_none(
    data: Path, options: list[str], count: int
) -> None:
    out = data.with_name("model")
    result = run("fit", data, "--out", out, *ASK, "--epochs", "2", *options)
    assert result.exit_code == 0, result.output
    assert f"Chosen of {count} by accuracy, without true labels: learning_rate 0." in result.stdout
    found = load(out).criterion_
    ends = f"95 % interval {found.low:.3f} to {found.high:.3f}"
    assert f"Its accuracy: {found.estimate:.4f}, {ends} (every row held out once;" in result.stdout
    lines = [line for line in result.stderr.splitlines() if "epoch" in line]
    assert lines[0] == f"searching {count} configurations: epoch 1 of 2"
    assert lines[-1] == "training the choice on all rows: epoch 2 of 2"


def test_an_accuracy_has_its_assumption_beside_it_or_is_not_printed(data: Path) -> None:
    """What rows are, given as what they are not, is not as chance draws it."""
    told = ["--out", data.with_name("model"), "--epochs", "2"]
    assert "assumes that they are drawn at random" in run("fit", data, *ASK, *told).stdout
    wrong = run("fit", data, "--excluded", "is", "--ignore", "not", *told)
    assert wrong.exit_code == 0, wrong.output
    assert "Chosen of 8 by accuracy" in wrong.stdout
    assert "Its accuracy" not in wrong.stdout
    assert "No accuracy is estimated: sets drawn at random do not look like this" in wrong.stdout
    told += ["--excluded", "is", "--ignore", "not", "--criterion", "consistency"]
    assert "Its consistency on rows held out: " in run("fit", data, *told).stdout
    labels = run("fit", data, "--label", "is", "--ignore", "not", *told[:4])
    assert "drawn at random" not in labels.stdout


def test_the_default_is_small_and_the_card_says_so(data: Path) -> None:
    out = data.with_name("model")
    result = run("fit", data, "--out", out, *ASK)
    assert "Epochs: 500." in result.stdout
    card = json.loads((out / "card.json").read_text())
    assert (card["config"]["grid"], card["config"]["epochs"]) == ("small", None)
    assert card["record"]["epochs"] == card["epochs"] == 500
    assert card["record"]["folds"] == 5
    assert card["criterion"][3] < card["criterion"][1] < card["criterion"][4]
    pairs = list(zip(card["search"]["learning_rate"], card["search"]["weight_decay"], strict=True))
    assert pairs == [(10.0**-r, d) for r in (1, 2, 3, 4) for d in (1e-3, 1e-5)]


def write_sizes(file: Path) -> Path:
    """Write two classes that only the smaller of two columns tells."""
    random = np.random.default_rng(0)
    y = random.integers(2, size=300)
    lines = [
        f"{1e4 * a:.5g},{1e-3 * (b + 2 * k):.5g},{'ab'[1 - k]},{'ab'[k]}"
        for k, (a, b) in zip(y.tolist(), random.normal(size=(300, 2)).tolist(), strict=True)
    ]
    file.write_text("\n".join(["large,small,not,is", *lines]) + "\n")
    return file


SIZES = (
    "Columns differ in size, from each other or from 1: 'large' holds values of about 9900, and "
    "'small' varies by about 0.0014"
)


@pytest.mark.parametrize(
    ("option", "said", "scaled"),
    [
        ([], "they are scaled inside the model.", True),
        (["--scale"], "they are scaled inside the model.", True),
        (["--no-scale"], "raw ones lose, so leave out --no-scale.", False),
    ],
    ids=["by default", "asked", "not"],
)
def test_columns_of_different_sizes_are_scaled(
    tmp_path: Path, option: list[str], said: str, scaled: bool
) -> None:
    file, out = write_sizes(tmp_path / "data.csv"), tmp_path / "model"
    columns = ["--excluded", "not", "--ignore", "is"]
    result = run("fit", file, "--out", out, *columns, *QUICK, "--epochs", "20", *option)
    assert result.exit_code == 0, result.output
    assert f"Note: {SIZES}: {said}" in result.stderr
    card = json.loads((out / "card.json").read_text())
    assert card["config"]["scale"] == card["record"].get("scaled", False) == scaled
    found = run("evaluate", out, file, "--label", "is", "--json")
    accuracy = json.loads(found.stdout)["labels"]["accuracy"]["estimate"]
    assert (accuracy > 0.75) == scaled
    text = " ".join(run("check", file, *columns).stdout.replace("│", " ").split())
    assert f"{SIZES}: scale them, as fit and compare do unless told otherwise." in text


def test_columns_of_like_sizes_are_scaled_only_if_asked(data: Path) -> None:
    result = run("fit", data, "--out", data.with_name("model"), *ASK, *QUICK)
    assert "Columns" not in result.output
    assert load(data.with_name("model")).scale is False
    run("fit", data, "--out", data.with_name("model"), *ASK, *QUICK, "--scale")
    assert load(data.with_name("model")).scale is True


def test_a_value_that_is_given_is_not_chosen(data: Path) -> None:
    out = data.with_name("model")
    result = run("fit", data, "--out", out, *ASK, "--epochs", "2", "--weight-decay", "0.5")
    assert "Chosen of 4 by accuracy" in result.stdout
    assert "weight_decay 0.5" in result.stdout


def test_a_model_that_is_replaced_is_said(data: Path) -> None:
    out = data.with_name("model")
    first, second = (run("fit", data, "--out", out, *ASK, *QUICK).stdout for _ in range(2))
    assert "Replaced" not in first
    assert re.search(r"^Replaced the model of \d{4}-\d\d-\d\d \d\d:\d\d\.$", second, re.MULTILINE)


def test_of_two_rows_the_interval_says_how_little_is_known(tmp_path: Path) -> None:
    file = tmp_path / "two.csv"
    file.write_text("a,not\n1,x\n2,y\n")
    out = tmp_path / "model"
    result = run("fit", file, "--out", out, "--excluded", "not", "--classes", "x,y,z")
    assert result.exit_code == 0, result.output
    assert "inf" not in result.stdout
    found = load(out).criterion_
    assert (found.high or 0) - (found.low or 0) > 0.5


def test_true_labels_are_learned_from_on_request(data: Path) -> None:
    out = data.with_name("model")
    options = ["--label", "is", "--ignore", "not", "--classes", ",".join(NAMES)]
    assert run("fit", data, "--out", out, *options, *QUICK).exit_code == 0
    wanted = RuleOutClassifier(classes=NAMES, learning_rate=0.1, epochs=5, random_state=0)
    wanted.fit(X, np.array(NAMES)[Y])
    assert_array_equal(load(out).predict_proba(X), wanted.predict_proba(X))


def test_settings_reach_the_classifier(data: Path) -> None:
    out = data.with_name("model")
    options = ["--approach", "gce", "--model", "mlp", "--hidden", "7,5", "--optimizer", "adamw"]
    more = ["--batch-size", "64", "--precision", "float64", "--early-stopping"]
    result = run("fit", data, "--out", out, *ASK, *QUICK, *options, *more)
    assert result.exit_code == 0, result.output
    found = load(out).get_params()
    assert (found["approach"], found["model"], found["hidden"]) == ("gce", "mlp", (7, 5))
    assert (found["optimizer"], found["batch_size"], found["precision"]) == ("adamw", 64, "float64")


def test_a_folder_of_images(tmp_path: Path) -> None:
    images = pytest.importorskip("PIL.Image")
    folder = tmp_path / "images"
    folder.mkdir()
    lines = ["file,not"]
    for row in range(12):
        pixels = (X[row].reshape(8, 8) * 255).astype(np.uint8)
        images.fromarray(pixels).save(folder / f"{row}.png")
        lines.append(f"{row}.png,{'|'.join(map(str, SETS[row]))}")
    (folder / "labels.csv").write_text("\n".join(lines) + "\n")
    options = ["--excluded", "not", "--size", "6x6", "--classes", ",".join(NAMES), *QUICK]
    result = run("fit", folder, "--out", tmp_path / "model", *options)
    assert result.exit_code == 0, result.output
    assert "12 rows of 1 × 6 × 6 features" in result.stdout
    card = json.loads((tmp_path / "model" / "card.json").read_text())
    assert card["reading"]["shape"] == card["shape"] == [1, 6, 6]
    assert "resize" in card["reading"]
    result = run("predict", tmp_path / "model", folder, "--out", tmp_path / "out.csv")
    assert result.exit_code == 0, result.output
    assert (tmp_path / "out.csv").read_text().startswith('"file","prediction","probability"\n')


def test_warnings_are_notes(data: Path) -> None:
    options = ["--approach", "clpl", "--model", "mlp", "--hidden", "4"]
    result = run("fit", data, "--out", data.with_name("model"), *ASK, *QUICK, *options)
    assert result.exit_code == 0, result.output
    assert (
        "Note: CLPL is convex in a linear model only; with this one its guarantee is gone\n"
        in result.stderr
    )


BAD: list[tuple[str, list[str], int, str]] = [
    ("neither sets nor labels", [], 2, "--excluded, --candidates or --label"),
    ("both", ["--excluded", "not", "--label", "is"], 2, "give one of them alone"),
    ("grid", [*ASK, "--grid", "papr"], 2, "'papr' is not one of"),
    ("hidden", [*ASK, "--hidden", "a"], 2, "'a' is not a list of widths"),
    (
        "column",
        ["--excluded", "nott", "--ignore", "is"],
        1,
        "data.csv: there is no column 'nott'; did you mean 'not'?",
    ),
    ("text column", ["--excluded", "not"], 1, "column 'is'"),
    (
        "approach",
        [*ASK, "--approach", "lgo"],
        1,
        "ruleout: unknown approach 'lgo'; did you mean 'log'?",
    ),
    ("model", [*ASK, "--model", "mpl"], 1, "ruleout: unknown model 'mpl'; did you mean 'mlp'?"),
    (
        "rate",
        [*ASK, "--grid", "none", "--learning-rate", "-1"],
        1,
        "ruleout: learning_rate must be a number, zero or above, not -1.0",
    ),
    (
        "epochs",
        [*ASK, "--epochs", "0"],
        1,
        "ruleout: epochs is 0; give a whole number of at least 1",
    ),
    (
        "device",
        [*ASK, *QUICK, "--device", "gpu"],
        1,
        "ruleout: unknown device 'gpu'; say 'cpu' or 'cuda'",
    ),
    (
        "criterion",
        [*ASK, "--criterion", "acuracy"],
        1,
        "ruleout: unknown criterion 'acuracy'; did you mean 'accuracy'?",
    ),
]


@pytest.mark.parametrize(
    ("options", "code", "sentence"), [row[1:] for row in BAD], ids=[row[0] for row in BAD]
)
def test_bad_input(options: list[str], code: int, sentence: str, data: Path) -> None:
    out = data.with_name("model")
    result = run("fit", data, "--out", out, *options)
    assert result.exit_code == code, result.output
    assert sentence in " ".join(result.stderr.replace("│", " ").split())
    assert "Traceback" not in result.output
    assert not out.exists()


def test_a_bad_place_is_noticed_before_training(data: Path) -> None:
    result = run("fit", data, "--out", data, *ASK, *QUICK)
    assert result.exit_code == 1
    assert result.stderr == f"ruleout: {data}: this is a file; give the name of a folder\n"


@pytest.mark.parametrize("command", ["fit", "compare"])
def test_a_place_without_permission_is_noticed_before_training(
    command: str, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.access", lambda _, mode: mode != os.W_OK)  # root may write anywhere
    told = [data, "--excluded", "not", "--ignore", "is", "--out", data.with_name("new")]
    result = run(command, *told)
    assert result.exit_code == 1
    assert f"ruleout: {data.parent}: nothing can be written there; " in result.stderr
    assert "epoch" not in result.stderr


def test_the_model_of_the_other_tests_is_good() -> None:
    model, _ = trained()
    assert load(model).score(X, np.array(NAMES)[Y]) > 0.5


def test_a_long_fit_is_announced_and_a_short_one_is_not(capsys: pytest.CaptureFixture[str]) -> None:
    from ruleout.cli.common import expecting

    expecting("cpu")(59)
    assert capsys.readouterr().err == ""
    expecting("cpu")(4 * 86400)
    assert capsys.readouterr().err == "This will take about 96 h 00 min on cpu.\n"


def test_equal_rows_that_are_few_are_said_to_stand_alone(tmp_path: Path) -> None:
    """Eight things or eight values of a column: nobody can tell, so what follows is said."""
    random = np.random.default_rng(0)
    rows = [f"{row % 8},{random.choice(['cat', 'dog', 'fish'])}" for row in range(80)]
    (tmp_path / "t.csv").write_text("\n".join(["f,not", *rows]))
    told = ["fit", tmp_path / "t.csv", "--excluded", "not", "--epochs", "2"]
    found = run(*told, "--out", tmp_path / "m")
    assert "only 8 rows are different" in found.stderr
    assert "name what belongs together with --group" in found.stderr


def test_rows_that_weigh_nothing_are_not_counted(tmp_path: Path) -> None:
    data = write_table(tmp_path / "all.csv")
    header, *lines = data.read_text().splitlines()
    weighed = [f"{line},{int(row < 50)}" for row, line in enumerate(lines)]
    (tmp_path / "t.csv").write_text("\n".join([f"{header},w", *weighed]))
    told = ["fit", tmp_path / "t.csv", "--excluded", "not", "--ignore", "is", "--weight", "w"]
    found = run(*told, *QUICK, "--out", tmp_path / "m")
    assert f"{len(lines) - 50} of {len(lines)} rows weigh nothing: left out." in found.stderr
    assert "Trained on 50 rows" in found.stdout
