"""P1, P2, P5 and P7: pushes, many jobs a call and one."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial

from benchmarks import bodies
from benchmarks.bench import TRANSPORTS, Bench, post_counted
from benchmarks.compare.rows import Measure, Row, metered
from benchmarks.compare.verdict import Sample
from benchmarks.figures import Unit
from benchmarks.h2load import Callers
from benchmarks.latency import percentiles, push_times
from benchmarks.pushing import FOUR, SIXTEEN, SIXTY_FOUR, push_traced

TRACED_CALLS = 60
ONE_AT_A_TIME = 600


@dataclass(frozen=True, slots=True)
class _Push:
    """One push that is posted `calls` times."""

    number: str
    what: str
    message: bytes
    jobs: int
    callers: Callers
    calls: int


_PUSHES = {
    transport: (
        _Push("P1", "1,000 plain jobs", bodies.plain(1_000), 1_000, SIXTEEN, 800),
        _Push("P1", "10,000 plain jobs", bodies.plain(10_000), 10_000, FOUR, 100),
        _Push("P2", "1,000 jobs with options", bodies.rows(1_000), 1_000, SIXTEEN, 200),
        _Push("P2", "10 plain jobs", bodies.plain(10), 10, SIXTY_FOUR, tens),
        _Push("P5", "one job", bodies.plain(1), 1, SIXTY_FOUR, ones),
    )
    for transport, tens, ones in (("grpcio", 4_000, 4_000), ("native", 12_000, 12_000))
}


def rows() -> Iterator[Row]:
    """All rows of pushes."""
    for transport in TRANSPORTS:
        for push in _PUSHES[transport]:
            what = f"push, {push.what} a call, {push.callers} callers, {transport}"
            yield Row(push.number, what, Unit.JOBS, partial(_posting, transport, push))
    yield Row("P2", "push, a trace header in every job, native", Unit.JOBS, _traced)
    for transport in TRANSPORTS:
        what = f"one push at a time, {transport}: p50"
        yield Row("P7", what, Unit.TIME, partial(_one_at_a_time, transport))


@asynccontextmanager
async def _posting(transport: str, push: _Push, bench: Bench) -> AsyncIterator[Measure]:
    async with bench.server(transport) as server:

        async def load() -> float:
            calls, callers = push.calls, push.callers
            rate = await post_counted(
                server, push.message, jobs=push.jobs, calls=calls, callers=callers
            )
            return rate * push.jobs

        yield lambda: metered(server, push.calls * push.jobs, load)


@asynccontextmanager
async def _traced(bench: Bench) -> AsyncIterator[Measure]:
    async with bench.server("native") as server:
        yield lambda: metered(
            server, 1_000 * TRACED_CALLS, lambda: push_traced(server, TRACED_CALLS)
        )


@asynccontextmanager
async def _one_at_a_time(transport: str, bench: Bench) -> AsyncIterator[Measure]:
    async with bench.server(transport) as server:

        async def load() -> float:
            return percentiles(await push_times(server, ONE_AT_A_TIME))[0]

        async def measure() -> Sample:
            return await metered(server, ONE_AT_A_TIME, load)

        yield measure
