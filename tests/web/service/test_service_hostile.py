"""Bodies, names and texts of people who mean harm."""

from __future__ import annotations

import json
from collections import Counter
from html.parser import HTMLParser
from pathlib import Path

import httpx
import pytest
from web.service.client import Client
from web.service.conftest import MakeSite
from web.service.site import Site

from ruleout.web import Item

SCRIPTS = [
    "<script>alert(1)</script>", '"><img src=x onerror=alert(1)>', "'-alert(1)-'", "{{7*7}}",
    "{% raw %}x", "${7*7}", "</title><svg onload=alert(1)>", "javascript:alert(1)", "<!--", "]]>",
    "&lt;b&gt;", "\u2067evil\u2069", "`x`", "</textarea><b>", "a\u00a0b", "<ſcript>",
]  # fmt: skip


class Seen(HTMLParser):
    """Collects what a browser would make of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note a tag."""
        self.tags.append(tag)
        self.attributes += [name for name, _ in attrs]


def tags(response: httpx.Response) -> Counter[str]:
    """Return what a page is made of; attributes must leave no place for a program."""
    assert response.headers["content-type"] == "text/html; charset=utf-8"
    seen = Seen(response.text)
    assert not [name for name in seen.attributes if name.startswith("on") or name == "style"]
    assert ">49<" not in response.text
    return Counter(seen.tags)


def people(texts: list[str]) -> list[str]:
    """Return those that may be names of people."""
    return [text for text in texts if text.isprintable() and "\u00a0" not in text]


def test_names_of_people_and_projects_are_text_on_every_page(tmp_path: Path) -> None:
    hostile, calm = people(SCRIPTS), [f"name {n}" for n, _ in enumerate(people(SCRIPTS))]
    found = []
    for folder, names in (("hostile", hostile), ("calm", calm)):
        (tmp_path / folder).mkdir()
        url = f"sqlite:///{tmp_path / folder / 'project.sqlite'}"
        with Site(url, tmp_path / folder, name=" ".join(names)) as site:
            for name in names:
                site.user(name, "lead")
            lead = site.login(names[0], "lead")
            pages = [lead.page("/"), lead.page("/team"), lead.page("/nope")]
            for name in names:
                token = site.store.invite(name, "lead", now=site.clock())
                pages += [site.client().page(f"/join/{token}"),
                          site.client().form("/login", name=name, password="x"),
                          lead.form("/team/invite", name=name, role="annotator"),
                          lead.form("/team/disable", name=f"{name}?", disabled="1")]  # fmt: skip
            found.append([(page.status_code, tags(page)) for page in pages])
    assert found[0] == found[1]


def test_classes_and_items_are_text_everywhere(make_site: MakeSite) -> None:
    items = [Item(name=f"{text} ", kind="row", text=text, cells={text: text}) for text in SCRIPTS]
    site = make_site(items=items, classes=tuple(SCRIPTS))
    lead = site.login("Lea", "lead")
    before = tags(lead.page("/")), set(tags(lead.page("/team")))
    asked = lead.api("/api/next", {"count": 50})
    assert asked.headers["content-type"] == "application/json"
    for question in asked.json()["questions"]:
        shown = question["item"]
        assert shown["cells"] == [[shown["text"], shown["text"]]]
        assert shown["text"] in SCRIPTS
        told = {"id": f"a{question['id']}", "kind": "no", "question": question["id"]}
        assert lead.api("/api/answer", told).status_code == 200
    assert lead.get("/api/project").json()["classes"] == SCRIPTS
    team = lead.page("/team")
    assert tags(lead.page("/")) == before[0]
    assert not set(tags(team)) & {"script", "img onerror", "textarea", "iframe"}
    for text in ("<script>alert", "<img src=x", "<svg onload", "</textarea><b>"):
        assert text not in team.text


def post(
    client: Client, path: str, content: bytes, kind: str = "application/json"
) -> httpx.Response:
    headers = {"content-type": kind, "x-csrf-token": client.csrf or ""}
    return client.send("POST", path, content=content, headers=headers)


BAD_JSON = [
    b"", b"null", b"[]", b"1", b"{", b'"x"', b"\xff\xfe", b"\x00", b"[" * 60_000,
    b'{"a":' * 10_000, b'{"count": NaN}', b'{"count": Infinity}', b'{"count": 1e400}',
    b'{"count": 1.0}', b'{"count": "1"}', b'{"count": true}', b'{"count": null}', b'{"count": 0}',
    b'{"count": 101}', b'{"count": -1}', b'{"count": ' + b"9" * 5000 + b"}",
    b'{"count": 1, "x": 1}', b'{"count": [1]}', b'{"count": 1} x', b"{'count': 1}",
    b'{"count": 0x1}', b'\xef\xbb\xbf{"count": 1}', '{"count": 1}'.encode("utf-16"),
]  # fmt: skip


def test_bad_json_is_refused_in_one_sentence(site: Site) -> None:
    ann = site.login()
    for content in BAD_JSON:
        site.clock.pass_by(seconds=1)
        response = post(ann, "/api/next", content)
        assert response.status_code == 422, content[:50]
        told = response.json()
        assert told["reason"] == "invalid"
        assert len(told["error"]) < 400
        assert "\n" not in told["error"]


GOOD = {"id": "a", "kind": "no", "question": 1}
BAD_ANSWERS: list[dict[str, object]] = [
    {"id": ""}, {"id": "x" * 101}, {"id": "a b"}, {"id": "a\0"}, {"id": "é"}, {"id": 1},
    {"id": None},
    {"id": "\ud800"}, {"kind": "maybe"}, {"kind": ""}, {"kind": None}, {"kind": ["no"]},
    {"question": -1}, {"question": 2**31}, {"question": 10**400}, {"question": "1"},
    {"question": 1.0}, {"question": True}, {"excluded": [0] * 7}, {"excluded": [2**31]},
    {"excluded": ["0"]}, {"excluded": [0.5]}, {"excluded": {"0": 1}}, {"excluded": "01"},
    {"excluded": [None]}, {"excluded": [[0]]}, {"which": -1}, {"which": "a"}, {"undoes": ""},
    {"undoes": "x" * 101}, {"undoes": "\n"}, {"took_ms": "5"}, {"took_ms": 1.5}, {"took_ms": 2**60},
    {"sent": 5}, {"sent": "x" * 41}, {"hold": -1}, {"hold": 101}, {"hold": "3"}, {"user": 2},
    {"kind": "excluded", "excluded": [0]}, {"kind": "no", "which": 1}, {"question": None},
]  # fmt: skip


def test_an_answer_that_makes_no_sense_leaves_no_row(any_site: Site) -> None:
    ann = any_site.login()
    ann.api("/api/next", {"count": 1})
    for change in BAD_ANSWERS:
        any_site.clock.pass_by(seconds=1)
        response = post(ann, "/api/answer", json.dumps({**GOOD, **change}).encode())
        assert response.status_code in (404, 422), change
    assert list(any_site.store.log()) == []


def test_a_body_that_is_too_large_is_refused(site: Site) -> None:
    ann = site.login()
    assert post(ann, "/api/next", b" " * 65_536 + b"{}").status_code == 413
    assert post(ann, "/api/next", b" " * 60_000 + b"{}").status_code == 200
    form = post(ann, "/logout", b"csrf=" + b"x" * 70_000, "application/x-www-form-urlencoded")
    assert form.status_code == 413


def test_very_many_classes_can_be_ruled_out(make_site: MakeSite) -> None:
    classes = tuple(f"c{n}" for n in range(20_000))
    site = make_site(classes=classes, settings={"mode": "rule-out", "law": "fixed:1"})
    ann = site.login()
    question = ann.api("/api/next", {"count": 1}).json()["questions"][0]["id"]
    told = {"id": "a", "kind": "excluded", "question": question, "excluded": list(range(19_999))}
    assert ann.api("/api/answer", told).status_code == 200


@pytest.mark.parametrize("content", [b"", b"&&&&", b"csrf", b"=", b"csrf=%ff", b"\xff\xfe",
                                     b"csrf=\xc3\xa9",
                                     b"&".join([b"a=1"] * 21), b"csrf=%00", b"%"])  # fmt: skip
def test_a_broken_form_does_nothing(site: Site, content: bytes) -> None:
    ann = site.login()
    response = post(ann, "/logout", content, "application/x-www-form-urlencoded")
    assert response.status_code in (403, 422)
    assert ann.get("/api/project").status_code == 200


@pytest.mark.parametrize("cookie", ["=", ";;;", "x" * 10_000, "ruleout-00000000=\xff", "a=b; ; =c"])
def test_strange_cookies_are_nobody(site: Site, cookie: str) -> None:
    headers = [(b"cookie", cookie.encode("latin-1"))]
    assert site.client().send("GET", "/api/project", headers=headers).status_code == 401
