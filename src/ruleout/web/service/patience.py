"""Connections: who is slow to say what they want, or says it at too great length, is cut off.

uvicorn waits for ever until a request has begun, and with httptools it keeps headers of any size.
"""

from __future__ import annotations

import asyncio

try:
    from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol as Protocol
except ImportError:  # slower, and bounds the size of headers itself
    from uvicorn.protocols.http.h11_impl import H11Protocol as Protocol  # type: ignore[assignment]

__all__ = ["LONGEST", "Impatient"]

#: The most bytes of headers, give or take what arrives at once.
LONGEST = 65_536


class Impatient(Protocol):
    """One connection; `patience` is how many seconds the headers of a request may take."""

    patience = 30.0
    _asking = False  # in the midst of headers
    _head = 0  # bytes of them so far
    _limit: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to wait."""
        super().connection_made(transport)
        self._watch()

    def data_received(self, data: bytes) -> None:
        """Read on, within bounds."""
        before = self._asking
        super().data_received(data)
        self._watch()
        self._head = self._head + len(data) if before and self._asking else 0
        if self._head > LONGEST:
            self.transport.abort()

    def on_message_begin(self) -> None:
        """Note that headers begin."""
        super().on_message_begin()
        self._asking = True

    def on_headers_complete(self) -> None:
        """Note that they are over."""
        self._asking = False
        super().on_headers_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        """Wait no more."""
        self._forget()
        super().connection_lost(exc)

    def _watch(self) -> None:
        """Wait as long as no request is under way; further bytes of one give no more time."""
        if self.cycle is not None and not self.cycle.response_complete:
            self._forget()
        elif self._limit is None:
            self._limit = self.loop.call_later(self.patience, self.transport.abort)

    def _forget(self) -> None:
        if self._limit is not None:
            self._limit.cancel()
            self._limit = None
