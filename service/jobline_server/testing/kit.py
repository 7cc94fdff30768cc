"""What the fixture `jobline` gives: a server in memory whose clock is moved by hand.

The server runs in a thread of the test's process, so it is the same for tests with an event loop
and for those without one. `Jobline` blocks; `AsyncJobline` has the same methods, and those that
take time are awaited.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterable
from datetime import datetime
from typing import Any, TypeVar, Unpack

from jobline import AsyncClient, Client, Job, JobFilter, JobType, Worker
from jobline._enums import JobStateName
from jobline._times import Moment, Seconds
from jobline_server.testing.kit_base import Kit, OtherConditions
from jobline_server.testing.kit_server import KitServer
from jobline_server.testing.work_one import Handler, Prepared, prepare
from jobline_server.testing.working import queues_of, worker_of, working, working_here

T = TypeVar("T")

Work = JobType[Any, Any] | Worker
"""A declared job, or a worker that was not started."""


class Jobline(Kit):
    """The kit of tests without an event loop."""

    @property
    def client(self) -> Client:
        """A client of the server, closed with the test."""
        return self._blocking

    def advance(self, duration: Seconds, *, work_timeout: Seconds = 1) -> datetime:
        """Moves the clock by `"1h"`, a timedelta or seconds; returns the time then.

        Everything that comes due on the way is done at its moment: delays, retries, timeouts,
        leases, schedules, limits, retention. Workers that are connected may take `work_timeout`
        seconds of real time (1) for what they get at one moment; what they have then is not waited
        for again. Waits of this process for jobs of the server (`wait_one`, `push_and_wait`) whose
        time has passed by then end at once.
        """
        self._server.loop.call(self._advance(duration, work_timeout))
        return self.now

    def advance_to(self, moment: Moment, *, work_timeout: Seconds = 1) -> datetime:
        """Moves the clock to a moment (an aware datetime, or ISO 8601 text), as `advance` does.
        Raises ValueError if it is over.
        """
        self._server.loop.call(self._advance_to(moment, work_timeout))
        return self.now

    def drain(self, *work: Work, timeout: Seconds = 10) -> None:
        """Runs handlers until nothing is left for them that can be done now: declared jobs, or a
        worker that was not started. Without any it waits for the workers that the test has started.

        It moves no clock, so what is to be retried later waits. Raises AssertionError after
        `timeout` seconds (10), with what is left, and why.
        """
        queues = queues_of(work)
        if not work:
            return self._server.loop.call(self._drain(queues, timeout))
        with working(worker_of(self.address, work)):
            return self._server.loop.call(self._drain(queues, timeout))

    def work_one(
        self,
        handler: Handler,
        payload: Any = None,
        *,
        attempt: int = 1,
        checkpoint: Any = None,
        **options: Any,
    ) -> Job:
        """Pushes one job, has it handled once, and returns it as it is then: `state`,
        `result_value()`, `error`, `run_at` of its retry, `checkpoint`.

        - `handler`: a declared job, or a function as a worker takes it.
        - `attempt`: which attempt is handled; those before it have failed. `checkpoint`: what they
          have left.
        - `options`: of the push (`headers`, `max_attempts`), over those of a declared job.

        The job is in a queue of its own, so that nothing else is handled.
        """
        one = prepare(self._blocking, handler, payload, options)
        one.bring_to(attempt, checkpoint, settle=lambda: self.advance(0))
        with working(one.worker(self.address)):
            self._server.loop.call(self._drain([one.queue], 60))
        return one.done()

    def wait_for(
        self,
        where: str | JobFilter | None = None,
        state: JobStateName | Iterable[JobStateName] = (),
        *,
        count: int = 1,
        timeout: Seconds = 5,
        **conditions: Unpack[OtherConditions],
    ) -> list[Job]:
        """Returns jobs once `count` of them match (1): `wait_for("queue:mail", "completed")`,
        `wait_for(queue="mail", state="dead")`. For workers and threads that the test has started.
        Raises AssertionError after `timeout` seconds (5).
        """
        return self._wait_for(where, state, conditions, count, timeout)


class AsyncJobline(Kit):
    """The kit of tests with an event loop: as `Jobline`, and handlers run in this loop."""

    def __init__(self, server: KitServer) -> None:
        super().__init__(server)
        self._client: tuple[AsyncClient, asyncio.AbstractEventLoop] | None = None

    @property
    def client(self) -> AsyncClient:
        """A client of the server, for the loop of the test, closed with the test."""
        if self._client is None:
            self._client = AsyncClient(self.address), asyncio.get_running_loop()
        return self._client[0]

    def close(self) -> None:
        """Closes the clients; the fixture calls it, outside of the loop."""
        super().close()
        client, self._client = self._client, None
        if client is not None and not (client[1].is_closed() or client[1].is_running()):
            client[1].run_until_complete(client[0].close())

    async def advance(self, duration: Seconds, *, work_timeout: Seconds = 1) -> datetime:
        """Moves the clock; see `Jobline.advance`."""
        await self._in_server(self._advance(duration, work_timeout))
        return self.now

    async def advance_to(self, moment: Moment, *, work_timeout: Seconds = 1) -> datetime:
        """Moves the clock to a moment; see `Jobline.advance_to`."""
        await self._in_server(self._advance_to(moment, work_timeout))
        return self.now

    async def drain(self, *work: Work, timeout: Seconds = 10) -> None:
        """Runs handlers until nothing is left for them; see `Jobline.drain`."""
        queues = queues_of(work)
        if not work:
            return await self._in_server(self._drain(queues, timeout))
        async with working_here(worker_of(self.address, work)):
            return await self._in_server(self._drain(queues, timeout))

    async def work_one(
        self,
        handler: Handler,
        payload: Any = None,
        *,
        attempt: int = 1,
        checkpoint: Any = None,
        **options: Any,
    ) -> Job:
        """Has one job handled once, and returns it; see `Jobline.work_one`."""
        one = await asyncio.to_thread(
            self._prepared, handler, payload, attempt, checkpoint, options
        )
        async with working_here(one.worker(self.address)):
            await self._in_server(self._drain([one.queue], 60))
        return await asyncio.to_thread(one.done)

    def _prepared(
        self, handler: Handler, payload: Any, attempt: int, checkpoint: Any, options: dict[str, Any]
    ) -> Prepared:
        one = prepare(self._blocking, handler, payload, options)
        one.bring_to(
            attempt, checkpoint, settle=lambda: self._server.loop.call(self._advance(0, 0))
        )
        return one

    async def wait_for(
        self,
        where: str | JobFilter | None = None,
        state: JobStateName | Iterable[JobStateName] = (),
        *,
        count: int = 1,
        timeout: Seconds = 5,
        **conditions: Unpack[OtherConditions],
    ) -> list[Job]:
        """Returns jobs once as many match; see `Jobline.wait_for`."""
        return await asyncio.to_thread(self._wait_for, where, state, conditions, count, timeout)

    async def _in_server(self, work: Coroutine[Any, Any, T]) -> T:
        return await asyncio.wrap_future(self._server.loop.submit(work))
