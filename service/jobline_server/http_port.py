"""Puts the HTTP port together: what it serves, and the port."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from jobline_server.auth.tls_files import TlsFiles
from jobline_server.background.periodic import TaskRecord
from jobline_server.config import Settings
from jobline_server.rpc.admission import Admission
from jobline_server.rpc.connect.calls import ConnectCalls
from jobline_server.rpc.connect.events import WATCH, HttpEvents, Watch
from jobline_server.rpc.connect.hooks import PUSH, IncomingHooks
from jobline_server.rpc.services import Services
from jobline_server.rpc.transport import message_bytes_max, split
from jobline_server.runtime.runtime import Runtime
from jobline_server.setting_types import origins_of
from jobline_server.telemetry.calls import CallMeters
from jobline_server.web import metrics
from jobline_server.web.calls import App, Gate, with_calls, with_gate
from jobline_server.web.pages import make_pages
from jobline_server.web.server import WebServer

if TYPE_CHECKING:
    from jobline_server.rpc.access.guarding import Access


@dataclass(frozen=True, slots=True)
class HttpApp:
    """What the port serves for one server: pages and, unless they are turned off, calls."""

    serve: App
    calls: ConnectCalls | None

    def close(self) -> None:
        """Ends its thread; twice does nothing."""
        if self.calls is not None:
            self.calls.close()


def make_pages_of(
    runtime: Runtime,
    meters: CallMeters,
    records: Mapping[str, TaskRecord],
    parts: metrics.Parts,
    *,
    version: str,
    transport: str,
    is_ready: Callable[[], bool],
) -> App:
    """Returns the pages of a server: metrics and health."""
    server = metrics.ServerCollector(runtime, version=version, transport=transport)
    return make_pages(
        metrics.make_registry(server, meters, records, parts),
        refresh=server.refresh,
        version=version,
        failing=runtime.failing,
        broken=runtime.broken,
        is_ready=is_ready,
        is_full=lambda: runtime.core.commits.disk_full,
    )


def make_app(  # noqa: PLR0913  # what the port is made of
    settings: Settings,
    pages: App,
    services: Services,
    runtime: Runtime,
    admission: Admission,
    grpc_address: str,
    *,
    version: str,
    access: Access | None = None,
) -> HttpApp:
    """Returns the app of a server. Its calls go to the handlers that serve gRPC."""
    gate = None if access is None else _gate_of(access)
    if gate is not None:
        pages = with_gate(pages, gate)
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
        services.hooked_push or unary[PUSH],
        runtime.core.wall_ms,
        admission,
        body_bytes_max=int(settings.max_payload_bytes),
    )
    origins = origins_of(settings.http_cors_origins)
    return HttpApp(with_calls(calls, events, hooks, pages, origins, gate), calls)


def _gate_of(access: Access) -> Gate:
    # Only a server that authenticates loads what that takes.
    from jobline_server.rpc.connect.gate import HttpGate  # noqa: PLC0415

    return HttpGate(access)


def make_listener(settings: Settings, serve: App, tls: TlsFiles | None) -> WebServer:
    """Returns the port, not started."""
    context = None if tls is None else tls.context()
    return WebServer(serve, connections_max=settings.max_http_connections, context=context)
