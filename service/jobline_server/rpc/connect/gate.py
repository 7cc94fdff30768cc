"""The gate of the HTTP port, where callers are authenticated: refuses calls by their heads, before
a body is read, and pages.

Health pages are for everybody, as probes show nothing. The counters are for those who may read all
queues, whose names they hold; the description of the calls is for every caller that is known.
"""

from __future__ import annotations

from collections.abc import Mapping

from jobline_server.rpc.access.guarding import Access
from jobline_server.rpc.connect.failures import Reply, error_reply
from jobline_server.rpc.connect.heads import certificate_of

METRICS = "/metrics"
OPEN_PAGES = frozenset({"/", "/healthz", "/readyz"})

Headers = Mapping[str, str]


class HttpGate:
    """Refuses requests by their heads."""

    def __init__(self, access: Access) -> None:
        self._access = access

    async def refusal_of_call(self, path: str, headers: Headers, peer: str) -> Reply | None:
        """Returns the refusal of a call whose caller is not known. Its handler asks what a caller
        may do.
        """
        status = await self._access.check_head(path, headers, certificate_of(headers), peer)
        return None if status is None else error_reply(status)

    async def refusal_of_page(self, path: str, headers: Headers, peer: str) -> Reply | None:
        """Returns the refusal of a page."""
        if path in OPEN_PAGES:
            return None
        certificate = certificate_of(headers)
        status = await self._access.check_head(
            path, headers, certificate, peer, reads=path.startswith(METRICS)
        )
        return None if status is None else error_reply(status)
