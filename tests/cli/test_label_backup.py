"""``ruleout label backup``: a whole copy of a live project, which opens where it is unpacked."""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path
from threading import Event, Thread
from zipfile import ZipFile

import pytest
from cli.labelled import answer_all, make_answered, make_project, png, ran, run

from ruleout.web.database import Database
from ruleout.web.entities import StoreError
from ruleout.web.project import Project


def restored(file: Path, folder: Path) -> Path:
    with ZipFile(file) as pack:
        pack.extractall(folder)
    return folder


def test_a_backup_opens_with_the_same_answers(tmp_path: Path) -> None:
    project = make_answered(tmp_path)
    (project / "guidelines.md").write_text("# Look closely")
    (project / "examples" / "cat").mkdir(parents=True)
    (project / "examples" / "cat" / "1.png").write_bytes(png(7))
    file = tmp_path / "backup.zip"
    assert ran("backup", project, file) == f"Written: {file}\n"
    assert file.stat().st_mode & 0o077 == 0
    again = restored(file, tmp_path / "again")
    with Project.open(project) as before, Project.open(again) as after:
        assert list(after.store.log()) == list(before.store.log())
        assert after.store.settings == before.store.settings
        assert after.store.users() == before.store.users()
        assert list(after.store.items()) == list(before.store.items())
    assert "is sound" in ran("status", again)
    assert (again / "examples" / "cat" / "1.png").read_bytes() == png(7)
    for line in (again / "images.sha256").read_text().splitlines():
        digest, name = line.split("  ")
        assert sha256((tmp_path / "images" / name).read_bytes()).hexdigest() == digest


def test_a_backup_under_load_is_of_one_moment(tmp_path: Path) -> None:
    project, done = make_project(tmp_path, "--rounds", 8, count=10), Event()

    def label() -> None:
        with Project.open(project) as opened:
            for number in range(8):
                answer_all(opened.store, opened.store.add_user(f"Ann{number}"))
        done.set()

    work = Thread(target=label)
    work.start()
    files: list[Path] = []
    while not done.is_set() and len(files) < 3:
        files.append(tmp_path / f"{len(files)}.zip")
        ran("backup", project, files[-1])
    work.join()
    with Project.open(project) as opened:
        every = list(opened.store.log())
    for file in files:
        with Project.open(restored(file, file.with_suffix(""))) as copy:
            found = list(copy.store.log())
            assert copy.store.check() == []
        assert found == every[: len(found)]


def test_nothing_is_written_over(tmp_path: Path) -> None:
    project = make_project(tmp_path)
    (tmp_path / "there.zip").write_text("mine")
    for file, sentence in (("there.zip", "there already"), ("no/where.zip", "does not exist")):
        result = run("backup", project, tmp_path / file)
        assert (result.exit_code, result.stdout) == (1, "")
        assert sentence in result.stderr
    assert (tmp_path / "there.zip").read_text() == "mine"
    assert sorted(one.name for one in tmp_path.iterdir()) == ["images", "project", "there.zip"]


def test_postgresql_has_its_own_way() -> None:
    database = Database("postgresql+psycopg://ann@127.0.0.1:1/x")
    with pytest.raises(StoreError, match="pg_dump"):
        database.copy_to(Path("x"))
    database.close()
