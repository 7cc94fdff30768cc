"""Runs uvicorn in the server's loop, without signals, process or loop of its own.

uvicorn's `serve` would handle SIGTERM itself and wake ten times a second to check a flag, and its
`shutdown` looks every tenth of a second whether a connection is left; its `startup` is enough.
"""

from __future__ import annotations

import asyncio
import errno
import socket
import ssl
from functools import partial

import uvicorn

from jobline_server.addresses import bind
from jobline_server.auth.tls_files import HANDSHAKE_SECONDS
from jobline_server.web.calls import App
from jobline_server.web.connections import BoundedProtocol, Connections
from jobline_server.web.errors import CannotListen

# At a stop: how long callers have to send the rest of a request and to read their replies.
REPLIES_SECONDS = 1.0


class WebServer:
    """Serves the HTTP port from `start` to `stop`; by TLS with a `context`."""

    def __init__(
        self, app: App, *, connections_max: int, context: ssl.SSLContext | None = None
    ) -> None:
        self._context = context
        self._connections = Connections(connections_max)
        self._config = uvicorn.Config(
            app,
            http=partial(BoundedProtocol, among=self._connections),  # type: ignore[arg-type]  # makes one
            # A WebSocket would leave the bounds on connections. X-Forwarded-For is what a caller
            # says, and would be a way around client rates.
            ws="none",
            proxy_headers=False,
            log_config=None,
            # No line for each request that is none.
            log_level="error",
            access_log=False,
            lifespan="off",
            date_header=False,
            server_header=False,
            timeout_keep_alive=30,
        )
        self._server = uvicorn.Server(self._config)
        self._socket: socket.socket | None = None

    async def start(self, listen: str) -> str:
        """Opens `HOST:PORT` (port 0 picks a free one); returns the address."""
        listener = self._socket = bound(listen)
        self._config.load()
        self._server.lifespan = self._config.lifespan_class(self._config)
        await self._listen(listener)
        host = listen.rpartition(":")[0]
        return f"{host}:{listener.getsockname()[1]}"

    async def _listen(self, listener: socket.socket) -> None:
        if self._context is None:
            await self._server.startup(sockets=[listener])
            return
        # As uvicorn does, but with a time limit for handshakes that is not a minute.
        loop = asyncio.get_running_loop()
        server = await loop.create_server(
            partial(
                self._config.http_protocol_class,  # type: ignore[call-arg]  # ours
                config=self._config,
                server_state=self._server.server_state,
                app_state={},
            ),
            sock=listener,
            ssl=self._context,
            backlog=self._config.backlog,
            ssl_handshake_timeout=HANDSHAKE_SECONDS,
            ssl_shutdown_timeout=REPLIES_SECONDS,
        )
        self._server.servers = [server]
        self._server.started = True

    async def stop(self) -> None:
        """Closes the port and its connections; stopping twice does nothing. Open calls have
        a moment to end."""
        listener, self._socket = self._socket, None
        if listener is None:
            return
        for server in self._server.servers:
            server.close()
        state = self._server.server_state
        for connection in list(state.connections):
            connection.shutdown()
        if state.tasks:
            await asyncio.wait(set(state.tasks), timeout=REPLIES_SECONDS)
        for connection in list(state.connections):
            if (
                not connection.transport.is_closing()
                or connection.transport.get_write_buffer_size()
            ):
                connection.transport.abort()
        await self._connections.wait_empty()
        if state.tasks:
            await asyncio.wait(set(state.tasks))


def bound(listen: str) -> socket.socket:
    """Returns a socket bound to `HOST:PORT`. Raises `CannotListen`."""
    try:
        return bind(listen)
    except OSError as error:
        why = (error.strerror or str(error)).lower()
        advice = "; is another server on it?" if error.errno == errno.EADDRINUSE else ""
        raise CannotListen(f"{listen}: cannot listen there ({why}){advice}") from None
    except ValueError as error:
        raise CannotListen(f"{listen}: {error}") from None
