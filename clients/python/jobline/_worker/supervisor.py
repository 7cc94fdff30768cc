"""`Supervisor`: a thread that supervises a worker from outside its loop and its handlers.

It detects a silent server, starts batches whose wait has ended, adapts the window to the work,
replaces handlers that run on after their grace period, and takes a stopping worker through the
stages of its drain. It runs no handler, so none can block it.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta

from jobline._cancel_reason import CancelReason
from jobline._context import Context
from jobline._worker.drain import Drain, Stage
from jobline._worker.execution import Execution
from jobline._worker.grace_periods import GracePeriods
from jobline._worker.job_router import JobRouter
from jobline._worker.log import stopping as log_stopping
from jobline._worker.pausing import Pausing
from jobline._worker.settling import cancelled_fail
from jobline._worker.slots import Runners, Slot
from jobline._worker.stream import Stream
from jobline._worker.wakeup import Wakeup
from jobline.errors import ErrorFacts, Internal, JoblineError

logger = logging.getLogger("jobline.worker")

# Seconds between checks while the worker stops: handlers and confirms do not wake the supervisor.
DRAIN_CHECK_SECONDS = 0.02
# Seconds between checks otherwise, at most.
CHECK_SECONDS = 1.0


RunningHandler = tuple[Runners, Slot, tuple[Context, ...]]
"""Where a handler runs, and the jobs it runs for. Other contexts mean another handler."""


class Supervisor:
    """Supervises one worker until it has stopped, then calls `stopped`, with an error if the
    supervisor itself broke.
    """

    def __init__(  # noqa: PLR0913  # the parts that it supervises
        self,
        *,
        execution: Execution,
        router: JobRouter,
        stream: Stream,
        runners: Sequence[Runners],
        drain: Drain,
        grace_periods: GracePeriods[RunningHandler],
        pausing: Pausing | None,
        stopped: Callable[[JoblineError | None], None],
    ) -> None:
        self._execution = execution
        self._router = router
        self._stream = stream
        self._runners = runners
        self._drain = drain
        self._grace_periods = grace_periods
        self._pausing = pausing
        self._stopped = stopped
        self._wakeup = Wakeup()  # a queue inside: safe to set in a signal handler
        self._thread = threading.Thread(target=self._run, name="jobline-supervisor", daemon=True)

    def start(self) -> None:
        """Starts the thread."""
        self._thread.start()

    def wake(self) -> None:
        """Has it check soon. Safe on any thread and in a signal handler."""
        self._wakeup.set()

    def _run(self) -> None:
        failure: JoblineError | None = None
        try:
            while self._drain.stage is not Stage.STOPPED:
                pause = self._check()
                self._wakeup.wait(pause)
        except Exception as error:
            logger.exception("the supervisor broke: the worker stops")
            failure = Internal(f"the supervisor broke: {error}", ErrorFacts(reason="WORKER_BROKE"))
        finally:
            self._router.close()
            self._stream.stop()
            self._stopped(failure)

    def _check(self) -> float:
        """Does what is due; returns the seconds until the next check."""
        is_silent, pause = self._execution.session.check_silence()
        if is_silent:
            logger.warning("the server has fallen silent: opening another stream")
            self._stream.hang_up()
            pause = CHECK_SECONDS
        pauses = [
            pause,
            CHECK_SECONDS,
            self._router.flush(),
            self._replace_stuck(),
            self._check_idle(),  # before the end of a pause: it is idle from then on
            self._check_pause(),
        ]
        self._step()
        if self._drain.stage is not Stage.WORKING:
            pauses.append(DRAIN_CHECK_SECONDS)
        return min(pause for pause in pauses if pause is not None)

    def _check_pause(self) -> float | None:
        """Begins or ends a pause after failures; returns the seconds until its end."""
        if self._pausing is None:
            return None
        if self._drain.stage is Stage.WORKING:
            return self._pausing.check()
        self._pausing.close()
        return None

    def _check_idle(self) -> float | None:
        """Begins the drain of a worker that was idle for long enough; else seconds until then."""
        session = self._execution.session
        is_paused = self._pausing is not None and self._pausing.is_paused  # then jobs may wait
        is_at_work = session.held > 0 or bool(self._execution.running)
        is_beginning = not all(runners.is_ready for runners in self._runners)
        is_busy = not session.is_open or is_paused or is_at_work or is_beginning
        return self._drain.check_idle(time.monotonic(), is_busy=is_busy, finished=session.finished)

    def _replace_stuck(self) -> float | None:
        """Replaces handlers whose grace period has ended; returns the seconds until the next."""
        if not self._execution.has_cancelled or self._drain.stage >= Stage.CANCELLING:
            return None
        # Before the check: a handler that is cancelled from now on sets it again.
        self._execution.has_cancelled = False
        now = time.monotonic()
        stopping = [handler for handler in self._running_handlers() if handler[1].is_ended]
        if stopping:
            self._execution.has_cancelled = True
        for handler in self._grace_periods.expired(now, stopping):
            self._give_up(*handler)
        deadline = self._grace_periods.next_deadline()
        return None if deadline is None else deadline - now

    def _running_handlers(self) -> list[RunningHandler]:
        """Returns the handlers that run."""
        return [
            (runners, slot, contexts)
            for runners in self._runners
            for slot in tuple(runners.slots)
            if (contexts := slot.contexts)
        ]

    def _give_up(self, runners: Runners, slot: Slot, contexts: tuple[Context, ...]) -> None:
        first = contexts[0]
        logger.error(
            "a handler of %s/%s ignores its end (%s; jobs %s): its place is given to another, and "
            "what it says is dropped. It is here:\n%s",
            first.queue,
            first.name,
            first.cancel_reason.value if first.cancel_reason else "",
            ", ".join(str(context.id) for context in contexts),
            slot.stack(),
        )
        for context in contexts:
            if self._execution.session.holds(
                context.job
            ):  # cancelled: nothing else would settle it
                self._execution.session.settle_now(cancelled_fail(context.job))
        runners.replace(slot, contexts)

    def _step(self) -> None:
        session = self._execution.session
        while True:
            stage = self._drain.step(
                time.monotonic(),
                is_idle=not self._execution.running,
                is_confirmed=session.is_confirmed and not self._stream.is_calling,
            )
            if stage is None:
                return
            if stage is Stage.FINISHING:
                self._finish()
            deadline = self._drain.next_deadline()
            left = None if deadline is None else deadline - time.monotonic()
            log_stopping(stage, len(self._execution.running), left)
            if stage is Stage.CANCELLING:
                self._execution.stop(list(self._execution.running), CancelReason.STOPPING)
            elif stage is Stage.RELEASING:
                self._release()

    def _finish(self) -> None:
        """Starts nothing more, releases jobs that have not started or whose children wait for room,
        and sets the deadline of the others.
        """
        execution = self._execution
        execution.session.drain()
        self._router.close()
        execution.flows.stop()
        released = execution.session.release_held(keep=execution.running)
        # None of them runs; one that did would work for nothing.
        execution.stop(released, CancelReason.STOPPING)
        deadline = self._drain.next_deadline()
        if deadline is not None:
            ends_at = datetime.now(UTC) + timedelta(seconds=deadline - time.monotonic())
            execution.set_deadline(ends_at)
            for runners in self._runners:
                runners.set_deadline(ends_at)

    def _release(self) -> None:
        """Releases what is still held, and logs the handlers that did not stop."""
        for runners in self._runners:  # before others get their jobs
            runners.kill()
        released = self._execution.session.release_held()
        handlers = self._running_handlers()
        if handlers:
            logger.error(
                "handlers that did not stop in time: %d; jobs given back: %d\n%s",
                len(handlers),
                len(released),
                "\n".join(slot.stack() for _, slot, _ in handlers),
            )
