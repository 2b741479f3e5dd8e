"""The ways in and out: login, invite links, logout."""

from __future__ import annotations

from typing import Any

from anyio import to_thread
from fastapi import APIRouter, Request
from starlette.responses import RedirectResponse, Response

from ruleout.web.entities import RefusedError, User
from ruleout.web.names import storable
from ruleout.web.service.bodies import form_fields
from ruleout.web.service.calls import Call, call_of, household, peer
from ruleout.web.service.describing import described
from ruleout.web.service.failures import LOG, one_line
from ruleout.web.service.passwords import LONGEST, SHORTEST
from ruleout.web.service.problems import ProblemError
from ruleout.web.service.service import Service
from ruleout.web.users import LONGEST as LONGEST_NAME
from ruleout.web.users import folded

__all__ = ["Doors"]

_WRONG = "The name or the password is wrong."
_USED = "this invite link was used or has run out; ask the lead of the project for another"
_TEXT = {"type": "string"}


class Doors:
    """Lets people in and out."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._store = service.store
        self._passwords = service.passwords

    def routes(self) -> APIRouter:
        """Return the routes."""
        router = APIRouter()
        login = {"name": _TEXT, "password": _TEXT}
        join = {"token": _TEXT, "password": _TEXT, "again": _TEXT}
        self._add(router, "GET", "/login", self.login_page)
        self._add(router, "POST", "/login", self.login, login, 303, 401, 429)
        self._add(router, "GET", "/join/{token}", self.join_page, None, 429)
        self._add(router, "POST", "/join", self.join, join, 303, 429)
        self._add(router, "POST", "/logout", self.logout, {"csrf": _TEXT}, 303)
        return router

    def _add(
        self, router: APIRouter, method: str, path: str, function: Any,
        sent: dict[str, Any] | None = None, *more: int,
    ) -> None:  # fmt: skip
        told = described((method, path), "text/html", sent, *more)
        router.add_api_route(path, function, methods=[method], **told)

    # ------------------------------------------------------------------ login

    def login_page(self, request: Request) -> Response:
        """Return the page that asks who is there."""
        return self._login_page(call_of(request), "", None, 200)

    def _login_page(self, call: Call, name: str, problem: str | None, status: int) -> Response:
        shown = name[:LONGEST_NAME]
        return self._service.pages.page(
            "login", call, "Log in", status, problem=problem, name=shown
        )

    async def login(self, request: Request) -> Response:
        """Begin a session for who knows the password; a failure says not what was wrong."""
        call, address = call_of(request), household(request.scope)
        fields = form_fields(call.body)
        name, password = fields.get("name", ""), fields.get("password", "")
        self._may_try(name, address)
        try:
            known = await self._passwords.slowly(self._known, name, password)
        except Exception:  # not a wrong password: the database failed, or too many wait
            self._give_back(name, address)
            raise
        if known is None:
            sender = one_line(peer(request.scope))
            LOG.warning("login of %s from %s failed", one_line(name), sender)
            return self._login_page(call, name, _WRONG, 401)
        self._give_back(name, address)
        return await to_thread.run_sync(self._let_in, call, *known)

    def _may_try(self, name: str, address: str) -> None:
        """Count an attempt as a failure until it succeeds, so that many at once are counted."""
        wait = self._service.by_address.take(address) or self._service.by_name.take(_folded(name))
        if wait:
            sentence = f"too many logins failed; wait {wait} s and try again"
            raise ProblemError("rate", sentence, {"retry-after": str(wait)})

    def _give_back(self, name: str, address: str) -> None:
        self._service.by_name.give_back(_folded(name))
        self._service.by_address.give_back(address)

    def _known(self, name: str, password: str) -> tuple[User, str] | None:
        """Return who it is and their hash; it takes as long where there is nobody of that name."""
        user, kept = self._kept(name)
        fits = len(password) <= LONGEST and self._passwords.fits(password, kept)
        if not fits or user is None or kept is None or user.disabled:
            return None
        if self._passwords.is_stale(kept):
            before, kept = kept, self._passwords.hash(password)
            self._store.rehash(user, kept, before=before)
        return user, kept

    def _kept(self, name: str) -> tuple[User | None, str | None]:
        if not 1 <= len(name) <= LONGEST_NAME or not storable(name):
            return None, None
        try:
            return self._store.password(name) or (None, None)
        except RefusedError:  # nobody can have that name
            return None, None

    def _let_in(self, call: Call, user: User, kept: str | None = None) -> Response:
        """Begin a session, while `kept` is the hash; the one that the browser had before ends."""
        if call.token is not None:
            self._store.end(call.token)
        now, hours = self._service.now(), self._service.options.session_hours
        token = self._store.begin(user, hours=hours, password_hash=kept, now=now)
        response = RedirectResponse("/", 303)
        self._service.cookie.write(response, token, secure=call.origin.startswith("https:"))
        return response

    # ------------------------------------------------------------------ invites

    def join_page(self, request: Request, token: str) -> Response:
        """Return the page where somebody who was invited chooses a password."""
        user = self._invited(request, token)
        return self._join_page(call_of(request), token, user, None, 200)

    def _join_page(
        self, call: Call, token: str, user: User, problem: str | None, status: int
    ) -> Response:
        more = {"token": token, "name": user.name, "problem": problem}
        return self._service.pages.page("join", call, "Choose a password", status, **more)

    async def join(self, request: Request) -> Response:
        """Take the password of somebody who was invited, and let them in."""
        return await self._passwords.slowly(self._join, request)

    def _join(self, request: Request) -> Response:
        call = call_of(request)
        fields = form_fields(call.body)
        token, password = fields.get("token", ""), fields.get("password", "")
        user = self._invited(request, token)
        problem = _fault(password, fields.get("again", ""))
        if problem is not None:
            return self._join_page(call, token, user, problem, 422)
        joined = self._store.accept(token, self._passwords.hash(password), self._service.now())
        return self._let_in(call, joined)

    def _invited(self, request: Request, token: str) -> User:
        """Return who was invited; guessing is limited like guessing passwords is."""
        address = household(request.scope)
        if wait := self._service.by_address.take(address):
            sentence = f"too many invite links were wrong; wait {wait} s and try again"
            raise ProblemError("rate", sentence, {"retry-after": str(wait)})
        fits = 1 <= len(token) <= 200 and token.isascii() and token.isprintable()
        user = self._store.invited(token, self._service.now()) if fits else None
        if user is None:
            raise ProblemError("unknown", _USED)
        self._service.by_address.give_back(address)
        return user

    # ------------------------------------------------------------------ logout

    def logout(self, request: Request) -> Response:
        """End the session."""
        call = call_of(request)
        assert call.token is not None
        self._store.end(call.token)
        response = RedirectResponse("/login", 303)
        self._service.cookie.clear(response, secure=call.origin.startswith("https:"))
        return response


def _folded(name: str) -> str:
    """One key for all ways to write a name that the store takes for the same, of bounded length."""
    return folded(name[: LONGEST_NAME + 1])


def _fault(password: str, again: str) -> str | None:
    """Say what is wrong with a new password, or None.

    >>> _fault("short", "short")
    'Use at least 10 characters.'
    """
    if len(password) < SHORTEST:
        return f"Use at least {SHORTEST} characters."
    if len(password) > LONGEST:
        return f"Use at most {LONGEST} characters."
    return None if password == again else "The two passwords differ."
