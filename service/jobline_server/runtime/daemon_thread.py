"""A thread for work that may hang for as long as it likes.

The interpreter waits at its end for the threads of an executor, but not for a daemon.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from queue import SimpleQueue
from threading import Thread
from typing import TypeVar

T = TypeVar("T")


class DaemonThread:
    """Runs work, one piece at a time, in the order in which it came."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._work: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self._thread: Thread | None = None

    async def run(self, work: Callable[[], T]) -> T:
        """Returns what the work returns, or raises what it raises."""
        loop = asyncio.get_running_loop()
        done: asyncio.Future[T] = loop.create_future()

        def settle(outcome: T | BaseException) -> None:
            if done.done():
                return
            if isinstance(outcome, BaseException):
                done.set_exception(outcome)
            else:
                done.set_result(outcome)

        def run() -> None:
            outcome: T | BaseException
            try:
                outcome = work()
            except BaseException as error:  # noqa: BLE001  # raised where it is awaited
                outcome = error
            # The loop may be closed by now.
            with suppress(RuntimeError):
                loop.call_soon_threadsafe(settle, outcome)

        if self._thread is None:
            self._thread = Thread(target=self._keep_running, name=self._name, daemon=True)
            self._thread.start()
        self._work.put(run)
        return await done

    def stop(self) -> None:
        """Ends the thread after the work under way; waits for nothing."""
        self._work.put(None)

    def _keep_running(self) -> None:
        while (run := self._work.get()) is not None:
            run()
