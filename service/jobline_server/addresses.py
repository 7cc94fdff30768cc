"""Parses HOST:PORT, by one rule for gRPC and HTTP: an IPv6 address needs brackets; and binds it."""

from __future__ import annotations

import socket
from ipaddress import AddressValueError, IPv6Address

PORT_MAX = 65_535


def split_address(address: str) -> tuple[str, int]:
    """Returns the host as written, and the port. Raises `ValueError` with a sentence.

    Refuses `::1:7075`, which is an IPv6 address itself: its last part may not be meant as a port.
    """
    host, _, port = address.rpartition(":")
    if not (host and port.isascii() and port.isdigit() and int(port) <= PORT_MAX):
        raise ValueError(f"must be HOST:PORT, the port 0 to {PORT_MAX}")
    if host.startswith("[") and host.endswith("]"):
        try:
            IPv6Address(host[1:-1])
        except AddressValueError:
            raise ValueError(f"must be HOST:PORT, and {host} is no IPv6 address") from None
    elif any(character in host for character in ":[]/"):
        raise ValueError("must be HOST:PORT, an IPv6 address in brackets: [::1]:7070")
    return host, int(port)


def bind(listen: str) -> socket.socket:
    """Returns a socket bound to `HOST:PORT`. Raises `ValueError`, as above, and OSError."""
    host, port = split_address(listen)
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # With the protocol named, asyncio turns off Nagle's algorithm for the connections. A reply's
    # head and body are two writes: the second would wait 40 ms for an acknowledgement.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host.strip("[]"), port))
    except OSError:
        listener.close()
        raise
    listener.setblocking(False)
    return listener
