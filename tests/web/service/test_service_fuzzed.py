"""Strange requests to every route, made from the description of the routes by Schemathesis."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
import requests
import schemathesis
from hypothesis import HealthCheck, given, settings
from schemathesis import Case, GenerationMode, checks
from schemathesis.core.result import Ok
from tiers import COUNT
from web.service.conftest import MakeSite
from web.service.openapi import ROUTES, description
from web.service.running import on_a_port
from web.service.site import Site

from ruleout.web.service.gate import ACCESS, csrf_of

CHECKS = [
    checks.not_a_server_error,
    checks.status_code_conformance,
    checks.content_type_conformance,
    checks.response_schema_conformance,
    checks.response_headers_conformance,
]
ROLES = ("anonymous", "annotator", "lead")
FREE = {"rate": 1e9, "burst": 1e9, "free_failures": 10**9}


@dataclass
class Fuzzing:
    """Sends cases in the name of a role."""

    site: Site
    address: str
    role: str
    session: requests.Session
    statuses: Counter[int] = field(default_factory=Counter)

    def send(self, case: Case[Any]) -> None:
        """Send a case, with a fresh session where the role has one, and look at the response."""
        headers, cookies = {}, {}
        if self.role != "anonymous":
            user = self.site.user("Ann" if self.role == "annotator" else "Lea", self.role)
            self.site.store.disable(user.name, False)
            token = self.site.store.begin(user, hours=1, now=self.site.clock())
            headers, cookies = {"x-csrf-token": csrf_of(token)}, {self.site.cookie: token}
            if isinstance(case.body, dict) and "csrf" in case.body:
                case.body["csrf"] = csrf_of(token)
        response = case.call(
            self.address, self.session, headers, None, cookies, allow_redirects=False
        )
        self.statuses[response.status_code] += 1
        case.validate_response(response, checks=CHECKS)


def strategies() -> Iterator[tuple[str, Any]]:
    """Yield ways to make requests, by the operation, those that fit the description and others."""
    schema = schemathesis.openapi.from_dict(description())
    for found in schema.get_all_operations():
        assert isinstance(found, Ok)
        operation = found.ok()
        name = f"{operation.method.upper()} {operation.path}"
        yield name, operation.as_strategy(generation_mode=GenerationMode.POSITIVE)
        if "POST" in name or "{id}" in name:  # any other address fits the description
            yield name, operation.as_strategy(generation_mode=GenerationMode.NEGATIVE)


def fuzzed(site: Site, each: int) -> int:
    """Send so many cases for each role and way; return how many were sent."""
    total: Counter[int] = Counter()
    with on_a_port(site.app) as address, requests.Session() as session:
        for role in ROLES:
            fuzzing = Fuzzing(site, address, role, session)
            for _, strategy in strategies():
                run = settings(
                    max_examples=each, deadline=None, database=None, derandomize=True,
                    suppress_health_check=list(HealthCheck),
                )(given(case=strategy)(fuzzing.send))  # fmt: skip
                run()
            assert fuzzing.statuses[200] > 0
            total += fuzzing.statuses
    print(f"{total.total()} cases: {dict(sorted(total.items()))}")
    return total.total()


def test_the_description_names_every_route() -> None:
    assert ROUTES.keys() == ACCESS.keys()


def test_strange_requests_get_an_answer_that_was_described(make_site: MakeSite) -> None:
    assert fuzzed(make_site(**FREE), 2) >= 100


@pytest.mark.slow
def test_very_many_strange_requests(make_site: MakeSite) -> None:
    assert fuzzed(make_site(**FREE), int(40 * COUNT)) >= 2000 * min(COUNT, 1)
