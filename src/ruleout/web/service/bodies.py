"""What people send: read up to a bound, of the kind that was asked for, and checked strictly."""

from __future__ import annotations

import asyncio
from typing import TypeVar
from urllib.parse import parse_qsl

from pydantic import BaseModel, ValidationError
from starlette.requests import ClientDisconnect, Request
from starlette.types import Receive, Scope

from ruleout.web.service.access import Rule
from ruleout.web.service.calls import call_of, header
from ruleout.web.service.problems import ProblemError

__all__ = ["FORM", "JSON", "form_fields", "json_of", "most_bytes", "read"]

JSON, FORM = "application/json", "application/x-www-form-urlencoded"
_TYPES = {"json": JSON, "form": FORM}
_PATIENCE = 30  # seconds for a body to arrive
_FIELDS = 20  # of a form

M = TypeVar("M", bound=BaseModel)


def most_bytes(classes: int) -> int:
    """Return how large a body may be; ruling out most of very many classes takes more.

    >>> most_bytes(10), most_bytes(100_000)
    (65536, 804096)
    """
    return max(65_536, 4096 + 8 * classes)


async def read(scope: Scope, receive: Receive, rule: Rule, most: int) -> bytes:
    """Return the body, or raise: it is too large, of another type, or slow to come."""
    if rule.body is None:
        return b""
    wanted = _TYPES[rule.body]
    kind = (header(scope, b"content-type") or "").partition(";")[0].strip().lower()
    if kind != wanted:
        raise ProblemError("type", f"this address takes {wanted}; send that")
    try:
        async with asyncio.timeout(_PATIENCE):
            return await _received(receive, most)
    except TimeoutError:  # no 4xx, since the same request may be sent again
        sentence = "the request took too long to arrive; send it again"
        raise ProblemError("unavailable", sentence, {"retry-after": "1"}) from None


async def _received(receive: Receive, most: int) -> bytes:
    parts, size, more = [], 0, True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ClientDisconnect
        part = message.get("body", b"")
        parts.append(part)
        size += len(part)
        if size > most:
            raise ProblemError("large", f"the request has more than {most:,} bytes; send less")
        more = message.get("more_body", False)
    return b"".join(parts)


def json_of(model: type[M], request: Request) -> M:
    """Return the JSON that was sent as a model, or raise one sentence."""
    try:
        return model.model_validate_json(call_of(request).body)
    except ValidationError as error:
        raise ProblemError("invalid", _sentence(error)) from None


def _sentence(error: ValidationError) -> str:
    """Say what is wrong first; what was sent is not repeated."""
    first = error.errors(include_url=False, include_context=False, include_input=False)[0]
    place = ".".join(str(part) for part in first["loc"])[:100]
    what = first["msg"].partition("\n")[0][:200]
    return f"{ascii(place) if place else 'the request'}: {what}; reload the page"


def form_fields(content: bytes) -> dict[str, str]:
    """Return the fields of a form; of one that stands twice the last.

    >>> form_fields(b"name=Ann+Lee&role=lead")
    {'name': 'Ann Lee', 'role': 'lead'}
    """
    try:
        text = content.decode("ascii")
        pairs = parse_qsl(text, keep_blank_values=True, max_num_fields=_FIELDS, errors="strict")
    except (UnicodeDecodeError, ValueError):
        raise ProblemError(
            "invalid", "the form cannot be read; reload the page and try again"
        ) from None
    return dict(pairs)
