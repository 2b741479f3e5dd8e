"""The one cookie: it names a session and tells nothing else."""

from __future__ import annotations

from starlette.responses import Response
from starlette.types import Scope

__all__ = ["Cookie"]

_LONGEST = 200  # characters; a token of ours has 43


class Cookie:
    """The session's cookie of one project; cookies know no ports, so the name says which."""

    def __init__(self, identity: str) -> None:
        self.name = f"ruleout-{identity[:8]}"
        self._start = f"{self.name}=".encode()

    def read(self, scope: Scope) -> str | None:
        """Return the token that the request carries; two are as good as none."""
        found = [
            part.strip()[len(self._start) :]
            for key, value in scope["headers"]
            if key == b"cookie"
            for part in value.split(b";")
            if part.strip().startswith(self._start)
        ]
        if len(found) != 1 or not 0 < len(found[0]) <= _LONGEST or not found[0].isascii():
            return None
        return str(found[0], "ascii")

    def write(self, response: Response, token: str, *, secure: bool) -> None:
        """Give a browser its session, until it is closed."""
        response.set_cookie(
            self.name, token, path="/", httponly=True, samesite="strict", secure=secure
        )

    def clear(self, response: Response, *, secure: bool) -> None:
        """Take it back."""
        response.delete_cookie(self.name, path="/", httponly=True, samesite="strict", secure=secure)
