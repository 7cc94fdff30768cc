"""Under which names web pages may read a server that they come from themselves.

A browser names no origin when a page gets something of its own. So the name in `Host` is all that
tells a page of this server from one of anybody, whose name leads here by now (DNS rebinding). Names
that nobody can register lead to nobody's page.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from ipaddress import ip_address
from urllib.parse import urlsplit

_PRIVATE_ENDINGS = (".localhost", ".local", ".internal", ".svc")


def is_strange_page(headers: Mapping[str, str], origins: Collection[str]) -> bool:
    """Returns whether a request without an origin is a browser's, under a name that may be
    anybody's: none of those in `origins`, or of a network of its own.
    """
    if "*" in origins or not _is_browser(headers):
        return False
    host = _host_of(headers.get("host", ""))
    if host in {_host_of(urlsplit(origin).netloc) for origin in origins}:
        return False
    return not _is_nobodys(host)


def _is_browser(headers: Mapping[str, str]) -> bool:
    # Browsers send `sec-fetch-site` over TLS and to this host alone.
    return "accept-language" in headers or any(name.startswith("sec-fetch-") for name in headers)


def _host_of(authority: str) -> str:
    try:
        return (urlsplit(f"//{authority}").hostname or "").rstrip(".")
    except ValueError:
        return ""


def _is_nobodys(host: str) -> bool:
    """Returns whether a host is an address, or a name that cannot be registered."""
    try:
        ip_address(host)
    except ValueError:
        return host.endswith(_PRIVATE_ENDINGS) if "." in host else bool(host)
    return True
