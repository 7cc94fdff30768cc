"""The shell of a worker stream: one task reads, one writes, and neither knows what frames mean.

    reader: message → frame → port.receive        writer: port.next_frame → messages → write

The task of the call is the writer, and it is never cancelled by us: gRPC cannot send a status while
a write is under way. A reader that found a mistake ends the port instead, the writer runs out of
frames, and then the mistake is told.

grpc.aio tells a broken connection twice, first as an end of the messages and a moment later as a
cancellation. So an end of the messages is believed only when that moment has passed: a half-close
says goodbye, but a worker whose connection broke keeps its leases until it is back.
"""

from __future__ import annotations

import asyncio
from itertools import chain
from typing import Any

from jobline.v1 import job_service_pb2
from jobline_server.dispatch.frames import WorkerFrame
from jobline_server.engine.commands import RefusalKind, Refused
from jobline_server.rpc.admission import Gate
from jobline_server.rpc.convert.leases import leases_in
from jobline_server.rpc.convert.stream import server_messages, worker_frame
from jobline_server.rpc.guard import Frames
from jobline_server.runtime.calls.worker_stream import WorkerStream
from jobline_server.runtime.runtime import Runtime

# How long the first frame may take to come.
OPEN_SECONDS = 10.0
# How long after the end of the messages a cancellation may still arrive.
BROKEN_SECONDS = 0.1


async def serve_stream(runtime: Runtime, frames: Frames, streams: Gate) -> None:
    """Serves one stream, from its first frame to its end; returns when it has ended well."""
    first = await _first_frame(frames)
    size, frame = first.ByteSize(), worker_frame(first)
    # It may be as large as a message can be, and the stream as long as a day.
    del first
    if frame.open is None:
        raise mistake("a stream begins with open")
    with streams.holding(size):
        opening, frame.open = frame.open, None
        await _serve(runtime.streams.open_stream(opening), frame, frames)


async def _serve(port: WorkerStream, frame: WorkerFrame, frames: Frames) -> None:
    try:
        port.receive(frame)
        await _read_and_write(frames, port)
    except BaseException:
        port.disconnect()
        raise


async def _read_and_write(frames: Frames, port: WorkerStream) -> None:
    reader = _Reader(frames, port)
    task = asyncio.create_task(reader.run())
    try:
        await _write(frames, port)
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
    found, reader.mistake = reader.mistake, None
    try:
        if found is not None:
            raise found
    finally:
        # It holds this frame, and what was read: nothing of it is to stay.
        del found


async def _write(frames: Frames, port: WorkerStream) -> None:
    while (frame := await port.next_frame()) is not None:
        messages = server_messages(frame)
        unsent = next(messages, None)
        try:
            while unsent is not None:
                await frames.write(unsent)
                unsent = next(messages, None)
                if unsent is not None:
                    # The transport may take a message without a wait.
                    await _let_others_run()
        finally:
            # A write that fails, or is cancelled, had not been taken by the transport.
            if unsent is not None:
                left = map(job_service_pb2.StreamResponse.FromString, chain([unsent], messages))
                port.handle_unsent(leases_in(left))


class _Reader:
    """Takes what the worker sends. `mistake` is why it stopped, if it stopped early."""

    def __init__(self, frames: Frames, port: WorkerStream) -> None:
        self._frames = frames
        self._port = port
        self.mistake: Exception | None = None

    async def run(self) -> None:
        """Reads to the end."""
        try:
            while (message := await self._frames.read()) is not None:
                for _ in self._port.receive_slices(worker_frame(message)):
                    await _let_others_run()
                await self._port.wait_room()
            await _pause(BROKEN_SECONDS)
            self._port.half_close()
        except Exception as error:  # noqa: BLE001  # the writer's task raises it
            self.mistake = error
            self._port.disconnect()
            self._port.end()


async def _first_frame(frames: Frames) -> Any:
    """The first message, which has to come within a time."""
    try:
        async with asyncio.timeout(OPEN_SECONDS):
            first = await frames.read()
    except TimeoutError:
        raise mistake("the first frame did not come") from None
    if first is None:
        raise mistake("a stream begins with open")
    return first


def mistake(message: str) -> Refused:
    """The refusal of a stream that does not begin as it must."""
    return Refused(RefusalKind.PROTOCOL_MISTAKE, message, field="open")


async def _let_others_run() -> None:
    """Comes back in the next iteration of the loop."""
    await asyncio.sleep(0)  # noqa: TID251  # it does not wait


async def _pause(seconds: float) -> None:
    passed = asyncio.Event()
    timer = asyncio.get_running_loop().call_later(seconds, passed.set)
    try:
        await passed.wait()
    finally:
        timer.cancel()
