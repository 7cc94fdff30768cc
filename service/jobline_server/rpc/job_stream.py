"""The shell of a worker stream: one task reads, one writes, and neither knows what frames mean.

    reader: message → frame → port.receive        writer: port.next_frame → messages → write

The reader reads the first frame, opens the port and starts the writer; whichever ends first ends
the other. grpc.aio tells a broken connection twice, first as an end of the messages and a moment
later as a cancellation, so an end of the messages is believed only when that moment has passed: a
half-close says goodbye, but a worker whose connection broke keeps its leases until it is back.
"""

from __future__ import annotations

import asyncio

from jobline_server.engine.commands import RefusalKind, Refused
from jobline_server.rpc.convert.stream import server_messages, worker_frame
from jobline_server.rpc.guard import Frames, first_of_group
from jobline_server.runtime.port import StreamPort
from jobline_server.runtime.runtime import Runtime

# How long the first frame may take to come.
OPEN_SECONDS = 10.0
# How long after the end of the messages a cancellation may still arrive.
BROKEN_SECONDS = 0.1


class StreamShell:
    """One stream, from its first frame to its end."""

    __slots__ = ("_frames", "_port", "_runtime", "_silent")

    def __init__(self, runtime: Runtime, frames: Frames) -> None:
        self._runtime = runtime
        self._frames = frames
        self._port: StreamPort | None = None
        self._silent = False

    async def run(self) -> None:
        """Serves the stream; returns when it has ended well."""
        try:
            with first_of_group():
                async with asyncio.TaskGroup() as tasks:
                    reader = tasks.create_task(self._read(tasks))
                    self._expect_open(reader)
        except BaseException:
            if self._port is not None:
                self._port.disconnect()
            raise
        if self._silent:
            raise mistake("the first frame did not come")

    def _expect_open(self, reader: asyncio.Task[None]) -> None:
        """Ends a stream whose first frame does not come."""

        def give_up() -> None:
            self._silent = self._port is None
            if self._silent:
                reader.cancel()

        timer = asyncio.get_running_loop().call_later(OPEN_SECONDS, give_up)
        reader.add_done_callback(lambda _: timer.cancel())

    async def _read(self, tasks: asyncio.TaskGroup) -> None:
        first = await self._frames.read()
        if first is None:
            raise mistake("a stream begins with open")
        frame = worker_frame(first)
        if frame.open is None:
            raise mistake("a stream begins with open")
        port = self._port = self._runtime.open_stream(frame.open)
        reader = asyncio.current_task()
        tasks.create_task(self._write(port)).add_done_callback(lambda _: reader and reader.cancel())
        frame.open = None
        port.receive(frame)
        while (message := await self._frames.read()) is not None:
            port.receive(worker_frame(message))
        await _pause(BROKEN_SECONDS)
        port.half_close()

    async def _write(self, port: StreamPort) -> None:
        while (frame := await port.next_frame()) is not None:
            for message in server_messages(frame):
                await self._frames.write(message)


def mistake(message: str) -> Refused:
    """The refusal of a stream that does not begin as it must."""
    return Refused(RefusalKind.PROTOCOL_MISTAKE, message, field="open")


async def _pause(seconds: float) -> None:
    passed = asyncio.Event()
    timer = asyncio.get_running_loop().call_later(seconds, passed.set)
    try:
        await passed.wait()
    finally:
        timer.cancel()
