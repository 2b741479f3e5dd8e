"""Images by number: whatever a path or a file claims, only images inside the folder leave it."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, BinaryIO

from fastapi import APIRouter, Request
from fastapi import Path as InPath
from starlette.responses import Response, StreamingResponse

from ruleout.web.entities import Item
from ruleout.web.items import image_type
from ruleout.web.service.calls import call_of, header
from ruleout.web.service.describing import described
from ruleout.web.service.headers import ITEM_POLICY
from ruleout.web.service.problems import ProblemError
from ruleout.web.service.service import Service

__all__ = ["Items", "pieces"]

_PIECE = 1 << 20  # bytes sent at a time

_Number = Annotated[str, InPath(alias="id", pattern="^[1-9][0-9]{0,8}$")]


class Items:
    """Serves the images of a project."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._root = None if service.images is None else service.images.resolve()

    def routes(self) -> APIRouter:
        """Return the routes."""
        router = APIRouter()
        path = "/items/{id}"
        router.add_api_route(path, self.item, **described(("GET", path), "image/*", None, 304))
        return router

    def item(self, request: Request, number: _Number) -> Response:
        """Return an image to somebody who was asked about it."""
        item = self._service.store.item_for(call_of(request).person, int(number))
        stream = self._opened(item)
        try:
            return self._image(request, item, stream)
        except BaseException:
            stream.close()
            raise

    def _image(self, request: Request, item: Item, stream: BinaryIO) -> Response:
        status = os.fstat(stream.fileno())
        head = stream.read(32)
        kind = image_type(head)
        if not status.st_size <= self._service.options.limits.image_bytes or kind is None:
            raise _absent()
        headers = _headers(item, status)
        if headers["ETag"] in (header(request.scope, b"if-none-match") or "").split(", "):
            stream.close()
            return Response(None, 304, headers)
        headers["Content-Length"] = str(status.st_size)
        if status.st_size > _PIECE:
            whole = pieces(stream, head, status.st_size)
            return StreamingResponse(whole, 200, headers, kind)
        with stream:
            content = head + stream.read(status.st_size - len(head))
        if len(content) != status.st_size:  # it is being written just now
            raise _absent()
        return Response(content, 200, headers, kind)

    def _opened(self, item: Item) -> BinaryIO:
        """Open the file of an item, where it is a plain one inside the folder."""
        if self._root is None or item.kind != "image" or not item.path:
            raise _absent()
        try:
            path = (self._root / item.path).resolve(strict=True)
            if not path.is_relative_to(self._root):
                raise _absent()
            return _plain_file(path)
        except (OSError, ValueError, RuntimeError):  # absent, NUL in it, links in a circle
            raise _absent() from None


def _plain_file(path: Path) -> BinaryIO:
    """Open a resolved path; what became a link or a pipe since then is refused."""
    flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
    number = os.open(path, flags | getattr(os, "O_BINARY", 0))
    if not stat.S_ISREG(os.fstat(number).st_mode):
        os.close(number)
        raise _absent()
    return os.fdopen(number, "rb")


def pieces(stream: BinaryIO, head: bytes, size: int) -> Iterator[bytes]:
    """Yield `size` bytes that begin with `head`, and close the file whatever happens."""
    with stream:
        yield head
        left = size - len(head)
        while left > 0 and (piece := stream.read(min(_PIECE, left))):
            left -= len(piece)
            yield piece


def _headers(item: Item, status: os.stat_result) -> dict[str, str]:
    version = f"{item.sha256} {status.st_size} {status.st_mtime_ns}"
    return {
        "ETag": f'"{hashlib.sha256(version.encode()).hexdigest()[:32]}"',
        "Cache-Control": "private, max-age=3600",
        "Vary": "Cookie",  # what one person may see another may not
        "Content-Disposition": "inline",
        "Content-Security-Policy": ITEM_POLICY,
    }


def _absent() -> ProblemError:
    return ProblemError("unknown", "there is no image of this item; ask the lead of the project")
