"""A door: takes the connections of one port by TLS, and passes their bytes on to a socket.

It is done in the server's loop: all calls of a busy connection that come in one piece are decrypted
at once, in C. Each direction waits while its other end does not take what came.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from pathlib import Path

from jobline_server.addresses import bind
from jobline_server.auth.tls_files import H2, HANDSHAKE_SECONDS, TlsFiles, certificate_of
from jobline_server.rpc.tls.callers import DoorCaller, DoorCallers
from jobline_server.rpc.tls.handshakes import Handshakes, peer_name
from jobline_server.rpc.tls.marks import Marker
from jobline_server.telemetry.log import logger

LOG = logger("tls")

# How long a caller has to read what is left, and to close its end.
CLOSING_SECONDS = 1.0
# A piece of this size is the first of many, as a rule: 32 may be read in one iteration of the loop.
LARGE_BYTES = 1 << 16


class TlsDoor:
    """Listens at `HOST:PORT`; `behind` is the socket that it passes on to. Raises OSError where
    it cannot.
    """

    def __init__(self, listen: str, tls: TlsFiles, callers: DoorCallers, behind: Path) -> None:
        self._listener = bind(listen)
        self._context = tls.context(H2)
        self._callers = callers
        self._behind = behind
        self._handshakes: Handshakes | None = None
        self._connections: set[_Outside] = set()
        self.number: int = self._listener.getsockname()[1]
        """The number of the port."""

    def discard(self) -> None:
        """Gives the port back, if it was not opened."""
        self._listener.close()

    async def open(self) -> None:
        """Starts taking connections."""
        self._handshakes = Handshakes(self._listener, self._shake_hands)
        self._handshakes.start()

    async def _shake_hands(self, accepted: socket.socket) -> None:
        await asyncio.get_running_loop().connect_accepted_socket(
            lambda: _Outside(self._behind, self._callers, self._connections),
            accepted,
            ssl=self._context,
            ssl_handshake_timeout=HANDSHAKE_SECONDS,
            ssl_shutdown_timeout=CLOSING_SECONDS,
        )

    async def close(self) -> None:
        """Takes no more connections, and closes those that are open when their callers have read
        what was passed on, or the time is up. What is behind them is closed before.
        """
        if self._handshakes is not None:
            await self._handshakes.stop()
        closed = [connection.closed for connection in self._connections]
        if closed:
            await asyncio.wait(closed, timeout=CLOSING_SECONDS)
        for connection in list(self._connections):
            connection.transport.abort()


class _End(asyncio.Protocol):
    """One of the two ends of a connection."""

    transport: asyncio.Transport
    other: _End | None = None
    is_full = False
    """Whether it does not take what comes at the other end."""

    def data_received(self, data: bytes) -> None:
        """Passes on what came."""
        if self.other is not None and not self.other.transport.is_closing():
            self.other.transport.write(data)

    def pause_writing(self) -> None:
        """Has the other end wait: this one does not take what came there."""
        self.is_full = True
        if self.other is not None and not self.other.transport.is_closing():
            self.other.transport.pause_reading()

    def resume_writing(self) -> None:
        """Has the other end go on."""
        self.is_full = False
        if self.other is not None:
            self.other.go_on()

    def go_on(self) -> None:
        """Reads on, unless the other end does not take what came."""
        is_free = self.other is not None and not self.other.is_full
        if is_free and not self.transport.is_closing():
            self.transport.resume_reading()

    def connection_lost(self, _why: Exception | None) -> None:
        """Closes the other end, once it has written what came."""
        if self.other is not None:
            self.other.transport.close()


class _Inside(_End):
    """The end at the socket."""

    def __init__(self, outside: _Outside) -> None:
        self.other = outside

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begins the passing on."""
        self.transport = transport  # type: ignore[assignment]  # a socket's


class _Outside(_End):
    """The end of the caller."""

    def __init__(self, behind: Path, callers: DoorCallers, among: set[_Outside]) -> None:
        self._behind = behind
        self._callers = callers
        self._among = among
        self._marker: Marker | None = None
        self._mark = ""
        self._reaching: asyncio.Task[None] | None = None
        self.closed = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Reaches the socket, after a handshake for HTTP/2."""
        self.transport = transport  # type: ignore[assignment]  # of TLS
        self._among.add(self)
        checked: ssl.SSLObject = transport.get_extra_info("ssl_object")
        if checked.selected_alpn_protocol() != H2:
            self.transport.abort()
            return
        self.transport.pause_reading()
        caller = DoorCaller(_peer_of(transport), certificate_of(checked))
        self._mark, self._marker = self._callers.add(caller)
        self._reaching = asyncio.get_running_loop().create_task(self._reach())

    async def _reach(self) -> None:
        loop = asyncio.get_running_loop()
        try:
            _, inside = await loop.create_unix_connection(lambda: _Inside(self), str(self._behind))
        except OSError as error:  # no more descriptors, or the server stops
            LOG.warning("a connection was refused", why=error.strerror or str(error))
            self.transport.abort()
            return
        self.other = inside
        if self.transport.is_closing():
            inside.transport.abort()
        self.go_on()

    def data_received(self, data: bytes) -> None:
        """Passes on what came, with the calls marked. After much of it others have their turn."""
        if self._marker is None:
            return
        super().data_received(self._marker.feed(data))
        if len(data) >= LARGE_BYTES and not self.transport.is_closing():
            self.transport.pause_reading()
            asyncio.get_running_loop().call_soon(self.go_on)

    def connection_lost(self, why: Exception | None) -> None:
        """Ends what this connection had."""
        super().connection_lost(why)
        self._among.discard(self)
        if self._mark:
            self._callers.remove(self._mark)
        if not self.closed.done():
            self.closed.set_result(None)


def _peer_of(transport: asyncio.BaseTransport) -> str:
    return peer_name(transport.get_extra_info("peername") or ("unknown", 0))
