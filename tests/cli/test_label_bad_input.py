# ruff: noqa: E501  # the sentences stand as users read them
"""Bad input to ``ruleout label``: exit code 1, one sentence, nothing half-written."""

from __future__ import annotations

import errno
import json
import os
import resource
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from cli.labelled import make_answered, make_images, make_project, run

from ruleout.labels import atomic
from ruleout.web import project as folders

# ---------------------------------------------------------------------- init

INIT: dict[str, tuple[dict[str, Any], str]] = {
    "no items": ({"--items": "none"}, "none: there is no such file or folder; check the path"),
    "empty folder": ({"--items": "empty"}, "empty: there is nothing to label; give PNG, JPEG, GIF, WebP or BMP files"),
    "no rows": ({"--items": "bare.csv"}, "bare.csv: there is nothing to label; give a file with at least one row below the header"),
    "unknown suffix": ({"--items": "one.txt"}, "one.txt: unknown file type '.txt'; use one of .csv, .tsv, .jsonl, .parquet"),
    "no column": ({"--items": "rows.csv", "--text": "word"}, "rows.csv, line 2: there is no column 'word'; did you mean 'words'?"),
    "folder column": ({"--name": "id"}, "images: name is the column 'id', but a folder of images has no columns; leave it out, or give a CSV, TSV, JSONL or Parquet file"),
    "same names": ({"--items": "rows.csv", "--name": "same"}, "rows.csv, line 3: the name 'x' appears twice; name each row once"),
    "no class file": ({"--classes": "none.txt"}, "none.txt: no such file or directory; check the name"),
    "a name alone": ({"--classes": "cat"}, "cat: there is no such file; check the name, or write --classes A,B,C"),
    "many columns": ({"--items": "wide.csv", "--text": "word"}, "wide.csv, line 2: there is no column 'word'; the columns are 'c0', 'c1', 'c2', 'c3', 'c4', 'c5', 'c6', 'c7', … (9 in all)"),
    "one class": ({"--classes": "one.txt"}, "one.txt: 1 class(es) given; at least two classes are needed"),
    "no class": ({"--classes": "empty.txt"}, "empty.txt: 0 class(es) given; at least two classes are needed"),
    "class twice": ({"--classes": "twice.txt"}, "twice.txt, line 3: the class name 'cat' appears twice; name each class once"),
    "blank class": ({"--classes": "blank.txt"}, "blank.txt, line 2: the class name is blank; write one class name per line"),
    "name twice": ({"--classes": "cat,dog,cat"}, "the class name 'cat' appears twice; name each class once"),
    "blank name": ({"--classes": "cat,,dog"}, "the class name is blank; separate names with single commas"),
    "one name": ({"--classes": "cat,"}, "the class name is blank; separate names with single commas"),
    "law": ({"--law": "relesed"}, "unknown size law 'relesed'; did you mean 'released'?"),
    "large size": ({"--law": "4"}, "size 4 is impossible with 4 classes; choose a size from 1 to 3"),
    "large cap": ({"--cap": 4}, "sets of at most 4 classes; choose a cap from 1 to 3"),
    "no cap": ({"--cap": 0}, "sets of at most 0 classes; choose a cap from 1 to 3"),
    "cap below law": ({"--law": "3", "--cap": 2}, "law 'fixed:3' has no sizes up to 2; raise the cap"),
    "rounds": ({"--rounds": 0}, "rounds = 0; ask for 1 to 1000 answers per item"),
    "seed": ({"--seed": -1}, "seed = -1; choose a whole number from 0 to 2^63 - 1"),
    "lease": ({"--lease": "nan"}, "--lease nan is not a usable time; choose from 0.1 to 43200 minutes"),
    "long lease": ({"--lease": "inf"}, "--lease inf is not a usable time; choose from 0.1 to 43200 minutes"),
    "gold rate": ({"--gold": "gold.csv", "--gold-rate": 0.9}, "gold_rate = 0.9; choose a share from 0 to 0.5"),
    "gold nan": ({"--gold": "gold.csv", "--gold-rate": "nan"}, "gold_rate = nan; choose a share from 0 to 0.5"),
    "gold missing": ({"--gold": "none.csv"}, "none.csv: no such file or directory; check the name"),
    "gold item": ({"--gold": "strange.csv"}, "strange.csv, line 2, column 'item': there is no item '0.pgn'; did you mean '0.png'?"),
    "gold class": ({"--gold": "wrong.csv"}, "wrong.csv, line 2, column 'class': unknown class 'cta'; did you mean 'cat'?"),
    "lead": ({"--lead": "a\tb"}, "the name 'a\\tb' has characters that cannot be seen; use letters, digits, marks and single spaces between them"),
    "long lead": ({"--lead": "a" * 65}, f"the name '{'a' * 59}… is empty or too long; use 1 to 64 letters"),
    "database": ({"--database": "mysql://me:secret@host/db"}, "this is not the address of a PostgreSQL database; write postgresql://USER@HOST/DATABASE, or leave it out for a file in the project"),
    "no address": ({"--database": "secret"}, "this is not the address of a PostgreSQL database; write postgresql://USER@HOST/DATABASE, or leave it out for a file in the project"),
    "password in query": ({"--database": "postgresql://host/db?password=secret"}, "the address holds a password behind the question mark, where it may be printed; write postgresql://USER:PASSWORD@HOST/DATABASE"),
    "no parent": ({"PROJECT": "a/b"}, "a: the folder does not exist; make it first"),
    "a file": ({"PROJECT": "one.txt"}, "one.txt: this is a file; give the name of a new folder"),
    "not empty": ({"PROJECT": "images"}, "images: the folder is not empty; give the name of a new one"),
}  # fmt: skip
FILES = {
    "one.txt": "cat\n", "empty.txt": "", "twice.txt": "cat\ndog\ncat\n", "blank.txt": "cat\n\ndog\n",
    "bare.csv": "a,b\n", "rows.csv": "words,same\nhi,x\nho,x\n",
    "gold.csv": "item,class\n0.png,cat\n", "strange.csv": "item,class\n0.pgn,cat\n",
    "wrong.csv": "item,class\n0.png,cta\n",
    "wide.csv": ",".join(f"c{i}" for i in range(9)) + "\n" + ",".join("123456789") + "\n",
}  # fmt: skip


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder to work in, with images and files of all kinds."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("RULEOUT_DATABASE", raising=False)
    make_images(tmp_path / "images")
    (tmp_path / "empty").mkdir()
    for name, content in FILES.items():
        (tmp_path / name).write_text(content)
    return tmp_path


def tree(folder: Path) -> dict[str, bytes]:
    return {
        str(file.relative_to(folder)): file.read_bytes() if file.is_file() else b""
        for file in sorted(folder.rglob("*"))
    }


def words(changed: dict[str, Any]) -> list[object]:
    options = {"--items": "images", "--classes": "cat,dog,fish,bird", **changed}
    project = options.pop("PROJECT", "project")
    return ["init", project, *(word for option in options.items() for word in option)]


@pytest.mark.parametrize("case", INIT)
def test_nothing_is_made_of_bad_input(case: str, place: Path) -> None:
    changed, sentence = INIT[case]
    before = tree(place)
    result = run(*words(changed))
    assert result.exit_code == 1, result.output
    assert result.stdout == ""
    assert result.stderr.replace(f"{place}/", "") == f"ruleout: {sentence}\n"
    assert "secret" not in result.stderr
    assert tree(place) == before


def test_an_unreachable_database_is_one_sentence_without_its_password(place: Path) -> None:
    address = "postgresql://ann:secret@127.0.0.1:9/labels"
    before = tree(place)
    result = run(*words({"--database": address}))
    assert result.exit_code == 1
    assert result.stderr.startswith(
        "ruleout: cannot open postgresql+psycopg://ann:***@127.0.0.1:9/labels ("
    )
    assert result.stderr.endswith("; check the address and the server\n")
    assert "secret" not in result.stderr
    assert result.stderr.count("\n") == 1
    assert tree(place) == before


def test_a_bad_address_in_the_environment(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RULEOUT_DATABASE", "sqlite:///secret")
    result = run(*words({}))
    assert result.exit_code == 1
    assert result.stderr == (
        "ruleout: RULEOUT_DATABASE: this is not the address of a PostgreSQL database; write "
        "postgresql://USER@HOST/DATABASE, or leave it out for a file in the project\n"
    )
    assert not (place / "project").exists()


# ---------------------------------------------------------------------- full disks


def full(*_: object, **__: object) -> Any:
    raise OSError(errno.ENOSPC, "No space left on device")


@pytest.mark.parametrize(
    ("where", "name"),
    [
        (Path, "mkdir"),
        (folders, "_sqlite"),
        (folders, "write_card"),
        (atomic, "_sync"),
        (Path, "rename"),
    ],
)
def test_a_full_disk_leaves_no_project(
    where: Any, name: str, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = tree(place)
    with monkeypatch.context() as patch:
        patch.setattr(where, name, full)
        result = run(*words({}))
    assert result.exit_code == 1, result.output
    assert result.stderr == (
        f"ruleout: {place / 'project'}: no space left on device; free some space\n"
    )
    assert tree(place) == before


def test_a_limit_on_file_sizes_leaves_no_project(place: Path) -> None:
    before, tree_before = resource.getrlimit(resource.RLIMIT_FSIZE), tree(place)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, before[1]))
        result = run(*words({}))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)
    assert result.exit_code == 1
    assert result.stderr.count("\n") == 1
    assert tree(place) == tree_before


@pytest.mark.parametrize("nth", range(1, 7))
def test_a_full_disk_leaves_no_export(
    nth: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project, calls = make_answered(tmp_path), [0]
    before, real = sorted(tmp_path.iterdir()), os.fsync

    def fails(handle: int) -> None:
        calls[0] += 1
        if calls[0] == nth:
            full()
        real(handle)

    monkeypatch.setattr(os, "fsync", fails)
    result = run("export", project, "--out", tmp_path / "out")
    if result.exit_code == 0:
        assert calls[0] == 7, "syncing the folder alone may fail: the files are on disk"
        return
    assert result.stderr == (
        f"ruleout: {tmp_path / 'out'}: no space left on device; free some space\n"
    )
    assert sorted(tmp_path.iterdir()) == before


# ---------------------------------------------------------------------- what is no project

COMMANDS: dict[str, tuple[object, ...]] = {
    "users": (),
    "status": (),
    "serve": (),
    "export": ("--out", "out"),
    "import": ("answers.csv",),
}


def card(**changed: Any) -> Callable[[Path], None]:
    def change(project: Path) -> None:
        file = project / "project.json"
        content = {**json.loads(file.read_text()), **changed}
        kept = {key: value for key, value in content.items() if value is not ...}
        file.write_text(json.dumps(kept))

    return change


def write(content: bytes) -> Callable[[Path], None]:
    def change(project: Path) -> None:
        (project / "project.json").write_bytes(content)

    return change


def remove(name: str) -> Callable[[Path], None]:
    return lambda project: (project / name).unlink()


def garble(project: Path) -> None:
    (project / "labels.sqlite").write_bytes(b"not a database, but long enough to be read" * 100)


_BACKUP = "restore the file from a backup"
BROKEN: dict[str, tuple[Callable[[Path], None], str]] = {
    "no card": (remove("project.json"), ": this is not a labelling project: it has no project.json; make one with `ruleout label init`"),
    "empty card": (write(b""), f"/project.json: this is not valid JSON; {_BACKUP}"),
    "no JSON": (write(b"\xff{"), f"/project.json: this is not valid JSON; {_BACKUP}"),
    "deep JSON": (write(b"[" * 60_000), f"/project.json: this is not valid JSON; {_BACKUP}"),
    "large card": (write(b" " * 70_000), f"/project.json: the file is larger than 65,536 bytes; {_BACKUP}"),
    "a list": (write(b"[1]"), f"/project.json: this is not the file of a labelling project; {_BACKUP}"),
    "no format": (card(format=...), f"/project.json: this is not the file of a labelling project; {_BACKUP}"),
    "true format": (card(format=True), f"/project.json: this is not the file of a labelling project; {_BACKUP}"),
    "format 0": (card(format=0), f"/project.json: this is not the file of a labelling project; {_BACKUP}"),
    "newer": (card(format=2), "/project.json: the project was made by a newer ruleout (format 2); update ruleout"),
    "much newer": (card(format=10**400), f"/project.json: the project was made by a newer ruleout (format 1{'0' * 19}…); update ruleout"),
    "no database": (card(database=...), f"/project.json: 'database' is missing; {_BACKUP}"),
    "number": (card(database=3), f"/project.json: 'database' is not a usable text; {_BACKUP}"),
    "NUL": (card(source="/a\0b"), f"/project.json: 'source' is not a usable text; {_BACKUP}"),
    "relative": (card(source="images"), f"/project.json: 'source' is not a whole path; {_BACKUP}"),
    "kind": (card(kind="sounds"), f"/project.json: 'kind' is neither 'images' nor 'table'; {_BACKUP}"),
    "identity": (card(identity="0" * 16), ": the database holds another project; check RULEOUT_DATABASE and project.json"),
    "other file": (card(database="sqlite:////etc/passwd"), "this is not the address of a PostgreSQL database; write postgresql://USER@HOST/DATABASE, or leave it out for a file in the project"),
}  # fmt: skip


@pytest.mark.parametrize("case", BROKEN)
def test_broken_projects_are_refused(case: str, tmp_path: Path) -> None:
    project = make_project(tmp_path)
    change, sentence = BROKEN[case]
    change(project)
    result = run("status", project)
    where = str(project) if sentence[0] in ":/" else ""
    assert result.stderr == f"ruleout: {where}{sentence}\n"
    assert (result.exit_code, result.stdout) == (1, "")


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_refuses_what_is_no_project(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "answers.csv").write_text("item,annotator,kind\n")
    for name, sentence in {
        "none": "there is no such folder; check the name, or make one with `ruleout label init`",
        "answers.csv": "this is a file; give the folder of a project",
    }.items():
        result = run(command, name, *COMMANDS[command])
        assert result.stderr == f"ruleout: {tmp_path / name}: {sentence}\n"
        assert result.exit_code == 1
    assert [file.name for file in tmp_path.iterdir()] == ["answers.csv"]


def test_a_missing_database(tmp_path: Path) -> None:
    project = make_project(tmp_path)
    (project / "labels.sqlite").unlink()
    result = run("status", project)
    assert result.exit_code == 1
    assert f"there is no file '{project / 'labels.sqlite'}'; restore it from" in result.stderr
    assert not (project / "labels.sqlite").exists()


def test_a_garbled_database(tmp_path: Path) -> None:
    project = make_project(tmp_path)
    garble(project)
    result = run("status", project)
    assert result.exit_code == 1
    assert result.stderr.startswith(f"ruleout: cannot open {project / 'labels.sqlite'} (")
    assert result.stderr.endswith("; see that you may write it, or restore it from a backup\n")
    assert result.stderr.count("\n") == 1


def test_images_that_moved_stop_the_service_and_nothing_else(tmp_path: Path) -> None:
    project = make_project(tmp_path)
    (tmp_path / "images").rename(tmp_path / "moved")
    sentence = (
        f"{tmp_path / 'images'}: the folder of the images is gone; move it back, or write its new "
        f"place as source into {project / 'project.json'}\n"
    )
    result = run("serve", project)
    assert (result.exit_code, result.stderr) == (1, f"ruleout: {sentence}")
    result = run("status", project)
    assert (result.exit_code, result.stderr) == (0, f"Note: {sentence}")
    assert run("export", project, "--out", tmp_path / "out").exit_code == 0


def test_a_damaged_project_is_told_apart(tmp_path: Path) -> None:
    import sqlite3

    project = make_answered(tmp_path)
    with sqlite3.connect(project / "labels.sqlite") as db:
        db.execute("UPDATE slots SET answer = NULL WHERE item = 1")
    db.close()
    result = run("status", project)
    assert result.exit_code == 1
    assert "counts but has no slot" in result.stderr
    assert "The database is sound." not in result.stdout
