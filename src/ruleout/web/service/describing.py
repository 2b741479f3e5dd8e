"""How routes are described, for programs that test or call them."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel

from ruleout.web.service.access import ACCESS, Row
from ruleout.web.service.bodies import FORM, JSON
from ruleout.web.service.models import Error

__all__ = ["described"]

_SENTENCES = {
    401: "nobody is logged in", 403: "not allowed", 404: "not there", 409: "clashes",
    413: "too large", 415: "of another type", 421: "another host", 422: "makes no sense",
    429: "too often", 503: "the database failed",
}  # fmt: skip


def described(
    row: Row,
    answer: type[BaseModel] | str,
    sent: type[BaseModel] | dict[str, Any] | None = None,
    *more: int,
) -> dict[str, Any]:
    """Return what a route's decorator takes: a JSON answer by model, another by its media type.

    `sent` is the model of a JSON body or the fields of a form; `more` are statuses that only this
    route has.
    """
    errors = {status: _error(status) for status in (*_refusals(row), *more) if status >= 400}
    moves = {status: {"description": "elsewhere"} for status in (303, 304) if status in more}
    if ACCESS[row].roles is not None and not row[1].startswith("/api/"):
        moves[303] = {"description": "elsewhere"}
    told: dict[str, Any] = {
        "response_model": None,
        "responses": {200: _ok(answer)} | moves | errors,
    }
    if sent is not None:
        told["openapi_extra"] = {"requestBody": _body(sent)}
    return told


def _refusals(row: Row) -> list[int]:
    rule = ACCESS[row]
    every = [404, 421, 422, 503]
    every += [] if rule.roles is None else [401, 403, 429]
    return every + ([] if rule.body is None else [403, 409, 413, 415])


def _ok(answer: type[BaseModel] | str) -> dict[str, Any]:
    if isinstance(answer, str):
        return {"description": "done", "content": {answer: {}}}
    return {"description": "done", "model": answer}


def _error(status: int) -> dict[str, Any]:
    page = {"text/html": {"schema": {"type": "string"}}}
    return {"description": _SENTENCES[status], "model": Error, "content": page}


def _body(sent: type[BaseModel] | dict[str, Any]) -> dict[str, Any]:
    if isinstance(sent, dict):
        fields = {"type": "object", "properties": sent, "required": list(sent)}
        return {"required": True, "content": {FORM: {"schema": fields}}}
    return {"required": True, "content": {JSON: {"schema": sent.model_json_schema()}}}
