"""Rate limits, under a clock that the test moves."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime

import httpx
import pytest
from web.service.client import ORIGIN
from web.service.conftest import MakeSite
from web.service.site import PASSWORD, Clock, Site

from ruleout.web.service import Options, rate_limit
from ruleout.web.service.rate_limit import Buckets, Delays


def test_a_bucket_refills_up_to_its_size() -> None:
    clock = Clock()
    bucket = Buckets(Options(burst=2, rate=0.5, clock=clock))
    assert [bucket.take("a") for _ in range(3)] == [0, 0, 2]
    assert bucket.take("b") == 0
    clock.pass_by(seconds=2)
    assert [bucket.take("a") for _ in range(2)] == [0, 2]
    clock.pass_by(days=1)
    assert [bucket.take("a") for _ in range(3)] == [0, 0, 2]


def test_a_clock_that_goes_back_neither_refills_nor_locks() -> None:
    clock = Clock()
    bucket = Buckets(Options(burst=2, rate=1, clock=clock))
    assert [bucket.take("a") for _ in range(2)] == [0, 0]
    clock.pass_by(hours=-1)
    assert bucket.take("a") == 1
    clock.pass_by(seconds=1)
    assert bucket.take("a") == 0


def test_the_number_of_buckets_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rate_limit, "LIMITED_KEYS", 100)
    bucket = Buckets(Options(burst=1, rate=1, clock=lambda: datetime(2026, 1, 1, tzinfo=UTC)))
    for key in range(101):
        assert bucket.take(key) == 0
    assert bucket.take(100) == 1
    assert bucket.take(0) == 0  # forgotten


def test_a_clock_that_goes_back_makes_no_delay_longer() -> None:
    clock = Clock()
    delays = Delays(Options(free_failures=1, longest_delay=60, clock=clock))
    delays.failed("a")
    clock.pass_by(hours=-1)
    assert delays.wait("a") == 1


def test_failures_are_forgotten_after_a_day() -> None:
    clock = Clock()
    delays = Delays(Options(free_failures=2, longest_delay=60, clock=clock))
    delays.failed("a")
    clock.pass_by(hours=25)
    delays.failed("a")
    assert delays.wait("a") == 0


def tried(site: Site, *logins: tuple[str, str], address: str = "10.0.0.1") -> list[httpx.Response]:
    """Log in with these names and passwords from an address, all at once."""

    async def every() -> list[httpx.Response]:
        transport = httpx.ASGITransport(site.app, client=(address, 1))
        async with httpx.AsyncClient(transport=transport, base_url=ORIGIN) as http:
            sent = [
                http.post("/login", data={"name": name, "password": password})
                for name, password in logins
            ]
            return await asyncio.gather(*sent)

    return asyncio.run(every())


def statuses(site: Site, *logins: tuple[str, str], address: str = "10.0.0.1") -> list[int]:
    return [response.status_code for response in tried(site, *logins, address=address)]


WRONG, RIGHT = ("Ann", "wrong"), ("Ann", PASSWORD)


def test_sixty_right_logins_at_once_from_one_address_succeed(site: Site) -> None:
    """A school or an office has one address."""
    names = [f"pupil {n}" for n in range(60)]
    for name in names:
        site.member(name)
    assert statuses(site, *[(name, PASSWORD) for name in names]) == [303] * 60
    assert statuses(site, *[(names[0], PASSWORD)] * 60) == [303] * 60


def test_each_failure_doubles_the_wait_for_the_next_try(site: Site) -> None:
    site.member("Ann")
    assert [statuses(site, WRONG) for _ in range(5)] == [[401]] * 5
    waits = []
    for _ in range(12):
        told = tried(site, WRONG)[0]
        waits.append(int(told.headers["retry-after"]))
        assert told.status_code == 429
        site.clock.pass_by(seconds=waits[-1] - 0.5)
        assert statuses(site, RIGHT) == [429]
        site.clock.pass_by(seconds=0.5)
        assert statuses(site, WRONG) == [401]
    assert waits == [1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300, 300]


def test_a_right_login_clears_the_failures(site: Site) -> None:
    site.member("Ann")
    for _ in range(3):
        assert statuses(site, *[WRONG] * 4) == [401] * 4
        assert statuses(site, RIGHT) == [303]


def test_guessing_at_once_is_no_faster(site: Site) -> None:
    site.member("Ann")
    assert sorted(statuses(site, *[WRONG] * 20)) == [401] * 5 + [429] * 15


def test_a_name_written_in_another_way_gives_no_more_tries(site: Site) -> None:
    site.member("Ann Lee")
    forms = ("Ann Lee", " ann lee", "Ａｎｎ lee  ", "Ann\u00a0Lee", "Ann   Lee", "Ann\ufe0f Lee")
    told = [statuses(site, (name, "wrong"))[0] for name in forms]
    assert told == [401] * 5 + [429]


def test_nobody_locks_an_owner_out_from_elsewhere(site: Site) -> None:
    site.member("Ann")
    statuses(site, *[WRONG] * 50, address="10.0.0.66")
    assert statuses(site, RIGHT, address="10.0.0.66") == [429]
    assert statuses(site, RIGHT, address="10.0.0.1") == [303]


def test_nobody_locks_an_owner_out_at_their_own_address(site: Site) -> None:
    """A browser that was logged in before is known; what it gets wrong is counted apart."""
    site.member("Ann")
    client, login = site.client(), {"name": "Ann", "password": PASSWORD}
    assert client.form("/login", **login).status_code == 303
    client.read_csrf()
    assert client.form("/logout").status_code == 303
    statuses(site, *[WRONG] * 50, address="127.0.0.1")
    assert site.client().form("/login", **login).status_code == 429
    assert client.form("/login", **login).status_code == 303
    wrong = [client.form("/login", name="Ann", password="wrong").status_code for _ in range(6)]
    assert wrong == [401] * 5 + [429]
    site.member("Ann", password="another password")
    changed = client.form("/login", name="Ann", password="another password")
    assert changed.status_code == 429  # the browser knew the old one


def test_nobody_locks_others_at_their_address_out(site: Site) -> None:
    site.member("Ann")
    statuses(site, *[(f"guess {n % 50}", "wrong") for n in range(100)])
    assert statuses(site, RIGHT) == [303]


def test_a_valid_invite_opens_whatever_failed_before(site: Site) -> None:
    token, client = site.store.invite("New", now=site.clock()), site.client()
    statuses(site, *[("New", "wrong")] * 60, address="127.0.0.1")
    assert {client.get(f"/join/guess-{n}").status_code for n in range(60)} == {404}
    assert client.get(f"/join/{token}").status_code == 200
    assert client.form("/join", token=token, password=PASSWORD, again=PASSWORD).status_code == 303


def test_one_address_does_not_fill_the_line_of_all(site: Site) -> None:
    site.member("Ann")

    async def every() -> list[int]:
        flood = [(f"guess {n}", "wrong", "10.0.0.66") for n in range(250)]
        async with asyncio.TaskGroup() as tasks:
            sent = [tasks.create_task(one(*login)) for login in [*flood, (*RIGHT, "10.0.0.1")]]
        return [task.result() for task in sent]

    async def one(name: str, password: str, address: str) -> int:
        transport = httpx.ASGITransport(site.app, client=(address, 1))
        async with httpx.AsyncClient(transport=transport, base_url=ORIGIN) as http:
            data = {"name": name, "password": password}
            return (await http.post("/login", data=data)).status_code

    told = asyncio.run(every())
    assert told[-1] == 303
    assert told[:-1].count(503) == 50


def test_all_addresses_of_one_ipv6_customer_are_one(site: Site) -> None:
    near = [statuses(site, WRONG, address=f"2001:db8::{number}")[0] for number in range(1, 8)]
    assert near == [401] * 5 + [429] * 2
    assert statuses(site, WRONG, address="2001:db8:0:1::1") == [401]


def test_requests_of_one_person_are_limited(make_site: MakeSite) -> None:
    site = make_site(rate=2, burst=5)
    ann, bob = site.login("Ann"), site.login("Bob")
    site.clock.pass_by(seconds=60)
    told = [ann.get("/api/project") for _ in range(6)]
    assert [response.status_code for response in told] == [200] * 5 + [429]
    assert told[-1].json()["reason"] == "rate"
    assert told[-1].headers["retry-after"] == "1"
    assert bob.get("/api/project").status_code == 200
    site.clock.pass_by(seconds=1)
    assert ann.get("/api/project").status_code == 200


def test_people_are_not_slowed_down(site: Site) -> None:
    """Three answers a second with their images, for a minute."""
    ann = site.login()
    for _ in range(60):
        site.clock.pass_by(seconds=1)
        assert {ann.get("/api/project").status_code for _ in range(6)} == {200}
