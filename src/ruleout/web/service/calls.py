"""What the gate found out about a request, for the route that answers it."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from ipaddress import IPv6Address
from typing import TypeAlias

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Scope

from ruleout.web.entities import User

__all__ = [
    "Call",
    "Endpoint",
    "call_of",
    "csrf_of",
    "header",
    "household",
    "of_scope",
    "peer",
    "wants_page",
]

Endpoint: TypeAlias = Callable[[Request], Awaitable[Response]]

_KEY = "ruleout.call"


@dataclass(frozen=True, kw_only=True)
class Call:
    """A request that may be carried out.

    Attributes
    ----------
    user
        Who asks; None where everybody may.
    token
        The session in the cookie, whether or not it is alive.
    csrf
        What forms of this session must send along.
    origin
        Scheme and host as the client sees them.
    body
        What was sent, of the kind and size that the access table allows.
    """

    user: User | None
    token: str | None
    csrf: str | None
    origin: str
    body: bytes = b""

    @property
    def person(self) -> User:
        """Who asks, on routes that need somebody."""
        assert self.user is not None, "the access table lets everybody in here"
        return self.user

    def into(self, scope: Scope) -> None:
        """Hand the call on to the route."""
        scope[_KEY] = self


def call_of(request: Request) -> Call:
    """Return the call of a request."""
    found = request.scope[_KEY]
    assert isinstance(found, Call)
    return found


def of_scope(scope: Scope) -> Call | None:
    """Return the call, None where the gate refused before there was one."""
    return scope.get(_KEY)


def csrf_of(token: str) -> str:
    """Return the token against forged requests of a session; it does not tell the session's.

    >>> len(csrf_of("abc"))
    43
    """
    digest = hashlib.sha256(b"ruleout csrf\0" + token.encode()).digest()
    return base64.urlsafe_b64encode(digest).rstrip(b"=").decode()


def header(scope: Scope, name: bytes) -> str | None:
    """Return a header that stands once; several are as good as none, but not for refusals.

    What is no ASCII is replaced: no header that is read here has a use for it.
    """
    found = [value for key, value in scope["headers"] if key == name]
    return found[0].decode("ascii", "replace") if len(found) == 1 else ("" if found else None)


def peer(scope: Scope) -> str:
    """Return the address that the request came from."""
    client = scope.get("client")
    return str(client[0]) if client else ""


def household(scope: Scope) -> str:
    """Return what limits count as one address: of IPv6, the 2^64 that one customer has.

    >>> household({"client": ("2001:db8:1:2:3:4:5:6", 1)}), household({"client": ("10.0.0.1", 1)})
    ('2001:db8:1:2::', '10.0.0.1')
    """
    try:
        address = IPv6Address(peer(scope))
    except ValueError:
        return peer(scope)
    return str(address.ipv4_mapped or IPv6Address(int(address) >> 64 << 64))


def wants_page(scope: Scope) -> bool:
    """Tell whether a person is looking: a browser asks for HTML, and not from the API."""
    return not scope["path"].startswith("/api/") and "text/html" in (header(scope, b"accept") or "")
