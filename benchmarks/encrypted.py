"""TLS: what it costs on both transports, beside the same pushes in plaintext, in one run."""

from __future__ import annotations

from statistics import median

from benchmarks import bodies
from benchmarks.bench import TRANSPORTS, Bench, Running
from benchmarks.certificates import make_certificate
from benchmarks.figures import Figure, Unit
from benchmarks.h2load import Callers
from benchmarks.latency import CALLS, push_times

# Jobs of a call, and who calls.
LOADS = ((1, Callers(4, 16)), (100, Callers(4, 16)), (1_000, Callers(4, 4)))


async def encrypt(bench: Bench) -> None:
    """Rates and times by TLS, each with its share of those in plaintext."""
    certificate = make_certificate(bench.directory)
    for transport in TRANSPORTS:
        async with bench.server(transport) as plain:
            before = await _measure(bench, plain)
        async with bench.server(transport, certificate=certificate) as server:
            found = await _measure(bench, server)
        for (jobs, callers), rate, plain_rate in zip(LOADS, found[0], before[0], strict=True):
            what = f"{jobs:,} plain jobs a call, {callers} callers, {transport} by TLS"
            ratio = f"{rate / plain_rate:.0%} of plaintext"
            bench.add(Figure("TLS", what, rate, Unit.JOBS, ratio=ratio))
        ratio = f"{found[1] / before[1]:.2f} × plaintext"
        what = f"one push at a time, {transport} by TLS: p50"
        bench.add(Figure("TLS", what, found[1], Unit.TIME, ratio=ratio))


async def _measure(bench: Bench, server: Running) -> tuple[list[float], float]:
    """Returns jobs a second of each load, and how long one push takes, in seconds."""
    rates = [
        await bench.push_rate(server, bodies.plain(jobs), jobs=jobs, callers=callers)
        for jobs, callers in LOADS
    ]
    return rates, median(await push_times(server, bench.scaled(CALLS)))
