"""P12: a million jobs that become due within one second.

They are pushed ahead of their time; one stream takes and acks them as they become due. The measure
is from the first due moment to the last ack's answer, which is later than the last hand-out.

Jobs with a time of their own are objects of their own. Those that become due in the order in which
they were pushed, as after equal delays, lie side by side in memory; in any other order each is
somewhere else, which costs more the more there are.
"""

from __future__ import annotations

import asyncio
from time import time

from benchmarks import bodies, machine
from benchmarks.bench import Bench, Running
from benchmarks.drains import StreamDrain
from benchmarks.figures import Figure, Unit, at_most
from benchmarks.h2load import LoadFailed
from jobline.v1 import job_service_pb2

JOBS = 1_000_000
A_CALL = 1_000
CALLERS = 4
WINDOW = 8_000
# To push all of them ahead of their time.
AHEAD_SECONDS = 20.0
LEASED_SECONDS_MAX = 10.0
STALL_SECONDS_MAX = 0.050
# How the times of a call's jobs lie.
LOTS = "in lots of 1,000"
AS_PUSHED = "each with a time of its own, in the order of the pushes"
IN_ANY_ORDER = "each with a time of its own, in any order"


async def become_due(bench: Bench) -> None:
    """P12: jobs of lots that share a time, and jobs that each have a time of their own."""
    jobs = bench.scaled(JOBS)
    async with bench.server("native") as server:
        await server.wire.fill(jobs)
        ready = jobs / await StreamDrain(server, jobs, window=WINDOW, runs=True).run()
    for kind in (LOTS, AS_PUSHED, IN_ANY_ORDER):
        async with bench.server("native") as server:
            due_at = await _fill(server, jobs, kind)
            machine.touch_memory()
            await asyncio.sleep(max(0.0, due_at - 0.5 - time()))
            await StreamDrain(server, jobs, window=WINDOW, runs=kind is LOTS).run()
            seconds = time() - due_at
            lag = (await server.wire.stats()).loop_lag.ToTimedelta().total_seconds()
        what = f"{jobs:,} jobs due in one second, {kind}"
        for about, value, bound, ratio in (
            ("until the last is acked", seconds, LEASED_SECONDS_MAX, seconds / ready),
            ("longest stall of the loop", lag, STALL_SECONDS_MAX, lag / ready),
        ):
            beside = f"{ratio:.2g} × the drain of as many ready jobs ({ready:.1f} s)"
            figure = Figure("P12", f"{what}: {about}", value, Unit.TIME, at_most(bound), beside)
            bench.add(figure)


async def _fill(server: Running, jobs: int, kind: str) -> float:
    """Pushes jobs whose moments are spread over a second; returns the first moment."""
    due_ms = round((time() + AHEAD_SECONDS) * 1_000)
    calls = jobs // A_CALL
    left = iter(range(calls))

    async def caller() -> None:
        for number in left:
            await server.wire.push(_message(due_ms, number * 1_000 // calls, kind))

    await asyncio.gather(*(caller() for _ in range(CALLERS)))
    await server.wire.expect_pushed(0, jobs)
    if time() * 1_000 > due_ms:
        raise LoadFailed(f"to push {jobs} jobs took longer than {AHEAD_SECONDS:.0f} s")
    return due_ms / 1_000


def _message(due_ms: int, after_ms: int, kind: str) -> bytes:
    """A push of a thousand jobs: all due `after_ms` later, or one at each millisecond."""
    if kind is LOTS:
        request = job_service_pb2.PushRequest(
            queue=bodies.QUEUE, payloads=[bodies.PAYLOAD] * A_CALL
        )
        request.run_at.FromMilliseconds(due_ms + after_ms)
        return request.SerializeToString()
    request = job_service_pb2.PushRequest(queue=bodies.QUEUE)
    for index in range(A_CALL):
        row = request.jobs.add(data=bodies.PAYLOAD)
        own_ms = after_ms if kind is AS_PUSHED else index * 1_000 // A_CALL
        row.run_at.FromMilliseconds(due_ms + own_ms)
    return request.SerializeToString()
