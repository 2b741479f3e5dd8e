"""Who may call what: one table, and what it does not name is refused for everybody."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

from starlette.routing import compile_path

from ruleout.web.entities import Role
from ruleout.web.service.problems import ProblemError

__all__ = ["ACCESS", "Row", "Rule", "find"]

Row: TypeAlias = tuple[str, str]  # method and path


@dataclass(frozen=True)
class Rule:
    """Who may call a route (None: everybody), and what a request to it carries."""

    roles: frozenset[Role] | None
    body: Literal["json", "form"] | None = None


_ALL = None
_BOTH: frozenset[Role] = frozenset({"annotator", "lead"})
_LEAD: frozenset[Role] = frozenset({"lead"})

ACCESS: Mapping[Row, Rule] = {
    ("GET", "/health"): Rule(_ALL),
    ("GET", "/static/{file}"): Rule(_ALL),
    ("GET", "/login"): Rule(_ALL),
    ("POST", "/login"): Rule(_ALL, "form"),
    ("GET", "/join/{token}"): Rule(_ALL),
    ("POST", "/join"): Rule(_ALL, "form"),
    ("POST", "/logout"): Rule(_BOTH, "form"),
    ("GET", "/"): Rule(_BOTH),
    ("GET", "/items/{id}"): Rule(_BOTH),
    ("GET", "/api/project"): Rule(_BOTH),
    ("POST", "/api/next"): Rule(_BOTH, "json"),
    ("POST", "/api/answer"): Rule(_BOTH, "json"),
    ("GET", "/api/progress"): Rule(_BOTH),
    ("GET", "/team"): Rule(_LEAD),
    ("POST", "/team/invite"): Rule(_LEAD, "form"),
    ("POST", "/team/disable"): Rule(_LEAD, "form"),
    ("GET", "/team/export/{name}"): Rule(_LEAD),
}

_PLAIN = {path for _, path in ACCESS if "{" not in path}
_PATTERNS = {path: compile_path(path)[0] for _, path in ACCESS if "{" in path}


def find(method: str, path: str) -> Rule:
    """Return the rule for a request; raise where the table has none.

    >>> find("GET", "/team").roles
    frozenset({'lead'})
    """
    named = _named(path)
    if named is None:
        raise ProblemError("unknown", "there is nothing at this address; check it")
    rule = ACCESS.get((method, named))
    if rule is None:
        allowed = ", ".join(sorted(verb for verb, place in ACCESS if place == named))
        raise ProblemError("method", f"this address takes {allowed} alone", {"allow": allowed})
    return rule


def _named(path: str) -> str | None:
    if path in _PLAIN:
        return path
    return next((name for name, pattern in _PATTERNS.items() if pattern.match(path)), None)
