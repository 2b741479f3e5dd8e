"""What a client gets when something fails, and the one line that the log gets."""

from __future__ import annotations

import logging
import traceback

from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import Scope

from ruleout.web.service.answers import json_response
from ruleout.web.service.calls import of_scope, peer, wants_page
from ruleout.web.service.pages import Pages
from ruleout.web.service.problems import ProblemError, from_error

__all__ = ["LOG", "Failures", "one_line"]

LOG = logging.getLogger("ruleout.web")

_HEADINGS = {
    401: "Please log in",
    403: "Not allowed",
    404: "Not found",
    429: "Too many requests",
    500: "Something went wrong",
    503: "Not available just now",
}
_FAILED = "the service failed, and its log says how; try again, or tell the lead of the project"


def one_line(text: object) -> str:
    r"""Return what a stranger wrote so that it cannot forge a line of the log.

    >>> one_line("Ann\nERROR all is lost")
    "'Ann\\nERROR all is lost'"
    """
    said = str(text)
    return ascii(said if len(said) <= 200 else f"{said[:200]}…")


class Failures:
    """Turns errors into responses."""

    def __init__(self, pages: Pages) -> None:
        self._pages = pages

    def response(self, scope: Scope, error: Exception) -> Response:
        """Return what the client is told: a page for people, JSON for programs."""
        problem = self._problem(error)
        self._note(scope, problem, error)
        if problem.status == 401 and scope["method"] in ("GET", "HEAD") and wants_page(scope):
            return RedirectResponse("/login", 303)
        response = self._page(scope, problem) if wants_page(scope) else _json(problem)
        response.headers.update(problem.headers)
        return response

    def _problem(self, error: Exception) -> ProblemError:
        if isinstance(error, RequestValidationError):
            return ProblemError("invalid", "the address holds no number of an item; check it")
        if isinstance(error, HTTPException):  # the router knows less than the access table
            return ProblemError("unknown", "there is nothing at this address; check it")
        return from_error(error) or ProblemError("failure", _FAILED)

    def _page(self, scope: Scope, problem: ProblemError) -> Response:
        heading = _HEADINGS.get(problem.status, "That did not work")
        text = problem.sentence[:1].upper() + problem.sentence[1:] + "."
        try:
            return self._pages.message(of_scope(scope), heading, text, problem.status)
        except Exception as error:
            LOG.error("the page of a failure failed: %s", _cause(error))
            return PlainTextResponse(text, problem.status)

    def _note(self, scope: Scope, problem: ProblemError, error: Exception) -> None:
        call = of_scope(scope)
        who = "nobody" if call is None or call.user is None else one_line(call.user.name)
        where = f"{one_line(scope['method'])} {one_line(_path(scope))}"
        what = problem.reason if problem.status < 500 else _cause(error)
        level = logging.ERROR if problem.status >= 500 else logging.INFO
        sender = f"{who} from {one_line(peer(scope))}"
        LOG.log(level, "%d %s by %s: %s", problem.status, where, sender, what)
        if problem.reason == "failure":
            LOG.debug("where it failed", exc_info=error)


def _path(scope: Scope) -> str:
    """Return the path without the secret of an invite link."""
    path = str(scope["path"])
    return "/join/…" if path.startswith("/join/") else path


def _json(problem: ProblemError) -> Response:
    return json_response({"error": problem.sentence, "reason": problem.reason}, problem.status)


def _cause(error: Exception) -> str:
    """Say what failed, and where, in a line."""
    frames = traceback.extract_tb(error.__traceback__)
    place = f" at {frames[-1].filename}:{frames[-1].lineno}" if frames else ""
    return f"{type(error).__name__} {one_line(error)}{place}"
