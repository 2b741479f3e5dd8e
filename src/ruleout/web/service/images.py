"""Images by number: whatever a path or a file claims, only images inside the folder leave it."""

import hashlib
import os
import re
import stat
from collections.abc import Iterator
from contextlib import ExitStack
from io import BufferedReader
from pathlib import Path

from starlette.responses import Response, StreamingResponse

from ruleout.web.entities import Item
from ruleout.web.items import image_type
from ruleout.web.service.gate import Call
from ruleout.web.service.guidelines import Guidelines
from ruleout.web.service.options import CHECKED_IMAGES, Options
from ruleout.web.service.problems import LOG, ProblemError, one_line
from ruleout.web.store import Store

_NUMBER = re.compile("[1-9][0-9]{0,8}")
_PIECE = 1 << 20  # bytes sent at a time


class Images:
    def __init__(
        self, store: Store, folder: Path | None, options: Options, guidelines: Guidelines
    ) -> None:
        self._store, self._guidelines = store, guidelines
        self._root = None if folder is None else folder.resolve()
        self._largest = options.limits.image_bytes
        self._checked: dict[str, str] = {}  # by path: the version whose content was compared

    def item(self, call: Call) -> Response:
        """Return an image to somebody who was asked about it."""
        return self._sent(call, self._root, self._store.item(_number(call), call.person))

    def example(self, call: Call) -> Response:
        """Return a picture of the guidelines."""
        number, pictures = _number(call), self._guidelines.pictures
        if number > len(pictures):
            raise _absent()
        return self._sent(call, self._guidelines.root, pictures[number - 1])

    def _sent(self, call: Call, root: Path | None, item: Item) -> Response:
        with ExitStack() as closing:
            stream = closing.enter_context(_opened(root, item))
            status, head = os.fstat(stream.fileno()), stream.read(32)
            kind, size = image_type(head), status.st_size
            if size > self._largest or kind is None:
                raise _absent()
            version = f"{item.sha256} {size} {status.st_mtime_ns}"
            headers = {
                "ETag": f'"{hashlib.sha256(version.encode()).hexdigest()[:32]}"',
                "Cache-Control": "private, max-age=3600",
                "Vary": "Cookie",  # what one person may see another may not
                "Content-Disposition": "inline",
                "Content-Security-Policy": "default-src 'none'; sandbox",  # images of strangers
            }
            if call.has(headers["ETag"]):
                return Response(None, 304, headers)
            headers["Content-Length"] = str(size)
            self._check(item, headers["ETag"], head, stream)
            if size > _PIECE:
                closing.pop_all()  # the file is closed when all of it is sent
                return StreamingResponse(pieces(stream, head, size), 200, headers, kind)
            content = head + stream.read(size - len(head))
            if len(content) != size:  # it is being written just now
                raise _absent()
            return Response(content, 200, headers, kind)

    def _check(self, item: Item, version: str, head: bytes, stream: BufferedReader) -> None:
        """Raise where the file is not the one that the project was made with.

        The content is read once; after that, size and time of change tell whether it is the same.
        """
        path = item.path or ""
        if not item.sha256 or self._checked.get(path) == version:
            return
        stream.seek(0)
        if hashlib.file_digest(stream, "sha256").hexdigest() != item.sha256:
            LOG.warning("the image %s was changed since the project was made", one_line(path))
            sentence = "the image of this item was changed; ask the lead to bring the old one back"
            raise ProblemError("conflict", sentence)
        stream.seek(len(head))
        if len(self._checked) >= CHECKED_IMAGES:
            self._checked.clear()
        self._checked[path] = version


def _number(call: Call) -> int:
    if not _NUMBER.fullmatch(call.filled["id"]):
        raise ProblemError("invalid", "the address holds no number of an item; check it")
    return int(call.filled["id"])


def _opened(root: Path | None, item: Item) -> BufferedReader:
    """Open the file of an item, where it is a plain one inside the folder.

    What became a link or a pipe since its path was resolved is refused.
    """
    if root is None or item.kind != "image" or not item.path:
        raise _absent()
    try:
        path = (root / item.path).resolve(strict=True)
        if not path.is_relative_to(root):
            raise _absent()
        flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
        number = os.open(path, flags | getattr(os, "O_BINARY", 0))  # Windows has this one alone
        if not stat.S_ISREG(os.fstat(number).st_mode):
            os.close(number)
            raise _absent()
        return os.fdopen(number, "rb")
    except (OSError, ValueError, RuntimeError):  # absent, NUL in it, links in a circle
        raise _absent() from None


def pieces(stream: BufferedReader, head: bytes, size: int) -> Iterator[bytes]:
    """Yield `size` bytes that begin with `head`, and close the file whatever happens."""
    with stream:
        yield head
        left = size - len(head)
        while left > 0 and (piece := stream.read(min(_PIECE, left))):
            left -= len(piece)
            yield piece


def _absent() -> ProblemError:
    return ProblemError("unknown", "there is no image of this item; ask the lead of the project")
