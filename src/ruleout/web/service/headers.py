"""Headers of every response, errors included."""

from __future__ import annotations

from starlette.types import Message, Send

__all__ = ["ITEM_POLICY", "guarded"]

_POLICY = (
    b"default-src 'self'; object-src 'none'; base-uri 'none'; form-action 'self'; "
    b"frame-ancestors 'none'"
)
#: Of images, which come from strangers: whatever they are, they may do nothing.
ITEM_POLICY = "default-src 'none'; sandbox"

_ALWAYS = (
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"same-origin"),  # with no-referrer, forms say "Origin: null"
    (b"x-frame-options", b"DENY"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
)
_UNLESS_SAID = ((b"content-security-policy", _POLICY), (b"cache-control", b"no-store"))


def guarded(send: Send, *, bodyless: bool) -> Send:
    """Return a `send` that adds the headers; `bodyless` keeps the content back, for HEAD."""

    async def wrapped(message: Message) -> None:
        if message["type"] == "http.response.start":
            given = list(message.get("headers", ()))
            names = {name for name, _ in given}
            more = [pair for pair in _UNLESS_SAID if pair[0] not in names]
            message = {**message, "headers": [*given, *_ALWAYS, *more]}
        elif bodyless and message["type"] == "http.response.body":
            message = {**message, "body": b""}
        await send(message)

    return wrapped
