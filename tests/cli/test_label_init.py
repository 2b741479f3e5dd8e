"""``ruleout label init``: what it makes, what it says."""

from __future__ import annotations

import json
import os
import re
import stat
from pathlib import Path

import pytest
from cli.labelled import CLASSES, make_images, make_project, ran, run

from ruleout.web.project import Project

TABLE = "id,words,year\na,hello,1990\nb,world,2000\n"


@pytest.fixture
def images(tmp_path: Path) -> Path:
    return make_images(tmp_path / "images")


def test_it_says_what_was_found_and_what_comes_next(tmp_path: Path, images: Path) -> None:
    place = tmp_path / "my pets"
    said = ran("init", place, "--items", images, "--classes", "cat,dog,fish", "--lead", "Lea")
    lines = [line for line in said.splitlines() if line]
    assert lines[:-1] == [
        "6 images, 3 classes, 1 answer for each",
        f"Made: {place}",
        "Next, serve the page:",
        f"  ruleout label serve '{place}'",
        "and let Lea, who leads, choose a password (once, within seven days):",
    ]
    assert re.fullmatch(r"  http://127\.0\.0\.1:8765/join/[\w-]{43}", lines[-1])


def test_the_link_is_an_invite_of_a_lead(tmp_path: Path, images: Path) -> None:
    options = ("--items", images, "--classes", "cat,dog", "--lead", "Lea")
    token = ran("init", tmp_path / "p", *options).rsplit("/", 1)[1].strip()
    with Project.open(tmp_path / "p") as project:
        user = project.store.invited(token)
    assert user is not None
    assert (user.name, user.role) == ("Lea", "lead")


@pytest.mark.parametrize(
    ("login", "leads"), [("ann", "ann"), ("a\tb", "lead"), (OSError, "lead"), (KeyError, "lead")]
)
def test_who_calls_it_leads(
    login: str | type[Exception],
    leads: str,
    tmp_path: Path,
    images: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def name() -> str:
        if isinstance(login, str):
            return login
        raise login

    monkeypatch.setattr("getpass.getuser", name)
    ran("init", tmp_path / "p", "--items", images, "--classes", "cat,dog")
    with Project.open(tmp_path / "p") as project:
        assert [user.name for user in project.store.users()] == [leads]


def test_every_option_reaches_the_settings(tmp_path: Path, images: Path) -> None:
    gold = tmp_path / "gold.csv"
    gold.write_text("item,class\n0.png,cat\n1.png,dog\n")
    options = (
        "--law", "2", "--cap", 3, "--mode", "propose", "--rounds", 2, "--gold", gold,
        "--gold-rate", 0.2, "--which", "--lease", 2.5, "--seed", 7,
    )  # fmt: skip
    with Project.open(make_project_of(tmp_path, images, *options)) as project:
        settings = project.store.settings
        known = [item.gold for _, item in project.store.items()]
    assert settings.classes == CLASSES
    assert (settings.law, settings.cap, settings.mode) == ("fixed:2", 3, "propose")
    assert (settings.rounds, settings.gold_rate, settings.ask_which) == (2, 0.2, True)
    assert (settings.lease_seconds, settings.seed) == (150, 7)
    assert known == [0, 1, None, None, None, None]


def make_project_of(folder: Path, items: Path, *options: object) -> Path:
    ran("init", folder / "p", "--items", items, "--classes", ",".join(CLASSES), *options)
    return folder / "p"


def test_nobody_can_guess_the_seed(tmp_path: Path, images: Path) -> None:
    """Who knows it can draw the sets again, and those of gold questions are drawn otherwise."""
    seeds = set()
    for number in range(3):
        place = tmp_path / str(number)
        place.mkdir()
        with Project.open(make_project_of(place, images)) as project:
            seeds.add(project.store.settings.seed)
    assert len(seeds) == 3
    assert min(seeds) > 2**32


def test_rule_out_projects(tmp_path: Path, images: Path) -> None:
    with Project.open(make_project_of(tmp_path, images, "--mode", "rule-out")) as project:
        assert project.store.settings.mode == "rule-out"


def test_known_classes_are_asked_about_now_and_then(tmp_path: Path, images: Path) -> None:
    gold = tmp_path / "gold.csv"
    gold.write_text("item,class\n0.png,cat\n")
    said = ran("init", tmp_path / "p", "--items", images, "--classes", "cat,dog", "--gold", gold)
    assert "1 of known class, in 5 % of the questions" in said


def test_classes_from_a_file(tmp_path: Path, images: Path) -> None:
    file = tmp_path / "a,b.txt"
    file.write_text("cat\nsea, lion\n")
    ran("init", tmp_path / "p", "--items", images, "--classes", file)
    with Project.open(tmp_path / "p") as project:
        assert project.store.settings.classes == ("cat", "sea, lion")


def test_class_names_may_be_quoted(tmp_path: Path, images: Path) -> None:
    ran(
        "init",
        tmp_path / "p",
        "--items",
        images,
        "--classes",
        'cat,"sea, lion"',
    )
    with Project.open(tmp_path / "p") as project:
        assert project.store.settings.classes == ("cat", "sea, lion")


def test_rows_of_a_table(tmp_path: Path) -> None:
    table = tmp_path / "rows.csv"
    table.write_text(TABLE)
    said = ran("init", tmp_path / "p", "--items", table, "--classes", "x,y", "--name", "id")
    assert said.startswith("2 rows, 2 classes")
    with Project.open(tmp_path / "p") as project:
        found = [item for _, item in project.store.items()]
        assert project.images is None
        assert project.source == table
    assert [item.name for item in found] == ["a", "b"]
    assert dict(found[0].cells) == {"words": "hello", "year": "1990"}


def test_texts_of_a_table(tmp_path: Path) -> None:
    table = tmp_path / "rows.csv"
    table.write_text(TABLE)
    said = ran("init", tmp_path / "p", "--items", table, "--classes", "x,y", "--text", "words")
    assert said.startswith("2 texts, 2 classes")
    with Project.open(tmp_path / "p") as project:
        assert [item.text for _, item in project.store.items()] == ["hello", "world"]


def test_what_was_left_out_is_a_note(tmp_path: Path, images: Path) -> None:
    (images / "notes.txt").write_text("no image")
    result = run("init", tmp_path / "p", "--items", images, "--classes", "x,y")
    assert result.exit_code == 0
    assert result.stderr == "Note: 1 left out: not PNG, JPEG, GIF, WebP or BMP images.\n"


@pytest.mark.parametrize(
    ("k", "options", "noted"),
    [
        (31, (), True),
        (30, (), False),
        (100, ("--cap", 8), False),
        (100, ("--law", "3"), False),
        (100, ("--mode", "rule-out"), False),
    ],
)
def test_long_questions_are_noted(
    k: int, options: tuple[object, ...], noted: bool, tmp_path: Path, images: Path
) -> None:
    classes = ",".join(f"class {n}" for n in range(k))
    result = run("init", tmp_path / "p", "--items", images, "--classes", classes, *options)
    assert result.exit_code == 0
    assert ("--cap 8 would name fewer" in result.stderr) == noted


def test_only_the_owner_reads_what_may_hold_secrets(tmp_path: Path) -> None:
    place = make_project(tmp_path)
    modes = {file.name: stat.S_IMODE(os.stat(file).st_mode) for file in place.iterdir()}
    assert modes == {"project.json": 0o600, "labels.sqlite": 0o600}


def test_the_folder_may_be_moved(tmp_path: Path) -> None:
    place = make_project(tmp_path).rename(tmp_path / "other")
    with Project.open(place) as project:
        assert project.name == "other"
        assert project.store.progress().items == 6


@pytest.mark.parametrize("name", ["a b", "a?b=c", "a%20b", "a#b", "[red]", "ä", "a'b"])
def test_strange_names_of_folders(name: str, tmp_path: Path, images: Path) -> None:
    place = tmp_path / name
    ran("init", place, "--items", images, "--classes", "x,y")
    assert sorted(file.name for file in place.iterdir()) == ["labels.sqlite", "project.json"]
    assert str(place) in ran("status", place)
    assert json.loads((place / "project.json").read_text())["source"] == str(images)


def test_an_empty_folder_is_filled(tmp_path: Path, images: Path) -> None:
    (tmp_path / "p").mkdir()
    ran("init", tmp_path / "p", "--items", images, "--classes", "x,y")
    assert (tmp_path / "p" / "project.json").is_file()


@pytest.mark.parametrize(
    "options",
    [
        ("--gold-rate", 0.1),
        ("--mode", "rule-out", "--which"),
        ("--mode", "guess"),
        ("--rounds", "many"),
        ("--items",),
    ],
)
def test_usage_errors_leave_with_2(options: tuple[object, ...], tmp_path: Path) -> None:
    result = run("init", tmp_path / "p", "--items", tmp_path, "--classes", "x,y", *options)
    assert result.exit_code == 2
    assert not (tmp_path / "p").exists()
