"""The doors of a server: the addresses at which gRPC and HTTP are served.

They are apart from the server, because a server for tests is replaced by an empty one at the same
addresses (`dev.reset`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from jobline_server.config import Settings
from jobline_server.rpc.admission import Admission
from jobline_server.rpc.services import Services
from jobline_server.rpc.transport import Serving, TransportName, choose_transport, serve

if TYPE_CHECKING:
    from jobline_server.http_port import HttpApp
    from jobline_server.web.calls import App
    from jobline_server.web.server import WebServer


class Doors(Protocol):
    """Where a server is reached. Opened and closed in the order of the methods."""

    transport: TransportName

    async def open_grpc(self, services: Services, admission: Admission) -> list[str]:
        """Serves gRPC; returns the addresses."""

    async def open_http(self, app: HttpApp) -> str:
        """Serves HTTP; returns the address."""

    async def close_grpc(self, services: Services | None, seconds: float) -> None:
        """Takes no more calls for these services, and waits up to so long for those that are
        open.
        """

    async def close_http(self, app: HttpApp | None) -> None:
        """Serves this app no more."""


class OwnDoors:
    """The doors of one server, as its settings say."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self.transport = choose_transport(settings.transport, traces=settings.tracing != "off")
        self._serving: Serving | None = None
        self._listener: WebServer | None = None

    async def open_grpc(self, services: Services, admission: Admission) -> list[str]:
        """Listens at the addresses of the settings."""
        self._serving = await serve(
            self.transport,
            services.handlers,
            self._settings.listen_addresses,
            payload_bytes_max=int(self._settings.max_payload_bytes),
            admission=admission,
        )
        return self._serving.addresses

    async def open_http(self, app: HttpApp) -> str:
        """Listens at the address of the settings."""
        from jobline_server.http_port import make_listener

        self._listener = make_listener(self._settings, self.serve(app))
        return await self._listener.start(self._settings.http)

    def serve(self, app: HttpApp) -> App:
        """Returns what answers requests."""
        return app.serve

    async def close_grpc(self, services: Services | None, seconds: float) -> None:
        """Closes the addresses."""
        if self._serving is not None:
            await self._serving.stop(seconds)

    async def close_http(self, app: HttpApp | None) -> None:
        """Closes the address."""
        if self._listener is not None:
            await self._listener.stop()
