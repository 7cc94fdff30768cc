"""`JobRouter`: from the frames of the server to the runners."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from jobline._cancel_reason import CancelReason
from jobline._enums import RevokeReason
from jobline._leased import LeasedJob
from jobline._stream.frames import LostLease, Received, interrupted_release
from jobline._worker.batches import JobBatches
from jobline._worker.execution import Execution, Work
from jobline._worker.routes import Route, Routes
from jobline._worker.settling import cancelled_fail, release_unhandled
from jobline._worker.slots import Runners

_REASONS = {
    RevokeReason.CANCELLED: CancelReason.CANCELLED,
    RevokeReason.TIMEOUT: CancelReason.TIMEOUT,
    RevokeReason.QUEUE_DELETED: CancelReason.QUEUE_DELETED,
}


class JobRouter:
    """Finds the handler of each job, collects batches, and stops handlers whose lease is lost.

    The reader calls `take`, the supervisor calls `flush`. `wake` wakes the supervisor: a batch
    waits, or a handler was asked to stop.
    """

    def __init__(
        self,
        routes: Routes,
        execution: Execution,
        loop: Runners,
        threads: Runners,
        wake: Callable[[], None],
    ) -> None:
        self._routes = routes
        self._execution = execution
        self._loop = loop
        self._threads = threads
        self._wake = wake
        self._lock = threading.Lock()  # around the batches: reader and supervisor both take them
        self._batches: JobBatches[Route, LeasedJob] = JobBatches()
        self._is_closed = False
        self.is_paused = False

    def take(self, received: Received) -> None:
        """Routes what one frame brought."""
        for lost in received.lost:  # first: a job whose lease is lost need not start
            self._stop(lost)
        if self._is_closed or self.is_paused:
            # Leased before the server knew that this worker stops, or pauses.
            for job in received.jobs:
                self._execution.session.settle(interrupted_release(job.id, job.delivery))
        elif received.jobs:
            self._start(received.jobs)

    def _start(self, jobs: list[LeasedJob]) -> None:
        now = time.monotonic()
        work: list[Work] = []
        options, route = None, None
        for job in jobs:
            if job.options_message is not options:  # the jobs of a run share theirs
                options, route = job.options_message, self._routes.find(job.queue, job.name)
            if route is None:
                release_unhandled(self._execution.session, job)
            elif route.size:
                self._add_to_batch(now, route, job, work)
            else:
                work.append((route, job))
        self._put(work)

    def flush(self) -> float | None:
        """Starts the batches whose wait has ended; returns the seconds until the next one."""
        now = time.monotonic()
        with self._lock:
            work: list[Work] = list(self._batches.due(now))
            deadline = self._batches.next_deadline()
        self._put(work)
        return None if deadline is None else deadline - now

    def close(self) -> None:
        """Starts nothing more and drops what has not started."""
        self._is_closed = True
        self._clear()

    def pause(self) -> None:
        """Starts nothing until `is_paused` is unset, and drops what has not started."""
        self.is_paused = True
        self._clear()

    def _clear(self) -> None:
        with self._lock:
            self._batches.clear()
        self._loop.clear()
        self._threads.clear()

    def _add_to_batch(self, now: float, route: Route, job: LeasedJob, work: list[Work]) -> None:
        with self._lock:
            batch = self._batches.add(now, route, job, size=route.size, wait=route.wait)
        if batch is not None:
            work.append((route, batch))
        else:
            self._wake()

    def _put(self, work: list[Work]) -> None:
        for_loop = [entry for entry in work if entry[0].is_async]
        if for_loop:
            self._loop.put(for_loop)
        if len(for_loop) < len(work):
            self._threads.put([entry for entry in work if not entry[0].is_async])

    def _stop(self, lost: LostLease) -> None:
        context = self._execution.running.get((lost.id, lost.delivery))
        if context is not None:
            context.cancel(_REASONS.get(lost.reason, CancelReason.LEASE_LOST))
            self._execution.has_cancelled = True
            self._wake()
        elif lost.reason is RevokeReason.CANCELLED:
            self._execution.session.settle_now(cancelled_fail((lost.id, lost.delivery)))
