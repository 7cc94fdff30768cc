"""URLs of webhooks: which may be said at all. Where they lead is checked at every delivery."""

from __future__ import annotations

from typing import NamedTuple
from urllib.parse import urlsplit

PORTS = {"http": 80, "https": 443}
# What a URL is made of: visible ASCII; others are to be percent-encoded, as RFC 3986 says.
_FIRST, _LAST = "!", "~"


class Target(NamedTuple):
    """Where a URL leads: `path` has the query, too; `host` is lower-case, IPv6 without brackets."""

    scheme: str
    host: str
    port: int
    path: str

    @property
    def authority(self) -> str:
        """Returns host and port, as the header `Host` has them."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == PORTS[self.scheme] else f"{host}:{self.port}"


def target_of(url: str) -> Target:
    """Returns where a URL leads. Raises ValueError, with what is wrong for users."""
    if not all(_FIRST <= character <= _LAST for character in url) or "\\" in url:
        raise ValueError("must be a URL of visible ASCII characters")
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        raise ValueError("is not a URL") from None
    if parts.scheme not in PORTS or not host:
        raise ValueError("must be an http or https URL with a host")
    if "@" in parts.netloc:
        raise ValueError("must not have a user or a password")
    if port == 0:
        raise ValueError("must have a port above 0")
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    return Target(parts.scheme, host, port or PORTS[parts.scheme], path)
