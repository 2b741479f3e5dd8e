"""Login, invite links, logout: who gets a session."""

import asyncio
import hmac
import secrets
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cached_property
from typing import TypeVar, TypeVarTuple
from weakref import WeakValueDictionary

from anyio import CapacityLimiter, to_thread
from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError
from starlette.responses import RedirectResponse, Response

from ruleout.web.accounts import LONGEST_NAME, folded
from ruleout.web.entities import User
from ruleout.web.service import options as limits
from ruleout.web.service.gate import Call, Cookie
from ruleout.web.service.options import Options
from ruleout.web.service.pages import Pages
from ruleout.web.service.problems import LOG, ProblemError, one_line
from ruleout.web.service.rate_limit import Delays
from ruleout.web.store import Store

_USED = "this invite link was used or has run out; ask the lead of the project for another"

Ts = TypeVarTuple("Ts")
T = TypeVar("T")


class Auth:
    def __init__(self, store: Store, options: Options, pages: Pages) -> None:
        self._store, self._options, self._pages = store, options, pages
        self._session = Cookie(store)
        self._device = Cookie(store, "-device", path="/login")
        self._passwords = Passwords(options.hasher)
        self._failures = Delays(options)
        self._locks: WeakValueDictionary[tuple[str, str], asyncio.Lock] = WeakValueDictionary()
        self._waiting: Counter[str] = Counter()  # logins by address

    def login_page(
        self, call: Call, name: str = "", problem: str | None = None, status: int = 200
    ) -> Response:
        more = {"problem": problem, "name": name[:LONGEST_NAME]}
        return self._pages.page("login", call, "Log in", status, **more)

    async def login(self, call: Call) -> Response:
        """Begin a session for who knows the password; a failure does not say what was wrong.

        Failures count for a name from an address, and apart from those for browsers that have
        been logged in under the name: so nobody locks others out by failing in their name, or
        from their address. Tries that count together wait for each other, so that guessing many
        at once is no faster.
        """
        name, password = call.form.get("name", ""), call.form.get("password", "")
        with self._in_line(call.household):
            long = len(name) > LONGEST_NAME
            found = None if long else await to_thread.run_sync(self._store.password, name)
            user, kept = found or (None, None)
            device = self._device.read(call.scope)
            familiar = kept is not None and device == _device_of(kept)
            key = folded(name[: LONGEST_NAME + 1]), "" if familiar else call.household
            async with self._locks.setdefault(key, asyncio.Lock()):
                if wait := self._failures.wait(key):
                    sentence = f"too many logins failed; wait {wait} s and try again"
                    raise ProblemError("rate", sentence, retry_after=wait)
                fits = await self._passwords.slowly(self._passwords.fits, password, kept)
                if not fits or user is None or kept is None or user.disabled:
                    self._failures.failed(key)
                    LOG.warning("login of %s from %s failed", one_line(name), one_line(call.peer))
                    return self.login_page(call, name, "The name or the password is wrong.", 401)
                self._failures.succeeded(key)
        return await self._passwords.slowly(self._let_in, call, user, kept, password)

    @contextmanager
    def _in_line(self, address: str) -> Iterator[None]:
        """Wait among others; one address never fills the whole line."""
        full = self._waiting.total() >= limits.HASHES_WAITING
        if full or self._waiting[address] >= limits.HASHES_WAITING // 2:
            sentence = "too many people are logging in just now; try again in a moment"
            raise ProblemError("unavailable", sentence, retry_after=5)
        self._waiting[address] += 1
        try:
            yield
        finally:
            self._waiting[address] -= 1
            self._waiting = +self._waiting

    def _let_in(self, call: Call, user: User, kept: str, password: str) -> Response:
        """Begin a session, while `kept` is the hash; the one that the browser had before ends."""
        if self._options.hasher.check_needs_rehash(kept):  # it was made with other parameters
            before, kept = kept, self._passwords.hash(password)
            self._store.rehash(user, kept, before=before)
        if call.token is not None:
            self._store.end(call.token)
        now, hours = self._options.clock(), self._options.session_hours
        token = self._store.begin(user, hours=hours, password_hash=kept, now=now)
        response = RedirectResponse("/", 303)
        self._session.write(call, response, token)
        self._device.write(call, response, _device_of(kept), 365 * 86_400)
        return response

    def join_page(self, call: Call, problem: str | None = None, status: int = 200) -> Response:
        token = call.filled.get("token") or call.form.get("token", "")
        shortest, longest = limits.PASSWORD_CHARACTERS
        said = {"problem": problem, "shortest": shortest, "longest": longest}
        more = {"token": token, "name": self._invited(token).name, **said}
        return self._pages.page("join", call, "Choose a password", status, **more)

    async def join(self, call: Call) -> Response:
        token, password = call.form.get("token", ""), call.form.get("password", "")
        if problem := _fault(password, call.form.get("again", "")):
            return await to_thread.run_sync(self.join_page, call, problem, 422)
        await to_thread.run_sync(self._invited, token)
        kept = await self._passwords.slowly(self._passwords.hash, password)
        user = await to_thread.run_sync(self._store.accept, token, kept, self._options.clock())
        LOG.info("%s from %s chose a password", one_line(user.name), one_line(call.peer))
        return await to_thread.run_sync(self._let_in, call, user, kept, password)

    def _invited(self, token: str) -> User:
        """Return who was invited. Nobody guesses 256 random bits, so tries are not counted."""
        fits = len(token) <= limits.TOKEN_CHARACTERS
        user = self._store.invited(token, self._options.clock()) if fits else None
        if user is None:
            raise ProblemError("unknown", _USED)
        return user

    def logout(self, call: Call) -> Response:
        assert call.token is not None
        self._store.end(call.token)
        response = RedirectResponse("/login", 303)
        self._session.write(call, response, "", 0)
        return response


def _device_of(kept: str) -> str:
    """What tells a browser that was logged in: made of the hash, it ends with the password."""
    return hmac.new(kept.encode(), b"ruleout device", "sha256").hexdigest()


def _fault(password: str, again: str) -> str | None:
    shortest, longest = limits.PASSWORD_CHARACTERS
    if len(password) < shortest:
        return f"Use at least {shortest} characters."
    if len(password) > longest:
        return f"Use at most {longest} characters."
    return None if password == again else "The two passwords differ."


class Passwords:
    """Hashes and checks passwords; it takes as long where there is no such user."""

    def __init__(self, hasher: PasswordHasher) -> None:
        self._hasher = hasher
        self._limiter = CapacityLimiter(limits.HASHES_AT_ONCE)

    @cached_property
    def _nobodys(self) -> str:
        """The hash that is checked for who has none, so that nobody can tell by the time."""
        return self._hasher.hash(secrets.token_hex(16))

    def hash(self, password: str) -> str:
        return self._hasher.hash(_bytes(password))

    def fits(self, password: str, kept: str | None) -> bool:
        """Tell whether it is the password; with None it takes as long and is not."""
        if len(password) > limits.PASSWORD_CHARACTERS[1]:
            return False
        try:
            fits = self._hasher.verify(self._nobodys if kept is None else kept, _bytes(password))
        except (VerificationError, InvalidHashError):
            return False
        return fits and kept is not None

    async def slowly(self, function: Callable[[*Ts], T], *args: *Ts) -> T:
        """Run a function that hashes in one of few threads, so that the others stay free."""
        return await to_thread.run_sync(function, *args, limiter=self._limiter)


def _bytes(password: str) -> bytes:
    """One password is the same bytes on every keyboard."""
    return unicodedata.normalize("NFC", password).encode()
