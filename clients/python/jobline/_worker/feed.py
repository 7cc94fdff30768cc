"""The feed: what the server sent, to those who run it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from jobline._context import CancelReason
from jobline._enums import RevokeReason
from jobline._frames import LostLease, Received, interrupted_row
from jobline._leased import LeasedJob
from jobline._worker.collect import Collector
from jobline._worker.routes import Route, Routes
from jobline._worker.running import Shop, Work
from jobline._worker.settling import cancelled_row, release_unhandled
from jobline._worker.slots import Runners

_REASONS = {
    RevokeReason.CANCELLED: CancelReason.CANCELLED,
    RevokeReason.TIMEOUT: CancelReason.TIMEOUT,
    RevokeReason.QUEUE_DELETED: CancelReason.QUEUE_DELETED,
}


class Feed:
    """Finds the handler of each job, gathers batches, and stops handlers whose lease is gone.

    `take` is called by the reader, `flush` by the keeper, who is told by `look_soon` that a batch
    waits, or that a handler was told to stop.
    """

    def __init__(
        self,
        routes: Routes,
        shop: Shop,
        loop: Runners,
        threads: Runners,
        look_soon: Callable[[], None],
    ) -> None:
        self._routes = routes
        self._shop = shop
        self._loop = loop
        self._threads = threads
        self._look_soon = look_soon
        self._lock = threading.Lock()  # around the batches: reader and keeper both end them
        self._batches: Collector[Route, LeasedJob] = Collector()
        self._is_closed = False

    def take(self, received: Received) -> None:
        """What one frame brought."""
        for lost in received.lost:  # first: what is lost already need not start
            self._stop(lost)
        if self._is_closed:
            for job in received.jobs:  # handed out before the server knew that this worker stops
                self._shop.desk.settle(interrupted_row(job.id, job.delivery))
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
                release_unhandled(self._shop.desk, job)
            elif route.size:
                self._gather(now, route, job, work)
            else:
                work.append((route, job))
        self._put(work)

    def flush(self) -> float | None:
        """Starts the batches that have waited long enough; seconds until the next one has."""
        now = time.monotonic()
        with self._lock:
            work: list[Work] = list(self._batches.due(now))
            deadline = self._batches.next_deadline()
        self._put(work)
        return None if deadline is None else deadline - now

    def close(self) -> None:
        """Starts nothing more, and forgets what has not started."""
        self._is_closed = True
        with self._lock:
            self._batches.clear()
        self._loop.clear()
        self._threads.clear()

    def _gather(self, now: float, route: Route, job: LeasedJob, work: list[Work]) -> None:
        with self._lock:
            batch = self._batches.add(now, route, job, size=route.size, wait=route.wait)
        if batch is not None:
            work.append((route, batch))
        else:
            self._look_soon()

    def _put(self, work: list[Work]) -> None:
        for_loop = [entry for entry in work if entry[0].is_async]
        if for_loop:
            self._loop.put(for_loop)
        if len(for_loop) < len(work):
            self._threads.put([entry for entry in work if not entry[0].is_async])

    def _stop(self, lost: LostLease) -> None:
        context = self._shop.running.get((lost.id, lost.delivery))
        if context is not None:
            context.cancel(_REASONS.get(lost.reason, CancelReason.LEASE_LOST))
            self._shop.told = True
            self._look_soon()
        elif lost.reason is RevokeReason.CANCELLED:
            self._shop.desk.settle_now(cancelled_row((lost.id, lost.delivery)))
