"""JobService: the calls of producers and workers. Each method checks and converts its request,
calls the runtime, and converts the outcome.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from functools import partial

from jobline.v1 import job_service_pb2
from jobline_server.engine import limits
from jobline_server.rpc.admission import Admission
from jobline_server.rpc.client_rates import ClientRates
from jobline_server.rpc.convert import events, settles
from jobline_server.rpc.convert.event_writer import EventWriter
from jobline_server.rpc.convert.jobs import partial_response, wait_response
from jobline_server.rpc.convert.leases import pull_response
from jobline_server.rpc.convert.logs import check_line_count
from jobline_server.rpc.convert.pull import pull_command, pull_to_give_back
from jobline_server.rpc.convert.push import PushReader
from jobline_server.rpc.convert.pushed import push_response
from jobline_server.rpc.delivery import when_untaken
from jobline_server.rpc.guard import Context, Frames
from jobline_server.rpc.job_stream import BROKEN_SECONDS, serve_stream
from jobline_server.rpc.validate import fields
from jobline_server.runtime.calls.pulls import PULL_BYTES_MAX
from jobline_server.runtime.runtime import Runtime
from jobline_server.runtime.watch.feed_reader import Room
from jobline_server.runtime.watch.partials import Piece


class JobService:
    """Serves producers and workers through the runtime."""

    def __init__(
        self,
        runtime: Runtime,
        reader: PushReader,
        admission: Admission,
        client_rates: ClientRates | None = None,
        *,
        broken_seconds: float = BROKEN_SECONDS,
    ) -> None:
        self._runtime = runtime
        self._client_rates = client_rates
        self._reader = reader
        self._admission = admission
        self._events = EventWriter()
        self._broken_seconds = broken_seconds

    async def Push(
        self, request: job_service_pb2.PushRequest, context: Context
    ) -> job_service_pb2.PushResponse:
        """Stores jobs; replies when the ack level is reached."""
        command = self._reader.command(request)
        if self._client_rates is not None:
            jobs = len(command.rows) + len(command.payloads)
            self._client_rates.take(context.peer(), jobs)
        return push_response(request, await self._runtime.pushes.push(command))

    async def Pull(self, request: job_service_pb2.PullRequest, _context: Context) -> bytes:
        """Leases jobs; a pull that may wait counts as a long poll."""
        pull = pull_command(request)
        # Before anything is leased: a release would count against the jobs.
        self._admission.check_room(PULL_BYTES_MAX)
        if not pull.wait_ms:
            leased = await self._runtime.pulls.pull(pull)
        else:
            with self._admission.pulls.admitted():
                leased = await self._runtime.pulls.pull(pull)
        if leased.count():
            when_untaken(partial(self._runtime.pulls.untaken, pull, leased))
        response, rest = pull_response(leased, pull.message_bytes_max)
        if rest:
            self._runtime.pulls.give_back_rest(rest)
        return response

    async def Ack(
        self, request: job_service_pb2.AckRequest, _context: Context
    ) -> job_service_pb2.AckResponse:
        """Settles jobs as done."""
        fields.at_most(request.ids, "ids", limits.SETTLE_ITEMS_MAX)
        fields.at_most(request.deliveries, "deliveries", limits.SETTLE_ITEMS_MAX)
        ids, deliveries = request.ids[:], request.deliveries[:]
        results = settles.acks(ids, deliveries, request.items)
        if not ids:
            raise fields.invalid("ids", "must not be empty")
        response = job_service_pb2.AckResponse()
        settles.fill_exceptions(
            response, await self._runtime.settle_calls.ack(ids, deliveries, results)
        )
        return response

    async def Fail(
        self, request: job_service_pb2.FailRequest, _context: Context
    ) -> job_service_pb2.FailResponse:
        """Settles jobs as failed."""
        fields.non_empty(request.items, "items")
        return settles.fail_response(
            await self._runtime.settle_calls.fail(settles.fails(request.items))
        )

    async def Release(
        self, request: job_service_pb2.ReleaseRequest, _context: Context
    ) -> job_service_pb2.ReleaseResponse:
        """Releases the jobs that it names, and the jobs that a pull leased."""
        if not request.HasField("pull"):
            fields.non_empty(request.items, "items")
        items = settles.releases(request.items)
        if request.HasField("pull"):
            self._runtime.pulls.give_back(pull_to_give_back(request.pull))
        response = job_service_pb2.ReleaseResponse()
        exceptions = await self._runtime.settle_calls.release(items)
        settles.fill_exceptions(response, exceptions)
        return response

    async def Extend(
        self, request: job_service_pb2.ExtendRequest, _context: Context
    ) -> job_service_pb2.ExtendResponse:
        """Extends leases."""
        fields.non_empty(request.items, "items")
        fields.at_most(request.items, "items", limits.SETTLE_ITEMS_MAX)
        check_line_count(request.items, (), "items")
        response = job_service_pb2.ExtendResponse()
        exceptions = await self._runtime.settle_calls.extend(settles.extends(request.items))
        settles.fill_exceptions(response, exceptions)
        return response

    async def Stream(self, frames: Frames) -> None:
        """Serves a worker stream."""
        with self._admission.streams.admitted():
            await serve_stream(
                self._runtime,
                frames,
                self._admission.streams,
                broken_seconds=self._broken_seconds,
            )

    async def Wait(
        self, request: job_service_pb2.WaitRequest, _context: Context
    ) -> AsyncGenerator[job_service_pb2.WaitResponse, None]:
        """Yields how jobs ended, as each one ends."""
        timeout_ms = events.wait_timeout_ms(request)
        ids = events.waited_ids(request)
        partials = events.wants_partials(request)
        count = len(ids)
        waits = self._runtime.waits.wait(ids, timeout_ms, partials=partials)
        # Not kept for the wait: ten thousand ids, up to an hour.
        del request, ids
        waiters = self._admission.waiters
        with waiters.admitted(), waiters.holding(count):
            async with aclosing(waits) as waiting:
                async for found in waiting:
                    for one in found:
                        yield (
                            partial_response(one) if isinstance(one, Piece) else wait_response(*one)
                        )

    async def Watch(
        self, request: job_service_pb2.WatchRequest, _context: Context
    ) -> AsyncGenerator[bytes, None]:
        """Yields events; a message without events is a heartbeat."""
        chosen = events.watch_filter(request)
        token = events.resume_token(request)
        as_runs = request.accepts_runs
        room = Room.RUNS if as_runs else Room.EVENTS
        partials = self._runtime.waits.partials if events.watches_partials(request) else None
        with self._admission.watchers.admitted():
            watch = self._runtime.feed.watch(chosen, token, room=room, partials=partials)
            async with aclosing(watch) as watching:
                async for answer in watching:
                    yield self._events.response(answer, as_runs=as_runs)
