"""``Project``: a labelling project as a folder, from Python."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path

import pytest
from cli.labelled import make_images, make_project
from hypothesis import given
from hypothesis import strategies as st

from ruleout.labels.errors import InputError
from ruleout.web import Settings
from ruleout.web.items import read_items
from ruleout.web.project import Project, postgresql, read_card, without_password


def test_a_project_is_made_and_opened_again(tmp_path: Path) -> None:
    items, settings = make_images(tmp_path / "images"), Settings(classes=("cat", "dog"))
    found = read_items(items, settings.classes)
    with Project.create(tmp_path / "pets", settings, found, items) as made:
        identity = made.store.identity
    with Project.open(tmp_path / "pets") as project:
        assert project.store.identity == identity
        assert project.store.settings == settings
        assert (project.name, project.source, project.images) == ("pets", items, items)
        assert [item.name for _, item in project.store.items()] == [f"{n}.png" for n in range(6)]


def test_the_path_may_be_relative(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    project = make_project(tmp_path)
    monkeypatch.chdir(project)
    with Project.open(".") as opened:
        assert (opened.folder, opened.name) == (project, "project")


def test_a_link_to_a_project_is_the_project(tmp_path: Path) -> None:
    project = make_project(tmp_path)
    (tmp_path / "link").symlink_to(project)
    with Project.open(tmp_path / "link") as opened:
        assert opened.folder == project


def test_new_places_of_items_are_followed(tmp_path: Path) -> None:
    project = make_project(tmp_path)
    moved = (tmp_path / "images").rename(tmp_path / "moved")
    card = project / "project.json"
    card.write_text(json.dumps({**json.loads(card.read_text()), "source": str(moved)}))
    with Project.open(project) as opened:
        assert opened.images == moved


@pytest.mark.parametrize("scheme", ["postgres", "postgresql", "postgresql+psycopg"])
def test_addresses_are_understood(scheme: str) -> None:
    found = postgresql(f"{scheme}://ann:p%40ss@db:5433/labels?sslmode=require")
    assert found == "postgresql+psycopg://ann:p%40ss@db:5433/labels?sslmode=require"
    assert without_password(found) == "postgresql+psycopg://ann@db:5433/labels?sslmode=require"


@given(st.binary(max_size=200) | st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(
        st.sampled_from(["format", "database", "identity", "source", "kind"]), inner),
).map(lambda value: json.dumps(value).encode()))  # fmt: skip
def test_any_content_is_a_card_or_one_sentence(
    tmp_path_factory: pytest.TempPathFactory, content: bytes
) -> None:
    folder = tmp_path_factory.mktemp("any")
    (folder / "project.json").write_bytes(content)
    with suppress(InputError):
        read_card(folder)
