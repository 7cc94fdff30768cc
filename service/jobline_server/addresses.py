"""Parses HOST:PORT, by one rule for gRPC and HTTP: an IPv6 address needs brackets."""

from __future__ import annotations

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
