"""Every route for every kind of caller, from the routes that the application has."""

from __future__ import annotations

from typing import Any

import httpx
import pytest
from starlette.responses import Response
from web.service.client import PAGE, Client
from web.service.site import Site

from ruleout.web.service.gate import ACCESS, Call, Gate, find
from ruleout.web.service.problems import ProblemError

ROLES = ("anonymous", "unknown", "expired", "ended", "disabled", "annotator", "lead")
FILLED = {"{file}": "icon.svg", "{token}": "x" * 43, "{id}": "1", "{name}": "log.csv"}
BODIES: dict[str, dict[str, Any]] = {
    "/api/next": {"json": {"count": 1}},
    "/api/answer": {"json": {"id": "an-id", "kind": "undo"}},
    "/login": {"data": {"name": "Ann", "password": "wrong password"}},
    "/join": {"data": {"token": "x", "password": "a" * 12, "again": "a" * 12}},
    "/logout": {"data": {}},
    "/team/invite": {"data": {"name": "New", "role": "annotator"}},
    "/team/disable": {"data": {"name": "Ann", "disabled": "0"}},
    "/team/decide": {"data": {"item": "1", "seen": "0", "class": "a"}},
}


def caller(site: Site, role: str) -> Client:
    if role == "anonymous":
        return site.client()
    if role == "unknown":
        return site.client("x" * 43)
    client = site.login(
        "Lea" if role == "lead" else "Ann", "lead" if role == "lead" else "annotator"
    )
    token = client.http.cookies[site.cookie]
    if role == "expired":
        site.clock.pass_by(hours=13)
    if role == "ended":
        site.store.end(token)
    if role == "disabled":
        site.store.disable("Ann", now=site.clock())
    return client


def asked(client: Client, method: str, path: str, **headers: str) -> httpx.Response:
    for name, value in FILLED.items():
        path = path.replace(name, value)
    body = (
        {key: dict(value) for key, value in BODIES.get(path, {}).items()}
        if method == "POST"
        else {}
    )
    if "data" in body and client.csrf:
        body["data"]["csrf"] = client.csrf
    own = {"x-csrf-token": client.csrf} if client.csrf else {}
    return client.send(method, path, headers={**own, **headers}, **body)


def test_a_route_that_the_table_forgot_cannot_be_served(site: Site) -> None:
    async def forgotten(_: Call) -> Response:
        return Response("secret")

    every = dict.fromkeys(ACCESS, forgotten)
    for endpoints in ({**every, ("GET", "/forgotten"): forgotten}, dict(list(every.items())[1:])):
        with pytest.raises(AssertionError):
            Gate(site.store, site.options, endpoints, lambda *_: Response())


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/team"),
        ("POST", "/team/invite"),
        ("POST", "/team/disable"),
        ("POST", "/team/decide"),
        ("GET", "/team/export/sets.csv"),
    ],
)
def test_an_annotator_does_not_get_at_the_team(site: Site, method: str, path: str) -> None:
    """The addresses are written out: a table that gave them to everybody would fail here."""
    ann = site.login("Ann")
    before = site.store.users(), site.store.events()
    assert asked(ann, method, path).status_code == 403
    assert (site.store.users(), site.store.events()) == before
    assert asked(site.login("Lea", "lead"), method, path).status_code in (200, 303)


@pytest.mark.parametrize("role", ROLES)
def test_each_route_answers_those_it_is_for(site: Site, role: str) -> None:
    for row, rule in ACCESS.items():
        if row == ("POST", "/logout"):
            continue
        client = caller(site, role)
        status = asked(client, *row).status_code
        if rule.roles is None:
            assert status not in (403, 405), row
        elif role not in ("annotator", "lead"):
            assert status == 401, row
        elif role in rule.roles:
            assert status in (200, 303, 404), row
        else:
            assert status == 403, row
        site.clock.pass_by(hours=-13 if role == "expired" else 0)
        site.store.disable("Ann", False) if role == "disabled" else None


@pytest.mark.parametrize("role", ROLES)
def test_logout_is_for_who_is_logged_in(site: Site, role: str) -> None:
    status = asked(caller(site, role), "POST", "/logout").status_code
    assert status == (303 if role in ("annotator", "lead") else 401)


@pytest.mark.parametrize(
    "method", ["PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "CONNECT", "BREW"]
)
def test_other_methods_are_refused_for_everybody(site: Site, method: str) -> None:
    for role in ("anonymous", "lead"):
        client = caller(site, role)
        for _, path in ACCESS:
            response = asked(client, method, path)
            assert response.status_code == 405
            assert response.headers["allow"] in ("GET", "POST", "GET, POST")


@pytest.mark.parametrize("role", ["anonymous", "annotator", "lead"])
def test_head_is_get_without_the_content(site: Site, role: str) -> None:
    client = caller(site, role)
    for method, path in ACCESS:
        if method == "GET":
            told, seen = asked(client, "HEAD", path), asked(client, "GET", path)
            assert (told.status_code, told.content) == (seen.status_code, b"")


@pytest.mark.parametrize("path", ["/nope", "/docs", "/redoc", "/openapi.json", "/api", "/api/",
                                  "/team/", "/login/", "/static", "/static/",
                                  "/items/1/x"])  # fmt: skip
def test_what_the_table_does_not_name_is_not_there(site: Site, path: str) -> None:
    for role in ("anonymous", "lead"):
        assert caller(site, role).get(path).status_code == 404


def test_a_browser_without_a_session_is_sent_to_the_login(site: Site) -> None:
    for path in ("/", "/team", "/items/1", "/team/export/log.csv"):
        response = site.client().get(path, headers=PAGE)
        assert (response.status_code, response.headers["location"]) == (303, "/login")


def test_the_api_never_redirects(site: Site) -> None:
    response = site.client().get("/api/progress", headers=PAGE)
    assert response.status_code == 401
    assert response.json()["reason"] == "login"


def test_find_raises_for_what_is_not_in_the_table() -> None:
    with pytest.raises(ProblemError, match="takes GET, POST alone"):
        find("DELETE", "/login")
