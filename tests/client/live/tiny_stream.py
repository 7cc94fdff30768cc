"""One worker's stream on the tiny server: what comes in at once, what goes out by credit."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any

import grpc
from grpc import aio

from jobline.v1 import job_pb2
from jobline.v1 import job_service_pb2 as pb
from tests.client.live.tiny_store import DEAD, DONE, Job

if TYPE_CHECKING:
    from tests.client.live.tiny import TinyServer

# Neighbours that share their options travel as a run when there are so many of them.
RUN_MIN = 3


class StreamPort:
    """One stream. `frames` keeps what the worker sent; `say` sends something of a test's own."""

    def __init__(self, server: TinyServer, context: aio.ServicerContext[Any, Any]) -> None:
        self.server = server
        self.wake = asyncio.Event()
        self.frames: list[pb.StreamRequest] = []
        self.session = ""
        self.keeps_confirms = False
        self.refuses_settles = False
        self.half_closed = False
        self._context = context
        self._out: list[pb.StreamResponse] = []
        self.window = 0
        self._queues: list[str] = []
        self._names: list[tuple[str, str]] = []
        self._draining = False
        self._broken = False

    def say(self, frame: pb.StreamResponse) -> None:
        self._out.append(frame)
        self.wake.set()

    def revoke(self, job: Job, reason: pb.RevokeReason.ValueType) -> None:
        revoke = pb.StreamRevoke(id=job.id, delivery=job.delivery, reason=reason)
        self.say(pb.StreamResponse(revokes=[revoke]))

    def break_off(self) -> None:
        """The connection breaks; the leases wait for the session to return."""
        self._broken = True
        self.wake.set()

    async def talk(
        self, requests: AsyncIterator[pb.StreamRequest]
    ) -> AsyncIterator[pb.StreamResponse]:
        reader = asyncio.create_task(self._read(requests))
        try:
            while True:
                frame = await self._next_frame(reader)
                if frame is None:
                    return
                yield frame
        finally:
            reader.cancel()

    async def _next_frame(self, reader: asyncio.Task[None]) -> pb.StreamResponse | None:
        while True:
            self.wake.clear()
            if self.refuses_settles and any(frame.settles for frame in self.frames):
                await self._context.abort(grpc.StatusCode.INVALID_ARGUMENT, "a bad settle")
            if self._broken:
                await self._context.abort(grpc.StatusCode.UNAVAILABLE, "the stream broke")
            if self._out and not self.server.is_silent:
                return self._out.pop(0)
            jobs = [] if self._draining or self.server.is_silent else self._lease()
            if jobs:
                return _delivery(jobs)
            if reader.done() and not self._out:
                return None
            try:
                async with asyncio.timeout(self.server.heartbeat):
                    await self.wake.wait()
            except TimeoutError:
                if not self.server.is_silent:
                    return pb.StreamResponse()

    def _lease(self) -> list[Job]:
        room = self.window - len(self.server.store.held_by(self.session))
        if room <= 0 or not self.session:
            return []
        return self.server.store.lease(self._queues, room, self.session, self._names)

    async def _read(self, requests: AsyncIterator[pb.StreamRequest]) -> None:
        async for frame in requests:
            self.frames.append(frame)
            self.server.frames_heard += 1
            if frame.HasField("open"):
                self._open(frame.open)
            for settle in frame.settles:
                self._settle(settle)
            for item in frame.extends:
                self.server.store.extend(item)
            if frame.HasField("window"):
                self.window = frame.window.max_in_flight
            self._draining = self._draining or frame.drain
            self.wake.set()
            self.server.store.changed()
        self.half_closed = True
        self.wake.set()

    def _open(self, opening: pb.StreamOpen) -> None:
        self.session = opening.session or f"session-{self.server.calls['Stream']}"
        self._queues = [entry.queue for entry in opening.queues]
        self._names = [(entry.queue, entry.name) for entry in opening.handlers]
        if any(entry.any_name for entry in opening.handlers):
            self._names = []
        held = self.server.store.held_by(self.session)
        opened = pb.StreamOpened(
            session=self.session,
            resumed=bool(held),
            held_ids=[job.id for job in held],
            held_deliveries=[job.delivery for job in held],
        )
        opened.heartbeat_interval.FromNanoseconds(int(self.server.heartbeat * 1e9))
        self.say(pb.StreamResponse(opened=opened))
        if self.server.greeting is not None:
            self.say(self.server.greeting)

    def _settle(self, settle: pb.StreamSettle) -> None:
        if self.refuses_settles:
            return
        store = self.server.store
        outcomes = [
            store.ack(id_, delivery)
            for id_, delivery in zip(settle.ack_ids, settle.ack_deliveries, strict=True)
        ]
        outcomes += [store.ack(item.id, item.delivery, item.result) for item in settle.acks]
        failed_from = len(outcomes)
        failed = [store.fail(item) for item in settle.fails]
        outcomes += [result.outcome for result in failed]
        outcomes += [store.release(item) for item in settle.releases]
        if settle.seq and not self.keeps_confirms:
            confirm = pb.StreamConfirm(seq=settle.seq)
            for index, outcome in enumerate(outcomes):
                if outcome != DONE:
                    confirm.exceptions.add(index=index, outcome=pb.SettleOutcome.ValueType(outcome))
            for index, result in enumerate(failed, failed_from):
                if result.state == DEAD:
                    confirm.dead.append(index)
            self.say(pb.StreamResponse(confirms=[confirm]))


def _delivery(jobs: list[Job]) -> pb.StreamResponse:
    """Neighbours that differ in payload, headers and key alone as a run, the others one by one."""
    first = jobs[0]
    shared = _shared_options(first)
    alike = all(
        job.id == first.id + index
        and job.queue == first.queue
        and _shared_options(job) == shared
        and job.delivery == first.delivery
        and job.lease_ms == first.lease_ms
        and job.reason == job_pb2.LEASE_REASON_FIRST
        for index, job in enumerate(jobs)
    )
    if not alike or len(jobs) < RUN_MIN:
        return pb.StreamResponse(jobs=[job.leased() for job in jobs])
    run = job_pb2.LeasedRun(
        first_id=first.id,
        delivery=first.delivery,
        queue=first.queue,
        options=shared,
        payloads=[job.payload for job in jobs],
        lease_ms=first.lease_ms,
    )
    if any(job.job_key for job in jobs):
        run.job_keys.extend(job.job_key for job in jobs)
    for key in sorted({key for job in jobs for key in job.options.headers}):
        run.header_columns.add(key=key, values=[job.options.headers.get(key, "") for job in jobs])
    return pb.StreamResponse(runs=[run])


def _shared_options(job: Job) -> job_pb2.JobOptions:
    options = job_pb2.JobOptions()
    options.CopyFrom(job.options)
    options.ClearField("headers")
    return options
