"""The API that the page labels with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import Response

from ruleout.web.batcher import Batcher
from ruleout.web.entities import Item, Reply, Turn, TurnRequest
from ruleout.web.service.access import Row
from ruleout.web.service.answers import json_response
from ruleout.web.service.bodies import json_of
from ruleout.web.service.calls import Endpoint, call_of
from ruleout.web.service.describing import described
from ruleout.web.service.models import (
    Answer,
    Answered,
    Next,
    ProgressOf,
    Project,
    Questions,
)
from ruleout.web.service.problems import ProblemError
from ruleout.web.service.service import Service

__all__ = ["Labelling"]

_KEPT = 1000  # items in memory: they never change, and each is sent several times


class Labelling:
    """Asks and takes answers."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._store = service.store
        self._turns = Batcher(self._taken, lanes=service.store.lanes)
        self._items: dict[int, Any] = {}

    def routes(self) -> APIRouter:
        """Return the routes."""
        router = APIRouter()
        for method, path, function, answer, sent in (
            ("GET", "/api/project", self.project, Project, None),
            ("POST", "/api/next", self.next, Questions, Next),
            ("POST", "/api/answer", self.answer, Answered, Answer),
            ("GET", "/api/progress", self.progress, ProgressOf, None),
        ):
            told = described((method, path), answer, sent)
            router.add_api_route(path, function, methods=[method], **told)
        return router

    def direct(self) -> dict[Row, Endpoint]:
        """Return the routes that are called most."""
        return {("POST", "/api/next"): self.next, ("POST", "/api/answer"): self.answer}

    def project(self, request: Request) -> Response:
        """Return what is asked, and of whom."""
        user, settings = call_of(request).person, self._store.settings
        return json_response({
            "id": self._store.identity, "name": self._service.options.name,
            "classes": settings.classes, "mode": settings.mode, "ask_which": settings.ask_which,
            "user": {"id": user.id, "name": user.name, "role": user.role},
        })  # fmt: skip

    async def next(self, request: Request) -> Response:
        """Return open questions, the same ones until they are answered."""
        return await self._turn(request, json_of(Next, request).count)

    async def answer(self, request: Request) -> Response:
        """Record an answer and return its receipt with the questions to hold."""
        told = json_of(Answer, request)
        classes = len(self._store.settings.classes)
        if len(told.excluded) > classes:
            raise ProblemError("invalid", f"there are {classes} classes; rule out each once")
        return await self._turn(request, told.hold, told.reply())

    def progress(self, request: Request) -> Response:
        """Return the counts and the pace of who asks, with the totals of the project."""
        told = asdict(self._store.progress(call_of(request).person))
        return json_response({name: told[name] for name in ProgressOf.model_fields})

    # ------------------------------------------------------------------ turns

    async def _turn(self, request: Request, hold: int, reply: Reply | None = None) -> Response:
        user, now = call_of(request).person, self._service.now()
        wish = TurnRequest(user=user.id, hold=hold, now=now, reply=reply)
        return await self._turns.ask(wish)

    def _taken(self, wishes: Sequence[TurnRequest]) -> list[Response | BaseException]:
        """Do what many want, and look up together what they will see."""
        turns = self._store.turns(wishes)
        items = self._seen([turn for turn in turns if isinstance(turn, Turn)])
        return [_response(turn, items) if isinstance(turn, Turn) else turn for turn in turns]

    def _seen(self, turns: Sequence[Turn]) -> dict[int, Any]:
        """Return the items of the questions as people see them."""
        wanted = {one.item for turn in turns for one in turn.questions}
        kept = self._items
        found = {number: kept[number] for number in wanted if number in kept}
        new = self._store.some_items(wanted - found.keys()) if len(found) < len(wanted) else {}
        shown = {number: _shown_item(number, item) for number, item in new.items()}
        self._items = dict([*kept.items(), *shown.items()][-_KEPT:]) if shown else kept
        return found | shown


def _response(turn: Turn, items: Mapping[int, Any]) -> Response:
    """Leave out what would give the answer away: names, gold, law and seed."""
    questions = [
        {"id": one.id, "item": items[one.item], "mode": one.mode,
         "proposed": one.proposed, "expires": one.expires.isoformat()}
        for one in turn.questions
    ]  # fmt: skip
    if not turn.receipt.id:
        return json_response({"questions": questions})
    return json_response({"receipt": asdict(turn.receipt), "questions": questions})


def _shown_item(number: int, item: Item) -> dict[str, Any]:
    row = item.kind == "row"
    return {
        "id": number,
        "kind": item.kind,
        "image": f"/items/{number}" if item.kind == "image" else None,
        "text": item.text,
        "cells": [[name, _cell(value)] for name, value in item.cells.items()] if row else None,
    }


def _cell(value: Any) -> str:
    """Write a cell as people read it.

    >>> _cell("a"), _cell(2), _cell(True), _cell(None)
    ('a', '2', 'true', '')
    """
    if isinstance(value, bool):
        return "true" if value else "false"
    return "" if value is None else str(value)
