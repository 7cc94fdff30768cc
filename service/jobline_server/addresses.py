"""HOST:PORT, taken apart by one rule for gRPC and HTTP: an IPv6 address stands in brackets."""

from __future__ import annotations

from ipaddress import AddressValueError, IPv6Address

PORT_MAX = 65_535


def split_address(address: str) -> tuple[str, int]:
    """Host, as it was written, and port. Raises `ValueError` with a sentence.

    `::1:7075` is refused: it is an IPv6 address itself, and which of its ends was meant as a port
    nobody knows.
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
