"""``ruleout label users``: who gets in."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from cli.labelled import make_project, ran, run

from ruleout.web.project import Project


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return make_project(tmp_path)


def token_of(said: str) -> str:
    match = re.search(r"/join/([\w-]{43})\s*$", said)
    assert match is not None, said
    return match[1]


def listed(project: Path) -> list[list[str]]:
    return [line.split() for line in ran("users", project).splitlines()]


def test_people_are_listed_with_their_role_and_account(project: Path) -> None:
    token = token_of(ran("users", project, "add", "Ann"))
    ran("users", project, "add", "Bob", "--role", "lead")
    with Project.open(project) as opened:
        opened.store.accept(token, "a hash")
    ran("users", project, "close", "Bob")
    assert listed(project) == [
        ["name", "role", "account"],
        ["Lea", "lead", "no", "password", "yet"],
        ["Ann", "annotator", "open"],
        ["Bob", "lead", "closed"],
    ]
    assert listed(project) == [line.split() for line in ran("users", project, "list").splitlines()]


def test_hostile_names_are_shown_as_they_are(project: Path) -> None:
    ran("users", project, "add", "[red]Ann[/red]")
    assert listed(project)[-1][0] == "[red]Ann[/red]"


def test_a_link_lets_one_person_in(project: Path) -> None:
    said = ran("users", project, "add", "Ann")
    assert said.splitlines()[0] == "For Ann (annotator), once, within seven days:"
    assert said.splitlines()[1].startswith("http://127.0.0.1:8765/join/")
    with Project.open(project) as opened:
        user = opened.store.invited(token_of(said))
    assert user is not None
    assert (user.name, user.role) == ("Ann", "annotator")


def test_links_lead_to_where_people_reach_the_service(project: Path) -> None:
    said = ran("users", project, "add", "Ann", "--origin", "https://label.example.org:8443/")
    assert said.splitlines()[1].startswith("https://label.example.org:8443/join/")


def test_a_new_link_ends_the_old_one_and_keeps_the_role(project: Path) -> None:
    old = token_of(ran("users", project, "add", "Bob", "--role", "lead"))
    new = token_of(ran("users", project, "invite", "Bob"))
    with Project.open(project) as opened:
        assert opened.store.invited(old) is None
        user = opened.store.invited(new)
    assert user is not None
    assert user.role == "lead"


def test_closed_accounts_can_be_opened(project: Path) -> None:
    ran("users", project, "add", "Ann")
    assert ran("users", project, "close", "Ann") == "Ann (annotator) is closed.\n"
    result = run("users", project, "invite", "Ann")
    assert result.exit_code == 1
    assert result.stderr == (
        "ruleout: the account of 'Ann' is closed; open it first: users PROJECT open NAME\n"
    )
    assert ran("users", project, "open", "Ann") == "Ann (annotator) is open.\n"
    token_of(ran("users", project, "invite", "Ann"))


def test_closing_the_last_lead_is_noted(project: Path) -> None:
    result = run("users", project, "close", "Lea")
    assert result.exit_code == 0
    assert result.stderr == (
        "Note: no lead is left who can log in; open one, or add one with --role lead\n"
    )


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["add", "Lea"], "the name 'Lea' is taken, or looks like one that is; choose another name"),
        (["add", "lEA"], "the name 'lEA' is taken, or looks like one that is; choose another name"),
        (["add", ""], "the name '' is empty or too long; use 1 to 64 letters"),
        (["invite", "Eve"], "there is no user 'Eve'; add them, or check the name"),
        (["close", "Eve"], "there is no user 'Eve'; add them, or check the name"),
    ],
)
def test_bad_names_leave_with_1_and_one_sentence(
    words: list[str], sentence: str, project: Path
) -> None:
    before = listed(project)
    result = run("users", project, *words)
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr == f"ruleout: {sentence}\n"
    assert listed(project) == before


@pytest.mark.parametrize(
    "words",
    [
        ["add"],
        ["list", "Ann"],
        ["befriend", "Ann"],
        ["add", "Ann", "--role", "boss"],
        ["invite", "Lea", "--role", "lead"],
        ["add", "Ann", "--origin", "label.example.org"],
        ["add", "Ann", "--origin", "https://label.example.org/path"],
        ["add", "Ann", "--origin", "https://me:secret@label.example.org"],
        ["add", "Ann", "--origin", "javascript:alert(1)"],
        ["add", "Ann", "--origin", "http://a:99999"],
    ],
)
def test_usage_errors_leave_with_2(words: list[str], project: Path) -> None:
    assert run("users", project, *words).exit_code == 2
    assert len(listed(project)) == 2
