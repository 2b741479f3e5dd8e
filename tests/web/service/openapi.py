"""A description of every route in OpenAPI, for Schemathesis: what is sent, what may come back."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

from ruleout.web.service.gate import ACCESS, Row
from ruleout.web.service.label_api import Answer, Next

TEXT = {"type": "string"}
FORM, PAGE, CSV = "application/x-www-form-urlencoded", "text/html", "text/csv"


class Told(BaseModel):
    """What comes back has these fields and no others."""

    model_config = ConfigDict(extra="forbid")


class Error(Told):
    """A sentence for people and a word for programs."""

    error: str
    reason: str


class Health(Told):
    """Whether the service runs."""

    ok: bool


class Person(Told):
    """Who asks."""

    id: int
    name: str
    role: Literal["annotator", "lead"]


class Project(Told):
    """What is asked, and of whom."""

    id: str
    name: str
    classes: list[str]
    mode: Literal["propose", "rule-out"]
    ask_which: bool
    user: Person


class Shown(Told):
    """An item as people see it."""

    id: int
    kind: Literal["image", "text", "row"]
    image: str | None
    text: str | None
    cells: list[list[str]] | None


class Question(Told):
    """An open question."""

    id: int
    item: Shown
    mode: Literal["propose", "rule-out"]
    proposed: list[int]
    expires: datetime


class Questions(Told):
    """Open questions of who asks."""

    questions: list[Question]
    classes: int


class Receipt(Told):
    """What became of an answer."""

    id: str
    status: Literal["recorded", "late", "nothing"]
    question: int | None
    item: int | None


class Answered(Questions):
    """The receipt of an answer, and what comes next."""

    receipt: Receipt


class Progress(Told):
    """How far things are."""

    wanted: int
    given: int
    answers: int
    skips: int
    per_hour: float | None
    seconds_left: float | None


class Status(Progress):
    """How far the project is, for programs."""

    items: int
    done: int
    contradictions: int


#: By route: what comes back, what is sent, and statuses that only this route has.
ROUTES: dict[Row, tuple[type[BaseModel] | str, type[BaseModel] | dict[str, Any] | None, set[int]]]
ROUTES = {
    ("GET", "/health"): (Health, None, set()),
    ("GET", "/static/{file}"): ("*/*", None, {304}),
    ("GET", "/login"): (PAGE, None, set()),
    ("POST", "/login"): (PAGE, {"name": TEXT, "password": TEXT}, {303, 401, 429}),
    ("GET", "/join/{token}"): (PAGE, None, set()),
    ("POST", "/join"): (PAGE, {"token": TEXT, "password": TEXT, "again": TEXT}, {303}),
    ("POST", "/logout"): (PAGE, {"csrf": TEXT}, {303}),
    ("GET", "/"): (PAGE, None, set()),
    ("GET", "/items/{id}"): ("image/*", None, {304}),
    ("GET", "/examples/{id}"): ("image/*", None, {304}),
    ("GET", "/api/project"): (Project, None, set()),
    ("POST", "/api/next"): (Questions, Next, set()),
    ("POST", "/api/answer"): (Answered, Answer, set()),
    ("GET", "/api/progress"): (Progress, None, set()),
    ("GET", "/team"): (PAGE, None, set()),
    ("POST", "/team/invite"): (
        PAGE,
        {"name": TEXT, "role": {"enum": ["annotator", "lead"]}, "csrf": TEXT},
        set(),
    ),
    ("POST", "/team/disable"): (
        PAGE,
        {"name": TEXT, "disabled": {"enum": ["0", "1"]}, "csrf": TEXT},
        {303},
    ),
    ("POST", "/team/decide"): (
        PAGE,
        {"item": TEXT, "seen": TEXT, "class": TEXT, "void-1": TEXT, "back": TEXT, "csrf": TEXT},
        {303},
    ),
    ("GET", "/team/status"): (Status, None, set()),
    ("GET", "/team/export/{name}"): (CSV, None, set()),
}


def description() -> dict[str, Any]:
    """Return the whole description."""
    paths: dict[str, Any] = {}
    for method, path in ACCESS:
        paths.setdefault(path, {})[method.lower()] = _operation((method, path))
    info = {"title": "ruleout label", "version": "1"}
    return {"openapi": "3.1.0", "info": info, "paths": paths}


def _operation(row: Row) -> dict[str, Any]:
    answer, sent, more = ROUTES[row]
    told: dict[str, Any] = {"responses": {"200": _ok(answer)}}
    for status in sorted({*_refusals(row), *more}):
        told["responses"][str(status)] = _other(status)
    names = [part[1:-1] for part in row[1].split("/") if part.startswith("{")]
    told["parameters"] = [_parameter(name) for name in names]
    if sent is not None:
        told["requestBody"] = {"required": True, "content": _body(sent)}
    return told


def _parameter(name: str) -> dict[str, Any]:
    schema = {**TEXT, "pattern": "^[1-9][0-9]{0,8}$"} if name == "id" else TEXT
    return {"name": name, "in": "path", "required": True, "schema": schema}


def _refusals(row: Row) -> set[int]:
    rule = ACCESS[row]
    every = {404, 421, 422, 503}
    if rule.roles is not None:
        every |= {401, 403, 429} if row[1].startswith("/api/") else {303, 401, 403, 429}
    return every if rule.body is None else every | {403, 409, 413, 415}


def _ok(answer: type[BaseModel] | str) -> dict[str, Any]:
    if isinstance(answer, str):
        return {"description": "done", "content": {answer: {}}}
    return {"description": "done", "content": _json(answer)}


def _other(status: int) -> dict[str, Any]:
    if status < 400:
        return {"description": "elsewhere"}
    return {"description": "refused", "content": {**_json(Error), PAGE: {"schema": TEXT}}}


def _body(sent: type[BaseModel] | dict[str, Any]) -> dict[str, Any]:
    if not isinstance(sent, dict):
        return _json(sent)
    return {FORM: {"schema": {"type": "object", "properties": sent, "required": list(sent)}}}


def _json(model: type[BaseModel]) -> dict[str, Any]:
    template = "#/components/schemas/{model}"
    schema = model.model_json_schema(ref_template=template)
    return {"application/json": {"schema": _inlined(schema, schema.pop("$defs", {}))}}


def _inlined(part: Any, known: dict[str, Any]) -> Any:
    """Put what is referred to in its place."""
    if isinstance(part, list):
        return [_inlined(one, known) for one in part]
    if not isinstance(part, dict):
        return part
    if "$ref" in part:
        return _inlined(known[part["$ref"].rpartition("/")[2]], known)
    return {key: _inlined(value, known) for key, value in part.items()}
