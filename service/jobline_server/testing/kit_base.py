"""What both kits share: what needs no waiting, and what is done in the loop of the server."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any, TypedDict, Unpack

import grpc

from jobline import Client, Job, JobFilter, _moved_clocks
from jobline._enums import JobStateName
from jobline._filters import JobConditions, chosen
from jobline._times import Moment, Seconds, moment_of, seconds_of, to_duration
from jobline.v1 import test_service_pb2 as pb
from jobline.v1.test_service_pb2_grpc import TestServiceStub
from jobline_server.rpc.test_service import NotReached
from jobline_server.testing import pushed as pushes
from jobline_server.testing.kit_server import KitServer
from jobline_server.testing.pushed import ANY_PAYLOAD, What


class OtherConditions(TypedDict, total=False):
    """The conditions of a `JobFilter` beside the state."""

    queue: str
    name: str | None
    headers: Mapping[str, str]
    error_type: str
    error_contains: str
    after: Moment | None
    before: Moment | None
    tags: Iterable[str]
    group: str
    batch_id: int


class Kit:
    """What both kits share: what needs no waiting. `address` is that of the server; `Client()` and
    `Worker()` of the program under test take it from the environment (JOBLINE_SERVER).
    """

    def __init__(self, server: KitServer) -> None:
        self._server = server
        self._clock = _moved_clocks.track(server.address)
        self._moves = 0
        self._told_ms = 0
        self._blocking = Client(server.address)
        self.address = server.address

    @property
    def now(self) -> datetime:
        """The time of the server, which only `advance` moves."""
        return datetime.fromtimestamp(self._server.loop.call(self._wall_ms()) / 1_000, UTC)

    async def _wall_ms(self) -> int:
        return self._server.controls.wall_ms()

    def pushed(
        self,
        what: What = None,
        *,
        payload: Any = ANY_PAYLOAD,
        payload__contains: Any = ANY_PAYLOAD,
        **conditions: Unpack[JobConditions],
    ) -> list[Job]:
        """Returns the jobs that the server has, waiting, at work or ended, by id.

        - `what`: a name, or a declared job, which stands for its queue and name.
        - `payload`: what it must be, and `payload__contains`: a part of it: keys of an object, at
          any depth, items of a list, or a piece of a text.
        - `queue`, `name`, `state`, `tags`, `group`, `headers` …: as for `client.jobs.list`.

        Jobs that were removed, by `remove_on_complete` or in time, are not among them.
        """
        found = pushes.conditions_of(what, conditions)
        return pushes.find_pushed(self._blocking, found, payload, payload__contains)

    def assert_pushed(
        self,
        what: What = None,
        *,
        times: int | None = None,
        payload: Any = ANY_PAYLOAD,
        payload__contains: Any = ANY_PAYLOAD,
        **conditions: Unpack[JobConditions],
    ) -> Job:
        """Returns the first job that matches, as `pushed` finds it. Raises AssertionError, with the
        jobs that there are, if there is none; with `times`, if there are not as many.
        """
        wanted = pushes.conditions_of(what, conditions)
        limit = 1 if times is None else times + 1  # one more says that there are too many
        found = pushes.find_pushed(self._blocking, wanted, payload, payload__contains, limit)
        if found and times in {None, len(found)}:
            return found[0]
        asked = pushes.described(wanted, payload, payload__contains)
        number = f"more than {times}" if len(found) == limit else f"{len(found)}"
        count = f"{number} jobs match, not {times}" if times is not None else "no job matches"
        there = pushes.shown(found or self._some({}))
        raise AssertionError(f"{count}: {asked}\nthere are:\n{there}")

    def _some(
        self, wanted: Mapping[str, Any], payload: Any = ANY_PAYLOAD, contained: Any = ANY_PAYLOAD
    ) -> list[Job]:
        """Returns as many jobs as a message shows, and one more."""
        limit = pushes.SHOWN_JOBS + 1
        return pushes.find_pushed(self._blocking, wanted, payload, contained, limit)

    def refute_pushed(
        self,
        what: What = None,
        *,
        payload: Any = ANY_PAYLOAD,
        payload__contains: Any = ANY_PAYLOAD,
        **conditions: Unpack[JobConditions],
    ) -> None:
        """Raises AssertionError if a job matches, as `pushed` finds it."""
        wanted = pushes.conditions_of(what, conditions)
        found = self._some(wanted, payload, payload__contains)
        if found:
            asked = pushes.described(wanted, payload, payload__contains)
            raise AssertionError(f"jobs match: {asked}\n{pushes.shown(found)}")

    def close(self) -> None:
        """Closes the client; the fixture calls it."""
        self._blocking.close()
        _moved_clocks.forget(self.address)

    def _wait_for(
        self,
        where: str | JobFilter | None,
        state: JobStateName | Iterable[JobStateName],
        conditions: OtherConditions,
        count: int,
        timeout: Seconds,
    ) -> list[Job]:
        asked: dict[str, Any] = {**conditions, "state": state} if state else {**conditions}
        found = chosen(JobFilter, where, asked, "wait_for") or JobFilter()
        request = pb.WaitForRequest(
            filter=found.to_message(), count=count, timeout=to_duration(seconds_of(timeout))
        )
        try:
            response = TestServiceStub(self._blocking.channel).WaitFor(request)
        except grpc.RpcError as error:
            raise AssertionError(f"wait_for: {error.details()}") from None
        return [Job.from_message(job) for job in response.jobs]

    async def _advance(self, duration: Seconds, work_timeout: Seconds) -> None:
        async with self._moving():
            await self._server.controls.advance(_ms(duration), work_ms=_ms(work_timeout))

    async def _advance_to(self, moment: Moment, work_timeout: Seconds) -> None:
        at_ms = round(moment_of(moment).timestamp() * 1_000)
        async with self._moving():
            if not await self._server.controls.advance_to(at_ms, work_ms=_ms(work_timeout)):
                raise ValueError(f"{moment} is over: the clock goes only forward")

    @asynccontextmanager
    async def _moving(self) -> AsyncIterator[None]:
        """Tells those of this process who wait at the server how far the block moves its clock;
        once, where several blocks move it at the same time.
        """
        wall_ms = self._server.controls.wall_ms
        if not self._moves:
            self._told_ms = wall_ms()
        self._moves += 1
        try:
            yield
        finally:
            self._moves -= 1
            before, self._told_ms = self._told_ms, wall_ms()
            self._clock.move((self._told_ms - before) / 1_000)

    async def _drain(self, queues: list[str], timeout: Seconds) -> None:
        try:
            for queue in queues:
                await self._server.controls.drain(queue, seconds_of(timeout))
        except NotReached as error:
            raise AssertionError(str(error)) from None


def _ms(span: Seconds) -> int:
    return round(seconds_of(span) * 1_000)
