"""A thousand idle workers beside fifty busy ones, each on a connection of its own: what they cost,
and that all are back soon after the server was killed, with a key each call.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter
from typing import Any

import grpc
import pytest
from grpc import aio

from benchmarks import bodies
from benchmarks.drains import leases_of
from benchmarks.processes import memory_bytes
from jobline.v1 import job_service_pb2 as pb
from jobline.v1.job_service_pb2_grpc import JobServiceStub
from jobline_server.testing import processes
from jobline_server.testing.processes import ServerProcess
from tests.server.access import auth_file, key, of_verbs

pytestmark = [pytest.mark.fault, pytest.mark.timeout(300)]

IDLE, BUSY = 1_000, 50
JOBS = 5_000
# After a restart, until all streams are there again and all jobs are done: time of the server's
# processor, which is what it takes on a machine that does nothing else, and by the clock.
SETTLE_SECONDS = 10.0
SETTLE_SECONDS_MAX = 120.0
STREAM_BYTES_MAX = 200 << 10
# Processor time a job, beside the idle ones.
SHARE_MAX = 1.5
AGAIN_SECONDS = 0.2
METADATA = (("authorization", f"Bearer {key('root')}"),)


@dataclass
class Workers:
    """Streams that come back whenever they break."""

    address: str
    opened: int = 0
    acked: int = 0
    changed: asyncio.Event = field(default_factory=asyncio.Event)

    def channel(self) -> aio.Channel:
        """A connection of its own, that is made again soon."""
        options = [
            ("grpc.use_local_subchannel_pool", 1),
            ("grpc.initial_reconnect_backoff_ms", 100),
            ("grpc.max_reconnect_backoff_ms", 1_000),
        ]
        return grpc.aio.insecure_channel(self.address, options=options)

    async def work(self, queue: str) -> None:
        """One worker, until it is cancelled."""
        async with self.channel() as channel:
            while True:
                with suppress(aio.AioRpcError, aio.InternalError, asyncio.InvalidStateError):
                    await self._serve(channel, queue)
                await asyncio.sleep(AGAIN_SECONDS)

    async def _serve(self, channel: Any, queue: str) -> None:
        stream = channel.stream_stream(bodies.STREAM)(metadata=METADATA)
        await stream.write(bodies.opening(20, runs=True, queue=queue))
        seq, is_open = 0, False
        try:
            while (frame := await stream.read()) is not aio.EOF:
                reply = pb.StreamResponse.FromString(frame)
                if not is_open:
                    is_open = True
                    self._count(1, 0)
                ids, deliveries = leases_of(reply)
                if ids:
                    seq += 1
                    await stream.write(bodies.settle(seq, ids, deliveries))
                    self._count(0, len(ids))
        finally:
            self._count(-int(is_open), 0)
            stream.cancel()

    def _count(self, opened: int, acked: int) -> None:
        self.opened += opened
        self.acked += acked
        self.changed.set()

    async def until(self, opened: int, acked: int = 0) -> None:
        """Waits until so many streams are open, and acks sent."""
        while self.opened < opened or self.acked < acked:
            self.changed.clear()
            await self.changed.wait()


@asynccontextmanager
async def working(workers: Workers, queue: str, count: int) -> AsyncIterator[None]:
    """So many workers, for the length of the block."""
    tasks = [asyncio.create_task(workers.work(queue)) for _ in range(count)]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def push(workers: Workers, count: int) -> None:
    """Pushes jobs for the busy ones, again until the server is there."""
    request = pb.PushRequest(queue="busy", payloads=[b"x"] * count, request_id=os.urandom(8).hex())
    async with workers.channel() as channel:
        stub: Any = JobServiceStub(channel)
        await stub.Push(request, metadata=METADATA, wait_for_ready=True, timeout=60)


def processor_seconds(pid: int) -> float:
    """Time of the processor that a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


async def a_job_costs(server: ServerProcess, workers: Workers) -> float:
    """Seconds of the server's processor for each of some jobs."""
    used, before = processor_seconds(server.pid), workers.acked
    await push(workers, JOBS)
    await workers.until(0, before + JOBS)
    return (processor_seconds(server.pid) - used) / JOBS


async def test_all_workers_are_back_soon_after_a_kill(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And the busy ones go on with what is left, and with what is new."""
    monkeypatch.setattr(processes, "READY_SECONDS", SETTLE_SECONDS_MAX)
    auth = auth_file(tmp_path, of_verbs())
    async with ServerProcess(tmp_path / "data", transport="auto", auth=auth) as server:
        workers = Workers(server.address)
        async with working(workers, "busy", BUSY):
            await workers.until(BUSY)
            await a_job_costs(server, workers)  # the first ones warm both sides up
            alone, size = await a_job_costs(server, workers), memory_bytes(server.pid)
            async with working(workers, "idle", IDLE):
                await workers.until(BUSY + IDLE)
                stream_bytes = (memory_bytes(server.pid) - size) / IDLE
                beside = await a_job_costs(server, workers)
                await server.kill()
                while workers.opened:
                    workers.changed.clear()
                    await workers.changed.wait()
                began, acked = perf_counter(), workers.acked
                await server.start()
                await push(workers, JOBS)
                await workers.until(BUSY + IDLE, acked + JOBS)
                took, used = perf_counter() - began, processor_seconds(server.pid)
    print(
        f"all back after {took:.1f} s, of which the server worked {used:.1f}, its start included; "
        f"{stream_bytes / 1024:.0f} KiB a stream; a job costs {1e6 * alone:.0f} µs, "
        f"{beside / alone:.2f} × that beside {IDLE} idle streams"
    )
    assert used < SETTLE_SECONDS
    assert took < SETTLE_SECONDS_MAX
    assert stream_bytes < STREAM_BYTES_MAX
    assert beside < SHARE_MAX * alone
