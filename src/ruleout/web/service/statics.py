"""Style, script and icon: read once and served by exact name, so that no path leads elsewhere."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

from fastapi import APIRouter, Request
from starlette.responses import Response

from ruleout.web.service.calls import header
from ruleout.web.service.describing import described
from ruleout.web.service.problems import ProblemError

__all__ = ["FOLDER", "Statics"]

#: Where the files are.
FOLDER = Path(__file__).parent.parent / "static"

_TYPES = {
    ".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml", ".png": "image/png",
    ".ico": "image/x-icon", ".woff2": "font/woff2", ".webmanifest": "application/manifest+json",
}  # fmt: skip


@dataclass(frozen=True)
class _File:
    content: bytes
    kind: str
    tag: str


class Statics:
    """Serves the files of a folder."""

    def __init__(self, folder: Path = FOLDER) -> None:
        found = sorted(folder.iterdir()) if folder.is_dir() else []
        self._files = {path.name: _read(path) for path in found if path.suffix in _TYPES}

    def routes(self) -> APIRouter:
        """Return the routes."""
        router = APIRouter()
        path = "/static/{file}"
        router.add_api_route(path, self.file, **described(("GET", path), "*/*", None, 304))
        return router

    async def file(self, request: Request, file: str) -> Response:
        """Return a file."""
        found = self._files.get(file)
        if found is None:
            raise ProblemError("unknown", "there is no such file; check its name")
        headers = {"ETag": found.tag, "Cache-Control": "no-cache"}
        if found.tag in (header(request.scope, b"if-none-match") or "").split(", "):
            return Response(None, 304, headers)
        return Response(found.content, 200, headers, found.kind)


def _read(path: Path) -> _File:
    content = path.read_bytes()
    digest = hashlib.sha256(content).hexdigest()
    return _File(content, _TYPES[path.suffix], f'"{digest[:32]}"')
