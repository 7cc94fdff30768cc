"""A server that is stopped and goes on, as a suspended machine does: workers keep their leases."""

from __future__ import annotations

import asyncio
import signal
from pathlib import Path
from typing import Any

from google.protobuf.duration_pb2 import Duration
from grpc import aio

from jobline.v1 import job_pb2, job_service_pb2
from jobline.v1.job_service_pb2_grpc import JobServiceStub
from jobline_server.testing import ServerProcess

JOBS = 40
# How long the server stands still: less than a lease of one second, and more.
STANDSTILLS = (0.7, 0.95, 2.5)


class Holder:
    """A worker by bare stubs: it holds what it gets, and is heard four times a second."""

    def __init__(self, channel: aio.Channel) -> None:
        self.call = JobServiceStub(channel).Stream()
        self.ids: list[int] = []
        self.revoked: list[int] = []
        self.has_all = asyncio.Event()

    async def run(self) -> None:
        """Reads and writes until it is cancelled."""
        opening = job_service_pb2.StreamOpen(
            worker=job_service_pb2.WorkerDescription(id="w"),
            queues=[job_service_pb2.QueueWeight(queue=f"held{i}") for i in range(JOBS)],
        )
        window = job_service_pb2.StreamWindow(max_in_flight=2 * JOBS)
        await self.call.write(job_service_pb2.StreamRequest(open=opening, window=window))
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._read())
            tasks.create_task(self._say_something())

    async def _read(self) -> None:
        while isinstance(frame := await self.call.read(), job_service_pb2.StreamResponse):
            self.ids += [job.id for job in frame.jobs]
            self.revoked += [revoke.id for revoke in frame.revokes]
            if len(self.ids) >= JOBS:
                self.has_all.set()

    async def _say_something(self) -> None:
        while True:
            await self.call.write(job_service_pb2.StreamRequest())
            await asyncio.sleep(0.25)


async def push_jobs(stub: Any) -> None:
    """Jobs to be held, each with a lease of a second, and many that become ready meanwhile."""
    options = job_pb2.JobOptions(lease=Duration(seconds=1))
    for i in range(JOBS):
        held = job_service_pb2.PushRequest(queue=f"held{i}", options=options, payloads=[b"x"])
        late = job_service_pb2.PushRequest(queue=f"late{i}", payloads=[b"x"] * 50)
        late.delay.FromMilliseconds(100 * i)
        await stub.Push(held)
        await stub.Push(late)


async def test_leases_of_one_second_outlive_every_standstill(tmp_path: Path) -> None:
    """Trial A8: whatever its length, with timers that are busy in every shard (A6 as well)."""
    async with (
        ServerProcess(tmp_path / "data") as server,
        aio.insecure_channel(server.address) as channel,
    ):
        await push_jobs(JobServiceStub(channel))
        holder = Holder(channel)
        running = asyncio.create_task(holder.run())
        await holder.has_all.wait()
        for seconds in STANDSTILLS:
            server.signal(signal.SIGSTOP)
            await asyncio.sleep(seconds)
            server.signal(signal.SIGCONT)
            await asyncio.sleep(0.6)
        running.cancel()
        assert holder.revoked == []
        assert sorted(holder.ids) == sorted(set(holder.ids))
        assert len(holder.ids) == JOBS
