"""Downloads of the team page: the very files that an export writes."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest
from web.service.site import Site

from ruleout.labels import LabelSets
from ruleout.web.importing import Earlier
from ruleout.web.project_export import write_bundle


@pytest.mark.parametrize(
    ("name", "how", "file"),
    [
        ("sets.csv", "no", "sets.csv"),
        ("sets-intersection.csv", "intersection", "sets.csv"),
        ("log.csv", "no", "log.csv"),
        ("contradictions.csv", "intersection", "contradictions.csv"),
    ],
)
def test_a_download_is_the_file_of_the_export(
    site: Site, tmp_path: Path, name: str, how: str, file: str
) -> None:
    ann = site.login("Ann")
    for number, question in enumerate(ann.api("/api/next", {"count": 5}).json()["questions"]):
        told = {"id": f"a{number}", "kind": "no", "question": question["id"]}
        assert ann.api("/api/answer", told).status_code == 200
    got = site.login("Lea", "lead").get(f"/team/export/{name}")
    assert got.headers["content-disposition"] == f'attachment; filename="{name}"'
    write_bundle(site.store, tmp_path / "export", how=how)  # type: ignore[arg-type]
    assert got.content == (tmp_path / "export" / file).read_bytes()
    if name.startswith("sets"):
        (tmp_path / name).write_bytes(got.content)
        assert len(LabelSets.read(tmp_path / name, classes=tuple("abcdef"))) == 5
        first = next(csv.reader(got.text.splitlines()))
        assert first[:3] == ["file", "excluded", "weight"]


def _clash(site: Site) -> int:
    """Have two people contradict each other about an item; return its number."""
    site.store.bring([
        Earlier(item="3.png", annotator="Ann", kind="which", which=0),
        Earlier(item="3.png", annotator="Bob", kind="which", which=1),
    ])  # fmt: skip
    return next(number for number, item in site.store.items() if item.name == "3.png")


def test_a_lead_decides_on_the_team_page(site: Site) -> None:
    item, lea = _clash(site), site.login("Lea", "lead")
    page = lea.page("/team").text
    assert f'<img src="/items/{item}"' in page
    assert 'name="void-1"' in page
    assert lea.get(f"/items/{item}").status_code == 200
    told = lea.form("/team/decide", item=str(item), **{"class": "b"})
    assert (told.status_code, told.headers["location"]) == (303, "/team#clashes")
    page = lea.page("/team").text
    assert "answers contradict each other." in page
    assert "Take back" in page
    assert site.store.answer_log().decisions[0].by == "Lea"
    assert lea.form("/team/decide", item=str(item), back="1").status_code == 303
    assert lea.form("/team/decide", item=str(item), **{"void-1": "on"}).status_code == 303
    assert site.store.answer_log().decisions[-1].voids == (1,)


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({}, "nothing is decided"),
        ({"class": "x"}, "there is no class"),
        ({"class": "a", "item": "9" * 5000}, "there is no such item"),
        ({"class": "a", "item": "²"}, "there is no such item"),
        ({"void-7": "on"}, "no such answer about it"),
        ({"void-": "on"}, "no such answer about it"),
    ],
)
def test_what_cannot_be_decided_is_said_on_the_page(
    site: Site, fields: dict[str, str], sentence: str
) -> None:
    item, lea = _clash(site), site.login("Lea", "lead")
    told = lea.form("/team/decide", **{"item": str(item), **fields})
    assert told.status_code in (404, 422)
    assert sentence in told.text
    assert site.store.answer_log().decisions == ()
