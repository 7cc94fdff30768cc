"""`WorkerRun`: the parts of a running worker, wired together, from its start to its stop."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from jobline._stream.frames import Received
from jobline._stream.session import Session
from jobline._worker.drain import Drain
from jobline._worker.execution import Execution
from jobline._worker.flow_calls import FlowCalls
from jobline._worker.grace_periods import GracePeriods
from jobline._worker.health import Vitals
from jobline._worker.health_server import Health
from jobline._worker.job_router import JobRouter
from jobline._worker.log import ConnectionLog, log_unhandled
from jobline._worker.loop_runners import LoopRunners
from jobline._worker.pausing import Pausing, PausingSession
from jobline._worker.processes.program import program_of
from jobline._worker.processes.readiness import Readiness
from jobline._worker.processes.runners import ProcessRunners
from jobline._worker.routes import Routes
from jobline._worker.settings import Settings
from jobline._worker.shared_session import SharedSession
from jobline._worker.stream import Stream
from jobline._worker.supervisor import Supervisor
from jobline._worker.thread_runners import ThreadRunners
from jobline._worker.window import WINDOW_MAX, Window
from jobline.errors import JoblineError
from jobline.v1 import job_service_pb2 as pb


@dataclass(frozen=True, slots=True)
class WorkerStats:
    """What a worker has done since it started, and what it is doing.

    - `done`, `failed`, `released`: jobs by how they were settled; those that are cancelled
      count as failed, those that are snoozed or wait for children as released.
    - `lost`: outcomes that came too late, because the lease was lost.
    - `running`: jobs whose handlers run. `stuck`: handlers that run on beside them, after their
      end; others have their places.
    - `waiting`: jobs at hand that have not started. `window`: how many it asks to have at hand.
    - `connected`: there is a stream. `paused`: it takes no jobs for a while, after failures.
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
    paused: bool = False


class WorkerRun:
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

        self._window = _window_of(self._loop.time(), settings, routes)
        session = Session(opening, window=self._window.size, window_bytes=settings.window_bytes)
        self._session = self._session_of(settings, session)
        self._flows = FlowCalls(settings.address, self._session, settings.codec)
        self._execution = Execution(self._session, self._flows, settings.middleware, state)
        self._session.codec = self._execution.codec = settings.codec
        self._tasks = LoopRunners(self._execution, settings.concurrency)
        self._threads = self._plain_runners(settings, routes)
        self._router = JobRouter(
            routes, self._execution, self._tasks, self._threads, wake=self.wake
        )
        self._pausing = self._pausing_of(self._session)
        log = ConnectionLog(settings.address.target, opening)
        self._stream = Stream(settings.address, self._session, self._take, self._handle_end, log)
        self._supervisor = Supervisor(
            execution=self._execution,
            router=self._router,
            stream=self._stream,
            runners=(self._tasks, self._threads),
            drain=drain,
            grace_periods=GracePeriods(settings.cancel_grace),
            pausing=self._pausing,
            stopped=self._handle_stopped,
        )
        self._health: Health | None = None
        if settings.health is not None:
            self._execution.tallies = self._session.tallies
            self._health = Health(*settings.health, self._vitals)
        self._slots = slots_of(settings, routes)
        self._has_plain = any(not route.is_async for route in routes)
        self._has_async = any(route.is_async for route in routes)

    async def run_until_stopped(self) -> None:
        """Starts all parts, waits until the drain is over, and stops them."""
        try:
            self._start()
            await self._stopped.wait()
        except asyncio.CancelledError:
            # A cancelled worker does not wait for its handlers to finish: they are cancelled too.
            self._drain.request_stop()
            self._drain.request_stop()
            self.wake()
            await self._stopped.wait()
            raise
        finally:
            self._stream.stop()  # the supervisor has, unless it never began
            self._threads.stop()
            await self._tasks.stop()
            self._flows.close()
            await self._flows.close_async()
            if self._health is not None:
                self._health.stop()
        if self._failure is not None:
            raise self._failure

    def _session_of(self, settings: Settings, session: Session) -> SharedSession:
        if settings.failure_pause is None:
            return SharedSession(session, self._window, settings.window_bytes)
        return PausingSession(
            session, self._window, settings.window_bytes, settings.failure_pause, began=self.wake
        )

    def _pausing_of(self, session: SharedSession) -> Pausing | None:
        if not isinstance(session, PausingSession):
            return None
        return Pausing(session, self._execution, self._router)

    def _plain_runners(self, settings: Settings, routes: Routes) -> ThreadRunners:
        plain = [route for route in routes if not route.is_async]
        if not (settings.processes and plain):
            return ThreadRunners(self._execution, settings.threads)
        program, numbers = program_of(plain, settings.middleware)
        jobs = max(max(1, route.size) for route in plain)
        return ProcessRunners(
            self._execution,
            settings.processes,
            program=program,
            numbers=numbers,
            readiness=Readiness(settings.processes, jobs, self._hold_back),
            failed=self._handle_end,
        )

    def _hold_back(self, jobs: int) -> None:
        """Has the writer ask for fewer jobs, or for more again."""
        self._window.hold_back(jobs)
        self._session.wakeup.set()

    def _start(self) -> None:
        if self._health is not None:
            self._health.start()
        if self._has_async:
            self._tasks.start()
        if self._has_plain:
            self._threads.start()
        self._stream.start()
        self._supervisor.start()

    def stats(self) -> WorkerStats:
        """Returns what the worker has done and is doing."""
        counts, running = self._session.counts, len(self._execution.running)
        is_paused = self._pausing is not None and self._pausing.is_paused
        return WorkerStats(
            done=counts.done,
            failed=counts.failed,
            released=counts.released,
            lost=counts.lost,
            running=running,
            stuck=len(self._tasks.stuck) + len(self._threads.stuck),
            waiting=max(0, self._session.held - running),
            window=0 if is_paused else self._window.size,
            connected=self._session.is_open,
            paused=is_paused,
        )

    @property
    def health_address(self) -> str:
        """Where the health port listens; "" for nowhere."""
        return "" if self._health is None else self._health.address

    def _vitals(self, loop_blocked_for: float) -> Vitals:
        session, down_since = self._session, self._session.down_since
        return Vitals(
            stage=self._drain.stage,
            is_open=session.is_open,
            down_for=None if down_since is None else time.monotonic() - down_since,
            loop_blocked_for=loop_blocked_for,
            running=len(self._execution.running),
            slots=self._slots,
            reconnects=max(0, session.counts.opened - 1),
            abandoned=self._tasks.abandoned + self._threads.abandoned,
            outcomes=session.tallies.outcomes(),
            histograms=session.tallies.histograms(),
        )

    def wake(self) -> None:
        """Has the supervisor check soon, for example for a drain."""
        self._supervisor.wake()

    def _take(self, received: Received) -> None:
        for queue, name, ready in received.unhandled:
            log_unhandled(queue, name, ready)
        if received.opened:
            self._call_soon(self._connected)
        self._router.take(received)

    def _handle_end(self, failure: JoblineError | None) -> None:
        """Handles the end of the stream's thread: the worker stops, or no stream is possible."""
        if failure is not None:
            self._failure = failure
            self._drain.request_stop()
        self.wake()

    def _handle_stopped(self, failure: JoblineError | None) -> None:
        self._failure = self._failure or failure
        self._call_soon(self._stopped.set)

    def _call_soon(self, callback: Callable[[], None]) -> None:
        with suppress(RuntimeError):  # the loop was closed before the worker ended
            self._loop.call_soon_threadsafe(callback)


def slots_of(settings: Settings, routes: Routes) -> int:
    """Returns how many handlers can run at once, a batch as one."""
    kinds = {route.is_async for route in routes}
    return settings.concurrency * (True in kinds) + settings.plain_runners * (False in kinds)


def _runners(settings: Settings, routes: Routes) -> int:
    """Returns how many jobs can run at once; a batch handler runs as many as a batch has."""
    total = 0
    for is_async, count in ((True, settings.concurrency), (False, settings.plain_runners)):
        sizes = [max(1, route.size) for route in routes if route.is_async is is_async]
        total += count * max(sizes, default=0)
    return total


def _window_of(now: float, settings: Settings, routes: Routes) -> Window:
    """Returns the first window: nothing where plain handlers wait for a child that is ready."""
    window = Window(now, runners=_runners(settings, routes), fixed=settings.window)
    if settings.processes and not all(route.is_async for route in routes):
        window.hold_back(WINDOW_MAX)
    return window
