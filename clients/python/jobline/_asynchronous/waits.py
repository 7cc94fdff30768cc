"""Waits that share calls, on an event loop: tasks and futures around the pure `WaitBoard`.

Written by hand, as is `jobline._blocking.waits` with the same names.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections import deque
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any

from grpc import aio

from jobline._asynchronous.connection import Connection, closing, messages_of
from jobline._moved_clocks import clock_of
from jobline._wait.wait_board import WaitBoard
from jobline._wait.wait_call import Told, WaitCall
from jobline._wait.waiting import Waiting
from jobline.errors import Internal, JoblineError, Unavailable
from jobline.v1.job_service_pb2 import WaitResponse

logger = logging.getLogger("jobline.client")


class Waiter:
    """A task that waits for jobs."""

    __slots__ = ("_future", "_loop", "_told", "_waiting", "ids")

    def __init__(self, loop: asyncio.AbstractEventLoop, waiting: Waiting) -> None:
        self.ids = tuple(waiting.remaining)
        self._waiting = waiting
        self._loop = loop
        self._told: deque[Told] = deque()
        self._future: asyncio.Future[None] | None = None

    @property
    def until(self) -> float:
        """When it gives up."""
        return self._waiting.until

    def put(self, told: Told) -> None:
        """Takes how a job ended, or why the wait is over."""
        self._told.append(told)
        self.wake()

    def wake(self) -> None:
        """Has it look again whether its time is over."""
        if self._future is not None and not self._future.done():
            self._future.set_result(None)

    async def taken(self) -> Told | None:
        """Returns what was told next; None when its time is over."""
        while not self._told:
            if self._loop.time() >= self.until:
                return None
            self._future = self._loop.create_future()
            timer = self._loop.call_at(self.until, self.wake)
            try:
                await self._future
            finally:
                timer.cancel()
        return self._told.popleft()


def _in_loop(loop: asyncio.AbstractEventLoop, call: Callable[[], object]) -> Callable[[], None]:
    """Returns what any thread may call to have it called in the loop, if that still runs."""

    def ask() -> None:
        with suppress(RuntimeError):  # it is closed
            loop.call_soon_threadsafe(call)

    return ask


async def responses_until(
    link: Connection, waiting: Waiting, start: Callable[[], aio.UnaryStreamCall[Any, WaitResponse]]
) -> AsyncGenerator[WaitResponse, None]:
    """Yields the messages of a call, which also ends when a test has moved the clock of its server
    past the time of this wait.
    """
    loop = asyncio.get_running_loop()
    calls: list[aio.UnaryStreamCall[Any, WaitResponse]] = []

    def started() -> aio.UnaryStreamCall[Any, WaitResponse]:
        calls.append(start())
        return calls[0]

    def end_in_time() -> None:
        if loop.time() >= waiting.until:
            for call in calls:
                call.cancel()

    with clock_of(link.target).watched_by(_in_loop(loop, end_in_time)):
        try:
            async with closing(messages_of(started)) as messages:
                async for message in messages:
                    yield message
        except JoblineError:
            if not waiting.is_moved or loop.time() < waiting.until:
                raise


class Waits:
    """The waits of one AsyncClient that share calls."""

    def __init__(self, connection: Connection) -> None:
        self._link = connection
        self._loop = asyncio.get_running_loop()
        self._board = WaitBoard(random.random)
        self._reading: set[asyncio.Task[None]] = set()
        self._is_flush_due = False
        self._timer: asyncio.TimerHandle | None = None

    @contextmanager
    def joined(self, waiting: Waiting) -> Iterator[Waiter]:
        """Waits for these jobs within the block."""
        waiter = Waiter(self._loop, waiting)
        self._board.add(waiter)
        self._flush_soon()
        try:
            with clock_of(self._link.target).watched_by(_in_loop(self._loop, waiter.wake)):
                yield waiter
        finally:
            self._board.leave(waiter)

    async def answer(self, waiter: Waiter) -> WaitResponse | None:
        """Returns how the next job ended; None when the time is over. Raises what ended the wait,
        or what keeps the client from asking when the time is over.
        """
        told = await waiter.taken()
        if told is None:
            told = self._board.trouble_of(waiter)
        if isinstance(told, JoblineError):
            raise told
        return told

    def _flush_soon(self) -> None:
        # After this iteration of the loop, so that all waits that begin in it share a call.
        if not self._is_flush_due:
            self._is_flush_due = True
            self._loop.call_soon(self._flush)

    def _flush(self) -> None:
        self._is_flush_due = False
        for call in self._board.calls_to_open(self._loop.time()):
            task = self._loop.create_task(self._read(call))
            call.hang_up = task.cancel
            self._reading.add(task)
            task.add_done_callback(self._reading.discard)
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        deadline = self._board.next_deadline()
        if deadline is not None:
            self._timer = self._loop.call_at(deadline, self._flush)

    async def _read(self, call: WaitCall) -> None:
        error: JoblineError | None = None
        link = self._link
        try:
            timeout = call.timeout + link.timeout
            start = partial(link.jobs.Wait, call.request(), timeout=timeout, metadata=link.metadata)
            async with closing(messages_of(start)) as responses:
                async for response in responses:
                    self._board.take(self._loop.time(), call, response)
        except JoblineError as raised:
            error = raised
        except asyncio.CancelledError:
            # The board has hung up; or the loop ends, and with it everything that waits.
            self._end(call, Unavailable("the wait was cancelled by the end of its loop"))
            raise
        except Exception as raised:
            # No caller may wait for ever, whatever a library raises.
            logger.exception("a wait broke")
            error = Internal(f"the wait broke: {raised}")
        self._end(call, error)

    def _end(self, call: WaitCall, error: JoblineError | None) -> None:
        self._board.end(self._loop.time(), call, error)
        self._flush_soon()
