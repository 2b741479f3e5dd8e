"""Pages from templates, their style and script, and what is shown when something fails."""

import hashlib
import logging
from pathlib import Path
from typing import Any

from starlette.responses import HTMLResponse, PlainTextResponse, RedirectResponse, Response

from ruleout.report.svg import fill
from ruleout.web.service.gate import Call, json_response
from ruleout.web.service.problems import LOG, ProblemError, cause, one_line

_STATIC = Path(__file__).parent.parent / "static"
_TYPES = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}


class Pages:
    """Renders the pages of one project; everything that is put into them is escaped."""

    def __init__(self, project: str) -> None:
        self._project = project
        found = [path for path in _STATIC.iterdir() if path.suffix in _TYPES]
        self._files = {path.name: path.read_bytes() for path in found}

    def page(
        self, template: str, call: Call, title: str, status: int = 200, **more: Any
    ) -> Response:
        who = {"user": call.user, "csrf": call.csrf}
        shown = {"title": title, "project": self._project, **who, **more}
        return HTMLResponse(fill(f"{template}.html", "web/pages", **shown), status)

    async def file(self, call: Call) -> Response:
        """Return style, script or icon by exact name, so that no path leads elsewhere."""
        name = call.filled["file"]
        content = self._files.get(name)
        if content is None:
            raise ProblemError("unknown", "there is no such file; check its name")
        tag = f'"{hashlib.sha256(content).hexdigest()[:32]}"'
        headers = {"ETag": tag, "Cache-Control": "no-cache"}
        if call.has(tag):
            return Response(None, 304, headers)
        return Response(content, 200, headers, _TYPES[Path(name).suffix])

    def failed(self, call: Call, error: Exception) -> Response:
        """Return what a client is told about an error: a page for people, JSON for programs."""
        problem = ProblemError.of(error)
        _note(call, problem, error)
        if problem.status == 401 and call.scope["method"] == "GET" and call.wants_page:
            return RedirectResponse("/login", 303)
        told = {"error": problem.sentence, "reason": problem.reason}
        response = (
            self._message(call, problem) if call.wants_page else json_response(told, problem.status)
        )
        response.headers.update(problem.headers)
        return response

    def _message(self, call: Call, problem: ProblemError) -> Response:
        text = problem.sentence[:1].upper() + problem.sentence[1:] + "."
        try:
            return self.page("message", call, "", problem.status, code=problem.status, text=text)
        except Exception as error:
            LOG.error("the page of a failure failed: %s", cause(error))
            return PlainTextResponse(text, problem.status)


def _note(call: Call, problem: ProblemError, error: Exception) -> None:
    """Leave one line in the log, without the secret of an invite link."""
    path = str(call.scope["path"])
    where = one_line("/join/…" if path.startswith("/join/") else path)
    who = "nobody" if call.user is None else one_line(call.user.name)
    what = problem.reason if problem.status < 500 else cause(error)
    level = logging.ERROR if problem.status >= 500 else logging.DEBUG
    method, peer = one_line(call.scope["method"]), one_line(call.peer)
    LOG.log(level, "%d %s %s by %s from %s: %s", problem.status, method, where, who, peer, what)
    if problem.reason == "failure":
        LOG.debug("where it failed", exc_info=error)
