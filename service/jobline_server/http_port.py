"""Puts the HTTP port together: what it serves, and the port."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from jobline_server.background.periodic import TaskRecord
from jobline_server.config import Settings
from jobline_server.rpc.admission import Admission
from jobline_server.rpc.connect.calls import ConnectCalls
from jobline_server.rpc.connect.events import WATCH, HttpEvents, Watch
from jobline_server.rpc.connect.hooks import PUSH, IncomingHooks
from jobline_server.rpc.services import Services
from jobline_server.rpc.transport import message_bytes_max, split
from jobline_server.runtime.backups import Backups
from jobline_server.runtime.runtime import Runtime
from jobline_server.setting_types import origins_of
from jobline_server.telemetry.calls import CallMeters
from jobline_server.web import metrics
from jobline_server.web.calls import App, with_calls
from jobline_server.web.pages import make_pages
from jobline_server.web.server import WebServer

if TYPE_CHECKING:
    from jobline_server.runtime.exporter import Exporter  # only where a history is kept


@dataclass(frozen=True, slots=True)
class HttpApp:
    """What the port serves for one server: pages and, unless they are turned off, calls."""

    serve: App
    calls: ConnectCalls | None

    def close(self) -> None:
        """Ends its thread; twice does nothing."""
        if self.calls is not None:
            self.calls.close()


def make_pages_of(  # noqa: PLR0913  # what the pages of a server show
    runtime: Runtime,
    meters: CallMeters,
    records: Mapping[str, TaskRecord],
    exporter: Exporter | None,
    backups: Backups | None,
    *,
    version: str,
    transport: str,
    is_ready: Callable[[], bool],
) -> App:
    """Returns the pages of a server: metrics and health."""
    server = metrics.ServerCollector(runtime, version=version, transport=transport)
    return make_pages(
        metrics.make_registry(server, meters, records, exporter, backups),
        refresh=server.refresh,
        version=version,
        failing=runtime.failing,
        broken=runtime.broken,
        is_ready=is_ready,
        is_full=lambda: runtime.core.commits.disk_full,
    )


def make_app(
    settings: Settings,
    pages: App,
    services: Services,
    runtime: Runtime,
    admission: Admission,
    grpc_address: str,
    *,
    version: str,
) -> HttpApp:
    """Returns the app of a server. Its calls go to the handlers that serve gRPC."""
    if not settings.http_calls:
        return HttpApp(pages, None)
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
    return HttpApp(app, calls)


def make_listener(settings: Settings, serve: App) -> WebServer:
    """Returns the port, not started."""
    return WebServer(serve, connections_max=settings.max_http_connections)
