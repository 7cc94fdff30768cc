"""Which hosts and addresses webhooks may lead to. Users name them, so a server that asked any of
them would open the network that it is in to all who may push a job.
"""

from __future__ import annotations

from collections.abc import Iterable
from ipaddress import (
    IPv4Address,
    IPv4Network,
    IPv6Address,
    IPv6Network,
    ip_address,
    ip_network,
)

from jobline_server.telemetry.log import logger

LOG = logger("background")

Address = IPv4Address | IPv6Address

# Networks in which an IPv4 address is hidden: mapped, translated (NAT64), 6to4 and Teredo.
_HIDING = [
    IPv6Network(network)
    for network in (
        "::/96", "::ffff:0:0/96", "64:ff9b::/96", "64:ff9b:1::/48", "2002::/16", "2001::/32",
    )
]  # fmt: skip
# Never allowed, whatever the settings say: hosts of clouds that tell credentials and settings (of
# Azure, Alibaba and AWS), and networks in which nobody has a receiver.
_NEVER = [
    ip_network(network)
    for network in (
        "168.63.129.16/32", "100.100.100.200/32", "fd00:ec2::/32",
        "0.0.0.0/8", "192.0.0.0/24", "192.88.99.0/24", "3fff::/20",
    )
]  # fmt: skip
_SITE_LOCAL = IPv6Network("fec0::/10")
# Behind the NAT of a carrier (RFC 6598).
_CARRIER = IPv4Network("100.64.0.0/10")


class Forbidden(Exception):
    """A webhook must not lead there; the text says why."""


def check_name(host: str) -> None:
    """Raises `Forbidden` for names that only mean something inside of a network or a cloud."""
    name = host.rstrip(".")
    if name.split(".")[0] == "metadata" or name == "internal" or name.endswith(".internal"):
        raise Forbidden(f"{name} is a name of an internal network")


def choose(host: str, addresses: Iterable[str], *, allow_private: bool) -> str:
    """Returns the address to connect to, of those that a host has. Raises `Forbidden` if any is
    not allowed: which one is used must not be left to chance. The address is for the log alone, as
    it says something about the network that the server is in.
    """
    found = [ip_address(address.partition("%")[0]) for address in addresses]
    if not found:
        raise Forbidden(f"{host} has no address")
    for address in found:
        if not (is_public(address) or (allow_private and _is_private_network(address))):
            LOG.info("no webhook goes there", host=host, address=str(address))
            raise Forbidden(f"{host} has an address that is not public")
    return str(found[0])


def is_public(address: Address) -> bool:
    """Returns whether an address belongs to the public internet, and hides no other one."""
    if isinstance(address, IPv6Address) and (
        address in _SITE_LOCAL or any(address in network for network in _HIDING)
    ):
        return False
    if any(address in network for network in _NEVER):
        return False
    return address.is_global and not (address.is_multicast or address.is_reserved)


def _is_private_network(address: Address) -> bool:
    """Returns whether an address is of a private network, or of this host. Link-local ones, where
    clouds have their credentials, are not.
    """
    if isinstance(address, IPv6Address) and any(address in network for network in _HIDING):
        return address == IPv6Address("::1")
    if any(address in network for network in _NEVER):
        return False
    return (address.is_private or address in _CARRIER) and not (
        address.is_link_local
        or address.is_multicast
        or address.is_unspecified
        or address.is_reserved
    )
