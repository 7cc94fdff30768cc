"""Checks addresses to listen at: their form, and whether the port or socket is free."""

from __future__ import annotations

import errno
import socket
from pathlib import Path

from jobline_server.addresses import split_address

UNIX = "unix:"
# The kernel's limit on the path of a socket.
UNIX_PATH_BYTES_MAX = 107


class CannotServe(Exception):
    """The server cannot listen as its settings say; it does not start."""


def check_address(address: str) -> None:
    """Refuses an address that cannot be listened at."""
    if address.startswith(UNIX):
        path = Path(address.removeprefix(UNIX))
        if len(str(path).encode()) > UNIX_PATH_BYTES_MAX:
            raise CannotServe(f"{address}: a socket's path is at most {UNIX_PATH_BYTES_MAX} bytes")
        if not path.parent.is_dir():
            raise CannotServe(f"{address}: there is no folder {path.parent}")
        if path.exists() and not path.is_socket():
            raise CannotServe(f"{address}: there is a file that is not a socket")
        if has_listener(path):
            raise CannotServe(f"{address}: another server listens there")
        return
    try:
        split_address(address)
    except ValueError as error:
        raise CannotServe(f"{address}: {error}; or unix:PATH") from None


def has_listener(path: Path) -> bool:
    """Returns whether a live server listens at a socket. Both transports would replace the socket,
    and that server would be unreachable; the socket of a killed server may be replaced.
    """
    with socket.socket(socket.AF_UNIX) as probe:
        probe.setblocking(False)
        try:
            probe.connect(str(path))
        except BlockingIOError:  # its queue of connections is full
            return True
        except OSError:
            return False
    return True


def check_can_listen(address: str) -> None:
    """Refuses a port that is not free, with the system's reason. gRPC would give no reason, and
    write lines to stderr instead of the log.
    """
    host, port = split_address(address)
    failure: OSError | None = None
    try:
        found = socket.getaddrinfo(host.strip("[]"), port, type=socket.SOCK_STREAM)
    except OSError as error:
        found, failure = [], error
    for family, kind, protocol, _, place in found:
        with socket.socket(family, kind, protocol) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(place)
            except OSError as error:
                failure = error
            else:
                return
    why = (failure.strerror or str(failure)).lower() if failure else "no such host"
    is_taken = failure is not None and failure.errno == errno.EADDRINUSE
    advice = "; is another server on it?" if is_taken else ""
    raise CannotServe(f"{address}: cannot listen there ({why}){advice}")
