"""The gate: every request passes it, and what the access table does not name is not there.

Plain ASGI: the table is the router too; a framework would cost more than all that is done here.
"""

import asyncio
import base64
import hashlib
import hmac
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from inspect import iscoroutinefunction
from ipaddress import IPv6Address
from typing import Any, Literal, TypeAlias
from urllib.parse import parse_qsl, urlsplit

from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect
from starlette.responses import Response
from starlette.routing import compile_path
from starlette.types import Message, Receive, Scope, Send

from ruleout.web.batcher import Batcher
from ruleout.web.entities import Role, User
from ruleout.web.service import options as limits
from ruleout.web.service.options import Options
from ruleout.web.service.problems import LOG, ProblemError, one_line
from ruleout.web.service.rate_limit import Buckets
from ruleout.web.store import Store

Row: TypeAlias = tuple[str, str]  # method and path


@dataclass(frozen=True)
class Rule:
    """What answers at a route, who may call it (None: everybody), and what a request carries."""

    to: str
    roles: frozenset[Role] | None
    body: Literal["json", "form"] | None = None
    token: bool = False  # whether a program may ask, with the token of a lead


_ALL = None
_BOTH: frozenset[Role] = frozenset({"annotator", "lead"})
_LEAD: frozenset[Role] = frozenset({"lead"})

ACCESS: Mapping[Row, Rule] = {
    ("GET", "/health"): Rule("health", _ALL),
    ("GET", "/static/{file}"): Rule("pages.file", _ALL),
    ("GET", "/login"): Rule("auth.login_page", _ALL),
    ("POST", "/login"): Rule("auth.login", _ALL, "form"),
    ("GET", "/join/{token}"): Rule("auth.join_page", _ALL),
    ("POST", "/join"): Rule("auth.join", _ALL, "form"),
    ("POST", "/logout"): Rule("auth.logout", _BOTH, "form"),
    ("GET", "/"): Rule("label.page", _BOTH),
    ("GET", "/items/{id}"): Rule("images.item", _BOTH),
    ("GET", "/examples/{id}"): Rule("images.example", _BOTH),
    ("GET", "/api/project"): Rule("label.project", _BOTH),
    ("POST", "/api/next"): Rule("label.next", _BOTH, "json"),
    ("POST", "/api/answer"): Rule("label.answer", _BOTH, "json"),
    ("GET", "/api/progress"): Rule("label.progress", _BOTH),
    ("GET", "/team"): Rule("team.page", _LEAD),
    ("POST", "/team/invite"): Rule("team.invite", _LEAD, "form"),
    ("POST", "/team/disable"): Rule("team.disable", _LEAD, "form"),
    ("POST", "/team/decide"): Rule("team.decide", _LEAD, "form"),
    ("GET", "/team/status"): Rule("team.status", _LEAD, token=True),
    ("GET", "/team/export/{name}"): Rule("team.export", _LEAD, token=True),
}

_PATTERNS = {path: compile_path(path)[0] for _, path in ACCESS}


def find(method: str, path: str) -> tuple[Row, dict[str, str]]:
    """Return the row of the table for a request, with what its path fills in; raise without one."""
    for named, pattern in _PATTERNS.items():
        if found := pattern.fullmatch(path):
            if (method, named) in ACCESS:
                return (method, named), found.groupdict()
            allowed = ", ".join(sorted(verb for verb, place in ACCESS if place == named))
            raise ProblemError("method", f"this address takes {allowed} alone", allow=allowed)
    raise ProblemError("unknown", "there is nothing at this address; check it")


@dataclass(kw_only=True)
class Call:
    """A request, with what the gate has found out about it."""

    scope: Scope
    filled: Mapping[str, str] = field(default_factory=dict)  # what the path says for {…}
    origin: str = ""  # scheme and host as the client sees them
    token: str | None = None  # the session in the cookie, whether or not it is alive
    user: User | None = None  # None where everybody may ask
    body: bytes = b""  # of the kind and size that the access table allows

    @property
    def person(self) -> User:
        """Who asks, on routes that need somebody."""
        assert self.user is not None, "the access table lets everybody in here"
        return self.user

    @property
    def csrf(self) -> str | None:
        """What forms of this session must send along."""
        return csrf_of(self.token) if self.token is not None and self.user is not None else None

    @cached_property
    def form(self) -> dict[str, str]:
        """The fields of a form; of one that appears twice the last."""
        try:
            text, most = self.body.decode("ascii"), limits.FORM_FIELDS
            return dict(parse_qsl(text, True, max_num_fields=most, errors="strict"))
        except (UnicodeDecodeError, ValueError):
            sentence = "the form cannot be read; reload the page and try again"
            raise ProblemError("invalid", sentence) from None

    def header(self, name: bytes) -> str | None:
        """Return a header that appears once; several are as good as none, but not for refusals."""
        found = [value for key, value in self.scope["headers"] if key == name]
        return found[0].decode("ascii", "replace") if len(found) == 1 else ("" if found else None)

    def has(self, tag: str) -> bool:
        """Tell whether the client has the version with this tag already."""
        return tag in (self.header(b"if-none-match") or "").split(", ")

    @property
    def peer(self) -> str:
        client = self.scope.get("client")
        return str(client[0]) if client else ""

    @property
    def household(self) -> str:
        """What limits count as one address: of IPv6, the 2^64 that one customer has."""
        try:
            address = IPv6Address(self.peer)
        except ValueError:
            return self.peer
        return str(address.ipv4_mapped or IPv6Address(int(address) >> 64 << 64))

    @property
    def wants_page(self) -> bool:
        """Whether a person is looking: a browser asks for HTML, and not from the API."""
        wanted = self.header(b"accept") or ""
        return not self.scope["path"].startswith("/api/") and "text/html" in wanted


def csrf_of(token: str) -> str:
    """Return the token against forged requests of a session; it does not tell the session's."""
    digest = hashlib.sha256(b"ruleout csrf\0" + token.encode()).digest()
    return base64.urlsafe_b64encode(digest).rstrip(b"=").decode()


def json_response(content: Any, status: int = 200) -> Response:
    """Return JSON in ASCII, so that no text of a stranger can fail to be written."""
    text = json.dumps(content, separators=(",", ":"), allow_nan=False)
    return Response(text.encode(), status, media_type="application/json")


class Cookie:
    """A cookie of one project; cookies know no ports, so the name says which."""

    def __init__(self, store: Store, suffix: str = "", path: str = "/") -> None:
        self._name, self._path = f"ruleout-{store.identity[:8]}{suffix}", path
        self._start = f"{self._name}=".encode()

    def read(self, scope: Scope) -> str | None:
        """Return the token that the request carries; two are as good as none."""
        found = [
            part.strip()[len(self._start) :]
            for key, value in scope["headers"]
            if key == b"cookie"
            for part in value.split(b";")
            if part.strip().startswith(self._start)
        ]
        fits = len(found) == 1 and 0 < len(found[0]) <= limits.TOKEN_CHARACTERS
        return str(found[0], "ascii") if fits and found[0].isascii() else None

    def write(self, call: Call, response: Response, token: str, seconds: int | None = None) -> None:
        """Give it to a browser, for some seconds (None: until it is closed; 0: take it back)."""
        response.set_cookie(
            self._name, token, seconds, path=self._path, httponly=True, samesite="strict",
            secure=call.origin.startswith("https:"),
        )  # fmt: skip


class Gate:
    """The service as an ASGI application: lets a request through to its route, or refuses it."""

    def __init__(
        self,
        store: Store,
        options: Options,
        endpoints: Mapping[Row, Callable[[Call], Any]],
        failed: Callable[[Call, Exception], Response],
    ) -> None:
        assert endpoints.keys() == ACCESS.keys()
        self._store, self._options, self._failed = store, options, failed
        self._endpoints = endpoints
        self._cookie = Cookie(store)
        self._sessions: Batcher[str, tuple[User | None, datetime | None]] = Batcher(
            lambda tokens: store.sessions(tokens, options.clock()), lanes=2
        )
        self._requests = Buckets(options)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":  # the way of ASGI to say that it is not needed
            raise RuntimeError("this application has no lifespan")
        if scope["type"] != "http":  # there are no websockets here
            await send({"type": "websocket.close", "code": 1008})
            return
        guarded = _Guarded(send, bodyless=scope["method"] == "HEAD")
        call = Call(scope={**scope, "method": "GET"} if guarded.bodyless else scope)
        try:
            response = await self._answer(call, receive)
            await response(scope, receive, guarded)
        except ClientDisconnect:
            return  # nobody is there to be told
        except Exception as error:
            response = self._failed(call, error)
            if not guarded.started:  # else the connection is cut, which the client notices
                await response(scope, receive, guarded)

    async def _answer(self, call: Call, receive: Receive) -> Response:
        """Find out who asks and whether they may; answer, or raise where they may not."""
        host = _check_host(call, self._options)
        row, call.filled = find(call.scope["method"], call.scope["path"])
        rule = ACCESS[row]
        origin = self._options.origin or f"{call.scope['scheme']}://{host}"
        call.origin = origin.rstrip("/").lower()
        call.token = self._cookie.read(call.scope)
        if rule.roles is not None:
            call.user = await self._user(call, rule)
            if call.user.role not in rule.roles:
                raise ProblemError("forbidden", "this is for the lead of the project; ask them")
        if rule.body is not None:
            _check_sender(call, host)
            most = limits.body_bytes(len(self._store.settings.classes))
            call.body = await _read(call, receive, rule.body, most)
            if rule.roles is not None:
                _check_csrf(call, rule.body)
        work = self._endpoints[row]  # in a thread where it is not written for the event loop
        done = work(call) if iscoroutinefunction(work) else run_in_threadpool(work, call)
        response: Response = await done
        return response

    async def _user(self, call: Call, rule: Rule) -> User:
        user, (kind, _, told) = None, (call.header(b"authorization") or "").partition(" ")
        if rule.token and kind.lower() == "bearer":
            user = await run_in_threadpool(self._store.token_of, told, self._options.clock())
            if user is None:
                LOG.warning("a token from %s was refused", one_line(call.peer))
        elif call.token is not None:
            user, until = await self._sessions.ask(call.token)
            if until is not None:  # a write, which may have to wait for others
                await run_in_threadpool(self._store.lengthen, call.token, until)
        if wait := self._requests.take(call.household if user is None else user.id):
            raise ProblemError("rate", f"too many requests; wait {wait} s", retry_after=wait)
        if user is None and rule.token and kind.lower() == "bearer":
            raise ProblemError("login", "this token is unknown or has ended; make another")
        if user is None:
            raise ProblemError("login", "you are not logged in, or no longer; log in")
        return user


_HOST = re.compile(r"([A-Za-z0-9._-]{1,253}|\[[0-9A-Fa-f:.]{2,45}\])(:[0-9]{1,5})?")
_TYPES = {"json": "application/json", "form": "application/x-www-form-urlencoded"}


def _check_host(call: Call, options: Options) -> str:
    """Return the host that the request names, or raise: it must be one of ours."""
    host = call.header(b"host") or ""
    named = _HOST.fullmatch(host)
    if named is None:
        raise ProblemError("host", "the request names no host; send one Host header")
    if options.hosts is not None:
        own = _HOST.fullmatch(urlsplit(options.origin or "").netloc.rpartition("@")[2])
        names = [*options.hosts, own[1]] if own else options.hosts
        if named[1].lower() not in {name.lower() for name in names}:
            raise ProblemError("host", "this service does not go by that name; use its own address")
    return host.lower()


def _check_sender(call: Call, host: str) -> None:
    """Raise where another site's page sent the request, as far as the browser says."""
    site, origin = call.header(b"sec-fetch-site"), call.header(b"origin")
    ours = {f"{call.scope['scheme']}://{host}", call.origin}
    if site not in (None, "same-origin", "none") or (origin is not None and origin not in ours):
        sentence = "another site's page sent this request; reload the page and try again"
        raise ProblemError("csrf", sentence)


def _check_csrf(call: Call, body: Literal["json", "form"]) -> None:
    """Raise unless the page of this session sent the request."""
    told = call.form.get("csrf") if body == "form" else call.header(b"x-csrf-token")
    if call.csrf is None or not hmac.compare_digest((told or "").encode(), call.csrf.encode()):
        raise ProblemError("csrf", "the page is out of date; reload it and try again")


async def _read(call: Call, receive: Receive, body: Literal["json", "form"], most: int) -> bytes:
    """Return the body, or raise: it is too large, of another type, or slow to come."""
    kind = (call.header(b"content-type") or "").partition(";")[0].strip().lower()
    if kind != _TYPES[body]:
        raise ProblemError("type", f"this address takes {_TYPES[body]}; send that")
    content, more = bytearray(), True
    try:
        async with asyncio.timeout(limits.BODY_SECONDS):
            while more:
                message = await receive()
                if message["type"] == "http.disconnect":
                    raise ClientDisconnect
                content += message.get("body", b"")
                if len(content) > most:
                    sentence = f"the request has more than {most:,} bytes; send less"
                    raise ProblemError("large", sentence)
                more = message.get("more_body", False)
    except TimeoutError:  # no 4xx, since the same request may be sent again
        sentence = "the request took too long to arrive; send it again"
        raise ProblemError("unavailable", sentence, retry_after=1) from None
    return bytes(content)


_POLICY = (
    b"default-src 'self'; object-src 'none'; base-uri 'none'; form-action 'self'; "
    b"frame-ancestors 'none'"
)
_ALWAYS = (
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"same-origin"),  # with no-referrer, forms say "Origin: null"
    (b"x-frame-options", b"DENY"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
)
_UNLESS_SAID = ((b"content-security-policy", _POLICY), (b"cache-control", b"no-store"))


class _Guarded:
    """A `send` that adds the headers of every response; `bodyless` keeps the content back."""

    def __init__(self, send: Send, *, bodyless: bool) -> None:
        self._send = send
        self.bodyless = bodyless
        self.started = False

    async def __call__(self, message: Message) -> None:
        self.started = True
        if message["type"] == "http.response.start":
            given = list(message.get("headers", ()))
            names = {name for name, _ in given}
            more = [pair for pair in _UNLESS_SAID if pair[0] not in names]
            message = {**message, "headers": [*given, *_ALWAYS, *more]}
        elif self.bodyless and message["type"] == "http.response.body":
            message = {**message, "body": b""}
        await self._send(message)
