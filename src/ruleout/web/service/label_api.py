"""The API that the page labels with: what it takes, checked strictly, and what it answers."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import datetime
from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from starlette.responses import Response

from ruleout.web.batcher import Batcher
from ruleout.web.entities import MOST_HELD, Item, Kind, Reply, Turn, TurnRequest
from ruleout.web.service.gate import Call, json_response
from ruleout.web.service.guidelines import Guidelines
from ruleout.web.service.options import Options
from ruleout.web.service.pages import Pages
from ruleout.web.service.problems import ProblemError
from ruleout.web.store import Store

_Number = Annotated[int, Field(ge=0, lt=2**31)]
_Key = Annotated[str, Field(min_length=1, max_length=100, pattern=r"^[!-~]+$")]


class _Sent(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)


M = TypeVar("M", bound=_Sent)


class Next(_Sent):
    count: Annotated[int, Field(ge=1, le=MOST_HELD)] = 1


class Answer(_Sent):
    """A reply as the page sends it; the clock of the page may be wrong, so it is not refused."""

    id: _Key
    kind: Kind
    question: _Number | None = None
    excluded: list[_Number] = Field(default=[], max_length=1_000_000)
    which: _Number | None = None
    undoes: _Key | None = None
    took_ms: Annotated[int, Field(gt=-(2**53), lt=2**53)] | None = None
    sent: Annotated[str, Field(max_length=40)] | None = None
    hold: Annotated[int, Field(ge=0, le=MOST_HELD)] = 0

    def reply(self) -> Reply:
        said = {name: value for name, value in self if name != "hold"}
        return Reply(**said | {"excluded": tuple(self.excluded), "sent": _moment(self.sent)})


def _moment(text: str | None) -> datetime | None:
    try:
        return None if text is None else datetime.fromisoformat(text)
    except ValueError:
        return None


def _parsed(model: type[M], call: Call) -> M:
    """Return the JSON that was sent, or raise what is wrong first, without repeating it."""
    try:
        return model.model_validate_json(call.body)
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
        place = ".".join(str(part) for part in first["loc"])[:100]
        what = first["msg"].partition("\n")[0][:200]
        sentence = f"{ascii(place) if place else 'the request'}: {what}; reload the page"
        raise ProblemError("invalid", sentence) from None


class LabelApi:
    def __init__(
        self, store: Store, options: Options, pages: Pages, guidelines: Guidelines
    ) -> None:
        self._store, self._options = store, options
        self._pages, self._guidelines = pages, guidelines
        self._turns = Batcher(self._taken, lanes=store.lanes)

    def page(self, call: Call) -> Response:
        """Return the page to label on, with what the project tells annotators."""
        told, classes = self._guidelines, self._store.settings.classes
        guide: dict[str, Any] = {"guidelines": told.text(), "examples": told.examples(classes)}
        return self._pages.page("label", call, self._options.name, **guide)

    def project(self, call: Call) -> Response:
        with self._store.reading():  # a page asks again when there are more classes
            user, settings = call.person, self._store.settings
        return json_response({
            "id": self._store.identity, "name": self._options.name,
            "classes": settings.classes, "mode": settings.mode, "ask_which": settings.ask_which,
            "user": {"id": user.id, "name": user.name, "role": user.role},
        })  # fmt: skip

    async def next(self, call: Call) -> Response:
        """Return open questions, the same ones until they are answered."""
        return await self._turn(call, _parsed(Next, call).count)

    async def answer(self, call: Call) -> Response:
        told = _parsed(Answer, call)
        classes = len(self._store.settings.classes)
        if len(told.excluded) > classes:
            raise ProblemError("invalid", f"there are {classes} classes; rule out each once")
        return await self._turn(call, told.hold, told.reply())

    def progress(self, call: Call) -> Response:
        """Return all but how many items are done, which would tell gold questions apart."""
        told = asdict(self._store.progress(call.person))
        return json_response({name: told[name] for name in told if name not in ("items", "done")})

    async def _turn(self, call: Call, hold: int, reply: Reply | None = None) -> Response:
        now = self._options.clock()
        asked = TurnRequest(user=call.person.id, hold=hold, now=now, reply=reply)
        return await self._turns.ask(asked)

    def _taken(self, asked: Sequence[TurnRequest]) -> list[Response | BaseException]:
        """Do what many want, and look up together what they will see."""
        turns = self._store.turns(asked)
        wanted = {one.item for turn in turns if isinstance(turn, Turn) for one in turn.questions}
        items = {n: _shown_item(n, item) for n, item in self._store.some_items(wanted).items()}
        k = len(self._store.settings.classes)
        return [_response(turn, items, k) if isinstance(turn, Turn) else turn for turn in turns]


def _response(turn: Turn, items: Mapping[int, Any], k: int) -> Response:
    """Leave out what would give the answer away: names, gold, law and seed."""
    questions = [
        {"id": one.id, "item": items[one.item], "mode": one.mode,
         "proposed": one.proposed, "expires": one.expires.isoformat()}
        for one in turn.questions
    ]  # fmt: skip
    receipt = {"receipt": asdict(turn.receipt)} if turn.receipt.id else {}
    return json_response({**receipt, "questions": questions, "classes": k})


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
    if isinstance(value, bool):
        return "true" if value else "false"
    return "" if value is None else str(value)
