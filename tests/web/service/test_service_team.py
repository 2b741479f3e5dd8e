"""Downloads of the team page: the very files that an export writes."""

from __future__ import annotations

import csv
import re
from pathlib import Path

import pytest
from httpx import Response
from web.service.client import Client
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
    told = decided(lea, item, **{"class": "b"})
    assert (told.status_code, told.headers["location"]) == (303, "/team#clashes")
    page = lea.page("/team").text
    assert "answers contradict each other." in page
    assert "Take back" in page
    assert site.store.answer_log().decisions[0].by == "Lea"
    assert decided(lea, item, back="1").status_code == 303
    assert decided(lea, item, **{"void-1": "on"}).status_code == 303
    assert site.store.answer_log().decisions[-1].voids == (1,)


def decided(client: Client, item: int, **fields: str) -> Response:
    """Send the form about an item as the page has it, with what is filled in."""
    forms = client.page("/team").text.split('action="/team/decide"')[1:]
    own = next(form for form in forms if f'name="item" value="{item}"' in form)
    hidden = re.findall(r'type="hidden" name="([^"]+)" value="([^"]+)"', own.split("</form>")[0])
    return client.form("/team/decide", **dict(hidden), **fields)


def test_who_does_not_say_what_they_saw_decides(site: Site) -> None:
    """As a page from before an update, or a program, does."""
    item, lea = _clash(site), site.login("Lea", "lead")
    for name in ("a", "b"):
        told = lea.form("/team/decide", **{"item": str(item), "class": name})
        assert told.status_code == 303
    assert [one.which for one in site.store.answer_log().decisions] == [0, 1]


def test_what_is_ticked_joins_what_was_left_out_before(site: Site) -> None:
    site.store.bring([
        Earlier(item="3.png", annotator=name, kind="which", which=which)
        for which, name in enumerate(("Ann", "Bob", "Cem"))
    ])  # fmt: skip
    item, lea = _clash(site), site.login("Lea", "lead")
    decided(lea, item, **{"void-1": "on"})
    decided(lea, item, **{"void-2": "on"})
    assert site.store.answer_log().decisions[-1].voids == (1, 2)
    assert site.store.answer_log().contradictions() == ()


def test_a_lead_is_told_what_another_decided_meanwhile(site: Site) -> None:
    item, lea, mia = _clash(site), site.login("Lea", "lead"), site.login("Mia", "lead")
    stale = {"item": str(item), "seen": "0"}
    assert decided(lea, item, **{"class": "b"}).status_code == 303
    told = mia.form("/team/decide", **stale, **{"class": "a"})
    assert told.status_code == 409
    assert "a lead decided about &#39;3.png&#39; after this page was loaded" in told.text
    assert "it is b" in re.sub("<[^>]+>", "", told.text)
    assert mia.form("/team/decide", **stale, back="1").status_code == 409
    assert [one.by for one in site.store.answer_log().decisions] == ["Lea"]


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
    told = lea.form("/team/decide", **{"item": str(item), "seen": "0", **fields})
    assert told.status_code in (404, 422)
    assert sentence in told.text
    assert site.store.answer_log().decisions == ()
