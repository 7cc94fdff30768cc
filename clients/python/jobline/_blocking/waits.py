"""Waits of many threads that share calls: locks around the pure `WaitBoard`.

Each open call has a thread that reads it. What gathers is sent by the thread that waits for it, or
by the thread whose call broke, so there is no other thread, and none without an open call.

Written by hand, as is `jobline._asynchronous.waits` with the same names.
"""

from __future__ import annotations

import logging
import random
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from jobline._blocking.connection import Connection, closing, messages_of
from jobline._moved_clocks import clock_of
from jobline._wait.wait_board import WaitBoard
from jobline._wait.wait_call import Told, WaitCall
from jobline._wait.waiting import Waiting
from jobline.errors import Internal, JoblineError, Unavailable
from jobline.v1.job_service_pb2 import WaitResponse

logger = logging.getLogger("jobline.client")


class Waiter:
    """A thread that waits for jobs."""

    __slots__ = ("_waiting", "arrived", "ids", "told")

    def __init__(self, lock: threading.Lock, waiting: Waiting) -> None:
        self.ids = tuple(waiting.remaining)
        self._waiting = waiting
        self.told: deque[Told] = deque()
        self.arrived = threading.Condition(lock)

    @property
    def until(self) -> float:
        """When it gives up."""
        return self._waiting.until

    def put(self, told: Told) -> None:
        """Takes how a job ended, or why the wait is over. With the lock held."""
        self.told.append(told)
        self.arrived.notify()

    def wake(self) -> None:
        """Has it look again whether its time is over."""
        with self.arrived:
            self.arrived.notify()


def responses_until(
    link: Connection, waiting: Waiting, start: Callable[[], Any]
) -> Iterator[WaitResponse]:
    """Yields the messages of a call, which also ends when a test has moved the clock of its server
    past the time of this wait.
    """
    calls: list[Any] = []

    def started() -> Any:
        calls.append(start())
        return calls[0]

    def end_in_time() -> None:
        if time.monotonic() >= waiting.until:
            for call in calls:
                call.cancel()

    with clock_of(link.target).watched_by(end_in_time):
        try:
            with closing(messages_of(started)) as messages:
                yield from messages
        except JoblineError:
            if not waiting.is_moved or time.monotonic() < waiting.until:
                raise


class Waits:
    """The waits of one Client that share calls."""

    def __init__(self, connection: Connection) -> None:
        self._link = connection
        self._lock = threading.Lock()
        self._board = WaitBoard(random.random)

    @contextmanager
    def joined(self, waiting: Waiting) -> Iterator[Waiter]:
        """Waits for these jobs within the block."""
        waiter = Waiter(self._lock, waiting)
        with self._lock:
            self._board.add(waiter)
        try:
            with clock_of(self._link.target).watched_by(waiter.wake):
                yield waiter
        finally:
            with self._lock:
                self._board.leave(waiter)

    def answer(self, waiter: Waiter) -> WaitResponse | None:
        """Returns how the next job ended; None when the time is over. Raises what ended the wait,
        or what keeps the client from asking when the time is over.
        """
        with self._lock:
            while not waiter.told:
                self._flush()
                now = time.monotonic()
                if now >= waiter.until:
                    if trouble := self._board.trouble_of(waiter):
                        raise trouble
                    return None
                deadline = self._board.deadline_of(waiter)
                end = waiter.until if deadline is None else min(waiter.until, deadline)
                # A deadline that has just come is not waited for: it is flushed in the next round.
                waiter.arrived.wait(max(end - now, 0.0))
            told = waiter.told.popleft()
        if isinstance(told, JoblineError):
            raise told
        return told

    def _flush(self) -> None:
        """Makes the calls that are due. With the lock held."""
        for call in self._board.calls_to_open(time.monotonic()):
            try:
                # It ends with the process, whose end no wait holds up.
                threading.Thread(
                    target=self._read, args=(call,), name="jobline-wait", daemon=True
                ).start()
            except RuntimeError as error:  # the system has no thread left
                broken = Unavailable(f"no thread for a wait: {error}")
                self._board.end(time.monotonic(), call, broken)

    def _read(self, call: WaitCall) -> None:
        error: JoblineError | None = None
        try:
            with closing(messages_of(lambda: self._start(call))) as responses:
                for response in responses:
                    with self._lock:
                        self._board.take(time.monotonic(), call, response)
        except JoblineError as raised:
            error = raised
        except Exception as raised:
            # No caller may wait for ever, whatever a library raises.
            logger.exception("a wait broke")
            error = Internal(f"the wait broke: {raised}")
        with self._lock:
            self._board.end(time.monotonic(), call, error)
        self._repair()

    def _start(self, call: WaitCall) -> Any:
        link = self._link
        timeout = call.timeout + link.timeout
        made = link.jobs.Wait(call.request(), timeout=timeout, metadata=link.metadata)
        with self._lock:
            call.hang_up = made.cancel
            is_needed = self._board.has(call)
        if not is_needed:  # everybody left before the call was made
            made.cancel()
        return made

    def _repair(self) -> None:
        """Asks for what a call still owed: those who wait for it do not know that it has ended."""
        while True:
            with self._lock:
                self._flush()
                deadline = self._board.next_deadline()
            if deadline is None:
                return
            time.sleep(max(0.0, deadline - time.monotonic()))
