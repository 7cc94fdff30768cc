"""TestService: moves the clock of a server for tests, and waits for its workers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NoReturn, Protocol

import grpc
from google.protobuf.duration_pb2 import Duration
from google.protobuf.message import Message

from jobline.v1 import test_service_pb2 as pb
from jobline_server.engine.limits import DAY_MS, MINUTE_MS, SECOND_MS
from jobline_server.rpc import limits
from jobline_server.rpc.convert import selection
from jobline_server.rpc.convert.jobs import fill_page
from jobline_server.rpc.errors import StatusError, make_status
from jobline_server.rpc.gates import Gate
from jobline_server.rpc.guard import Context
from jobline_server.rpc.validate import fields
from jobline_server.runtime.views import JobFilter, JobView
from jobline_server.wire.times import fill_time

ADVANCE_MS_MAX = 3_660 * DAY_MS
TIMEOUT_MS_MAX = 10 * MINUTE_MS
TIMEOUT_MS_DEFAULT = 10 * SECOND_MS
WORK_MS_DEFAULT = 1 * SECOND_MS
# The first moments of 2025 and of 2200: ids, epochs and cron are made for times between.
START_MS_MIN = 1_735_689_600_000
START_MS_MAX = 7_258_118_400_000


class NotReached(Exception):
    """What a test waits for did not happen in time; the message says what is so instead."""


class TestControls(Protocol):
    """What moves the time of a server, and waits for its workers. Times are real where they are
    seconds.
    """

    def wall_ms(self) -> int:
        """Returns the time of the server."""

    async def advance(self, milliseconds: int, *, work_ms: int) -> None:
        """Moves the clock by so much, and does all that is due on the way."""

    async def advance_to(self, wall_ms: int, *, work_ms: int) -> bool:
        """Moves it to a moment; returns False, and does nothing, if that is over."""

    async def drain(self, queue: str, seconds: float) -> None:
        """Waits until no job of a queue, "" for all, is READY or ACTIVE. Raises `NotReached`."""

    async def wait_for(self, wanted: JobFilter, count: int, seconds: float) -> Sequence[JobView]:
        """Waits until so many jobs match, and returns them. Raises `NotReached`."""

    async def reset(self, start_ms: int | None) -> int:
        """Puts an empty server in the place of this one; returns the time of its clock."""


class TestService:
    """Serves the controls."""

    def __init__(self, controls: TestControls, waiters: Gate) -> None:
        self._controls = controls
        self._waiters = waiters

    async def Advance(self, request: pb.AdvanceRequest, _context: Context) -> pb.AdvanceResponse:
        """Moves the clock."""
        now_ms = self._controls.wall_ms()
        work_ms = _timeout_ms(request, request.work_timeout, "work_timeout", WORK_MS_DEFAULT)
        if request.HasField("until"):
            until_ms = fields.moment_ms(request.until, "until")
            _check_end("until", until_ms, now_ms)
            if not await self._controls.advance_to(until_ms, work_ms=work_ms):
                raise fields.invalid("until", "is over: the clock goes only forward")
        else:
            by_ms = fields.duration_ms(request.duration, "duration", 0, ADVANCE_MS_MAX)
            _check_end("duration", now_ms + by_ms, now_ms)
            await self._controls.advance(by_ms, work_ms=work_ms)
        response = pb.AdvanceResponse()
        fill_time(response.now, self._controls.wall_ms())
        return response

    async def Drain(self, request: pb.DrainRequest, _context: Context) -> pb.DrainResponse:
        """Waits for workers."""
        queue = selection.optional_queue(request.queue)
        timeout_ms = _timeout_ms(request, request.timeout, "timeout", TIMEOUT_MS_DEFAULT)
        try:
            with self._waiters.admitted():
                await self._controls.drain(queue, timeout_ms / SECOND_MS)
        except NotReached as error:
            _refuse(error)
        response = pb.DrainResponse()
        fill_time(response.now, self._controls.wall_ms())
        return response

    async def WaitFor(self, request: pb.WaitForRequest, _context: Context) -> pb.WaitForResponse:
        """Waits for jobs."""
        wanted = selection.job_filter(request.filter)
        count = request.count or 1
        fields.integer(count, "count", 1, limits.PAGE_SIZE_MAX)
        timeout_ms = _timeout_ms(request, request.timeout, "timeout", TIMEOUT_MS_DEFAULT)
        try:
            with self._waiters.admitted():
                views = await self._controls.wait_for(wanted, count, timeout_ms / SECOND_MS)
        except NotReached as error:
            _refuse(error)
        response = pb.WaitForResponse()
        await fill_page(response, views, with_payload=True)
        return response

    async def Reset(self, request: pb.ResetRequest, _context: Context) -> pb.ResetResponse:
        """Begins again."""
        start_ms = None
        if request.HasField("start"):
            start_ms = fields.moment_ms(request.start, "start")
            if not START_MS_MIN <= start_ms < START_MS_MAX:
                raise fields.invalid("start", "must be in 2025 … 2199")
        response = pb.ResetResponse()
        fill_time(response.now, await self._controls.reset(start_ms))
        return response


class RefusedTests:
    """Refuses the calls of TestService: this server is not for tests."""

    def __getattr__(self, method: str) -> object:
        async def refuse(_request: Message, _context: Context) -> NoReturn:
            raise fields.not_served(
                "",
                f"{method} is served by `jobline dev --clock=manual` alone: the time of this "
                "server is that of the machine",
            )

        return refuse


def _check_end(field: str, end_ms: int, now_ms: int) -> None:
    if end_ms - now_ms > ADVANCE_MS_MAX:
        raise fields.invalid(field, "must be at most 3,660 days away")
    if end_ms >= START_MS_MAX:
        raise fields.invalid(field, "must end before 2200")


def _timeout_ms(
    request: pb.AdvanceRequest | pb.DrainRequest | pb.WaitForRequest,
    value: Duration,
    field: str,
    default_ms: int,
) -> int:
    if not request.HasField(field):  # type: ignore[arg-type]  # a field of each of them
        return default_ms
    return fields.duration_ms(value, field, 0, TIMEOUT_MS_MAX)


def _refuse(error: NotReached) -> NoReturn:
    status = make_status(grpc.StatusCode.FAILED_PRECONDITION, "NOT_REACHED", str(error))
    raise StatusError(status) from None
