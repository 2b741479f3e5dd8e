"""Requests that another site's page makes a browser send."""

from __future__ import annotations

import json
from typing import Any

import pytest
from web.service.client import ORIGIN, Client
from web.service.conftest import MakeSite
from web.service.site import PASSWORD, Site

POSTS = ("/api/next", "/api/answer", "/logout", "/team/invite", "/team/disable")
FOREIGN: list[dict[str, str]] = [
    {"origin": "http://evil.example"},
    {"origin": "https://testserver"},
    {"origin": "http://testserver:8080"},
    {"origin": "http://testserver.evil.example"},
    {"origin": "http://eviltestserver"},
    {"origin": "http://testserver/"},
    {"origin": "null"},
    {"origin": ""},
    {"sec-fetch-site": "cross-site"},
    {"sec-fetch-site": "same-site"},
    {"sec-fetch-site": "CROSS-SITE"},
    {"sec-fetch-site": "cross-site", "origin": ORIGIN},
    {"sec-fetch-site": "same-origin", "origin": "null"},
]


def sent(client: Client, path: str, csrf: str | None, **headers: str) -> int:
    body: dict[str, Any]
    if path.startswith("/api"):
        body = {"json": {"count": 1} if path == "/api/next" else {"id": "a", "kind": "undo"}}
        headers = {**headers, **({"x-csrf-token": csrf} if csrf is not None else {})}
    else:
        fields = {"name": "Bob", "role": "annotator", "disabled": "1"}
        body = {"data": fields if csrf is None else {**fields, "csrf": csrf}}
    return client.send("POST", path, headers=headers, **body).status_code


@pytest.mark.parametrize("path", POSTS)
def test_a_post_needs_the_token_of_its_session(site: Site, path: str) -> None:
    lead, other = site.login("Lea", "lead"), site.login("Eve")
    site.user("Bob")
    assert other.csrf is not None
    assert lead.csrf is not None
    for csrf in (None, "", "x", other.csrf, lead.csrf[:-1], lead.csrf + "A", lead.csrf.swapcase()):
        assert sent(lead, path, csrf) == 403
    assert list(site.store.log()) == []
    assert not site.store.user("Bob").disabled
    assert sent(lead, path, lead.csrf) in (200, 303)


def test_another_sites_page_is_refused_even_with_the_token(site: Site) -> None:
    lead = site.login("Lea", "lead")
    site.member("Mia")
    for headers in FOREIGN:
        site.clock.pass_by(seconds=1)
        for path in POSTS:
            assert sent(lead, path, lead.csrf, **headers) == 403, (path, headers)
        login = site.client().form("/login", headers, name="Mia", password=PASSWORD)
        assert login.status_code == 403
        assert "set-cookie" not in login.headers


@pytest.mark.parametrize("headers", [{"origin": ORIGIN}, {"sec-fetch-site": "same-origin"},
                                     {"sec-fetch-site": "none"}, {}], ids=str)  # fmt: skip
def test_the_own_page_is_let_through(site: Site, headers: dict[str, str]) -> None:
    lead = site.login("Lea", "lead")
    assert sent(lead, "/api/next", lead.csrf, **headers) == 200


def test_two_origins_are_refused(site: Site) -> None:
    ann = site.login()
    headers = [("origin", ORIGIN), ("origin", ORIGIN), ("x-csrf-token", ann.csrf or "")]
    response = ann.send("POST", "/api/next", json={"count": 1}, headers=headers)
    assert response.status_code == 403


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", "",
                                  "multipart/form-data; boundary=x", "text/json",
                                  "application/jsonp",
                                  "text/plain; application/json"])  # fmt: skip
def test_json_in_the_clothes_of_a_form_is_refused(site: Site, kind: str) -> None:
    ann = site.login()
    headers = {"content-type": kind, "x-csrf-token": ann.csrf or ""}
    content = json.dumps({"id": "a", "kind": "undo"})
    response = ann.send("POST", "/api/answer", content=content, headers=headers)
    assert (response.status_code, response.json()["reason"]) == (415, "type")


@pytest.mark.parametrize(
    "kind", ["text/plain", "multipart/form-data; boundary=x", "application/json"]
)
def test_forms_of_another_type_are_refused(site: Site, kind: str) -> None:
    ann = site.login()
    headers = {"content-type": kind}
    response = ann.send("POST", "/logout", content=f"csrf={ann.csrf}", headers=headers)
    assert response.status_code == 415


def test_a_token_in_the_address_counts_for_nothing(site: Site) -> None:
    ann = site.login()
    response = ann.send("POST", f"/api/next?csrf={ann.csrf}", json={"count": 1})
    assert response.status_code == 403


def test_behind_a_proxy_the_public_address_is_the_origin(make_site: MakeSite) -> None:
    site = make_site(origin="https://label.example.org")
    ann = site.login()
    public = {"origin": "https://label.example.org"}
    assert sent(ann, "/api/next", ann.csrf, **public) == 200
    assert sent(ann, "/api/next", ann.csrf, origin="http://label.example.org") == 403


HOSTS = ("localhost", "127.0.0.1", "[::1]")


@pytest.mark.parametrize(("host", "status"), [
    ("localhost", 200), ("localhost:8000", 200), ("LOCALHOST:1", 200), ("127.0.0.1:9", 200),
    ("[::1]:8000", 200), ("label.example.org", 200), ("evil.example", 421),
    ("localhost.evil.example", 421), ("127.0.0.1.nip.io:8000", 421), ("localhost@evil.example",
    421),
    ("", 421), ("localhost:99999999", 421), ("127.0.0.2", 421), ("localhost/..", 421),
])  # fmt: skip
def test_a_name_that_was_made_to_point_here_is_refused(
    make_site: MakeSite, host: str, status: int
) -> None:
    site = make_site(hosts=HOSTS, origin="https://label.example.org")
    assert site.client().get("/health", headers={"host": host}).status_code == status


def test_two_hosts_are_refused(site: Site) -> None:
    headers = [("host", "testserver"), ("host", "evil.example")]
    assert site.client().send("GET", "/health", headers=headers).status_code == 421
