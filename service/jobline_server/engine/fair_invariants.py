"""Invariants of fair queues: see `invariants`, which lists them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from jobline_server.engine.fair import FairShare
from jobline_server.engine.lane import Lane
from jobline_server.engine.queue import Queue
from jobline_server.engine.shard import Shard
from jobline_server.engine.values import JobState


def open_lanes(queue: Queue) -> Iterator[Lane]:
    """Yields the lanes of a queue that leases find, those of its tenants included."""
    boards = [queue.open]
    if queue.fair is not None:
        boards += [tenant.open for tenant in queue.fair.tenants if tenant.name]
    for board in boards:
        for rank in board.ranks(None):
            yield from rank


def tenants_add_up(shard: Shard) -> str:
    """G23: the tenants of a fair queue count their jobs and lanes, and those that may be served
    have an entry that is not above their key.
    """
    active: Counter[tuple[str, str]] = Counter()
    for job in shard.jobs.values():
        if job.state is JobState.ACTIVE:
            active[job.queue.name, job.ties.group] += 1
    for lot in shard.lots.lots.values():
        active[lot.queue.name, ""] += lot.remaining - lot.waiting()
    for name, queue in shard.queues.items():
        if (queue.fair is not None) != queue.settings.fair:
            return f"queue {name} is set to be fair or not, and is not"
        if queue.fair is not None:
            of_queue = {group: count for (of, group), count in active.items() if of == name}
            problem = _tenants_of(queue, queue.fair, of_queue)
            if problem:
                return f"queue {name}: {problem}"
    return ""


def _tenants_of(queue: Queue, fair: FairShare, active: dict[str, int]) -> str:
    lanes = list(queue.lanes())
    ready: Counter[str] = Counter()
    for lane in lanes:
        ready[lane.tenant] += lane.ready
    by_tenant = Counter(lane.tenant for lane in lanes)
    names = {tenant.name for tenant in fair.tenants}
    if not {name for name, count in active.items() if count} | set(by_tenant) <= names:
        return f"{names} are its tenants"
    for tenant in fair.tenants:
        counted = tenant.ready, tenant.active, tenant.lanes
        found = ready[tenant.name], active.get(tenant.name, 0), by_tenant[tenant.name]
        if counted != found:
            return f"tenant {tenant.name} counts {counted}, has {found}"
        kinds = Counter(
            (lane.name, lane.size, lane.needs)
            for lane in lanes
            if lane.tenant == tenant.name and lane.ready and not lane.opens_ms
        )
        if tenant.kinds != kinds:
            return f"tenant {tenant.name} has {tenant.kinds} open lanes of {kinds}"
        is_found = tenant.name in fair.reopening or fair.heaps.is_noted(tenant)
        if fair.room_of(tenant) and not is_found:
            return f"tenant {tenant.name} is not found by consumers"
    return _idle_tenants(fair)


def _idle_tenants(fair: FairShare) -> str:
    busy = sum(tenant.is_busy() for tenant in fair.tenants)
    if not busy and len(fair.tenants):
        return f"{len(fair.tenants)} tenants are known, and none is busy"
    return "" if fair.busy == busy else f"{fair.busy} tenants are counted as busy of {busy}"
