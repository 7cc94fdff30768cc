"""Doors that several servers share, one after the other: their addresses stay open in between."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import grpc

from jobline_server.config import Settings
from jobline_server.doors import OwnDoors
from jobline_server.rpc.admission import Admission
from jobline_server.rpc.guard import Handler
from jobline_server.rpc.services import Services

if TYPE_CHECKING:
    from jobline_server.http_port import HttpApp
    from jobline_server.web.calls import App


class SharedDoors(OwnDoors):
    """The first server opens the doors; a later one waits behind them until `switch`, and the last
    one closes them.
    """

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        self._addresses: list[str] = []
        self._http = ""
        self._services: Services | None = None
        self._app: HttpApp | None = None
        self._next: tuple[Services | None, HttpApp | None] = None, None

    async def open_grpc(self, services: Services, admission: Admission) -> list[str]:
        """Listens, or has these services be the next ones."""
        if self._services is not None:
            self._next = services, None
            return self._addresses
        self._services = services
        handlers = {path: self._forwarding(path, one) for path, one in services.handlers.items()}
        forwarded = replace(services, handlers=handlers)
        self._addresses = await super().open_grpc(forwarded, admission)
        return self._addresses

    async def open_http(self, app: HttpApp) -> str:
        """Listens, or has this app be the next one."""
        if self._app is not None:
            self._next = self._next[0], app
            return self._http
        self._app = app
        self._http = await super().open_http(app)
        return self._http

    def switch(self) -> None:
        """Passes all calls to the next server from now on."""
        self._services, self._app = self._next
        self._next = None, None

    async def close_grpc(self, services: Services | None, seconds: float) -> None:
        """Closes the addresses, if calls go to these services."""
        if services is self._services:
            await super().close_grpc(services, seconds)

    async def close_http(self, app: HttpApp | None) -> None:
        """Closes the address, if requests go to this app."""
        if app is self._app:
            await super().close_http(app)

    def serve(self, app: HttpApp) -> App:
        """Returns what passes requests to the app that is behind the doors when they come."""

        async def forward(scope: Any, receive: Any, send: Any) -> None:
            await (self._app or app).serve(scope, receive, send)

        return forward

    def _forwarding(self, path: str, handler: Handler) -> Handler:
        """Returns a handler that passes calls to the one behind the doors when they come."""
        if handler.request_streaming:
            kind, make = "stream_stream", grpc.stream_stream_rpc_method_handler
        elif handler.response_streaming:
            kind, make = "unary_stream", grpc.unary_stream_rpc_method_handler
        else:
            kind, make = "unary_unary", grpc.unary_unary_rpc_method_handler

        async def call(request: Any, context: Any) -> Any:
            services = self._services
            if services is None:
                raise RuntimeError("no server is behind the doors")
            return await getattr(services.handlers[path], kind)(request, context)

        return make(call)
