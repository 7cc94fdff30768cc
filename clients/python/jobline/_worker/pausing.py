"""Pauses a worker after failures in a row: what is counted, and what a pause does."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

from jobline._enums import RevokeReason
from jobline._leased import LeasedJob
from jobline._stream.frames import Received, interrupted_release
from jobline._stream.session import Session
from jobline._worker.execution import Execution
from jobline._worker.failure_pause import FailurePause, FailurePauseSettings
from jobline._worker.job_router import JobRouter
from jobline._worker.shared_session import SharedSession
from jobline._worker.window import Window
from jobline.v1 import job_service_pb2 as pb

logger = logging.getLogger("jobline.worker")


class PausingSession(SharedSession):
    """The session of a worker that pauses: it counts failures, and begins nothing in a pause."""

    def __init__(
        self,
        session: Session,
        window: Window,
        window_bytes: int,
        settings: FailurePauseSettings,
        began: Callable[[], None],
    ) -> None:
        super().__init__(session, window, window_bytes)
        self._settings = settings
        self._began = began
        self.failures = FailurePause(settings)

    def begin(self, job: LeasedJob) -> bool:
        """Returns whether the handler of a job may begin. In a pause the job is given back."""
        # It counts as running already. Whoever pauses sets this first, and then looks at what runs.
        if self.failures.is_paused:
            if self.holds(job):
                super().settle(interrupted_release(job.id, job.delivery))
            return False
        return super().begin(job)

    def ack(self, job: LeasedJob, result: bytes | None = None, content_type: str = "") -> None:
        """Settles a job as done, and notes it."""
        is_held = self.holds(job)
        super().ack(job, result, content_type)
        if is_held:
            self.failures.note_success()

    def settle(self, item: pb.FailItem | pb.ReleaseItem) -> None:
        """Settles a job as failed or released, and notes an attempt that has failed."""
        # One whose lease is lost has not failed, or is noted already.
        if (
            isinstance(item, pb.FailItem)
            and item.then == pb.FAIL_ACTION_RETRY
            and self._session.held.get(item.id) == item.delivery
        ):
            self._note_failure()
        super().settle(item)

    def handle_frame(self, frame: pb.StreamResponse) -> Received:
        """Handles a frame, and notes attempts that took too long."""
        received = super().handle_frame(frame)
        for lost in received.lost:
            if lost.reason is RevokeReason.TIMEOUT:
                self._note_failure()
        return received

    def _note_failure(self) -> None:
        if self.failures.note_failure(time.monotonic()):
            logger.error(
                "%d attempts in a row have failed: no jobs are taken for %g s",
                self.failures.in_a_row,
                self._settings.pause,
            )
            self._began()

    def _measure(self, now: float) -> None:
        super()._measure(now)
        if self.failures.is_paused:
            self._session.set_window(0, self._window_bytes)

    def take_again(self) -> None:
        """Asks for jobs again."""
        with self._lock:
            self._session.set_window(self._window.size, self._window_bytes)
        self.wakeup.set()


class Pausing:
    """Takes a worker into its pauses, and out of them. The supervisor calls it."""

    def __init__(self, session: PausingSession, execution: Execution, router: JobRouter) -> None:
        self._session = session
        self._execution = execution
        self._router = router
        self._is_applied = False

    @property
    def is_paused(self) -> bool:
        """Whether no jobs are taken."""
        return self._session.failures.is_paused

    def check(self) -> float | None:
        """Does what is due; returns the seconds until the end of the pause, None without one."""
        failures, now = self._session.failures, time.monotonic()
        if failures.resume_if_over(now):
            logger.info("the pause after failures is over: jobs are taken again")
            self._router.is_paused = self._is_applied = False
            self._session.take_again()
        deadline = failures.next_deadline()
        if deadline is None:
            return None
        if not self._is_applied:
            self._is_applied = True
            self._router.pause()
            # The writer measures, too, and with it sends the window of the pause.
            self._session.release_held(keep=self._execution.running)
        return deadline - now

    def close(self) -> None:
        """Pauses no more: the worker stops."""
        self._session.failures.close()
