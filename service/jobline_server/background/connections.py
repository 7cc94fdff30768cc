"""Periodic task: bounds the connections of all ports together, and keeps descriptors free.

Each connection takes a descriptor and memory, before anybody has said who it is. With no descriptor
left no port takes a connection, those of health checks among them, and no file can be opened. So
once there are too many, those are closed that are needed least: of the hosts with the most
connections, those that have been silent longest. A host with few keeps its own, whoever else opens
as many as it likes; and a client that lost an idle connection opens another one.
"""

from __future__ import annotations

import asyncio
import resource
from collections import defaultdict
from collections.abc import Callable, Collection, Sequence
from time import perf_counter

from jobline_server.background.open_sockets import Connection, connections_at, lowest_free, shut
from jobline_server.background.periodic import Counts
from jobline_server.engine.values import Now
from jobline_server.telemetry.log import logger

LOG = logger("connections")

EVERY_SECONDS = 0.5
# After some were closed: others may have waited for their descriptors.
AGAIN_SECONDS = 0.05
# A look at all descriptors may take this share of the time.
LOOK_SHARE = 0.02
# Where connections are closed, this share of what there may be is left.
LEFT_SHARE = 0.9
# They are closed, too, once more than this share of the descriptors is in use.
DESCRIPTORS_SHARE = 0.75
SAID_EVERY_SECONDS = 60.0


class BoundConnections:
    """Looks twice a second, which is two calls of the system unless there are many. `ports`: those
    that this server listens at now.
    """

    name = "connections"

    def __init__(self, ports: Callable[[], Collection[int]], connections_max: int) -> None:
        self.every_seconds = EVERY_SECONDS
        self._ports = ports
        self._connections_max = connections_max
        self._said_at = float("-inf")
        self._unsaid = 0

    async def run_once(self, _now: Now) -> Counts:
        """Closes connections if there are too many; returns how many."""
        self.every_seconds = EVERY_SECONDS
        limit, free = _descriptors_max(), lowest_free()
        # At least so many are in use: none below this number is free.
        used = limit if free is None else free
        over = used - int(limit * DESCRIPTORS_SHARE)
        if used <= self._connections_max and over <= 0:
            return {}
        began = perf_counter()
        found = await connections_at(self._ports())
        if len(found) > self._connections_max:
            over = max(over, len(found) - int(self._connections_max * LEFT_SHARE))
        closed = sum(map(shut, least_needed(found, over)))
        pause = AGAIN_SECONDS if closed else EVERY_SECONDS
        self.every_seconds = max(pause, (perf_counter() - began) / LOOK_SHARE)
        self._say(closed, len(found))
        return {"closed": closed}

    def _say(self, closed: int, found: int) -> None:
        """Says how many were closed since it was last said."""
        self._unsaid += closed
        now = asyncio.get_running_loop().time()
        if self._unsaid and now >= self._said_at + SAID_EVERY_SECONDS:
            LOG.warning(
                "too many connections: closed those of the hosts with the most, silent ones first",
                closed=self._unsaid,
                connections=found,
                max_connections=self._connections_max,
            )
            self._said_at, self._unsaid = now, 0


def least_needed(connections: Sequence[Connection], count: int) -> list[Connection]:
    """Returns those to close, `count` if there are as many, so that no host keeps more than it must
    while another one loses some: of each host those that have been silent longest.
    """
    by_host: dict[str, list[Connection]] = defaultdict(list)
    for connection in connections:
        by_host[connection.host].append(connection)
    ranked: list[tuple[int, int, Connection]] = []
    for of_host in by_host.values():
        of_host.sort(key=lambda each: each.silent_ms)
        ranked += [(rank, each.silent_ms, each) for rank, each in enumerate(of_host)]
    ranked.sort(key=lambda each: each[:2], reverse=True)
    return [connection for _, _, connection in ranked[: max(count, 0)]]


def _descriptors_max() -> int:
    """Returns how many descriptors the process may have."""
    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return 1 << 30 if limit == resource.RLIM_INFINITY else limit
