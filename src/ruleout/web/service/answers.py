"""JSON that goes out."""

from __future__ import annotations

import json
from typing import Any

from starlette.responses import Response

__all__ = ["json_response"]


def json_response(
    content: Any, status: int = 200, headers: dict[str, str] | None = None
) -> Response:
    r"""Return JSON in ASCII, so that no text of a stranger can fail to be written.

    >>> json_response({"a": "é"}).body
    b'{"a":"\\u00e9"}'
    """
    text = json.dumps(content, separators=(",", ":"), allow_nan=False)
    return Response(text.encode(), status, headers, "application/json")
