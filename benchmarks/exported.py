"""P16: what exporting the history costs pushes and drains, on the server's one core.

Two servers run, one of which exports; both are measured in pairs, one right after the other, AB BA
AB, in rounds with fresh servers. What was exported is counted afterwards.
"""

from __future__ import annotations

import shutil
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path
from statistics import median
from typing import NamedTuple

from benchmarks import bodies, machine
from benchmarks.bench import TRANSPORTS, Bench, Running, post_counted
from benchmarks.draining import CALLERS, WINDOW
from benchmarks.drains import StreamDrain, drain_by_calls
from benchmarks.figures import Figure, Unit, at_most, shown
from benchmarks.h2load import Callers, LoadFailed
from benchmarks.pushing import FOUR, SIXTEEN

COST_MAX = 10.0
# Two servers differ as long as they run, by up to a sixth either way: a virtual machine gives their
# memory better or worse places. So many fresh ones are compared, with a few pairs each.
PAIRS_A_ROUND = 3
ROUNDS_PUSH, ROUNDS, ROUNDS_IN_ANY_ORDER = 5, 7, 10
CALLS = {1_000: 1_000, 10_000: 300}
# A drain takes a second or two, and a round a quarter of a minute.
PULLED, IN_ORDER, IN_ANY_ORDER = 1_000_000, 2_000_000, 1_000_000
# Files are finished and sent in each round; the default is once in a minute.
SECONDS = "5"


class Sample(NamedTuple):
    """Jobs a second, and the server's seconds of processor time a job."""

    rate: float
    processor: float


Measure = Callable[[Running], Awaitable[Sample]]


class Load(NamedTuple):
    """A load, and in how many rounds it is compared."""

    what: str
    measure: Measure
    rounds: int = ROUNDS


class Pair(NamedTuple):
    """One load of both servers, one right after the other."""

    with_it: Sample
    without: Sample


async def export(bench: Bench) -> None:
    """P16: pushes and drains with the history exported, beside the same without."""
    for transport in TRANSPORTS:
        for load in _loads(bench):
            await _compare(bench, transport, load)


def _loads(bench: Bench) -> list[Load]:
    pushes = ((1_000, SIXTEEN), (10_000, FOUR))
    streams = (("in order", False), ("in random order", True))
    return [
        *[
            Load(
                f"push, {jobs:,} plain jobs a call, {callers} callers",
                partial(_push, jobs, callers, bench.scaled(CALLS[jobs])),
                ROUNDS_PUSH,
            )
            for jobs, callers in pushes
        ],
        Load(f"pull 1,000 + ack 1,000, {CALLERS} callers", partial(_by_calls, bench)),
        *[
            Load(
                f"one stream, window {WINDOW:,}, acks {order}",
                partial(_by_stream, bench, random),
                ROUNDS_IN_ANY_ORDER if random else ROUNDS,
            )
            for order, random in streams
        ],
    ]


async def _compare(bench: Bench, transport: str, load: Load) -> None:
    pairs: list[Pair] = []
    for _ in range(1 if bench.quick else load.rounds):
        pairs += await _round(bench, transport, load)
    slower = median([pair.without.rate / pair.with_it.rate for pair in pairs]) - 1
    processor = median([pair.with_it.processor / pair.without.processor for pair in pairs]) - 1
    usual = shown(median([pair.without.rate for pair in pairs]), Unit.JOBS)
    what = f"{load.what}, {transport}: more time with the history exported"
    ratio = f"processor time + {100 * processor:.0f} %"
    note = f"than without, {usual}"
    more = max(100 * slower, 0.0)
    bench.add(Figure("P16", what, more, Unit.SHARE, at_most(COST_MAX), ratio, note=note))


async def _round(bench: Bench, transport: str, load: Load) -> list[Pair]:
    """Measures two fresh servers in pairs, and counts what was exported."""
    history, data = bench.fresh_directory(), bench.fresh_directory()
    pairs: list[Pair] = []
    try:
        async with AsyncExitStack() as stack:
            free = await stack.enter_async_context(bench.server(transport))
            flags = ("--history", str(history), "--history-seconds", SECONDS)
            exporting = await stack.enter_async_context(bench.server_on(data, transport, *flags))
            for number in range(PAIRS_A_ROUND + 1):
                order = (free, exporting) if number % 2 else (exporting, free)
                found = {server.address: await load.measure(server) for server in order}
                # The first pair warms up, and is not counted.
                if number:
                    pairs.append(Pair(found[exporting.address], found[free.address]))
            stats = await exporting.wire.stats()
        events = _count(history) + _count(data)
    finally:
        for directory in (history, data):
            shutil.rmtree(directory, ignore_errors=True)
    # A completed job was pushed, leased and completed.
    expected = stats.pushed_total + 2 * stats.completed_total
    if events != expected:
        raise LoadFailed(f"of {expected} events {events} were exported")
    return pairs


def _count(directory: Path) -> int:
    from pyarrow import parquet  # noqa: PLC0415  # no other benchmark needs it

    return sum([parquet.read_metadata(path).num_rows for path in directory.rglob("*.parquet")])


def _begun(server: Running) -> float:
    """Returns the seconds of processor time of a server before it is measured."""
    machine.touch_memory()
    return server.process.processor_seconds()


async def _push(jobs: int, callers: Callers, calls: int, server: Running) -> Sample:
    before = _begun(server)
    rate = await post_counted(server, bodies.plain(jobs), jobs=jobs, calls=calls, callers=callers)
    used = server.process.processor_seconds() - before
    return Sample(rate * jobs, used / (calls * jobs))


async def _by_calls(bench: Bench, server: Running) -> Sample:
    jobs = bench.scaled(PULLED)
    await server.wire.fill(jobs)
    before = _begun(server)
    rate = await drain_by_calls(server, jobs, callers=CALLERS, runs=True)
    return Sample(rate, (server.process.processor_seconds() - before) / jobs)


async def _by_stream(bench: Bench, shuffled: bool, server: Running) -> Sample:
    jobs = bench.scaled(IN_ANY_ORDER if shuffled else IN_ORDER)
    await server.wire.fill(jobs)
    before = _begun(server)
    drain = StreamDrain(server, jobs, window=WINDOW, runs=True, shuffled=shuffled)
    rate = await drain.run()
    return Sample(rate, (server.process.processor_seconds() - before) / jobs)
