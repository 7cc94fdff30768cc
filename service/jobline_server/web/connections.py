"""Bounds on connections of the HTTP port: their number, and the time for a request and its reply.

uvicorn has neither: a client that opens connections and sends half a request on each would hold
them for ever. Here each exchange has a time limit, and a new connection over the bound replaces the
one that has waited longest, so probes and scrapers always get through. Between two requests
uvicorn's keep-alive timeout applies.
"""

from __future__ import annotations

import asyncio

from uvicorn.protocols.http.h11_impl import H11Protocol

# Scrapers, probes and a few people; each connection costs a descriptor and about 20 KB.
CONNECTIONS_MAX = 100
# From the first byte of a request, or from the opening of its connection, to the end of its reply.
EXCHANGE_SECONDS = 10.0


class BoundedProtocol(H11Protocol):
    """uvicorn's connection, with these bounds."""

    def __init__(self, *given: object, **named: object) -> None:
        super().__init__(*given, **named)  # type: ignore[arg-type]  # as uvicorn has it
        self._since = 0.0
        self._timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn has it
        """Aborts the oldest connection if there are too many, and starts the time limit."""
        if len(self.connections) >= CONNECTIONS_MAX:
            min(self.connections, key=_since).transport.abort()
        super().connection_made(transport)
        self._wait()

    def data_received(self, data: bytes) -> None:
        """Starts the time limit at the first byte of a request."""
        if self._timer is None:
            self._wait()
        super().data_received(data)

    def on_response_complete(self) -> None:
        """Stops the time limit after the reply."""
        self._stop_waiting()
        super().on_response_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stops the time limit."""
        self._stop_waiting()
        super().connection_lost(exc)

    def _wait(self) -> None:
        self._since = self.loop.time()
        self._timer = self.loop.call_later(EXCHANGE_SECONDS, self.transport.abort)

    def _stop_waiting(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


def _since(connection: object) -> float:
    return getattr(connection, "_since", 0.0)
