"""The doors of a server: the addresses at which gRPC and HTTP are served.

They are apart from the server, because a server for tests is replaced by an empty one at the same
addresses (`dev.reset`).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Protocol

from jobline_server.addresses import split_address
from jobline_server.auth.tls_files import TlsFiles, WrongTlsFiles
from jobline_server.background.connections import BoundConnections
from jobline_server.background.periodic import PeriodicTask
from jobline_server.background.tls_files import ReadTlsFiles
from jobline_server.config import ConfigurationError, Settings
from jobline_server.engine.values import Now
from jobline_server.rpc.admission import Admission
from jobline_server.rpc.listening import UNIX, CannotServe, check_address, check_can_listen
from jobline_server.rpc.services import Services
from jobline_server.rpc.transport import (
    Serving,
    TransportName,
    choose_transport,
    serve,
    serve_health,
)

if TYPE_CHECKING:
    from jobline_server.http_port import HttpApp
    from jobline_server.web.calls import App
    from jobline_server.web.server import WebServer


class Doors(Protocol):
    """Where a server is reached. Opened and closed in the order of the methods."""

    transport: TransportName
    tls: TlsFiles | None
    scheme: str
    ports: set[int]

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


def check_free(settings: Settings) -> None:
    """Refuses addresses at which nobody can listen now, without opening them. Whoever opens them
    later may still be refused.
    """
    for address in settings.listen_addresses:
        check_address(address)
        if not address.startswith(UNIX):
            check_can_listen(address)
    if settings.http:
        check_can_listen(settings.http)
        if settings.http == settings.listen and not settings.http.endswith(":0"):
            raise CannotServe(f"{settings.http}: gRPC and HTTP need a port each")


class OwnDoors:
    """The doors of one server, as its settings say."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self.tls = _tls_of(settings)
        self.transport = choose_transport(settings.transport)
        self.scheme = "http" if self.tls is None else "https"
        self.ports: set[int] = set()
        self._serving: Serving | None = None
        self._health: Serving | None = None
        self._listener: WebServer | None = None

    async def open_grpc(self, services: Services, admission: Admission) -> list[str]:
        """Listens at the addresses of the settings."""
        self._serving = await serve(
            self.transport,
            services.handlers,
            self._settings.listen_addresses,
            payload_bytes_max=int(self._settings.max_payload_bytes),
            admission=admission,
            reads_metadata=bool(self._settings.auth) or self._settings.tracing != "off",
            tls=self.tls,
        )
        if self._settings.health_listen:
            self._health = await serve_health(services.handlers, self._settings.health_listen)
        self.ports |= _ports_of(self._serving.addresses + self.health_addresses)
        return self._serving.addresses

    async def open_http(self, app: HttpApp) -> str:
        """Listens at the address of the settings."""
        from jobline_server.http_port import make_listener

        self._listener = make_listener(self._settings, self.serve(app), self.tls)
        address = await self._listener.start(self._settings.http)
        self.ports |= _ports_of([address])
        return address

    def serve(self, app: HttpApp) -> App:
        """Returns what answers requests."""
        return app.serve

    async def close_grpc(self, services: Services | None, seconds: float) -> None:
        """Closes the addresses."""
        if self._serving is not None:
            await self._serving.stop(seconds)
        if self._health is not None:
            await self._health.stop(0)

    @property
    def health_addresses(self) -> list[str]:
        """Returns the address of `health_listen`, if there is one."""
        return [] if self._health is None else self._health.addresses

    async def close_http(self, app: HttpApp | None) -> None:
        """Closes the address."""
        if self._listener is not None:
            await self._listener.stop()


def tasks_of(doors: Doors, settings: Settings, now: Now) -> list[PeriodicTask]:
    """Returns the periodic tasks that the doors need. Warns of a certificate out of date."""
    bound = BoundConnections(lambda: doors.ports, settings.max_connections)
    if doors.tls is None:
        return [bound]
    task = ReadTlsFiles(doors.tls)
    task.warn(now)
    return [bound, task]


def _ports_of(addresses: Iterable[str]) -> set[int]:
    return {split_address(each)[1] for each in addresses if not each.startswith(UNIX)}


def _tls_of(settings: Settings) -> TlsFiles | None:
    """Returns the certificate of the settings. Raises `ConfigurationError` if it cannot be used."""
    if settings.tls_certificate is None or settings.tls_key is None:
        return None
    try:
        return TlsFiles(settings.tls_certificate, settings.tls_key, settings.tls_client_ca)
    except WrongTlsFiles as wrong:
        raise ConfigurationError(f"{wrong.setting}: {wrong}") from None
