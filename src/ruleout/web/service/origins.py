"""Where a request comes from: the address it names, and the page that sent it."""

from __future__ import annotations

import re
from urllib.parse import urlsplit

from starlette.types import Scope

from ruleout.web.service.calls import header
from ruleout.web.service.options import Options
from ruleout.web.service.problems import ProblemError

__all__ = ["check_host", "check_sender", "origin_of"]

_HOST = re.compile(r"([A-Za-z0-9._-]{1,253}|\[[0-9A-Fa-f:.]{2,45}\])(:[0-9]{1,5})?")


def check_host(scope: Scope, options: Options) -> str:
    """Return the host that the request names, or raise: it must be one of ours."""
    host = header(scope, b"host") or ""
    named = _HOST.fullmatch(host)
    if named is None:
        raise ProblemError("host", "the request names no host; send one Host header")
    if options.hosts is None or named[1].lower() in _allowed(options):
        return host.lower()
    raise ProblemError("host", "this service does not go by that name; use its own address")


def _allowed(options: Options) -> set[str]:
    own = urlsplit(options.origin or "").netloc.rpartition("@")[2]
    match = _HOST.fullmatch(own)
    return {host.lower() for host in options.hosts or ()} | ({match[1].lower()} if match else set())


def origin_of(scope: Scope, host: str, options: Options) -> str:
    """Return the address of the service as the client sees it."""
    return (options.origin or f"{scope['scheme']}://{host}").rstrip("/").lower()


def check_sender(scope: Scope, host: str, options: Options) -> None:
    """Raise where another site's page sent the request, as far as the browser says."""
    site, origin = header(scope, b"sec-fetch-site"), header(scope, b"origin")
    ours = {f"{scope['scheme']}://{host}", origin_of(scope, host, options)}
    if site not in (None, "same-origin", "none") or (origin is not None and origin not in ours):
        raise ProblemError(
            "csrf", "another site's page sent this request; reload the page and try again"
        )
