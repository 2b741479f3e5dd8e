"""The gate: every request passes it, and none gets further than the access table says.

Plain ASGI, since the ready-made kind of middleware costs more than all that is done here.
"""

from __future__ import annotations

import hmac
from collections.abc import Mapping, Sequence
from datetime import datetime

from anyio import to_thread
from starlette.requests import ClientDisconnect, Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ruleout.web.batcher import Batcher
from ruleout.web.entities import User
from ruleout.web.service import access, bodies, origins
from ruleout.web.service.access import Row, Rule
from ruleout.web.service.calls import Call, Endpoint, csrf_of, header, household
from ruleout.web.service.headers import guarded
from ruleout.web.service.problems import ProblemError
from ruleout.web.service.service import Service

__all__ = ["Gate"]

_STALE = "the page is out of date; reload it and try again"


class Gate:
    """Lets a request through to the routes, or answers it itself."""

    def __init__(self, app: ASGIApp, service: Service, direct: Mapping[Row, Endpoint]) -> None:
        self._app = app
        self._direct = direct
        self._service = service
        self._sessions = Batcher(self._looked_up, lanes=2)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
        elif scope["type"] == "http":
            await self._http(scope, receive, send)
        else:  # there are no websockets here
            await send({"type": "websocket.close", "code": 1008})

    async def _http(self, scope: Scope, receive: Receive, send: Send) -> None:
        seen = _Started(guarded(send, bodyless=scope["method"] == "HEAD"))
        scope = {**scope, "method": "GET"} if scope["method"] == "HEAD" else scope
        try:
            await self._admit(scope, receive)
            endpoint = self._direct.get((scope["method"], scope["path"]))
            if endpoint is None:
                await self._app(scope, receive, seen)
            else:  # most requests are answers: past all that finds out which route to take
                await (await endpoint(Request(scope)))(scope, receive, seen)
        except ClientDisconnect:
            return  # nobody is there to be told
        except Exception as error:
            response = self._service.failures.response(scope, error)
            if not seen.started:  # else the connection is cut, which the client notices
                await response(scope, receive, seen)

    async def _admit(self, scope: Scope, receive: Receive) -> None:
        """Find out who asks and whether they may; raise where they may not."""
        options = self._service.options
        host = origins.check_host(scope, options)
        rule = access.find(scope["method"], scope["path"])
        token = self._service.cookie.read(scope)
        user = None if rule.roles is None else await self._user(scope, token)
        csrf = csrf_of(token) if token is not None and user is not None else None
        origin = origins.origin_of(scope, host, options)
        call = Call(user=user, token=token, csrf=csrf, origin=origin)
        call.into(scope)  # so that what is said about a refusal knows who asked
        if user is not None and rule.roles is not None and user.role not in rule.roles:
            raise ProblemError("forbidden", "this is for the lead of the project; ask them")
        if rule.body is not None:
            origins.check_sender(scope, host, options)
            body = await bodies.read(scope, receive, rule, self._service.most_bytes)
            _check_csrf(scope, rule, csrf, body)
            Call(user=user, token=token, csrf=csrf, origin=origin, body=body).into(scope)

    async def _user(self, scope: Scope, token: str | None) -> User:
        user = None if token is None else await self._session(token)
        key = household(scope) if user is None else user.id
        if wait := self._service.requests.take(key):
            sentence = f"too many requests; wait {wait} s"
            raise ProblemError("rate", sentence, {"retry-after": str(wait)})
        if user is None:
            raise ProblemError("login", "you are not logged in, or no longer; log in")
        return user

    async def _session(self, token: str) -> User | None:
        user, until = await self._sessions.ask(token)
        if until is not None:  # a write, which may have to wait for others
            await to_thread.run_sync(self._service.store.lengthen, token, until)
        return user

    def _looked_up(self, tokens: Sequence[str]) -> list[tuple[User | None, datetime | None]]:
        return self._service.store.sessions(tokens, self._service.now())


def _check_csrf(scope: Scope, rule: Rule, csrf: str | None, body: bytes) -> None:
    """Raise unless the page of this session sent the request; without a session there is none."""
    if rule.roles is None:
        return
    told = header(scope, b"x-csrf-token")
    if rule.body == "form":
        told = bodies.form_fields(body).get("csrf")
    if csrf is None or not hmac.compare_digest((told or "").encode(), csrf.encode()):
        raise ProblemError("csrf", _STALE)


class _Started:
    """Passes messages on and remembers whether there was one."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self.started = False

    async def __call__(self, message: Message) -> None:
        self.started = True
        await self._send(message)
