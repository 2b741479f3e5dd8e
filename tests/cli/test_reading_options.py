"""Options that say how a table is read, in every command that reads one."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from cli.fitted import run
from numpy.testing import assert_array_equal
from PIL import Image
from typer.main import get_command

from ruleout.cli import app
from ruleout.datasets import read_table
from ruleout.estimator import RuleOutClassifier, load
from ruleout.training import PAPER_GRID

TABLES = ("check", "fit", "predict", "evaluate", "resolve", "compare", "draw")
QUICK = ("--grid", "none", "--epochs", "2")
SHORT = ("--grid", "paper", "--epochs", "2", "--weight-decay", "0")


def options_of(command: str) -> set[str]:
    found = get_command(app).commands[command].params  # type: ignore[attr-defined]
    return {name for one in found for name in one.opts}


@pytest.mark.parametrize("command", TABLES)
def test_every_command_that_reads_a_table_has_them(command: str) -> None:
    assert {"data", "--separator", "--labels-file"} <= options_of(command)


@pytest.fixture
def piped(tmp_path: Path) -> Path:
    file = tmp_path / "pets.csv"
    file.write_text("a~is~not\n" + "1~cat~dog|hen\n2~dog~cat\n3~hen~dog\n" * 6)
    return file


def test_a_separator_reaches_each_command(piped: Path) -> None:
    told, model = ("--separator", "~"), piped.with_name("model")
    sets = ("--excluded", "not", *told)
    results = [
        run("check", piped, *sets, "--ignore", "is"),
        run("fit", piped, "--out", model, *sets, "--ignore", "is", *QUICK),
        run("predict", model, piped, *told),
        run("evaluate", model, piped, "--label", "is", *told),
        run("resolve", model, piped, *sets),
        run("draw", piped, "--label", "is", "--out", piped.with_name("drawn.csv"), *told),
    ]
    assert [one.exit_code for one in results] == [0] * 6, [one.output for one in results]


def test_a_separator_that_is_none_is_one_sentence(piped: Path) -> None:
    result = run("check", piped, "--excluded", "not", "--separator", "~~")
    assert result.exit_code == 1
    assert result.stderr == (
        f"ruleout: {piped}: '~~' cannot separate cells; give one character such as ; or |, or the "
        "word tab, as --separator\n"
    )


@pytest.fixture
def grouped(tmp_path: Path) -> Path:
    file = tmp_path / "pets.csv"
    lines = ["1,cat,dog|hen,1,0", "2,dog,cat,0.5,1", "3,hen,dog,2,2", "9,cat,dog,0,2"]
    file.write_text("\n".join(["a,is,not,w,who", *lines * 6]) + "\n")
    return file


def test_weights_and_groups_reach_the_fit(grouped: Path) -> None:
    told = ("--excluded", "not", "--ignore", "is", "--weight", "w", "--group", "who")
    assert run("check", grouped, *told).exit_code == 0
    model = grouped.with_name("model")
    result = run("fit", grouped, "--out", model, *told, *SHORT)
    assert result.exit_code == 0, result.output
    table = read_table(grouped, excluded="not", ignore=["is"], weight="w", group="who")
    grid = {"learning_rate": list(PAPER_GRID["learning_rate"])}
    clf = RuleOutClassifier(grid=grid, weight_decay=0.0, epochs=2, random_state=0)
    clf.fit(table.x, table.sets, table.weight, groups=table.groups)
    assert load(model).reading_["features"] == ["a"]
    assert_array_equal(load(model).predict_proba(table.x), clf.predict_proba(table.x))


@pytest.mark.parametrize("label", [(), ("--label", "is")])
def test_weights_and_groups_reach_the_comparison(grouped: Path, label: tuple[str, ...]) -> None:
    told = ["--excluded", "not", *(label or ("--ignore", "is")), "--out", grouped.with_name("out")]
    told += ["--approaches", "log,mae", "--epochs", "1", "--grid", "none", "--group", "who"]
    result = run("compare", grouped, *told, "--weight", "w", "--judge", "0.3")
    assert result.exit_code == 0, result.output
    results = json.loads((grouped.with_name("out") / "results.json").read_text())
    assert results["method"]["rows"] == 6  # the smallest groups, one of the three


def test_rows_that_weigh_nothing_neither_choose_nor_judge(tmp_path: Path) -> None:
    good = [f"{n % 2}.5,{'yes' if n % 2 else 'no'},1" for n in range(40)]
    bad = [f"{n % 2}.5,{'no' if n % 2 else 'yes'},0" for n in range(40)]
    told = ("--excluded", "not", "--weight", "w", "--approaches", "log", "--epochs", "40")
    scores = []
    for name, rows in (("both", [*good, *bad]), ("good", good)):
        (tmp_path / f"{name}.csv").write_text("\n".join(["x,not,w", *rows]))
        out = tmp_path / name
        result = run("compare", tmp_path / f"{name}.csv", *told, "--out", out)
        assert result.exit_code == 0, result.output
        (row,) = json.loads((out / "results.json").read_text())["rows"]
        scores.append(row["score"])
    assert scores == [1.0, 1.0]


@pytest.fixture
def books(tmp_path: Path) -> Path:
    file = tmp_path / "books.csv"
    lines = ["1,red cats,dog|hen,cat", "1,blue dogs bark,hen|cat,dog", "1,hens lay,cat|dog,hen"]
    file.write_text("\n".join(["n,title,not,is", *lines * 8]) + "\n")
    return file


def test_text_reaches_the_model_and_new_rows(books: Path) -> None:
    refused = run("fit", books, "--out", "model", "--excluded", "not", "--ignore", "is")
    assert refused.exit_code == 1
    assert "(--ignore title), take its words (--text title), or" in refused.stderr
    told = ("--excluded", "not", "--ignore", "is", "--text", "title")
    assert run("check", books, *told).exit_code == 0
    model = books.with_name("model")
    quick = ("--grid", "none", "--learning-rate", "0.5", "--epochs", "60")
    result = run("fit", books, "--out", model, *told, *quick)
    assert result.exit_code == 0, result.output
    result = run("evaluate", model, books, "--label", "is", "--json")
    assert json.loads(result.stdout)["labels"]["accuracy"]["estimate"] == 1.0
    new = books.with_name("new.csv")
    new.write_text("title,n\ndogs bark,1\nunheard of,1\n")
    out = books.with_name("out.csv")
    assert run("predict", model, new, "--out", out).exit_code == 0
    assert out.read_text().splitlines()[1].startswith('"dog"')


def test_a_model_of_text_reads_a_frame_in_python(books: Path) -> None:
    pd = pytest.importorskip("pandas")
    model = books.with_name("model")
    told = ("--excluded", "not", "--ignore", "is", "--text", "title", "--grid", "none")
    assert run("fit", books, "--out", model, *told, "--epochs", "2").exit_code == 0
    clf, table = load(model), read_table(books, reading=load(model).reading_)
    frame = pd.read_csv(books)
    assert_array_equal(clf.predict_proba(frame), clf.predict_proba(table.x))
    with pytest.raises(ValueError, match="X lacks the column 'title'"):
        clf.predict(frame[["n"]])


@pytest.fixture
def pictures(tmp_path: Path) -> Path:
    for place in range(24):
        name = ("cat", "dog", "hen")[place % 3]
        file = tmp_path / "pictures" / name / f"{place}.png"
        file.parent.mkdir(parents=True, exist_ok=True)
        shades = np.full((4, 4), 20, np.uint8)
        shades[place % 3] = 200 + place
        Image.fromarray(shades).save(file)
    return tmp_path / "pictures"


def test_class_folders_need_no_label_file(pictures: Path) -> None:
    model, sets = pictures.with_name("model"), pictures.with_name("sets.csv")
    quick = ("--grid", "none", "--learning-rate", "0.1", "--epochs", "40")
    result = run("fit", pictures, "--out", model, *quick)
    assert result.exit_code == 0, result.output
    assert "Trained on 24 rows of 1 × 4 × 4 features, 3 classes." in result.stdout
    result = run("evaluate", model, pictures, "--json")
    assert json.loads(result.stdout)["labels"]["accuracy"]["estimate"] == 1.0
    assert run("draw", pictures, "--out", sets, "--keep-label").exit_code == 0
    told = ("--labels-file", sets, "--excluded", "excluded", "--label", "folder")
    result = run("check", pictures, *told)
    assert result.exit_code == 0, result.output
    assert run("predict", model, pictures).exit_code == 0


def test_a_folder_of_other_classes_is_one_sentence(pictures: Path) -> None:
    model = pictures.with_name("model")
    assert run("fit", pictures, "--out", model, *QUICK).exit_code == 0
    (pictures / "cat").rename(pictures / "cow")
    result = run("evaluate", model, pictures)
    assert (result.exit_code, result.stderr.count("\n")) == (1, 1)
    assert "unknown class 'cow'" in result.stderr


def test_features_of_a_table_may_lie_in_another_file(tmp_path: Path) -> None:
    rows, features, model = (tmp_path / name for name in ("rows.csv", "vectors.npz", "model"))
    lines = [
        f"{place},{('dog', 'cat')[place % 2]},{('cat', 'dog')[place % 2]}" for place in range(20)
    ]
    rows.write_text("\n".join(["item,not,is", *lines]) + "\n")
    order = np.arange(20)[::-1]
    np.savez(features, x=np.stack([order % 2, order // 2], 1), item=order.astype(str))
    told = ("--features-from", features)
    quick = ("--grid", "none", "--learning-rate", "0.5", "--epochs", "100")
    assert run("check", rows, "--excluded", "not", *told).exit_code == 0
    result = run("fit", rows, "--out", model, "--excluded", "not", *told, *quick)
    assert result.exit_code == 0, result.output
    result = run("evaluate", model, rows, "--label", "is", *told, "--json")
    assert json.loads(result.stdout)["labels"]["accuracy"]["estimate"] == 1.0
    out = tmp_path / "out.csv"
    assert run("predict", model, rows, *told, "--out", out).exit_code == 0
    assert out.read_text().splitlines()[:2][0].startswith('"item","prediction"')
    assert out.read_text().splitlines()[4].startswith('"3","dog"')
