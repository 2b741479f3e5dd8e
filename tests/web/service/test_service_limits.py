"""Rate limits, under a clock that the test moves."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime

import httpx
from web.service.client import ORIGIN
from web.service.conftest import MakeSite
from web.service.site import PASSWORD, Clock, Site

from ruleout.web.service.limits import Buckets


def test_a_bucket_refills_up_to_its_size() -> None:
    clock = Clock()
    bucket = Buckets(size=2, rate=0.5, clock=clock)
    assert [bucket.take("a") for _ in range(3)] == [0, 0, 2]
    assert bucket.take("b") == 0
    clock.pass_by(seconds=2)
    assert [bucket.take("a") for _ in range(2)] == [0, 2]
    clock.pass_by(days=1)
    assert [bucket.take("a") for _ in range(3)] == [0, 0, 2]


def test_a_clock_that_goes_back_neither_refills_nor_locks() -> None:
    clock = Clock()
    bucket = Buckets(size=2, rate=1, clock=clock)
    assert [bucket.take("a") for _ in range(2)] == [0, 0]
    clock.pass_by(hours=-1)
    assert bucket.take("a") == 1
    clock.pass_by(seconds=1)
    assert bucket.take("a") == 0


def test_the_number_of_buckets_is_bounded() -> None:
    bucket = Buckets(size=1, rate=1, clock=lambda: datetime(2026, 1, 1, tzinfo=UTC), most=100)
    for key in range(10_000):
        bucket.take(key)
    assert len(bucket) == 100


def test_logins_of_one_name_are_limited_wherever_they_come_from(make_site: MakeSite) -> None:
    site = make_site(name_failures=3)
    site.member("Ann")
    told = [site.client().form("/login", name="ann ".strip(), password="wrong") for _ in range(4)]
    assert [response.status_code for response in told] == [401, 401, 401, 429]
    assert int(told[-1].headers["retry-after"]) == 60
    right = site.client().form("/login", name="Ann", password=PASSWORD)
    assert right.status_code == 429
    site.clock.pass_by(seconds=61)
    assert site.client().form("/login", name="Ann", password=PASSWORD).status_code == 303


def test_logins_from_one_address_are_limited_whatever_the_name(make_site: MakeSite) -> None:
    site = make_site(address_failures=5)
    told = [site.client().form("/login", name=f"n{n}", password="wrong") for n in range(6)]
    assert [response.status_code for response in told] == [401] * 5 + [429]


def test_logins_that_succeed_cost_nothing(make_site: MakeSite) -> None:
    site = make_site(name_failures=2, address_failures=2)
    site.member("Ann")
    told = [site.client().form("/login", name="Ann", password=PASSWORD) for _ in range(10)]
    assert {response.status_code for response in told} == {303}


def test_guessing_at_once_is_counted(make_site: MakeSite) -> None:
    site = make_site(name_failures=3)
    site.member("Ann")
    body = {"data": {"name": "Ann", "password": "wrong"}}
    told = site.client().together(*[("POST", "/login", body)] * 10)
    assert sorted(response.status_code for response in told) == [401] * 3 + [429] * 7


def test_guessing_invite_links_is_limited(make_site: MakeSite) -> None:
    site = make_site(address_failures=5)
    client = site.client()
    assert [client.get(f"/join/guess-{n}").status_code for n in range(6)] == [404] * 5 + [429]


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


def test_a_name_written_in_another_way_gives_no_more_tries(make_site: MakeSite) -> None:
    site = make_site(name_failures=3)
    site.member("Ann Lee")
    forms = ("Ann Lee", " ann lee", "Ａｎｎ lee  ", "Ann\u00a0Lee", "Ann   Lee", "Ann\ufe0f Lee")
    told = [site.client().form("/login", name=name, password="wrong") for name in forms]
    assert [response.status_code for response in told] == [401] * 3 + [429] * 3


def test_all_addresses_of_one_ipv6_customer_are_one(make_site: MakeSite) -> None:
    site = make_site(address_failures=3)
    form = {"content-type": "application/x-www-form-urlencoded"}

    async def tried(address: str) -> int:
        transport = httpx.ASGITransport(site.app, client=(address, 1))
        async with httpx.AsyncClient(transport=transport, base_url=ORIGIN) as http:
            sent = await http.post("/login", content=f"name={address[-1]}", headers=form)
            return sent.status_code

    near = [asyncio.run(tried(f"2001:db8::{number}")) for number in range(1, 6)]
    assert near == [401] * 3 + [429] * 2
    assert asyncio.run(tried("2001:db8:0:1::1")) == 401
