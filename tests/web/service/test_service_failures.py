"""What clients and the log are told when something fails, and the headers of every response."""

from __future__ import annotations

import logging
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from web.servers import QUICK, programs, server
from web.service.client import PAGE
from web.service.site import PASSWORD, Site

from ruleout.web import UnavailableError

ALWAYS = {
    "x-content-type-options": "nosniff",
    "referrer-policy": "same-origin",
    "x-frame-options": "DENY",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
}
POLICY = (
    "default-src 'self'; object-src 'none'; base-uri 'none'; form-action 'self'; "
    "frame-ancestors 'none'"
)


def broken(*_: Any, **__: Any) -> Any:
    raise UnavailableError("the database failed (disk /secret/path is full); try again")


def buggy(*_: Any, **__: Any) -> Any:
    raise ZeroDivisionError("secret detail\nERROR forged line")


def test_every_response_has_the_headers(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    lead, nobody = site.login("Lea", "lead"), site.client()
    told = [client.get(path, headers=headers)
            for client in (lead, nobody) for headers in ({}, PAGE)
            for path in ("/", "/login", "/health", "/team", "/nope", "/items/x", "/api/progress",
                         "/static/icon.svg", "/team/export/log.csv", "/join/x")]  # fmt: skip
    told += [lead.send(method, "/login") for method in ("PUT", "OPTIONS", "HEAD")]
    told += [lead.api("/api/next", {"count": -1}), nobody.api("/api/next", {})]
    told += [lead.get("/health", headers={"host": "a b"})]
    monkeypatch.setattr(site.store, "progress", buggy)
    told += [lead.get("/api/progress")]
    assert {response.status_code for response in told} >= {200, 303, 401, 404, 405, 421, 422, 500}
    for response in told:
        assert ALWAYS.items() <= dict(response.headers).items()
        assert response.headers["content-security-policy"] == POLICY
        kept = "no-cache" if "/static/icon" in str(response.url) else "no-store"
        assert response.headers["cache-control"] == kept
        assert "server" not in response.headers


@pytest.mark.parametrize("accept", ["application/json", "text/html"])
def test_a_database_that_fails_is_a_503_without_details(
    site: Site, monkeypatch: pytest.MonkeyPatch, accept: str
) -> None:
    lead = site.login("Lea", "lead")
    for name in ("turns", "progress", "item", "answer_log"):
        monkeypatch.setattr(site.store, name, broken)
    told = [lead.api("/api/next", {"count": 1}, accept=accept),
            lead.api("/api/answer", {"id": "a", "kind": "no", "question": 1}, accept=accept),
            *(lead.get(path, headers={"accept": accept})
              for path in ("/api/progress", "/items/1", "/team/export/log.csv"))]  # fmt: skip
    monkeypatch.setattr(site.store, "sessions", broken)
    told.append(lead.get("/", headers={"accept": accept}))
    for response in told:
        assert response.status_code == 503
        assert int(response.headers["retry-after"]) > 0
        assert "secret" not in response.text


@pytest.mark.parametrize("accept", ["application/json", "text/html"])
def test_a_fault_is_a_500_without_details_and_one_line(
    site: Site, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, accept: str
) -> None:
    ann = site.login()
    monkeypatch.setattr(site.store, "item", buggy)
    with caplog.at_level(logging.INFO, "ruleout.web"):
        response = ann.get("/items/1", headers={"accept": accept})
    assert response.status_code == 500
    for secret in ("secret", "ZeroDivision", "Traceback", ".py"):
        assert secret not in response.text
    lines = [record.getMessage() for record in caplog.records if record.name == "ruleout.web"]
    assert len(lines) == 1
    assert "\n" not in lines[0]
    assert "ZeroDivisionError" in lines[0]


def test_names_and_addresses_forge_no_line_of_the_log(
    site: Site, caplog: pytest.LogCaptureFixture
) -> None:
    client = site.client()
    with caplog.at_level(logging.DEBUG, "ruleout.web"):
        client.form("/login", name="x\r\n2026 ERROR forged \u202e\x1b[31m", password="y")
        client.raw("/a%0d%0aforged%1b%5b31m")
        client.get("/join/secret-token")
    lines = [record.getMessage() for record in caplog.records if record.name == "ruleout.web"]
    assert len(lines) == 3
    assert all(line.isascii() and line.isprintable() for line in lines)
    assert "secret-token" not in lines[2]


def test_answers_leave_no_line(site: Site, caplog: pytest.LogCaptureFixture) -> None:
    ann = site.login()
    with caplog.at_level(logging.DEBUG, "ruleout.web"):
        question = ann.api("/api/next", {"count": 1}).json()["questions"][0]["id"]
        ann.api("/api/answer", {"id": "a", "kind": "no", "question": question})
    assert [record for record in caplog.records if record.name == "ruleout.web"] == []


def test_no_password_is_ever_logged(site: Site, caplog: pytest.LogCaptureFixture) -> None:
    site.member("Ann")
    with caplog.at_level(logging.DEBUG, "ruleout.web"):
        site.client().form("/login", name="Ann", password=PASSWORD + "x")
        site.client().form("/login", name="Ann", password=PASSWORD)
    assert PASSWORD not in caplog.text


def test_people_get_a_page_and_programs_json(site: Site) -> None:
    client = site.client()
    page, data = client.page("/nope"), client.get("/nope")
    assert page.headers["content-type"].startswith("text/html")
    assert data.json() == {
        "error": "there is nothing at this address; check it",
        "reason": "unknown",
    }


def test_websockets_are_refused(site: Site) -> None:
    sent: list[Any] = []

    async def receive() -> Any:
        return {"type": "websocket.connect"}

    async def send(message: Any) -> None:
        sent.append(message)

    import asyncio

    asyncio.run(site.app({"type": "websocket", "path": "/", "headers": []}, receive, send))
    assert sent == [{"type": "websocket.close", "code": 1008}]


def test_health_says_whether_the_database_answers(
    any_site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = any_site.client()
    assert (client.get("/health").status_code, client.get("/health").json()) == (200, {"ok": True})
    monkeypatch.setattr(any_site.store, "ping", broken)
    told = client.get("/health")
    assert (told.status_code, told.json()) == (503, {"ok": False})


def test_health_notices_a_file_that_is_gone(site: Site) -> None:
    Path(site.url.removeprefix("sqlite:///")).unlink()
    assert site.client().get("/health").status_code == 503


@pytest.mark.slow
def test_health_notices_a_database_that_was_stopped(tmp_path: Path) -> None:
    binaries = programs()
    assert binaries is not None
    with ExitStack() as stack:
        with server(binaries, None, **QUICK) as running:
            site = stack.enter_context(Site(running.database(), tmp_path))
            assert site.client().get("/health").status_code == 200
        assert site.client().get("/health").status_code == 503


def test_the_log_says_who_let_whom_in(site: Site, caplog: pytest.LogCaptureFixture) -> None:
    lead = site.login("Lea", "lead")
    with caplog.at_level(logging.INFO, "ruleout.web"):
        page = lead.form("/team/invite", name="Ann\u2028?", role="annotator")
        assert page.status_code == 422
        lead.form("/team/invite", name="Ann", role="annotator")
        lead.form("/team/disable", name="Ann", disabled="1")
        lead.form("/team/disable", name="Ann", disabled="0")
        token = site.store.invite("Ann", now=site.clock())
        site.client().form("/join", token=token, password=PASSWORD, again=PASSWORD)
    lines = [record.getMessage() for record in caplog.records if record.name == "ruleout.web"]
    assert lines == [
        "'Lea' from '127.0.0.1' made an invite link (annotator) for 'Ann'",
        "'Lea' from '127.0.0.1' closed the account of 'Ann'",
        "'Lea' from '127.0.0.1' opened the account of 'Ann'",
        "'Ann' from '127.0.0.1' chose a password",
    ]
