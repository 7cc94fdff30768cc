"""The authentication of a server, if its settings ask for it. Without, nothing of it is loaded."""

from __future__ import annotations

# Spaces fetches of keys; no decision depends on it but that.
from time import perf_counter
from typing import TYPE_CHECKING

from jobline_server.background.periodic import PeriodicTask
from jobline_server.config import Settings
from jobline_server.rpc.admission import Admission
from jobline_server.runtime.runtime import Runtime

if TYPE_CHECKING:
    from jobline_server.auth.authenticator import Authenticator
    from jobline_server.rpc.access.guarding import Access


class Authentication:
    """Who may call a server. `access` is None where everybody may, and before `start`."""

    def __init__(self, settings: Settings) -> None:
        self._path = settings.auth
        self._asks_clients = settings.tls_client_ca is not None
        self._authenticator: Authenticator | None = None
        self.access: Access | None = None

    async def read(self) -> None:
        """Reads the file, before anything is opened; keys of issuers may also be fetched later.
        Raises `ConfigurationError`.
        """
        if self._path is not None:
            from jobline_server.access_port import read_auth

            self._authenticator = read_auth(
                self._path, perf_counter, asks_clients=self._asks_clients
            )
            await self._authenticator.fetch_keys()

    def start(self, runtime: Runtime, admission: Admission) -> list[PeriodicTask]:
        """Returns the tasks that it needs."""
        if self._authenticator is None:
            return []
        from jobline_server.access_port import make_access, make_task

        self.access = make_access(self._authenticator, runtime, admission, perf_counter)
        return [make_task(self.access)]

    async def close(self) -> None:
        """Ends what is under way; twice does nothing."""
        if self._authenticator is not None:
            await self._authenticator.close()
