"""Runs uvicorn in the server's loop, without signals, process or loop of its own.

uvicorn's `serve` would handle SIGTERM itself and wake ten times a second to check a flag; its
`startup` and `shutdown` are enough.
"""

from __future__ import annotations

import errno
import socket

import uvicorn
from starlette.applications import Starlette

from jobline_server.addresses import split_address
from jobline_server.web.connections import BoundedProtocol


class CannotListen(Exception):
    """The HTTP port is not free."""


class WebServer:
    """Serves the HTTP port from `start` to `stop`."""

    def __init__(self, app: Starlette) -> None:
        self._config = uvicorn.Config(
            app,
            http=BoundedProtocol,
            log_config=None,
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
        listener = self._socket = bind(listen)
        self._config.load()
        self._server.lifespan = self._config.lifespan_class(self._config)
        await self._server.startup(sockets=[listener])
        host = listen.rpartition(":")[0]
        return f"{host}:{listener.getsockname()[1]}"

    async def stop(self) -> None:
        """Closes the port and its connections; stopping twice does nothing."""
        listener, self._socket = self._socket, None
        if listener is not None:
            await self._server.shutdown(sockets=[listener])


def bind(listen: str) -> socket.socket:
    """Returns a socket bound to `HOST:PORT`."""
    try:
        host, port = split_address(listen)
    except ValueError as error:
        raise CannotListen(f"{listen}: {error}") from None
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host.strip("[]"), port))
    except OSError as error:
        listener.close()
        why = (error.strerror or str(error)).lower()
        advice = "; is another server on it?" if error.errno == errno.EADDRINUSE else ""
        raise CannotListen(f"{listen}: cannot listen there ({why}){advice}") from None
    listener.setblocking(False)
    return listener
