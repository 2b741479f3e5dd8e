# ruff: noqa: E501  # the sentences stand as users read them
"""``ruleout check``: what it prints, and how it leaves."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import typer
from typer.testing import CliRunner

import ruleout as ro
from ruleout.cli.check import check
from ruleout.cli.common import friendly, parse_classes, parse_names, parse_rate, parse_size

app = typer.Typer(pretty_exceptions_enable=False)
app.command()(check)
run = CliRunner().invoke


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Two hundred rows of two classes of points, drawn as four classes."""
    rng = np.random.default_rng(0)
    y = rng.integers(4, size=200)
    sets = ro.draw(y, ["cat", "dog", "fish", "[red]"], seed=0)
    x = rng.normal(size=(200, 2)) + y[:, None]
    lines = ["a,b,city,not,is"]
    for (a, b), out, name in zip(x, sets, np.array(sets.classes)[y], strict=True):
        lines.append(f"{a},{b},Rome,{'|'.join(map(str, out))},{name}")
    path = tmp_path / "data.csv"
    path.write_text("\n".join(lines))
    return path


def test_good_data_leave_with_0(data: Path) -> None:
    result = run(app, [str(data), "--excluded", "not", "--label", "is", "--ignore", "city"])
    assert result.exit_code == 0, result.output
    for word in ("sizes", "class shares", "pairs", "true class", "'[red]'", "No warnings."):
        assert word in result.stdout
    assert "Note: The classes are those seen in the data" in result.stderr


def test_a_rate_that_is_given_is_what_is_assumed(data: Path) -> None:
    told = [str(data), "--excluded", "not", "--ignore", "city,is"]
    for rate, say in ((), "none is wrong"), (("--error-rate", "1/30"), "as many are wrong"):
        found = run(app, [*told, *rate])
        assert found.exit_code == 0, found.output
        assert say in " ".join(found.stdout.split())


def test_warnings_leave_with_0(data: Path) -> None:
    options = ["--excluded", "is", "--features", "a,b", "--classes", "cat,dog,fish,[red]"]
    result = run(app, [str(data), *options])
    assert result.exit_code == 0
    assert "warning" in result.stdout
    assert result.stderr == ""


def test_json_is_for_programs(data: Path) -> None:
    options = ["--excluded", "not", "--ignore", "city,is", "--json"]
    result = run(app, [str(data), *options])
    found = json.loads(result.stdout)
    assert found["rows"] == 200
    assert found["features"] == ["a", "b"]
    assert found["classes"] == ["[red]", "cat", "dog", "fish"]
    assert len(found["sha256"]) == 64
    assert len(found["notes"]) == 1
    names = [item["name"] for item in found["findings"]]
    assert names[0] == "sizes"
    assert sum(found["findings"][0]["numbers"]["histogram"].values()) == 200


def test_candidates_are_checked_as_what_they_rule_out(data: Path) -> None:
    header, *lines = data.read_text().splitlines()
    data.write_text("\n".join([header, *lines, "x,1,Rome,cat,dog"]))
    options = ["--candidates", "is", "--features", "a,b", "--skip-bad-rows"]
    result = run(app, [str(data), *options])
    assert result.exit_code == 0, result.output
    assert "200 rows of shape (2,), 4 classes, label sets" in result.stdout
    assert "1 row(s) left out: 'x' is not a number in column 'a' (line 202)." in result.stderr


def test_sets_without_features_can_be_checked(tmp_path: Path) -> None:
    path = tmp_path / "sets.parquet"
    ro.draw([0, 1, 2] * 50, 4, seed=0).write(path)
    result = run(app, [str(path), "--excluded", "excluded"])
    assert result.exit_code == 0, result.output
    assert "There are no features to train on. 1 warning." in result.stdout
    assert "can be used" not in result.stdout


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--excluded", "no"], "there is no column 'no'; did you mean 'not'?"),
        (["--excluded", "not"], "line 2, column 'city': 'Rome' is not a number; ignore the column"),
        (["--excluded", "not", "--ignore", "town"], "there is no column 'town'"),
        (["--excluded", "not", "--features", "a", "--classes", "3"], "unknown class"),
    ],
)
def test_bad_input_leaves_with_1_and_one_sentence(
    data: Path, options: list[str], sentence: str
) -> None:
    result = run(app, [str(data), *options])
    assert result.exit_code == 1
    assert result.stdout == ""
    assert result.stderr.startswith(f"ruleout: {data}")
    assert sentence in result.stderr
    assert result.stderr.count("\n") == 1


def test_usage_errors_leave_with_2(data: Path) -> None:
    assert run(app, [str(data)]).exit_code == 2
    assert run(app, [str(data), "--excluded", "not", "--size", "big"]).exit_code == 2
    assert run(app, [str(data), "--excluded", "not", "--nothing"]).exit_code == 2


@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        (OSError(errno.ENOSPC, "No space left on device"), "no space left on device; free some space"),
        (PermissionError(errno.EACCES, "Permission denied", "a.csv"), "a.csv: permission denied; check the permissions"),
        (FileNotFoundError(errno.ENOENT, "No such file or directory", "a"), "a: no such file or directory; check the name"),
        (FileNotFoundError("the folder x does not exist; make it first"), "the folder x does not exist; make it first"),
        (ValueError("two\nlines"), "two lines"),
        (ValueError(), "ValueError"),
        (MemoryError(), "there is not enough memory for this; give fewer rows or smaller images"),
    ],
)  # fmt: skip
def test_errors_become_one_sentence(
    error: Exception, sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(typer.Exit) as left, friendly():
        raise error
    assert left.value.exit_code == 1
    assert capsys.readouterr().err == f"ruleout: {sentence}\n"


def test_other_errors_and_closed_pipes_are_not_hidden_as_bad_input() -> None:
    with pytest.raises(KeyError), friendly():
        raise KeyError("a mistake of ours")
    with pytest.raises(typer.Exit) as left, friendly():
        raise BrokenPipeError
    assert left.value.exit_code == 0


def test_a_reader_that_stops_is_no_error(data: Path) -> None:
    """As of ``ruleout check … | head -1`` with ``pipefail``."""
    reader, writer = os.pipe()
    os.close(reader)
    told = [sys.executable, "-m", "ruleout", "check", str(data), "--excluded", "not"]
    done = subprocess.run(
        [*told, "--ignore", "city,is"], stdout=writer, stderr=subprocess.PIPE, check=False
    )
    os.close(writer)
    assert (done.returncode, b"Broken" in done.stderr) == (0, False)


def test_an_old_terminal_shows_what_it_can(data: Path) -> None:
    told = [sys.executable, "-m", "ruleout", "check", str(data), "--excluded", "not"]
    env = {**os.environ, "PYTHONIOENCODING": "ascii"}
    done = subprocess.run([*told, "--ignore", "city,is"], env=env, capture_output=True, check=True)
    assert b"% ? " in done.stdout  # the share of a class, plus or minus


def test_options_are_parsed(tmp_path: Path) -> None:
    assert parse_names(["a,b", 'c,"d,e"']) == ["a", "b", "c", "d,e"]
    assert parse_classes(None) is None
    assert parse_classes("4") == 4
    assert parse_classes("cat, dog") == ["cat", "dog"]
    assert parse_classes("a,b|c") == ["a,b", "c"]
    names = tmp_path / "names.txt"
    names.write_text("cat\n\n dog \n")
    assert parse_classes(str(names)) == ["cat", "dog"]
    names.write_bytes(b"\xff\xfe")
    with pytest.raises(ValueError, match=r"names\.txt: this is not UTF-8 text"):
        parse_classes(str(names))
    assert (parse_rate("0.05"), parse_rate("3/30")) == (0.05, (3, 30))
    for text in ("often", "3/x", "1/2/3"):
        with pytest.raises(typer.BadParameter, match="is not a rate"):
            parse_rate(text)
    assert (parse_size(None), parse_size("28"), parse_size("28×32")) == (None, (28, 28), (28, 32))
    for text in ("x", "1x2x3", "-1", "4x"):
        with pytest.raises(typer.BadParameter):
            parse_size(text)


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_findings_are_the_same_whatever_is_read_at_a_time(
    suffix: str, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where only a part of the rows is kept for pairs, equal rows and the features."""
    rows = [line.split(",") for line in data.read_text().splitlines()]
    header, *body = [
        [str(place - 1) if place else "id", *row[:2], *row[3:]] for place, row in enumerate(rows)
    ]
    body = body + [[str(200 + i), *row[1:]] for i, row in enumerate(body[:60])]
    body[10][3], body[210][3], body[211][4] = "dog|fish", "cat|[red]", body[211][3].split("|")[0]
    body[10][4], body[210][4] = "cat", "dog"
    data.write_text("\n".join(",".join(row) for row in [header, *body]))
    file = data.with_suffix(suffix)
    if suffix == ".parquet":
        columns = dict(zip(header, zip(*body, strict=True), strict=True))
        numbers = {name: np.array(columns.pop(name), float) for name in ("id", "a", "b")}
        pq.write_table(pa.table(numbers | columns), file)
    found: dict[str, dict[str, Any]] = {}
    for features, kept in (("id,a,b", 1 << 28), ("a,b", 1 << 28), ("a,b", 18 * 50)):
        monkeypatch.setattr("ruleout.datasets.data_checks._BYTES", kept)
        monkeypatch.setattr("ruleout.datasets.data_checks._ROWS", 20_000 if kept > 1000 else 70)
        said = set()
        for batch in (1, 7, 1 << 22):
            monkeypatch.setattr("ruleout.labels.sets._CELLS", 4 * batch)
            monkeypatch.setattr("ruleout.datasets.tables._ROWS", batch)
            options = ["--excluded", "not", "--label", "is", "--features", features, "--json"]
            result = run(app, [str(file), *options])
            assert result.exit_code == 0, result.output
            said.add(result.stdout)
        assert len(said) == 1
        found = {item["name"]: item["numbers"] for item in json.loads(said.pop())["findings"]}
        assert found["true class"]["rows"] == 1
        assert found.get("row numbers") == ({"columns": [0]} if features == "id,a,b" else None)
        if features == "a,b" and kept > 1000:
            assert found["equal rows"] == {"rows": 60}
            assert found["contradictions"] == {"groups": 1, "first": [10, 210]}
    assert 20 < found["equal rows"]["rows"] < 180  # an estimate from 50 rows
