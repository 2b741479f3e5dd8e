"""Login, invites, logout: who gets a session and when it ends."""

from __future__ import annotations

import time

import pytest
from argon2 import PasswordHasher
from web.service.client import Client
from web.service.conftest import MakeSite
from web.service.site import PASSWORD, QUICK, Site

from ruleout.web.service.auth import Passwords


def login(client: Client, name: str = "Ann", password: str = PASSWORD) -> int:
    return client.form("/login", name=name, password=password).status_code


def test_the_right_password_opens_and_the_cookie_is_guarded(any_site: Site) -> None:
    any_site.member("Ann")
    client = any_site.client()
    response = client.form("/login", name="ann", password=PASSWORD)
    assert (response.status_code, response.headers["location"]) == (303, "/")
    cookie = response.headers["set-cookie"]
    assert cookie.startswith(f"{any_site.cookie}=")
    for part in ("HttpOnly", "SameSite=strict", "Path=/"):
        assert part in cookie
    assert "Secure" not in cookie
    assert client.page("/").status_code == 200


def test_on_https_the_cookie_is_secure(make_site: MakeSite) -> None:
    site = make_site(origin="https://label.example.org")
    site.member("Ann")
    response = site.client().form("/login", name="Ann", password=PASSWORD)
    assert "Secure" in response.headers["set-cookie"]


WRONG = [
    ("Ann", "wrong password"), ("Nobody", PASSWORD), ("", PASSWORD), ("Ann", ""), ("", ""),
    ("Closed", PASSWORD), ("Invited", PASSWORD), ("Ann\0", PASSWORD), ("Ann", PASSWORD + "\0"),
    ("x" * 30_000, PASSWORD), ("Ann", "x" * 30_000), ("\u202eAnn", PASSWORD), ("Ann' OR 1=1--",
    "x"),
]  # fmt: skip


def test_a_failure_does_not_say_what_was_wrong(any_site: Site) -> None:
    any_site.member("Ann")
    any_site.member("Closed")
    any_site.store.disable("Closed")
    any_site.store.invite("Invited")
    for name, password in WRONG:
        response = any_site.client().form("/login", name=name, password=password)
        assert response.status_code == 401, name
        assert "The name or the password is wrong." in response.text
        assert "set-cookie" not in response.headers


def test_who_is_unknown_waits_as_long(make_site: MakeSite) -> None:
    slow = PasswordHasher(time_cost=3, memory_cost=32_768, parallelism=1)
    site = make_site(hasher=slow)
    token = site.store.invite("Ann")
    site.store.accept(token, slow.hash(PASSWORD))
    client = site.client()
    login(client, "Nobody")

    def quickest(name: str) -> float:
        times = []
        for _ in range(3):
            start = time.process_time()
            login(client, name, "wrong password")
            times.append(time.process_time() - start)
        return min(times)

    assert quickest("Nobody") > 0.5 * quickest("Ann")


def test_a_hash_of_other_days_is_renewed_at_the_login(site: Site) -> None:
    site.store.accept(site.store.invite("Ann"), PasswordHasher(2, 16, 1).hash(PASSWORD))
    assert login(site.client()) == 303
    found = site.store.password("Ann")
    assert found is not None
    assert found[1] is not None
    assert not QUICK.check_needs_rehash(found[1])
    assert login(site.client()) == 303


def test_a_broken_hash_lets_nobody_in(site: Site) -> None:
    site.store.accept(site.store.invite("Ann"), "not a hash")
    assert login(site.client()) == 401


def test_each_login_is_a_new_session_and_ends_the_one_before(site: Site) -> None:
    site.member("Ann")
    client = site.client()
    assert login(client) == 303
    first = client.http.cookies[site.cookie]
    assert login(client) == 303
    assert client.http.cookies[site.cookie] != first
    assert site.client(first).get("/api/project").status_code == 401
    assert client.get("/api/project").status_code == 200


def test_a_session_that_was_planted_is_not_taken_over(site: Site) -> None:
    site.member("Ann")
    planted = "p" * 43
    client = site.client(planted)
    assert login(client) == 303
    assert site.client(planted).get("/api/project").status_code == 401


def test_a_session_ends_when_it_is_not_used(site: Site) -> None:
    ann = site.login()
    for _ in range(5):
        site.clock.pass_by(hours=11)
        assert ann.get("/api/project").status_code == 200
    site.clock.pass_by(hours=12, seconds=1)
    assert ann.get("/api/project").status_code == 401


def test_no_session_lasts_longer_than_a_month(site: Site) -> None:
    ann = site.login()
    for _ in range(59):
        site.clock.pass_by(hours=12, seconds=-60)
        assert ann.get("/api/project").status_code == 200
    site.clock.pass_by(hours=12)
    site.clock.pass_by(hours=2)
    assert ann.get("/api/project").status_code == 401


def test_logout_ends_the_session_for_good(any_site: Site) -> None:
    ann = any_site.login()
    token = ann.http.cookies[any_site.cookie]
    response = ann.form("/logout")
    assert (response.status_code, response.headers["location"]) == (303, "/login")
    assert "Max-Age=0" in response.headers["set-cookie"]
    assert any_site.client(token).get("/api/project").status_code == 401


def test_a_lead_closes_an_account_at_once(any_site: Site) -> None:
    lead, ann = any_site.login("Lea", "lead"), any_site.login("Ann")
    assert lead.form("/team/disable", name="Ann", disabled="1").status_code == 303
    assert ann.get("/api/project").status_code == 401
    assert lead.form("/team/disable", name="Lea", disabled="1").status_code == 409
    assert lead.get("/api/project").status_code == 200


def test_an_invite_is_shown_once_and_opens_once(any_site: Site) -> None:
    lead = any_site.login("Lea", "lead")
    page = lead.form("/team/invite", name="New", role="annotator")
    assert page.status_code == 200
    start = page.text.index("http://testserver/join/")
    path = page.text[start : start + 66].removeprefix("http://testserver")
    assert path not in lead.page("/team").text
    client = any_site.client()
    assert "New" in client.page(path).text
    token = path.removeprefix("/join/")
    chosen = {"token": token, "password": PASSWORD, "again": PASSWORD}
    assert client.form("/join", **chosen).status_code == 303
    assert client.get("/api/project").json()["user"]["name"] == "New"
    assert any_site.client().form("/join", **chosen).status_code == 404
    assert any_site.client().page(path).status_code == 404


@pytest.mark.parametrize(("password", "again", "told"), [
    ("short", "short", "at least 10"), ("a" * 12, "b" * 12, "differ"), ("", "", "at least 10"),
    ("x" * 1001, "x" * 1001, "at most 1000"),
])  # fmt: skip
def test_a_password_that_will_not_do_uses_no_invite_up(
    site: Site, password: str, again: str, told: str
) -> None:
    token, client = site.store.invite("New", now=site.clock()), site.client()
    response = client.form("/join", token=token, password=password, again=again)
    assert response.status_code == 422
    assert told in response.text
    assert client.form("/join", token=token, password=PASSWORD, again=PASSWORD).status_code == 303


def test_a_new_password_ends_the_sessions_of_the_old(site: Site) -> None:
    ann = site.login()
    token = site.store.invite("Ann", now=site.clock())
    client = site.client()
    assert client.form("/join", token=token, password=PASSWORD, again=PASSWORD).status_code == 303
    assert ann.get("/api/project").status_code == 401


STRANGE = [
    {"name": "", "role": "annotator"}, {"name": "a\nb", "role": "lead"}, {"role": "lead"},
    {"name": "A\0", "role": "lead"}, {"name": "New", "role": "root"}, {"name": "New"},
    {"name": "\u202eN", "role": "lead"}, {"name": "x" * 65, "role": "lead"},
]  # fmt: skip


def test_invites_that_make_no_sense_add_nobody(any_site: Site) -> None:
    lead = any_site.login("Lea", "lead")
    for fields in STRANGE:
        assert lead.form("/team/invite", **fields).status_code == 422, fields
    assert len(any_site.store.users()) == 1


def test_two_cookies_of_the_name_are_none(site: Site) -> None:
    ann = site.login()
    token = ann.http.cookies[site.cookie]
    both = {"cookie": f"{site.cookie}={token}; {site.cookie}={'x' * 43}"}
    assert site.client().get("/api/project", headers=both).status_code == 401


def test_a_login_that_began_before_a_new_password_begins_no_session(
    any_site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Comparing takes a while, and who knows the old password may always be at it."""
    any_site.member("Ann")
    fits = Passwords.fits

    def slowly(self: Passwords, password: str, kept: str | None) -> bool:
        found = fits(self, password, kept)
        any_site.member("Ann", password="another password")
        return found

    monkeypatch.setattr(Passwords, "fits", slowly)
    client = any_site.client()
    assert login(client) == 409
    assert client.get("/api/project").status_code == 401


def test_a_login_that_began_before_a_new_password_does_not_bring_the_old_one_back(
    make_site: MakeSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = make_site()
    site.member("Ann")

    def stale(*_: object) -> bool:
        site.member("Ann", password="another password")
        return True

    monkeypatch.setattr(PasswordHasher, "check_needs_rehash", stale)
    assert login(site.client()) == 409
    monkeypatch.undo()
    assert login(site.client()) == 401
