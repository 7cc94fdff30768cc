"""Workers that send and do not read: how much waits for them is bounded."""

from __future__ import annotations

import asyncio

import pytest

from jobline.v1 import job_service_pb2
from jobline_server.dispatch.frames import Open, Window, Worker, WorkerFrame
from jobline_server.engine.commands import ExtendItem, Push
from jobline_server.engine.payloads import Payloads
from jobline_server.engine.values import DEFAULT_OPTIONS, AckLevel, JobState
from jobline_server.rpc import job_stream
from jobline_server.runtime.calls import worker_stream as port_module
from jobline_server.runtime.runtime import Runtime


class Sender:
    """Frames of a worker that sends what nobody has, and never reads."""

    def __init__(self, frames: int) -> None:
        self.left = frames

    async def read(self) -> job_service_pb2.StreamRequest | None:
        """The next one."""
        self.left -= 1
        ids = range(1, 101)
        settle = job_service_pb2.StreamSettle(seq=1, ack_ids=ids, ack_deliveries=ids)
        extends = [job_service_pb2.ExtendItem(id=1, delivery=1)]
        frame = job_service_pb2.StreamRequest(settles=[settle], extends=extends)
        return frame if self.left >= 0 else None


async def test_frames_are_not_read_while_the_worker_leaves_their_answers_unread(
    runtime: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Trial E6: what it may leave unread is bounded, however fast it sends."""
    monkeypatch.setattr(port_module, "UNREAD_MAX", 1_000)
    stream = runtime.streams.open_stream(Open(Worker("w"), (("mail", 1),)))
    sender = Sender(frames=30)
    reader = asyncio.create_task(job_stream._Reader(sender, stream).run())  # type: ignore[arg-type]  # a fake

    await asyncio.sleep(0.05)
    assert sender.left == 20  # each is answered with 102 entries
    await runtime.core.commits.commit_once()
    confirmed = 0
    while confirmed < 30:
        frame = await stream.next_frame()
        assert frame is not None
        assert sum(len(confirm.exceptions) for confirm in frame.confirms) <= 1_100
        confirmed += len(frame.confirms)
        await asyncio.sleep(0)
        await runtime.core.commits.commit_once()
    await reader


async def test_a_reader_that_waits_for_its_worker_ends_with_the_stream(
    runtime: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody reads any more."""
    monkeypatch.setattr(port_module, "UNREAD_MAX", 0)
    stream = runtime.streams.open_stream(Open(Worker("w"), (("mail", 1),)))
    stream.receive(WorkerFrame(extends=[ExtendItem(1, 1)]))
    waiting = asyncio.create_task(stream.wait_room())
    await asyncio.sleep(0)

    stream.disconnect()

    await waiting


@pytest.mark.parametrize("window", [Window(2, 1_000), Window(1_000, 200)])
async def test_jobs_that_were_not_sent_fill_the_window_even_if_they_are_settled(
    runtime: Runtime, window: Window
) -> None:
    """Trial E6: deliveries can be guessed, so a worker that never reads could settle what it was
    never sent, and be handed the next jobs, whose payloads would wait for it.
    """
    payloads = Payloads.of([bytes(100)] * 10)
    await runtime.pushes.push(
        Push("mail", DEFAULT_OPTIONS, payloads=payloads, level=AckLevel.BUFFERED)
    )
    await runtime.core.commits.commit_once()
    stream = runtime.streams.open_stream(Open(Worker("w"), (("mail", 1),)))
    stream.receive(WorkerFrame(window=window))
    told = 0

    async def settle_all() -> None:
        for holder in stream.holders.values():
            leases = list(holder.held())
            ids, deliveries = [lease[0] for lease in leases], [lease[1] for lease in leases]
            acked = asyncio.ensure_future(runtime.settle_calls.ack(ids, deliveries, {}))
            await asyncio.sleep(0)
            await runtime.core.commits.commit_once()
            await acked

    await settle_all()
    assert runtime.queues.get_queue("mail").counts[JobState.READY] == 8
    while told < 10:
        async with asyncio.timeout(5):
            frame = await stream.next_frame()  # is being written
        assert frame is not None
        told += sum(leased.count() for leased in frame.leased)
        before = runtime.queues.get_queue("mail").counts[JobState.READY]
        await settle_all()
        assert runtime.queues.get_queue("mail").counts[JobState.READY] == before
