"""A child: runs handlers in its main thread, one at a time, and listens in another.

A signal that is sent to all processes of a program means the worker, which drains: here SIGINT and
SIGTERM do nothing, until the worker itself asks for the end. A child whose worker is gone ends.
"""

from __future__ import annotations

import logging
import os
import signal
import sys
import threading
import traceback
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from queue import SimpleQueue
from types import FrameType
from typing import Any, cast

from jobline._cancel_reason import CancelReason
from jobline._context import Context
from jobline._leased import LeasedJob
from jobline._outcomes import Stopped
from jobline._worker.execution import Execution
from jobline._worker.middleware import Middleware
from jobline._worker.processes.child_session import ChildCalls, ChildSession
from jobline._worker.processes.log import forward_records
from jobline._worker.processes.messages import (
    Answer,
    Began,
    Cancel,
    Deadline,
    Ended,
    Lease,
    NotReady,
    Pipe,
    Ready,
    Run,
    Stop,
    Terminate,
)
from jobline._worker.processes.pickling import loads
from jobline._worker.routes import Route
from jobline._worker.slots import Slot
from jobline._worker.thread_runners import ThreadRunners
from jobline.v1 import job_pb2

logger = logging.getLogger("jobline.worker")


def main(connection: Connection, program: bytes, levels: dict[str, int]) -> None:
    """Runs a child to its end. `program`: how its routes are made, and its middleware, pickled."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    pipe = Pipe(connection)
    # What a handler forks has no part in the pipe: it would keep the end of this process from being
    # noticed, and two would write at the same time.
    os.register_at_fork(after_in_child=connection.close)
    try:
        makers, middleware = loads(program)
        routes = [make() for make in makers]
    except BaseException as error:  # noqa: BLE001  # whatever the user's modules raise
        pipe.send(NotReady(f"{type(error).__name__}: {error}"))
        return
    forward_records(pipe, levels)
    Child(pipe, routes, middleware).run()


class Child:
    """The handlers of one child, and what it knows of the one that runs."""

    def __init__(
        self, pipe: Pipe, routes: Sequence[Route], middleware: Sequence[Middleware]
    ) -> None:
        self._pipe = pipe
        self._routes = routes
        session = ChildSession(pipe)
        self._calls = ChildCalls(pipe, session)
        self._execution = _Execution(cast(Any, session), cast(Any, self._calls), middleware)
        self._runner = ThreadRunners(self._execution, 1)
        self._slot = Slot(f"process {os.getpid()}")
        self._inbox: SimpleQueue[Run | None] = SimpleQueue()
        self._main_thread = threading.get_ident()
        self._is_terminating = False

    def run(self) -> None:
        """Runs what the worker sends until there is no worker."""
        signal.signal(signal.SIGTERM, self._handle_sigterm)
        self._slot.thread_id = self._main_thread
        threading.Thread(target=self._listen, name="jobline-listener", daemon=True).start()
        self._pipe.send(Ready())
        while (work := self._inbox.get()) is not None:
            self._pipe.send(Began())
            self._run(work)
            self._slot.contexts = ()
            self._execution.early.clear()
            self._pipe.send(Ended(self._is_terminating))
            if self._is_terminating:
                return

    def _run(self, work: Run) -> None:
        messages = map(job_pb2.LeasedJob.FromString, work.jobs)
        jobs = [LeasedJob.from_message(message) for message in messages]
        route = self._routes[work.route]
        # Asked to end at the moment when the handler has ended, there is nothing left to stop.
        with suppress(Stopped):
            self._runner.run_work(self._slot, (route, jobs if work.is_batch else jobs[0]))

    # ------------------------------------------------------------------ what the worker says

    def _listen(self) -> None:
        try:
            while True:
                self._take(self._pipe.receive())
        except (EOFError, OSError):
            pass
        except BaseException:
            logger.exception("a child cannot understand its worker")
        if self._slot.contexts:
            os._exit(1)  # the worker is gone, and with it the lease: nobody wants what comes of it
        self._inbox.put(None)

    def _take(self, message: Any) -> None:
        if isinstance(message, Run):
            self._inbox.put(message)
        elif isinstance(message, Cancel):
            self._execution.early[message.lease] = message.reason
            self._execution.stop([message.lease], message.reason)
        elif isinstance(message, Deadline):
            self._execution.set_deadline(message.at)
        elif isinstance(message, Answer):
            self._calls.take(message)
        elif isinstance(message, Terminate):
            self._terminate()
        elif isinstance(message, Stop):
            self._inbox.put(None)

    def _terminate(self) -> None:
        frames = sys._current_frames()  # noqa: SLF001  # the documented way to another thread
        stack = "".join(traceback.format_stack(frames.get(self._main_thread)))
        logger.error("process %d is ended; its handler is here:\n%s", os.getpid(), stack)
        self._is_terminating = True
        signal.pthread_kill(self._main_thread, signal.SIGTERM)

    def _handle_sigterm(self, _number: int, _frame: FrameType | None) -> None:
        if self._is_terminating and self._slot.contexts:
            raise Stopped("the worker ends this process")


@dataclass(slots=True, eq=False)
class _Execution(Execution):
    """`early`: why jobs should stop that have not started here."""

    early: dict[Lease, CancelReason] = field(default_factory=dict)

    def start(self, job: LeasedJob) -> Context | None:
        context = Execution.start(self, job)
        reason = self.early.get((job.id, job.delivery))
        if context is not None and reason is not None:
            context.cancel(reason)
        return context
