"""P3 and P8: jobs handed out and acked, and how long it takes until a worker has one."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from functools import partial
from statistics import median

from benchmarks.bench import TRANSPORTS, Bench
from benchmarks.compare.rows import Measure, Row, metered
from benchmarks.compare.verdict import Sample
from benchmarks.draining import CALLERS, WINDOW
from benchmarks.drains import StreamDrain, drain_by_calls
from benchmarks.figures import Unit
from benchmarks.latency import handed_out

DRAINED = 200_000
HANDED = 120


def rows() -> Iterator[Row]:
    """All rows of hand-outs."""
    for transport in TRANSPORTS:
        for kind in ("runs", "rows"):
            what = f"pull 1,000 + ack 1,000, {CALLERS} callers, {kind}, {transport}"
            yield Row("P3", what, Unit.JOBS, partial(_by_calls, transport, kind == "runs"))
        for kind, order in (
            ("runs", "in order"),
            ("rows", "in order"),
            ("runs", "in random order"),
        ):
            what = f"one stream, window {WINDOW:,}, {kind}, acks {order}, {transport}"
            opened = partial(_by_stream, transport, kind == "runs", order == "in random order")
            yield Row("P3", what, Unit.JOBS, opened)
    for transport in TRANSPORTS:
        what = f"push → a waiting worker has the job, idle server, {transport}: p50"
        yield Row("P8", what, Unit.TIME, partial(_until_handed_out, transport))


@asynccontextmanager
async def _by_calls(transport: str, is_runs: bool, bench: Bench) -> AsyncIterator[Measure]:
    async with bench.server(transport) as server:

        async def measure() -> Sample:
            await server.wire.fill(DRAINED)
            return await metered(
                server,
                DRAINED,
                lambda: drain_by_calls(server, DRAINED, callers=CALLERS, runs=is_runs),
            )

        yield measure


@asynccontextmanager
async def _by_stream(
    transport: str, is_runs: bool, is_shuffled: bool, bench: Bench
) -> AsyncIterator[Measure]:
    async with bench.server(transport) as server:

        async def measure() -> Sample:
            await server.wire.fill(DRAINED)
            drain = StreamDrain(server, DRAINED, window=WINDOW, runs=is_runs, shuffled=is_shuffled)
            return await metered(server, DRAINED, drain.run)

        yield measure


@asynccontextmanager
async def _until_handed_out(transport: str, bench: Bench) -> AsyncIterator[Measure]:
    async with bench.server(transport) as server:

        async def load() -> float:
            handed, _ = await handed_out(server, HANDED)
            return median(handed)

        yield lambda: metered(server, HANDED, load)
