"""The pages of leads: the team's numbers, invites, downloads."""

from __future__ import annotations

from typing import Any, cast

from fastapi import APIRouter, Request
from starlette.responses import RedirectResponse, Response, StreamingResponse

from ruleout.web.entities import RefusedError, Role
from ruleout.web.names import storable
from ruleout.web.service.bodies import form_fields
from ruleout.web.service.calls import Call, call_of
from ruleout.web.service.describing import described
from ruleout.web.service.items import pieces
from ruleout.web.service.problems import ProblemError, from_error
from ruleout.web.service.service import Service

__all__ = ["Team"]

_TEXT = {"type": "string"}
_INVITE = {"name": _TEXT, "role": {"enum": ["annotator", "lead"]}, "csrf": _TEXT}
_DISABLE = {"name": _TEXT, "disabled": {"enum": ["0", "1"]}, "csrf": _TEXT}


class Team:
    """Shows leads how things stand."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._store = service.store

    def routes(self) -> APIRouter:
        """Return the routes."""
        router = APIRouter()
        page, csv = "text/html", "text/csv"
        for method, path, function, answer, sent, more in (
            ("GET", "/team", self.page, page, None, ()),
            ("POST", "/team/invite", self.invite, page, _INVITE, ()),
            ("POST", "/team/disable", self.disable, page, _DISABLE, (303,)),
            ("GET", "/team/export/{name}", self.export, csv, None, ()),
        ):
            told = described((method, path), answer, sent, *more)
            router.add_api_route(path, function, methods=[method], **told)
        return router

    def page(self, request: Request) -> Response:
        """Return the team page."""
        return self._page(call_of(request))

    def _page(self, call: Call, status: int = 200, **said: Any) -> Response:
        from ruleout.web.team import team_view  # late: scipy takes a second to load

        view = team_view(self._store, self._service.now())
        more = {"invite": None, "invited": None, "problem": None, **said}
        return self._service.pages.page("team", call, "Team", status, view=view, **more)

    # ------------------------------------------------------------------ people

    def invite(self, request: Request) -> Response:
        """Invite somebody and show the link, this once."""
        call = call_of(request)
        fields = form_fields(call.body)
        name, role = _name(fields), fields.get("role", "")
        if role not in ("annotator", "lead"):
            raise ProblemError("invalid", "there is no such role; choose annotator or lead")
        try:
            token = self._store.invite(name, cast(Role, role), now=self._service.now())
        except RefusedError as error:
            return self._refused(call, error)
        return self._page(call, invite=f"{call.origin}/join/{token}", invited=name)

    def disable(self, request: Request) -> Response:
        """Let somebody in no more, or again."""
        call = call_of(request)
        fields = form_fields(call.body)
        name, disabled = _name(fields), fields.get("disabled", "")
        if disabled not in ("0", "1"):
            raise ProblemError("invalid", "say 1 to close the account or 0 to open it")
        try:
            if disabled == "1" and self._store.user(name).id == call.person.id:
                remedy = "ask another lead"
                raise RefusedError("this would lock you out", remedy, reason="conflict")
            self._store.disable(name, disabled == "1", self._service.now())
        except RefusedError as error:
            return self._refused(call, error)
        return RedirectResponse("/team", 303)

    def _refused(self, call: Call, error: RefusedError) -> Response:
        problem = from_error(error)
        assert problem is not None
        return self._page(call, problem.status, problem=problem.sentence)

    # ------------------------------------------------------------------ downloads

    def export(self, name: str) -> Response:
        """Return a download."""
        from ruleout.web.service.downloads import download  # late: pyarrow takes long to load

        stream, size = download(self._store, name)
        headers = {
            "Content-Disposition": f'attachment; filename="{name}"',
            "Content-Length": str(size),
        }
        return StreamingResponse(pieces(stream, b"", size), 200, headers, "text/csv")


def _name(fields: dict[str, str]) -> str:
    name = fields.get("name", "")
    if not storable(name):
        raise ProblemError("invalid", "the name cannot be kept; write it with letters alone")
    return name
