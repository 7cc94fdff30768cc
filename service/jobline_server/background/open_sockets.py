"""The TCP connections to this server, found among the descriptors of the process.

The transports of gRPC tell of no connection, and close none when asked to. But each is a descriptor
of this process, a new one always gets the lowest number that is free, and a socket says where it
leads and how long it has been silent. A descriptor belongs to its transport: it is only borrowed
here, and shut down, not closed. The transport finds its connection ended, as if the client had done
it.
"""

from __future__ import annotations

import errno
import os
import socket
import struct
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from ipaddress import IPv6Address
from itertools import count
from typing import NamedTuple

from jobline_server.runtime.pace import Pace

# So many numbers in a row that are free: there are no higher ones in use.
FREE_IN_A_ROW = 4_096
# Bits of an IPv6 address that one host, or one house, has for itself.
HOST_BITS = 64
# Of `struct tcp_info` in <linux/tcp.h>: the state, and the milliseconds since data was last sent,
# and since some came.
_TCP_INFO = struct.Struct("=B43xI4xI")
_ESTABLISHED = 1

Peer = tuple[str, int] | tuple[str, int, int, int]


class Connection(NamedTuple):
    """A connection, with the host that it comes from."""

    descriptor: int
    peer: Peer
    host: str
    silent_ms: int


def lowest_free() -> int | None:
    """Returns the number that a new descriptor would get; None if there may be no more."""
    try:
        descriptor = os.open(os.devnull, os.O_RDONLY)
    except OSError as error:
        if error.errno in (errno.EMFILE, errno.ENFILE):
            return None
        raise
    os.close(descriptor)
    return descriptor


async def connections_at(ports: Collection[int]) -> list[Connection]:
    """Returns the connections to these ports of this host, in steps of the loop."""
    found: list[Connection] = []
    if not hasattr(socket, "TCP_INFO"):  # pragma: no cover  # not Linux
        return found
    pace, free_in_a_row = Pace(), 0
    for descriptor in count():
        try:
            connection = _connection(descriptor, ports)
        except OSError as error:
            is_free = error.errno == errno.EBADF
            free_in_a_row = free_in_a_row + 1 if is_free else 0
            if free_in_a_row > FREE_IN_A_ROW:
                return found
        else:
            free_in_a_row = 0
            if connection is not None:
                found.append(connection)
        await pace.rest()
    raise AssertionError("there is no end of numbers")


def shut(connection: Connection) -> bool:
    """Ends a connection; returns False if it has ended meanwhile."""
    try:
        with _borrowed(connection.descriptor) as opened:
            # Another one may have its number by now.
            if opened.getpeername() != connection.peer:
                return False
            opened.shutdown(socket.SHUT_RDWR)
    except OSError:
        return False
    return True


def _connection(descriptor: int, ports: Collection[int]) -> Connection | None:
    """Returns the connection of a descriptor, None if it is none to these ports. Raises OSError if
    the descriptor is not in use, or no connected socket.
    """
    with _borrowed(descriptor) as opened:
        is_ip = opened.family in (socket.AF_INET, socket.AF_INET6)
        if not is_ip or opened.type != socket.SOCK_STREAM or opened.getsockname()[1] not in ports:
            return None
        info = opened.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _TCP_INFO.size)
        state, sent_ms, came_ms = _TCP_INFO.unpack(info)
        if state != _ESTABLISHED:  # it listens, or was shut
            return None
        peer = opened.getpeername()
        return Connection(descriptor, peer, _host(peer[0]), min(sent_ms, came_ms))


@contextmanager
def _borrowed(descriptor: int) -> Iterator[socket.socket]:
    opened = socket.socket(fileno=descriptor)
    try:
        yield opened
    finally:
        opened.detach()


def _host(address: str) -> str:
    if ":" not in address:
        return address
    found = IPv6Address(address)
    if found.ipv4_mapped is not None:
        return str(found.ipv4_mapped)
    return str(IPv6Address(int(found) >> HOST_BITS << HOST_BITS))
