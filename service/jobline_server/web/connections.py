"""Bounds on connections of the HTTP port: their number, and the time for a request and its reply.

uvicorn has neither: a client that opens connections and sends half a request on each, or does not
read its replies, would hold them for ever. Here an exchange has a time limit that bytes put off as
they move, so that slow clients get through and stalled ones do not. The time a call takes by
itself does not count. A new connection over the bound replaces another: one that waits for a
request, else one that is slow with it, else the one whose call is longest under way. So probes and
scrapers always get through. Between two requests uvicorn's keep-alive timeout applies.

A stream of events has no end, and may be silent. It counts as a call; what its reader has not taken
at one check must be taken at the next.
"""

from __future__ import annotations

import asyncio
from itertools import islice
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle

from jobline_server.auth.tls_files import certificate_of
from jobline_server.web.event_stream import is_stream
from jobline_server.web.exchange import CERTIFICATE
from jobline_server.web.parsing import CountingConnection

# For the request, and for the reply; then bytes that moved buy as much again, at most.
EXCHANGE_SECONDS = 10.0
# Bytes move at least at this rate.
BYTES_PER_SECOND_MIN = 16 << 10


# Of connections over the bound, an idle one is looked for among this many of the oldest.
OLDEST = 50


class Connections:
    """The connections of a port, up to `limit`; those whose request or reply began last are at the
    end.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._by_age: dict[BoundedProtocol, None] = {}
        self._empty: asyncio.Future[None] | None = None

    def renew(self, connection: BoundedProtocol) -> None:
        """Puts a connection at the end."""
        self._by_age.pop(connection, None)
        self._by_age[connection] = None

    def discard(self, connection: BoundedProtocol) -> None:
        """Forgets a connection."""
        self._by_age.pop(connection, None)
        if not self._by_age and self._empty is not None and not self._empty.done():
            self._empty.set_result(None)

    async def wait_empty(self) -> None:
        """Waits until there is none. One waits at a time."""
        while self._by_age:
            self._empty = asyncio.get_running_loop().create_future()
            await self._empty

    def make_room(self) -> None:
        """Aborts a connection if there are as many as there may be."""
        if len(self._by_age) < self._limit:
            return
        found = next((one for one in islice(self._by_age, OLDEST) if one.is_idle()), None)
        if found is None:
            found = next((one for one in self._by_age if not one.is_serving()), None)
        found = found or next(iter(self._by_age))
        found.transport.abort()
        self.discard(found)


class BoundedProtocol(H11Protocol):
    """uvicorn's connection, with these bounds."""

    def __init__(self, *, among: Connections, **named: Any) -> None:
        super().__init__(**named)
        self.conn = self._parser = CountingConnection(on_reply=self._begin)
        self._among = among
        # What had moved at the last check.
        self._moved = 0
        self._received = 0
        # Of a stream: the bytes that its reader had not taken at the last check.
        self._untaken = 0
        self._timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn has it
        """Aborts another connection if there are too many, and starts the time limit."""
        self._among.make_room()
        super().connection_made(transport)
        checked = transport.get_extra_info("ssl_object")
        if checked is not None:
            self.app_state = {CERTIFICATE: certificate_of(checked)}
        self._begin()

    def data_received(self, data: bytes) -> None:
        """Counts the bytes; starts the time limit at the first one of a request."""
        if self._timer is None or self.is_idle():
            self._begin()
        self._received += len(data)
        super().data_received(data)

    def send_400_response(self, msg: str) -> None:
        """Replies to what is no request; where a reply has begun, only ends the connection."""
        if self.conn.our_state in {h11.IDLE, h11.SEND_RESPONSE} and not self.is_calling():
            try:
                super().send_400_response(msg)
            except h11.LocalProtocolError:  # the reply to a HEAD has no body
                self.transport.abort()
            self._begin()
            cycle = self._cycle()
            if cycle is not None and not cycle.response_complete:
                # The head of the request was good: what answers it has no reply to write any more.
                cycle.disconnected = True
                cycle.message_event.set()
        else:
            self.transport.abort()

    def on_response_complete(self) -> None:
        """Starts the time to read what is left of the reply; uvicorn may start the next request."""
        self._begin()
        super().on_response_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stops the time limit."""
        self._among.discard(self)
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        super().connection_lost(exc)
        self._parser.end()

    def is_calling(self) -> bool:
        """Returns whether its request is read and its reply has not begun."""
        cycle = self._cycle()
        return cycle is not None and not cycle.more_body and not cycle.response_started

    def is_streaming(self) -> bool:
        """Returns whether its request is read and its reply is a stream that has begun."""
        cycle = self._cycle()
        return (
            cycle is not None
            and not cycle.more_body
            and cycle.response_started
            and not cycle.response_complete
            and is_stream(cycle.scope)
        )

    def is_serving(self) -> bool:
        """Returns whether the server is at work for it, and not its caller."""
        return self.is_calling() or self.is_streaming()

    def is_idle(self) -> bool:
        """Returns whether it waits for a request, and all replies are read."""
        cycle = self._cycle()
        return (
            cycle is not None
            and cycle.response_complete
            and self.conn.their_state in {h11.IDLE, h11.DONE}
            and not self.conn.trailing_data[0]
            and not self.transport.get_write_buffer_size()
        )

    def _begin(self) -> None:
        """Starts the time limit of a request or a reply."""
        self._among.renew(self)
        self._moved = self._progress()
        self._untaken = 0
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self.loop.call_later(EXCHANGE_SECONDS, self._check)

    def _progress(self) -> int:
        """Returns the bytes that were received, and those that the caller has taken."""
        unread: int = self.transport.get_write_buffer_size()
        return self._received + self._parser.replied_bytes - unread

    def _check(self) -> None:
        """Aborts the connection if the time is over."""
        self._timer = None
        # A call may take its time, unless it is the caller who does not read the reply before.
        if self.is_calling() and not self.transport.get_write_buffer_size():
            self._timer = self.loop.call_later(EXCHANGE_SECONDS, self._check)
        elif self.is_streaming():
            self._check_stream()
        elif not self.is_idle():
            self._check_exchange()

    def _check_exchange(self) -> None:
        """Aborts a request or a reply of which nothing moved since the last check. What moved buys
        time until the next one, and no more: else who sent much could then stand still for as long.
        """
        moved = self._progress()
        seconds = min((moved - self._moved) / BYTES_PER_SECOND_MIN, EXCHANGE_SECONDS)
        # The rest of a body that was refused is read and dropped for a while, because callers read
        # no reply before they have sent it; but it earns no time.
        if seconds <= 0 or self._is_dropping():
            self.transport.abort()
            return
        self._moved = moved
        self._timer = self.loop.call_later(seconds, self._check)

    def _check_stream(self) -> None:
        """Aborts a stream whose reader has not taken what it had not taken at the last check."""
        moved = self._progress()
        if moved - self._moved < self._untaken:
            self.transport.abort()
            return
        self._moved, self._untaken = moved, self.transport.get_write_buffer_size()
        self._timer = self.loop.call_later(EXCHANGE_SECONDS, self._check)

    def _is_dropping(self) -> bool:
        cycle = self._cycle()
        return cycle is not None and cycle.response_complete and cycle.more_body

    def _cycle(self) -> RequestResponseCycle | None:
        """Returns the request that is under way or was the last; uvicorn's types know no None."""
        return self.cycle
