"""Client rates: how many jobs a client may push in a time, so that no client alone fills a server.

A client is the host that a connection comes from, or the Unix socket. Each has a bucket that fills
with `rate` jobs per second and holds `burst`. Only one number of a bucket is kept: when it will be
full again (the generic cell rate algorithm). A client that has been idle is as good as a new one.
Of too many, the one that has not pushed for the longest time is forgotten.

A push of more than `burst` jobs waits for a full bucket, and uses up what comes later.
"""

from __future__ import annotations

from collections.abc import Callable

from jobline_server.engine.commands import RefusalKind, Refused

SECOND_NS = 1_000_000_000


class ClientRates:
    """The buckets of clients. `clock` returns seconds and never goes back."""

    __slots__ = ("_burst", "_clients_max", "_clock", "_each_ns", "_full_ns")

    def __init__(
        self, rate: int, burst: int, clock: Callable[[], float], *, clients_max: int
    ) -> None:
        self._each_ns = SECOND_NS // rate
        self._burst = burst
        self._clock = clock
        self._clients_max = clients_max
        # When the bucket of each client is full again; who pushed last is at the end.
        self._full_ns: dict[str, int] = {}

    def __len__(self) -> int:
        """Returns how many clients it knows."""
        return len(self._full_ns)

    def take(self, peer: str, jobs: int) -> None:
        """Takes a push from the bucket of a client. Raises `Refused` with CLIENT_RATE if its bucket
        does not hold as much, and then takes nothing.
        """
        clients, client = self._full_ns, host_of(peer)
        now_ns = round(self._clock() * SECOND_NS)
        full_ns = max(clients.get(client, 0), now_ns)
        wait_ns = full_ns - now_ns - (self._burst - min(jobs, self._burst)) * self._each_ns
        if wait_ns > 0:
            raise Refused(
                RefusalKind.CLIENT_RATE,
                f"clients push up to {SECOND_NS // self._each_ns:,} jobs per second, "
                f"{self._burst:,} at once",
                retry_after_ms=-(-wait_ns // 1_000_000),
            )
        clients.pop(client, None)
        clients[client] = full_ns + jobs * self._each_ns
        if len(clients) > self._clients_max:
            del clients[next(iter(clients))]


def host_of(peer: str) -> str:
    """Returns the host of a peer as gRPC writes it, without the port: `ipv4:10.0.0.7` of
    `ipv4:10.0.0.7:41522`. All callers through Unix sockets are one.
    """
    kind, _, rest = peer.partition(":")
    return kind if kind == "unix" else f"{kind}:{rest.rpartition(':')[0]}"
