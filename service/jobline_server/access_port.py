"""Puts together what authenticates callers: the file, and what asks it for each call. Only a server
with the setting `auth` loads it.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from jobline_server.auth.access_file import WrongAccessFile
from jobline_server.auth.authenticator import Authenticator
from jobline_server.background.access_file import ReadAccessFile
from jobline_server.background.periodic import PeriodicTask
from jobline_server.config import ConfigurationError
from jobline_server.rpc.access.guarding import Access
from jobline_server.rpc.admission import Admission
from jobline_server.runtime.clock import SystemClock
from jobline_server.runtime.runtime import Runtime


def read_auth(path: Path, clock: Callable[[], float], *, asks_clients: bool) -> Authenticator:
    """Returns what knows callers. Raises `ConfigurationError` for a file that cannot be used."""
    try:
        found = Authenticator(path, _wall_ms, clock)
    except WrongAccessFile as wrong:
        raise ConfigurationError(f"auth: {wrong}") from None
    if found.takes_certificates and not asks_clients:
        raise ConfigurationError(
            f"auth: {path}: certificates: clients show them only where tls_client_ca is set"
        )
    return found


def make_access(
    authenticator: Authenticator,
    runtime: Runtime,
    admission: Admission,
    clock: Callable[[], float],
) -> Access:
    """Returns what asks for each call of a server."""
    return Access(authenticator, runtime, admission, _wall_ms, clock)


def make_task(access: Access) -> PeriodicTask:
    """Returns the task that reads the file again."""
    return ReadAccessFile(access.authenticator, access.open_calls.ask_again)


def _wall_ms() -> int:
    # Tokens are made elsewhere: they end by the time of the machine, also where the clock of the
    # queue is moved by hand.
    return SystemClock().now().wall_ms
