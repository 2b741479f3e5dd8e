"""The application: routes behind the gate."""

from __future__ import annotations

from pathlib import Path

from fastapi import APIRouter, FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import Response

from ruleout.version import __version__
from ruleout.web.service.answers import json_response
from ruleout.web.service.calls import call_of
from ruleout.web.service.describing import described
from ruleout.web.service.doors import Doors
from ruleout.web.service.gate import Gate
from ruleout.web.service.items import Items
from ruleout.web.service.labelling import Labelling
from ruleout.web.service.models import Health
from ruleout.web.service.options import Options
from ruleout.web.service.service import Service
from ruleout.web.service.statics import Statics
from ruleout.web.service.team import Team
from ruleout.web.store import Store

__all__ = ["make_app"]


def make_app(
    store: Store, *, images: Path | None = None, options: Options | None = None
) -> FastAPI:
    """Return the labelling service of a project as an ASGI application.

    Parameters
    ----------
    store
        The project; who calls closes it.
    images
        The folder that the paths of images start from; None: there are no images.
    """
    service = Service(store, images, options or Options())
    app = FastAPI(
        title="ruleout label", version=__version__, docs_url=None, redoc_url=None,
        openapi_url=None, redirect_slashes=False,
    )  # fmt: skip
    labelling = Labelling(service)
    parts = (labelling, Items(service), Doors(service), Team(service), Statics())
    for part in parts:
        app.include_router(part.routes())
    app.include_router(_home(service))
    app.add_middleware(Gate, service=service, direct=labelling.direct())

    async def failed(request: Request, error: Exception) -> Response:
        return service.failures.response(request.scope, error)

    app.add_exception_handler(HTTPException, failed)
    app.add_exception_handler(RequestValidationError, failed)
    return app


def _home(service: Service) -> APIRouter:
    router = APIRouter()

    @router.get("/health", **described(("GET", "/health"), Health))
    async def health() -> Response:
        """Say that the service runs."""
        return json_response({"ok": True})

    @router.get("/", **described(("GET", "/"), "text/html"))
    def label(request: Request) -> Response:
        """Return the page that people label on."""
        return service.pages.page("label", call_of(request), service.options.name)

    return router
