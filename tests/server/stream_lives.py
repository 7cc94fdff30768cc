"""A worker of random lives that has its jobs by a stream, which breaks, ends or is resumed."""

from __future__ import annotations

import asyncio
from random import Random
from typing import Any

from google.protobuf.json_format import ParseDict
from grpc import aio

from jobline.v1 import job_service_pb2 as pb
from tests.server.all_options import NAMES, QUEUES
from tests.server.calling import CLIENTS_OWN, PACKAGE, BytesChannel

# Seconds that a worker waits for the next frame: real ones, as it reads from a socket.
FRAME_SECONDS = 0.05


class StreamWorker:
    """Opens one stream after the other, mostly for the same session."""

    def __init__(self, random: Random, channel: BytesChannel) -> None:
        self._random = random
        self._channel = channel
        self._session = ""
        self._held: dict[int, int] = {}

    async def live(self) -> None:
        """Works for one stream."""
        draw = self._random
        stream = self._channel.stream_stream(f"/{PACKAGE}.JobService/Stream")()
        try:
            await stream.write(self._opening().SerializeToString())
            for _ in range(draw.randrange(1, 5)):
                await self._read(stream)
                await stream.write(self._frame().SerializeToString())
            if draw.random() < 0.5:
                # A goodbye: what it still holds is ready for others at once.
                await stream.done_writing()
                await self._read(stream)
                self._session = ""
        except (aio.AioRpcError, asyncio.InvalidStateError, aio.InternalError):
            self._session = ""
            is_bug = (await stream.code()).name in {"INTERNAL", "UNKNOWN", "DATA_LOSS"}
            if is_bug and await stream.details() != CLIENTS_OWN:
                raise
        finally:
            stream.cancel()

    async def work_off(self) -> None:
        """Takes and acks whatever it may have, until nothing comes for a moment."""
        stream = self._channel.stream_stream(f"/{PACKAGE}.JobService/Stream")()
        queues = [{"queue": queue} for queue in QUEUES]
        opening = {"worker": {"id": "w3", "version": "9.0"}, "queues": queues}
        await _write(stream, {"open": opening, "window": {"maxInFlight": 1_000}})
        self._session, self._held = "", {}
        # A read that is cancelled would end the stream.
        reading = asyncio.ensure_future(stream.read())
        while (await asyncio.wait([reading], timeout=FRAME_SECONDS))[0]:
            self._take(pb.StreamResponse.FromString(await reading))
            reading = asyncio.ensure_future(stream.read())
            if self._held:
                settle = {"ackIds": [*self._held], "ackDeliveries": [*self._held.values()]}
                await _write(stream, {"settles": [settle]})
                self._held = {}
        await stream.done_writing()
        while await reading:
            reading = asyncio.ensure_future(stream.read())

    def _opening(self) -> Any:
        draw = self._random
        wishes: list[dict[str, Any]] = [
            {},
            {"handlers": [{"queue": QUEUES[0], "name": name} for name in NAMES]},
            {"handlers": [{"queue": QUEUES[0], "anyName": True}]},
        ]
        opening = {
            "worker": {"id": "w3", "version": draw.choice(["", "1.0", "2.0"])},
            "queues": [{"queue": queue} for queue in draw.sample(QUEUES, 2)],
            "acceptsRuns": draw.random() < 0.5,
        }
        if self._session and draw.random() < 0.8:
            opening["session"] = self._session
        window = {"maxInFlight": draw.choice([1, 5, 50])}
        return ParseDict(
            {"open": opening | draw.choice(wishes), "window": window}, pb.StreamRequest()
        )

    async def _read(self, stream: Any) -> None:
        """Reads what comes within a moment."""
        try:
            async with asyncio.timeout(FRAME_SECONDS):
                self._take(pb.StreamResponse.FromString(await stream.read()))
        except TimeoutError:
            pass

    def _take(self, frame: pb.StreamResponse) -> None:
        if frame.HasField("opened"):
            self._session = frame.opened.session
            self._held = dict(zip(frame.opened.held_ids, frame.opened.held_deliveries, strict=True))
        for job in frame.jobs:
            self._held[job.id] = job.delivery
        for run in frame.runs:
            for index in range(len(run.payloads)):
                self._held[run.first_id + index] = run.delivery
        for revoke in frame.revokes:
            self._held.pop(revoke.id, None)

    def _frame(self) -> Any:
        """Returns a frame that settles or reports some of what is held."""
        draw = self._random
        taken = [job_id for job_id in self._held if draw.random() < 0.5]
        leases = [{"id": str(one), "delivery": str(self._held.pop(one))} for one in taken]
        settles: list[dict[str, Any]] = [
            {
                "ackIds": [lease["id"] for lease in leases],
                "ackDeliveries": [lease["delivery"] for lease in leases],
            },
            {"acks": [lease | {"result": "cg=="} for lease in leases]},
            {"fails": [lease | {"error": {"type": "Boom"}} for lease in leases]},
            {"releases": [lease | {"why": 1, "delay": "1s"} for lease in leases]},
        ]
        frames: list[dict[str, Any]] = [
            {"window": {"maxInFlight": draw.choice([0, 1, 20])}},
            {"extends": [lease | {"checkpoint": "Yw=="} for lease in leases[:3]]},
            {"drain": True},
        ]
        frame = draw.choice([*frames, {}, {}, {}])
        if leases:
            frame = frame | {"settles": [{"seq": "1"} | draw.choice(settles)]}
        return ParseDict(frame, pb.StreamRequest())


async def _write(stream: Any, frame: dict[str, Any]) -> None:
    await stream.write(ParseDict(frame, pb.StreamRequest()).SerializeToString())
