"""The parts of a running worker, wired: made when it starts, gone when it has stopped."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from jobline._frames import Received
from jobline._session import Session
from jobline._worker.desk import Desk
from jobline._worker.drain import Drain
from jobline._worker.feed import Feed
from jobline._worker.keeper import Keeper
from jobline._worker.log import ConnectionLog, nobody_handles
from jobline._worker.loop_runners import LoopRunners
from jobline._worker.middleware import Middleware
from jobline._worker.patience import Patience
from jobline._worker.routes import Routes
from jobline._worker.running import Shop
from jobline._worker.stream import Address, Stream
from jobline._worker.thread_runners import ThreadRunners
from jobline._worker.window import Window
from jobline.errors import JoblineError
from jobline.v1 import job_service_pb2 as pb


@dataclass(frozen=True, slots=True)
class Settings:
    """What a worker was told. `window` None: it follows the work. Times are in seconds."""

    address: Address
    concurrency: int
    threads: int
    window: int | None
    window_bytes: int
    cancel_grace: float
    middleware: Sequence[Middleware]


@dataclass(frozen=True, slots=True)
class WorkerStats:
    """What a worker has done since it started, and what it is doing.

    - `done`, `failed`, `released`: jobs by what was told to the server; those that are cancelled
      count as failed, those that are snoozed as released.
    - `lost`: outcomes that came too late, because the lease was lost.
    - `running`: jobs whose handlers run. `stuck`: handlers that hang on beside them, after their
      end; others have their places.
    - `waiting`: jobs at hand that have not started. `window`: how many it asks to have at hand.
    - `connected`: there is a stream.
    """

    done: int = 0
    failed: int = 0
    released: int = 0
    lost: int = 0
    running: int = 0
    stuck: int = 0
    waiting: int = 0
    window: int = 0
    connected: bool = False


class House:
    """Everything of one run of a worker. Made inside the event loop that runs the async
    handlers.
    """

    def __init__(
        self,
        settings: Settings,
        routes: Routes,
        opening: pb.StreamOpen,
        state: Any,
        *,
        drain: Drain,
        connected: Callable[[], None],
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._drain = drain
        self._connected = connected
        self._stopped = asyncio.Event()
        self._failure: JoblineError | None = None

        self._window = Window(
            self._loop.time(), runners=_runners(settings, routes), fixed=settings.window
        )
        session = Session(opening, window=self._window.size, window_bytes=settings.window_bytes)
        self._desk = Desk(session, self._window, settings.window_bytes)
        self._shop = Shop(self._desk, settings.middleware, state)
        self._tasks = LoopRunners(self._shop, settings.concurrency)
        self._threads = ThreadRunners(self._shop, settings.threads)
        self._feed = Feed(routes, self._shop, self._tasks, self._threads, look_soon=self.look_soon)
        log = ConnectionLog(settings.address.target, opening)
        self._stream = Stream(settings.address, self._desk, self._take, self._handle_end, log)
        self._keeper = Keeper(
            shop=self._shop,
            feed=self._feed,
            stream=self._stream,
            runners=(self._tasks, self._threads),
            drain=drain,
            patience=Patience(settings.cancel_grace),
            stopped=self._handle_stopped,
        )
        self._has_plain = any(not route.is_async for route in routes)
        self._has_async = any(route.is_async for route in routes)

    async def live(self) -> None:
        """Starts everything, waits until the drain is over, stops everything."""
        try:
            self._start()
            await self._stopped.wait()
        except asyncio.CancelledError:
            # Whoever cancels does not want to wait for handlers to finish; they are cancelled too.
            self._drain.ask()
            self._drain.ask()
            self.look_soon()
            await self._stopped.wait()
            raise
        finally:
            self._stream.stop()  # the keeper has, unless it never began
            self._threads.stop()
            await self._tasks.stop()
        if self._failure is not None:
            raise self._failure

    def _start(self) -> None:
        if self._has_async:
            self._tasks.start()
        if self._has_plain:
            self._threads.start()
        self._stream.start()
        self._keeper.start()

    def stats(self) -> WorkerStats:
        """What it has done, and what it is doing."""
        counts, running = self._desk.counts, len(self._shop.running)
        return WorkerStats(
            done=counts.done,
            failed=counts.failed,
            released=counts.released,
            lost=counts.lost,
            running=running,
            stuck=len(self._tasks.stuck) + len(self._threads.stuck),
            waiting=max(0, self._desk.held - running),
            window=self._window.size,
            connected=self._desk.is_open,
        )

    def look_soon(self) -> None:
        """Something changed that the keeper should see, such as the drain."""
        self._keeper.look_soon()

    def _take(self, received: Received) -> None:
        for queue, name, ready in received.unhandled:
            nobody_handles(queue, name, ready)
        if received.opened:
            self._call_soon(self._connected)
        self._feed.take(received)

    def _handle_end(self, failure: JoblineError | None) -> None:
        """The stream's thread has ended: because the worker stops, or because no stream is
        possible.
        """
        if failure is not None:
            self._failure = failure
            self._drain.ask()
        self.look_soon()

    def _handle_stopped(self, failure: JoblineError | None) -> None:
        self._failure = self._failure or failure
        self._call_soon(self._stopped.set)

    def _call_soon(self, callback: Callable[[], None]) -> None:
        with suppress(RuntimeError):  # the loop is closed, by somebody who did not wait for us
            self._loop.call_soon_threadsafe(callback)


def _runners(settings: Settings, routes: Routes) -> int:
    """How many jobs can run at once; a batch handler runs as many as a batch has."""
    total = 0
    for is_async, count in ((True, settings.concurrency), (False, settings.threads)):
        sizes = [max(1, route.size) for route in routes if route.is_async is is_async]
        total += count * max(sizes, default=0)
    return total
