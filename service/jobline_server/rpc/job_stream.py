"""The gRPC side of a worker stream: one task reads, one writes, and neither interprets frames.

    reader: message → frame → stream.receive      writer: stream.next_frame → messages → write

The writer is the task of the call. It is never cancelled here, because gRPC cannot send a status
during a write. A reader that meets an error ends the stream instead; the writer runs out of frames,
and the call ends with that error.

grpc.aio reports a broken connection twice: first as the end of the messages, a moment later as a
cancellation. So the end of the messages counts as a half-close only after that moment: after a
half-close the leases are released, but a worker whose connection broke keeps them until it is back.
"""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Any

from jobline.v1 import job_service_pb2
from jobline_server.dispatch.frames import Open, WorkerFrame
from jobline_server.engine.commands import RefusalKind, Refused
from jobline_server.rpc.convert.leases import leases_in
from jobline_server.rpc.convert.stream import server_messages, worker_frame
from jobline_server.rpc.gates import Gate
from jobline_server.rpc.guard import Frames
from jobline_server.runtime.calls.worker_stream import WorkerStream
from jobline_server.runtime.runtime import Runtime

# The time limit for the first frame.
OPEN_SECONDS = 10.0
# What a handler takes in memory beside its schemas.
HANDLER_EXTRA_BYTES = 500
# How long after the end of the messages a cancellation may still arrive.
BROKEN_SECONDS = 0.1


async def serve_stream(
    runtime: Runtime, frames: Frames, streams: Gate, *, broken_seconds: float = BROKEN_SECONDS
) -> None:
    """Serves one stream from its first frame to its end; returns when it ended without an error.
    `broken_seconds`: how long after the last message the connection may turn out to be broken.
    """
    first = await _first_frame(frames)
    size, frame = first.ByteSize(), worker_frame(first)
    # Not kept: it may be as large as a message can be, and a stream may last for a day.
    del first
    if frame.open is None:
        raise mistake("a stream begins with open")
    opening, frame.open = frame.open, None
    with streams.holding(size + _extra_bytes(opening)):
        await _serve(runtime.streams.open_stream(opening), frame, frames, broken_seconds)


def _extra_bytes(opening: Open) -> int:
    """Returns how much more than its message an `open` takes, which may be less than nothing: equal
    schemas of all streams are kept once, and counted apart.
    """
    schemas = sum([len(one.payload_schema) + len(one.result_schema) for one in opening.handlers])
    return HANDLER_EXTRA_BYTES * len(opening.handlers) - schemas


async def _serve(
    stream: WorkerStream, frame: WorkerFrame, frames: Frames, broken_seconds: float
) -> None:
    frames.attach(partial(_break_off, stream))
    try:
        stream.receive(frame)
        await _read_and_write(frames, stream, broken_seconds)
    except BaseException:
        stream.disconnect()
        raise


async def _read_and_write(frames: Frames, stream: WorkerStream, broken_seconds: float) -> None:
    reader = _Reader(frames, stream, broken_seconds)
    task = asyncio.create_task(reader.run())
    try:
        await _write(frames, stream)
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
    found, reader.error = reader.error, None
    try:
        if found is not None:
            raise found
    finally:
        # Its traceback holds this frame and the requests; release them.
        del found


async def _write(frames: Frames, stream: WorkerStream) -> None:
    while (frame := await stream.next_frame()) is not None:
        messages = server_messages(frame)
        unsent = next(messages, None)
        try:
            while unsent is not None:
                await frames.write(unsent)
                unsent = next(messages, None)
                if unsent is not None:
                    # The transport may take a message without waiting.
                    await _let_others_run()
        finally:
            # A message whose write fails or is cancelled was not taken by the transport, as far as
            # can be known here; those behind it were not written at all.
            if unsent is not None:
                stream.handle_unsent(leases_in(map(_parsed, messages)))
                stream.handle_doubtful(leases_in([_parsed(unsent)]))


def _parsed(message: bytes) -> job_service_pb2.StreamResponse:
    return job_service_pb2.StreamResponse.FromString(message)


class _Reader:
    """Reads the frames of the worker. `error`: why it stopped, if it stopped early."""

    def __init__(
        self, frames: Frames, stream: WorkerStream, broken_seconds: float = BROKEN_SECONDS
    ) -> None:
        self._frames = frames
        self._broken_seconds = broken_seconds
        self._stream = stream
        self.error: Exception | None = None

    async def run(self) -> None:
        """Reads until the worker half-closes, or an error."""
        try:
            while (message := await self._frames.read()) is not None:
                for _ in self._stream.receive_slices(worker_frame(message)):
                    await _let_others_run()
                await self._stream.wait_room()
            await _pause(self._broken_seconds)
            self._stream.half_close()
        except Exception as error:  # noqa: BLE001  # the writer's task raises it
            self.error = error
            _break_off(self._stream)


def _break_off(stream: WorkerStream) -> None:
    """Ends a stream as if its connection had broken."""
    stream.disconnect()
    stream.end()


async def _first_frame(frames: Frames) -> Any:
    """Returns the first message; refuses the stream if it does not come in time."""
    try:
        async with asyncio.timeout(OPEN_SECONDS):
            first = await frames.read()
    except TimeoutError:
        raise mistake("the first frame did not come") from None
    if first is None:
        raise mistake("a stream begins with open")
    return first


def mistake(message: str) -> Refused:
    """Returns the refusal of a stream that does not begin with `open`."""
    return Refused(RefusalKind.PROTOCOL_MISTAKE, message, field="open")


async def _let_others_run() -> None:
    """Continues in the next iteration of the loop."""
    await asyncio.sleep(0)  # noqa: TID251  # it does not wait


async def _pause(seconds: float) -> None:
    passed = asyncio.Event()
    timer = asyncio.get_running_loop().call_later(seconds, passed.set)
    try:
        await passed.wait()
    finally:
        timer.cancel()
