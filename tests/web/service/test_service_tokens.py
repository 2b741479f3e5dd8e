"""Tokens: programs read exports and the status, and nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest
from cli.labelled import make_project, ran, run
from sqlalchemy import select
from web.service.site import Site

from ruleout.web import RefusedError
from ruleout.web.project import Project
from ruleout.web.schema import sessions
from ruleout.web.service.gate import ACCESS


def bearer(token: str) -> dict[str, str]:
    return {"authorization": f"Bearer {token}"}


def test_a_token_reads_exports_and_the_status_alone(any_site: Site) -> None:
    site = any_site
    token = site.store.add_token("nightly", site.user("Lea", "lead"), site.clock())
    client = site.client()
    told = client.get("/team/status", headers=bearer(token))
    assert told.status_code == 200
    assert told.json()["items"] == 10
    assert client.get("/team/export/log.csv", headers=bearer(token)).status_code == 200
    for (method, path), rule in ACCESS.items():
        if rule.roles is not None and not rule.token:
            place = path.replace("{id}", "1")
            assert client.send(method, place, headers=bearer(token)).status_code == 401
    stolen = site.client(token)  # as a cookie
    assert stolen.get("/team/status").status_code == 401


def test_a_token_is_kept_as_a_hash_and_ends(site: Site) -> None:
    lea = site.user("Lea", "lead")
    token = site.store.add_token("nightly", lea, site.clock())
    with site.store.reading() as db:
        assert token not in str(db.execute(select(sessions)).all())
    assert [one[:2] for one in site.store.tokens()] == [("nightly", "Lea")]
    client = site.client()
    site.store.end_token("nightly")
    assert client.get("/team/status", headers=bearer(token)).status_code == 401
    with pytest.raises(RefusedError):
        site.store.end_token("nightly")
    token = site.store.add_token("nightly", lea, site.clock())
    site.store.disable("Lea")
    assert client.get("/team/status", headers=bearer(token)).status_code == 401


def test_a_session_is_no_token_and_limits_hold(site: Site) -> None:
    lea = site.user("Lea", "lead")
    session = site.store.begin(lea, hours=1, now=site.clock())
    client = site.client()
    for wrong in (session, "", "x" * 10_000, "é"):
        headers = {"authorization": f"Bearer {wrong}".encode("latin-1")}
        assert client.get("/team/status", headers=headers).status_code == 401
    codes = {client.get("/team/status", headers=bearer("x")).status_code for _ in range(120)}
    assert codes == {401, 429}


def test_tokens_are_for_leads_and_have_names_of_their_own(site: Site) -> None:
    site.store.add_token("nightly", site.user("Lea", "lead"))
    for name, who in (("nightly", "Lea"), ("other", "Ann"), ("", "Lea")):
        with pytest.raises(RefusedError):
            site.store.add_token(name, site.user(who))


def test_tokens_on_the_command_line(tmp_path: Path) -> None:
    project = make_project(tmp_path)
    token = ran("tokens", project, "add", "nightly").strip()
    with Project.open(project) as opened:
        found = opened.store.token_of(token)
        assert found is not None
        assert found.name == "Lea"
    assert ran("tokens", project).splitlines()[1].split()[:2] == ["nightly", "Lea"]
    assert ran("tokens", project, "end", "nightly") == "The token nightly has ended.\n"
    assert run("tokens", project, "end", "nightly").exit_code == 1
    assert run("tokens", project, "add", "x", "--lead", "Nobody").exit_code == 1
    assert run("tokens", project, "add").exit_code == 2
