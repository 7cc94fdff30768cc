"""P3: jobs handed out and acked, by calls and by one stream."""

from __future__ import annotations

from benchmarks.bench import TRANSPORTS, Bench, Running
from benchmarks.drains import StreamDrain, drain_by_calls
from benchmarks.figures import Figure, Unit, at_least, beside_floor

JOBS = 1_000_000
CALLERS = 4
WINDOW = 8_000


async def drain(bench: Bench) -> None:
    """P3: pull 1,000 and ack 1,000; one stream that delivers and takes acks. Each beside an empty
    server that hands out the same bytes.
    """
    for transport in TRANSPORTS:
        for runs, bound in ((True, 900_000), (False, 400_000)):
            what = f"pull 1,000 + ack 1,000, {CALLERS} callers, {_kind(runs)}, {transport}"
            async with bench.floor(transport) as floor:
                empty = await _by_calls(bench, floor, runs)
            async with bench.server(transport) as server:
                value = await _by_calls(bench, server, runs)
            ratio = beside_floor(value, empty)
            bench.add(Figure("P3", what, value, Unit.JOBS, at_least(bound), ratio))
    streams = (
        (True, False, 1_500_000, "acks in order"),
        (False, False, 400_000, "acks in order"),
        (True, True, 500_000, "acks in random order"),
    )
    for transport in TRANSPORTS:
        for runs, shuffled, bound, order in streams:
            what = f"one stream, window {WINDOW:,}, {_kind(runs)}, {order}, {transport}"
            async with bench.floor(transport) as floor:
                empty = await _by_stream(bench, floor, runs, shuffled)
            async with bench.server(transport) as server:
                value = await _by_stream(bench, server, runs, shuffled)
            ratio = beside_floor(value, empty)
            bench.add(Figure("P3", what, value, Unit.JOBS, at_least(bound), ratio))


def _kind(runs: bool) -> str:
    return "runs" if runs else "rows"


async def _by_calls(bench: Bench, running: Running, runs: bool) -> float:
    jobs = bench.scaled(JOBS)

    async def measure() -> float:
        await _fill(running, jobs)
        return await drain_by_calls(running, jobs, callers=CALLERS, runs=runs)

    return await bench.best(running, measure)


async def _by_stream(bench: Bench, running: Running, runs: bool, shuffled: bool) -> float:
    jobs = bench.scaled(JOBS)

    async def measure() -> float:
        await _fill(running, jobs)
        drain = StreamDrain(running, jobs, window=WINDOW, runs=runs, shuffled=shuffled)
        return await drain.run()

    return await bench.best(running, measure)


async def _fill(running: Running, jobs: int) -> None:
    if not running.is_floor:
        await running.wire.fill(jobs)
