"""P13: what groups and unique keys cost. Jobs that have one are objects of their own, so they stand
beside jobs with options of their own; both are pushed, pulled and acked a hundred at a time.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from statistics import median
from time import perf_counter

from benchmarks import bodies
from benchmarks.bench import Bench, Running
from benchmarks.drains import drain_by_calls
from benchmarks.figures import Figure, Unit, at_most
from benchmarks.limited import BATCH, CALLERS, COST_MAX, JOBS
from jobline.v1 import job_service_pb2

Body = Callable[[int], bytes]
"""A push of a hundred jobs, of a number that rises."""


async def limit_rows(bench: Bench) -> None:
    """P13: with groups and with unique keys, beside jobs that have neither."""
    jobs = bench.scaled(JOBS)
    for kind, body in KINDS.items():
        async with bench.server("native") as server:
            numbers = count()
            await _seconds(server, jobs, lambda _number: bodies.rows(BATCH), numbers)
            ratios: list[float] = []
            for _ in range(bench.repeats):
                free = await _seconds(server, jobs, lambda _number: bodies.rows(BATCH), numbers)
                ratios.append(await _seconds(server, jobs, body, numbers) / free)
        what = f"push {BATCH}, pull {BATCH} + ack {BATCH}, {CALLERS} callers: more time with {kind}"
        more = max(100 * (median(ratios) - 1), 0.0)
        note = "than with options of their own"
        bench.add(Figure("P13", what, more, Unit.SHARE, at_most(COST_MAX), note))


async def _seconds(server: Running, jobs: int, body: Body, numbers: count[int]) -> float:
    """Pushes jobs and drains them; returns how long both took."""
    messages = [body(next(numbers)) for _ in range(jobs // BATCH)]
    began = perf_counter()
    for message in messages:
        await server.wire.push(message)
    pushed = perf_counter() - began
    return pushed + jobs / await drain_by_calls(
        server, jobs, callers=CALLERS, runs=False, batch=BATCH
    )


def _grouped(number: int) -> bytes:
    """A job of each of a hundred groups, which are others in each push."""
    request = _plain()
    request.groups.extend([f"group-{number * BATCH + index}" for index in range(BATCH)])
    return request.SerializeToString()


def _unique(number: int) -> bytes:
    request = _plain()
    request.unique_keys.extend([f"user-{number * BATCH + index}" for index in range(BATCH)])
    return request.SerializeToString()


def _plain() -> job_service_pb2.PushRequest:
    return job_service_pb2.PushRequest(queue=bodies.QUEUE, payloads=[bodies.PAYLOAD] * BATCH)


KINDS: dict[str, Body] = {"a group each": _grouped, "a unique key each": _unique}
