"""Workers that send and do not read: how much waits for them is bounded."""

from __future__ import annotations

import asyncio

import pytest

from jobline.v1 import job_service_pb2
from jobline_server.dispatch.frames import Open, Worker, WorkerFrame
from jobline_server.engine.commands import ExtendItem
from jobline_server.rpc import job_stream
from jobline_server.runtime import port as port_module
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
    port = runtime.open_stream(Open(Worker("w"), (("mail", 1),)))
    sender = Sender(frames=30)
    reader = asyncio.create_task(job_stream._Reader(sender, port).run())  # type: ignore[arg-type]  # a fake

    await asyncio.sleep(0.05)
    assert sender.left == 20  # each is answered with 102 entries
    await runtime.core.commits.commit_once()
    confirmed = 0
    while confirmed < 30:
        frame = await port.next_frame()
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
    port = runtime.open_stream(Open(Worker("w"), (("mail", 1),)))
    port.receive(WorkerFrame(extends=[ExtendItem(1, 1)]))
    waiting = asyncio.create_task(port.wait_room())
    await asyncio.sleep(0)

    port.disconnect()

    await waiting
