"""Puts the HTTP port together: the pages and, unless they are turned off, calls and events."""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

from jobline_server.config import Settings
from jobline_server.rpc.admission import Admission
from jobline_server.rpc.connect.calls import ConnectCalls
from jobline_server.rpc.connect.events import WATCH, HttpEvents, Watch
from jobline_server.rpc.connect.hooks import PUSH, IncomingHooks
from jobline_server.rpc.services import Services
from jobline_server.rpc.transport import message_bytes_max, split
from jobline_server.runtime.runtime import Runtime
from jobline_server.setting_types import origins_of
from jobline_server.web.calls import App, with_calls
from jobline_server.web.server import WebServer


@dataclass(frozen=True, slots=True)
class HttpPort:
    """The port, and the calls that it serves."""

    web: WebServer
    calls: ConnectCalls | None

    async def stop(self) -> None:
        """Closes the port; stopping twice does nothing."""
        await self.web.stop()
        if self.calls is not None:
            self.calls.close()


def make_port(
    settings: Settings,
    pages: App,
    services: Services,
    runtime: Runtime,
    admission: Admission,
    grpc_address: str,
    *,
    version: str,
) -> HttpPort:
    """Returns the port, not started. Its calls go to the handlers that serve gRPC."""
    calls, app = None, pages
    if settings.http_calls:
        unary, streams = split(services.handlers)
        calls = ConnectCalls(
            unary,
            services.methods,
            admission,
            message_bytes_max=message_bytes_max(int(settings.max_payload_bytes)),
            grpc_address=grpc_address,
            version=version,
        )
        watch = cast("Watch", streams[WATCH].unary_stream)
        events = HttpEvents(watch, calls, admission)
        hooks = IncomingHooks(
            runtime.webhooks.incoming,
            unary[PUSH],
            runtime.core.wall_ms,
            admission,
            body_bytes_max=int(settings.max_payload_bytes),
        )
        app = with_calls(calls, events, hooks, pages, origins_of(settings.http_cors_origins))
    return HttpPort(WebServer(app, connections_max=settings.max_http_connections), calls)
