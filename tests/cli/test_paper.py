"""``ruleout paper``: a table computed once, resumed at will, reported whole."""

from __future__ import annotations

import io
import os
import re
import sqlite3
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import typer
from experiments.made import failing, noting, record, spec
from rich.console import Console
from typer.testing import CliRunner

from ruleout import experiments
from ruleout.cli.paper import _run, paper
from ruleout.datasets import Dataset
from ruleout.datasets.registry import find
from ruleout.experiments import Ledger, gather, plan, runner

app = typer.Typer()
app.command()(paper)
SKIN = ["uci", "--datasets", "Dermatology", "--workers", "1"]


def run(*words: object) -> tuple[int, str]:
    result = CliRunner().invoke(app, [str(word) for word in words])
    return result.exit_code, re.sub(r"[│\s]+", " ", result.output)


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder to work in."""
    place = tmp_path / "here"
    place.mkdir()
    monkeypatch.chdir(place)
    return place


@pytest.fixture
def skin(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Rows that stand in for Dermatology, easy to tell apart."""
    random, entry = np.random.default_rng(0), find("dermatology")
    y = random.integers(6, size=120)
    x = random.normal(0, 0.3, (120, 34)).astype(np.float32)
    x[np.arange(120), y] += 2
    data = Dataset(
        name="dermatology", x_train=x, y_train=y, classes=entry.classes, shape=(34,), source=""
    )
    monkeypatch.setattr("ruleout.datasets.load", lambda _: data)
    for name in ("load", "_loaded"):
        monkeypatch.setattr(runner, name, lambda _: data)
    runner._prepared.cache_clear()
    yield data
    runner._prepared.cache_clear()


@pytest.fixture
def computing(monkeypatch: pytest.MonkeyPatch, skin: Any) -> Callable[..., None]:
    """Let something else than training compute the cells."""
    del skin

    def with_(compute: Any) -> None:
        monkeypatch.setattr(experiments, "drive", partial(DRIVE, compute=compute))

    return with_


DRIVE = experiments.drive


def files(folder: Path) -> dict[str, bytes]:
    return {str(f.relative_to(folder)): f.read_bytes() for f in folder.rglob("*") if f.is_file()}


# ---------------------------------------------------------------------- a whole run


def test_a_run_prints_the_table_and_writes_a_report(here: Path, skin: Dataset) -> None:
    words = [*SKIN, "--approaches", "log,exp,mae", "--trials", 2, "--epochs", 12]
    code, text = run(*words)
    assert code == 0, text
    assert len(skin.y_train) == 120
    assert "3 cells: 0 in the ledger, 3 to run" in text
    assert "3/3 dermatology, linear, " in text
    assert "UCI data sets, linear model" in text
    assert "paper 99.46" in text  # LOG's number is there to compare with
    assert "Report: ruleout-paper/report.html" in text
    assert sorted(file.name for file in here.iterdir()) == ["ruleout-paper", "ruleout-paper.sqlite"]
    held = gather("ruleout-paper.sqlite")
    assert (
        {one.spec for one in held.records}
        == set(held.specs)
        == set(
            plan(
                "uci",
                datasets=["dermatology"],
                approaches=["log", "exp", "mae"],
                trials=2,
                epochs=12,
            )
        )
    )
    assert max(one.mean for one in held.records) > 0.8


def test_again_nothing_is_computed_and_the_files_are_the_same(
    here: Path, computing: Callable[..., None]
) -> None:
    computing(partial(noting, notes="../notes"))
    first = run(*SKIN)
    before = files(here / "ruleout-paper")
    assert first[0] == 0, first
    code, text = run(*SKIN)
    assert code == 0, text
    assert "18 cells: 18 in the ledger, 0 to run" in text
    assert Path("../notes").read_text().split() == [one.approach for one in plan_of()]
    assert files(here / "ruleout-paper") == before


def plan_of() -> list[experiments.Spec]:
    return plan("uci", datasets=["dermatology"])


def test_a_run_goes_on_where_another_stopped(computing: Callable[..., None]) -> None:
    computing(partial(noting, notes="../notes"))
    with Ledger("ruleout-paper.sqlite") as ledger:
        for one in plan_of()[:10]:
            ledger.write(record(one))
    code, text = run(*SKIN)
    assert code == 0, text
    assert "18 cells: 10 in the ledger, 8 to run" in text
    assert len(Path("../notes").read_text().split()) == 8


def test_settings_are_other_cells(here: Path, computing: Callable[..., None]) -> None:
    computing(partial(noting, notes="../notes"))
    for more in ([], ["--features", "standardised"], ["--protocol", "text"], ["--seed", 3]):
        code, text = run(*SKIN, "--approaches", "log", *more, "--out", "out")
        assert code == 0, text
        assert "1 cell: 0 in the ledger, 1 to run" in text
    assert len(gather("ruleout-paper.sqlite").records) == 4
    tables = {file.name for file in (here / "out").glob("uci*.csv")}
    assert tables == {"uci.csv", "uci-standardised.csv", "uci-text.csv", "uci-seed-3.csv"}


def test_cells_under_way_have_a_folder_each(here: Path, computing: Callable[..., None]) -> None:
    found = {}

    def keeping(of: Any, *, device: str, checkpoint: Path) -> Any:
        found[of.key] = (device, str(checkpoint))
        checkpoint.mkdir(parents=True)
        return record(of)

    computing(keeping)
    code, text = run(*SKIN, "--approaches", "log,exp", "--checkpoints", "kept")
    assert code == 0, text
    assert found == {key: ("cpu", f"kept/{key}") for key in found}
    assert list((here / "kept").iterdir()) == []


def test_a_grid_can_be_searched_by_halving(skin: Dataset) -> None:
    words = [*SKIN, "--approaches", "log", "--trials", 1, "--epochs", 9, "--grid", "halving"]
    code, text = run(*words)
    assert code == 0, text
    assert len(skin.y_train) == 120
    assert "In 1 of 1 cells successive halving searched the grid" in text
    (found,) = gather("ruleout-paper.sqlite").records
    assert len(found.configurations) == 4
    code, text = run(*SKIN, "--approaches", "log", "--grid", "printed")
    assert code != 0
    assert "the paper prints no configuration for dermatology, linear, log; search a grid" in text


# ---------------------------------------------------------------------- failures


def test_failures_are_listed_and_the_rest_is_done(
    here: Path, computing: Callable[..., None]
) -> None:
    computing(partial(failing, notes="../notes", fails={"exp": 99, "mae": 1}))
    code, text = run(*SKIN, "--approaches", "log,exp,mae")
    assert code == 1
    assert "ruleout: dermatology, linear, exp failed: ZeroDivisionError: exp is not well" in text
    assert "failed 4 times: ZeroDivisionError" in text  # in the table
    assert (here / "ruleout-paper" / "report.html").exists()
    assert "exp is not well" in (here / "ruleout-paper" / "report.html").read_text()
    assert len(gather("ruleout-paper.sqlite").records) == 2
    assert Path("../notes").read_text().split().count("exp") == 4
    code, text = run(*SKIN, "--approaches", "log,exp,mae")
    assert code == 1  # given up: nothing is tried, and it is not forgotten
    assert Path("../notes").read_text().split().count("exp") == 4


def test_retry_tries_again_what_was_given_up(computing: Callable[..., None]) -> None:
    computing(partial(failing, notes="../notes", fails={"exp": 4}))
    assert run(*SKIN, "--approaches", "log,exp")[0] == 1
    code, text = run(*SKIN, "--approaches", "log,exp", "--retry")
    assert code == 0, text
    assert len(gather("ruleout-paper.sqlite").records) == 2


def bracketed(of: experiments.Spec, *, device: str | None = None) -> experiments.Record:
    del of, device
    raise OSError("[/tmp/data] holds [red] herrings of shape [batch, 3]")


def test_an_error_with_brackets_is_told_as_it_is(computing: Callable[..., None]) -> None:
    """They are no markup."""
    computing(bracketed)
    code, text = run(*SKIN, "--approaches", "log")
    assert code == 1
    assert text.count("[/tmp/data] holds [red] herrings of shape [batch, 3]") >= 2
    assert "Traceback" not in text


def full(of: experiments.Spec, *, device: str | None = None) -> experiments.Record:
    del of, device
    raise MemoryError


def test_an_error_without_words_has_its_name(computing: Callable[..., None]) -> None:
    computing(full)
    code, text = run(*SKIN, "--approaches", "log")
    assert code == 1
    assert "MemoryError" in text


# ---------------------------------------------------------------------- dry runs


def test_a_dry_run_touches_nothing(here: Path, skin: Dataset) -> None:
    code, text = run(*SKIN, "--trials", 2, "--epochs", 12, "--dry-run")
    assert code == 0, text
    assert len(skin.y_train) == 120
    assert "18 cells: 0 in the ledger, 18 to run." in text
    assert "1,332 models to train, about " in text  # 18 · 2 · (36 + 1)
    assert " on cpu with 1 worker." in text
    assert not list(here.iterdir())


def test_a_dry_run_of_the_whole_linear_and_mlp_part(monkeypatch: pytest.MonkeyPatch) -> None:
    """280 cells that search in five trials, 204 in one."""
    monkeypatch.setattr(experiments, "estimate", lambda *given: 7200.0 / given[3])
    words = ["linear-mlp", "--search-trials", 1, "--workers", 2, "--dry-run"]
    code, text = run(*words)
    assert code == 0, text
    assert "484 cells: 0 in the ledger, 484 to run." in text
    assert f"{280 * 185 + 204 * 41:,} models to train, about 1 h 00 min on cpu" in text


def test_a_dry_run_leaves_a_ledger_as_it_is(here: Path, skin: Dataset) -> None:
    assert len(skin.y_train) == 120
    with Ledger("ruleout-paper.sqlite") as ledger:
        for one in plan_of()[:17]:
            ledger.write(record(one))
    before = files(here)
    code, text = run(*SKIN, "--dry-run")
    assert code == 0, text
    assert "18 cells: 17 in the ledger, 1 to run." in text
    assert files(here) == before
    assert len(gather("ruleout-paper.sqlite").specs) == 17


def test_a_dry_run_tells_of_what_was_given_up(skin: Dataset) -> None:
    assert len(skin.y_train) == 120
    with Ledger("ruleout-paper.sqlite") as ledger:
        ledger.add(plan_of())
        for one in plan_of()[1:]:
            ledger.write(record(one))
        for _ in range(4):
            ledger.fail(plan_of()[0], "no")
    code, text = run(*SKIN, "--dry-run")
    assert code == 0, text
    assert "18 cells: 17 in the ledger, 0 to run." in text
    assert "1 failed too often; --retry tries them again." in text


# ---------------------------------------------------------------------- bad input


@pytest.mark.parametrize(
    ("words", "code", "sentence"),
    [
        (["uic"], 2, "'uic' is not one of 'uci'"),
        (
            ["uci", "--datasets", "yaest"],
            1,
            "ruleout: the table has no data set 'yaest'; did you mean 'yeast'?",
        ),
        (
            ["uci", "--datasets", "MNIST"],
            1,
            "ruleout: the table has no data set 'MNIST'; it has Yeast",
        ),
        (
            ["uci", "--approaches", "log,lgo"],
            1,
            "ruleout: the table has no approach 'lgo'; did you mean 'log'?",
        ),
        (["uci", "--features", "scaled"], 2, "'scaled' is not one of 'raw'"),
        (["uci", "--protocol", "txt"], 2, "'txt' is not one of 'released'"),
        (["uci", "--engine", "moon"], 2, "'moon' is not "),
        (["uci", "--trials", "0"], 2, "--trials"),
        (["uci", "--epochs", "0"], 2, "--epochs"),
        (["uci", "--device", "tpu"], 1, "ruleout: "),
        (
            ["uci", "--out", "file/out"],
            1,
            "ruleout: file: this is a file; name a folder with --out",
        ),
        (
            ["uci", "--ledger", "file"],
            1,
            "ruleout: file: this is not a ledger (file is not a database)",
        ),
        (["uci", "--ledger", "none/a.sqlite"], 1, "ruleout: none/a.sqlite: "),
        (["uci", "--ledger", "."], 1, "ruleout: .: "),
    ],
)
def test_bad_words_are_one_sentence(
    here: Path, skin: Dataset, words: list[str], code: int, sentence: str
) -> None:
    assert len(skin.y_train) == 120
    Path("file").write_text("in the way of what you want, and long enough to be a database" * 9)
    before = files(here)
    got, text = run(*words)
    assert got == code, text
    assert sentence in text
    assert "Traceback" not in text
    assert files(here) == before


def test_an_unknown_precision_is_told_before_anything_is_written(
    here: Path, computing: Callable[..., None]
) -> None:
    computing(partial(noting, notes="../notes"))
    code, text = run(*SKIN, "--precision", "float16")
    assert code == 1
    assert "ruleout: unknown precision 'float16'; did you mean 'float" in text
    assert not list(here.iterdir())


@pytest.mark.parametrize("more", [[], ["--dry-run"]])
def test_missing_data_are_told_before_anything_is_written(
    here: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, more: list[str]
) -> None:
    monkeypatch.setenv("RULEOUT_DATA", str(tmp_path / "empty"))
    monkeypatch.setitem(sys.modules, "pooch", None)
    runner._loaded.cache_clear()
    runner._prepared.cache_clear()
    code, text = run("uci", *more)
    assert code == 1, text
    assert text.strip().count("ruleout: ") == 1
    assert "yeast.data" in text
    assert "Traceback" not in text
    assert not list(here.iterdir())


def test_another_database_is_not_touched(here: Path, skin: Dataset) -> None:
    assert len(skin.y_train) == 120
    connection = sqlite3.connect("birds.db")
    connection.execute("CREATE TABLE birds (name)")
    connection.commit()
    connection.close()
    before = files(here)
    code, text = run("uci", "--ledger", "birds.db")
    assert code == 1
    assert "ruleout: birds.db: this database is not a ledger; name another file" in text
    assert files(here) == before


# ---------------------------------------------------------------------- progress


def test_a_terminal_gets_a_bar(computing: Callable[..., None], monkeypatch: Any) -> None:
    screen = io.StringIO()
    computing(partial(failing, notes="../notes", fails={"exp": 1}))
    console = Console(file=screen, force_terminal=True, width=100)
    monkeypatch.setattr("ruleout.cli.common.Console", lambda **_: console)
    specs = plan_of()[:3]
    _run(Path("a.sqlite"), specs, device="cpu", workers=1)
    text = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", screen.getvalue())
    assert "3 cells: 0 in the ledger, 3 to run" in text
    assert "3 of 3 cells" in text
    assert "failed (1): dermatology, linear, exp: ZeroDivisionError" in text


def test_elsewhere_each_cell_gets_a_line(computing: Callable[..., None], capsys: Any) -> None:
    computing(partial(noting, notes="../notes"))
    specs = plan_of()[:2]
    _run(Path("a.sqlite"), specs, device="cpu", workers=1)
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == "2 cells: 0 in the ledger, 2 to run"
    found = record(specs[0])
    assert lines[1].startswith(
        f"1/2  dermatology, linear, exp: {100 * found.mean:.2f} ± {100 * found.std:.2f} "
        f"(learning rate {found.configuration['learning_rate']:g}, weight decay "
    )
    assert len(lines) == 3


def test_workers_are_at_most_the_tasks(monkeypatch: pytest.MonkeyPatch) -> None:
    from ruleout.cli.paper import _workers

    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(8)), raising=False)
    assert _workers("cpu", 72) == 8
    assert _workers("cpu", 3) == 3
    assert _workers("cuda", 72) == 4
    assert _workers("cpu", 0) == 1
    assert spec().trials == 3


@pytest.mark.parametrize(
    ("told", "said"),
    [
        (["--laws", "fixed:10"], "digits, linear, log, s=10 cannot be computed: size 10 is imposs"),
        (["--laws", "given"], "digits, linear, log, given cannot be computed: digits comes withou"),
        (["--laws", "fixed:0"], "choose a size from 1 to 9"),
        (["--models", "resnet34"], "digits, resnet34, log cannot be computed: "),
        (["--checkpoints", "a.txt"], "this is a file; name a folder with --checkpoints"),
        (["--ledger", ":memory:"], "a ledger is a file, or postgresql://"),
        (["--ledger", ""], ".: this is a folder; name a file"),
    ],
)
def test_what_no_cell_can_be_computed_with_is_told_at_once(
    told: list[str], said: str, here: Path
) -> None:
    Path("a.txt").touch()
    code, text = run("own", "--datasets", "digits", "--approaches", "log", *told)
    assert code
    assert said in text
    assert [one.name for one in here.iterdir()] == ["a.txt"]
