"""The API that the page labels with."""

from __future__ import annotations

from dataclasses import asdict
from functools import lru_cache
from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import Response

from ruleout.web.records import Item, Question
from ruleout.web.service.answers import json_response
from ruleout.web.service.bodies import json_of
from ruleout.web.service.calls import call_of
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
        self._item = lru_cache(_KEPT)(self._looked_up)

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

    def project(self, request: Request) -> Response:
        """Return what is asked, and of whom."""
        user, settings = call_of(request).person, self._store.settings
        return json_response({
            "id": self._store.identity, "name": self._service.options.name,
            "classes": settings.classes, "mode": settings.mode, "ask_which": settings.ask_which,
            "user": {"id": user.id, "name": user.name, "role": user.role},
        })  # fmt: skip

    def next(self, request: Request) -> Response:
        """Return open questions, the same ones until they are answered."""
        wish = json_of(Next, request)
        found = self._store.next(call_of(request).person, wish.count, self._service.now())
        return json_response({"questions": self._shown(found)})

    def answer(self, request: Request) -> Response:
        """Record an answer and return its receipt with the questions to hold."""
        told = json_of(Answer, request)
        classes = len(self._store.settings.classes)
        if len(told.excluded) > classes:
            raise ProblemError("invalid", f"there are {classes} classes; rule out each once")
        user, now = call_of(request).person, self._service.now()
        turn = self._store.turn(user, told.reply(), told.hold, now)
        got = turn.receipt
        receipt = {"id": got.id, "status": got.status, "question": got.question, "item": got.item}
        return json_response({"receipt": receipt, "questions": self._shown(turn.questions)})

    def progress(self, request: Request) -> Response:
        """Return the counts and the pace of who asks, with the totals of the project."""
        return json_response(asdict(self._store.progress(call_of(request).person)))

    def _shown(self, questions: list[Question]) -> list[dict[str, Any]]:
        """Leave out what would give the answer away: names, gold, law and seed."""
        return [
            {"id": one.id, "item": self._item(one.item), "mode": one.mode,
             "proposed": one.proposed, "expires": one.expires.isoformat()}
            for one in questions
        ]  # fmt: skip

    def _looked_up(self, number: int) -> dict[str, Any]:
        return _shown_item(number, self._store.item(number))


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
