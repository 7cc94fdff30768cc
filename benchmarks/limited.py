"""P13: what limits cost that let everything out. Jobs are pulled and acked a hundred at a time,
with and without a limit; each pair runs on one server, one after the other.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from statistics import median
from typing import NamedTuple

from benchmarks import bodies
from benchmarks.bench import Bench, Running
from benchmarks.drains import drain_by_calls
from benchmarks.figures import Figure, Unit, at_most
from jobline import AsyncClient, GroupSettings, QueueSettings, RateLimit
from jobline.v1 import job_service_pb2

JOBS = 200_000
BATCH = 100
CALLERS = 4
COST_MAX = 15.0
# More than is ever taken.
RATE = RateLimit(rate=1_000_000, burst=1_000_000)
MANY = 1_000_000
LIMITER = "api"
# A hundred jobs of a pull are of as many groups.
GROUPS = [f"g{number}" for number in range(BATCH)]
TOGETHER = GroupSettings(concurrency=1_000)


class Limit(NamedTuple):
    """A limit to measure: the settings of the queue without it and with it, and what its jobs have
    that are limited; and the groups of all jobs.
    """

    without: QueueSettings
    limited: QueueSettings
    limiters: tuple[str, ...] = ()
    groups: Sequence[str] = ()


NONE = QueueSettings()
LIMITS: dict[str, Limit] = {
    "a rate": Limit(NONE, QueueSettings(rate=RATE)),
    "a concurrency": Limit(NONE, QueueSettings(concurrency=MANY)),
    "a named limiter": Limit(NONE, NONE, (LIMITER,)),
    "fairness": Limit(NONE, QueueSettings(fair=True)),
    "a rate of groups": Limit(
        QueueSettings(group=TOGETHER),
        QueueSettings(group=replace(TOGETHER, rate=RATE)),
        groups=GROUPS,
    ),
}


async def limit(bench: Bench) -> None:
    """P13: a drain with each limit, beside one without."""
    jobs = bench.scaled(JOBS)
    for kind, measured in LIMITS.items():
        async with bench.server("native") as server, AsyncClient(server.address) as client:
            await client.limiters.upsert(LIMITER, rate=RATE, concurrency=MANY)
            ratios: list[float] = []
            for _ in range(bench.repeats):
                await client.queues.update(bodies.QUEUE, measured.without)
                free = await _drain(server, jobs, (), measured.groups)
                await client.queues.update(bodies.QUEUE, measured.limited)
                limited = await _drain(server, jobs, measured.limiters, measured.groups)
                ratios.append(free / limited)
        what = f"pull {BATCH} + ack {BATCH}, {CALLERS} callers: more time with {kind}"
        more = max(100 * (median(ratios) - 1), 0.0)
        figure = Figure("P13", what, more, Unit.SHARE, at_most(COST_MAX), "than without")
        bench.add(figure)


async def _drain(
    server: Running, jobs: int, limiters: Sequence[str], groups: Sequence[str]
) -> float:
    """Pushes jobs and drains them; returns jobs a second."""
    request = job_service_pb2.PushRequest(
        queue=bodies.QUEUE, payloads=[bodies.PAYLOAD] * (10 * BATCH), groups=[*groups] * 10
    )
    request.options.limiters.extend(limiters)
    message = request.SerializeToString()
    for _ in range(jobs // (10 * BATCH)):
        await server.wire.push(message)
    return await drain_by_calls(server, jobs, callers=CALLERS, runs=True, batch=BATCH)
