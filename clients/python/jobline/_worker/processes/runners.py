"""Runners for plain handlers in processes: each has a thread here and a child of its own.

A child that ends while it has jobs in its hands has crashed: those jobs have stalled, others go on,
and another child takes its place. One that ends before it took them costs them nothing.
"""

from __future__ import annotations

import logging
import random
import threading
import time
from collections.abc import Callable, Mapping
from datetime import datetime
from functools import partial
from typing import Any

from jobline._backoff import RECONNECT
from jobline._cancel_reason import CancelReason
from jobline._context import Context
from jobline._enums import ReleaseReason
from jobline._stream.frames import release_of_lease
from jobline._worker.execution import Execution, Work
from jobline._worker.processes.child_process import CannotBegin, ChildProcess
from jobline._worker.processes.messages import (
    Answer,
    Began,
    Call,
    Cancel,
    Deadline,
    Ended,
    Lease,
    Run,
    Said,
    Settled,
    Waits,
)
from jobline._worker.processes.pickling import as_sent
from jobline._worker.processes.readiness import Readiness
from jobline._worker.routes import Route
from jobline._worker.settling import cancelled_fail
from jobline._worker.slots import Slot
from jobline._worker.thread_runners import ThreadRunners
from jobline.errors import CodecError, ErrorFacts, Internal, JoblineError
from jobline.v1 import job_service_pb2 as pb

logger = logging.getLogger("jobline.worker")

# Children that may be lost before they take a job, until the job counts as what kills them.
TRIES = 3
# Seconds to wait until runners have read what their killed children said.
READ_SECONDS = 1.0


class ProcessSlot(Slot):
    """A place in a process of its own."""

    __slots__ = ("child", "ended", "left")

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.child: ChildProcess | None = None
        self.left: dict[Lease, Context] = {}  # jobs that are not settled
        self.ended = threading.Event()

    def stack(self) -> str:
        """Returns where the handler runs; the child logs its stack itself when it is ended."""
        return f"{self.name}: in process {self.child.process.pid if self.child else 'none'}\n"


class ProcessRunners(ThreadRunners):
    """`program` is what `child.main` takes; `numbers` those of its routes. `failed` is called once
    if no child can begin.
    """

    def __init__(
        self,
        execution: Execution,
        processes: int,
        *,
        program: bytes,
        numbers: Mapping[Route, int],
        readiness: Readiness,
        failed: Callable[[JoblineError], None],
    ) -> None:
        super().__init__(execution, processes)
        self._program = program
        self._numbers_of = numbers
        self._failed = failed
        self._readiness = readiness
        self._stopping = threading.Event()
        self._places: list[ProcessSlot] = []

    @property
    def is_ready(self) -> bool:
        """Whether some child can take a job."""
        return self._readiness.is_any

    def replace(self, slot: Slot, contexts: tuple[Context, ...]) -> None:
        """Ends the child of a handler that ignores its end; another one takes its place."""
        with self._lock:
            if isinstance(slot, ProcessSlot) and slot.contexts is contexts and slot.child:
                self.abandoned += 1
                slot.child.terminate()

    def set_deadline(self, deadline: datetime) -> None:
        """Tells the children when they will be asked to stop."""
        for slot in self._places:
            if slot.contexts and slot.child is not None:
                slot.child.send(Deadline(deadline))

    def kill(self) -> None:
        """Kills the children whose handlers run, and returns when what they said was heard."""
        self._stopping.set()
        busy = [slot for slot in self._places if slot.contexts]
        for slot in busy:
            if slot.child is not None:
                slot.child.kill()
        end = time.monotonic() + READ_SECONDS
        for slot in busy:
            slot.ended.wait(max(0.0, end - time.monotonic()))

    def stop(self) -> None:
        """Ends the children, and kills those that do not end; waits up to some seconds for it."""
        self.kill()
        super().stop()
        with self._lock:
            children = [slot.child for slot in self._places if slot.child is not None]
        for child in children:
            child.hang_up()
        for child in children:
            child.close()

    def _start_one(self) -> None:
        slot = ProcessSlot(f"jobline-runner-{next(self._numbers)}")
        self.slots.append(slot)
        self._places.append(slot)
        threading.Thread(target=self._serve, args=(slot,), name=slot.name, daemon=True).start()

    def _serve(self, slot: ProcessSlot) -> None:
        while self._child_of(slot) is not None and (work := self._backlog.get()) is not None:
            slot.ended.clear()
            try:
                self._run_in_child(slot, work)
            finally:
                with self._lock:
                    slot.contexts = ()
                slot.ended.set()

    def _child_of(self, slot: ProcessSlot) -> ChildProcess | None:
        """Returns the child of a place, made if need be; None if the worker stops or none can."""
        tries = 0
        while slot.child is None and not self._stopping.is_set():
            self._readiness.lost(slot)
            tries += 1
            try:
                child = ChildProcess(self._program)
                with self._lock:  # `stop` closes it, or it is killed here
                    slot.child = child
                    if self._stopping.is_set():
                        child.kill()
                child.wait_ready()
            except (CannotBegin, OSError, JoblineError) as error:
                slot.child = None
                if self._stopping.is_set() or self._gives_up(error):
                    return None
                logger.warning("a process of the worker could not begin: %s; trying again", error)
                self._stopping.wait(RECONNECT.after(tries, random.random))
            else:
                self._readiness.began(slot)
        return slot.child

    def _gives_up(self, error: Exception) -> bool:
        """Ends the worker if none of its children has ever begun."""
        if self._readiness.has_begun:
            return False
        if not isinstance(error, JoblineError):
            error = Internal(
                f"a process of the worker ended while it began ({error}); it may have said why on "
                'stderr. A program whose worker has processes= runs it below `if __name__ == "'
                '__main__":`',
                ErrorFacts(reason="WORKER_BROKE"),
            )
        self._failed(error)
        return True

    def _run_in_child(self, slot: ProcessSlot, work: Work) -> None:
        route, job = work
        execution = self._execution
        jobs = job if isinstance(job, list) else [job]
        started = (execution.start(each) for each in jobs)
        contexts = tuple(context for context in started if context is not None)
        if not contexts:
            return
        slot.left = {(each.id, each.delivery): each for each in contexts}
        slot.contexts = contexts
        messages = tuple(each.job.to_message().SerializeToString() for each in contexts)
        run = Run(self._numbers_of[route], messages, isinstance(job, list))
        try:
            for _ in range(TRIES):
                child = self._child_of(slot)
                if child is None:
                    return  # the worker stops: it releases what it holds
                if self._is_run_by(slot, child, run):
                    return
                slot.child = None
            self._settle_crashed(slot, "before it took the job, again and again")
        finally:
            for context in contexts:
                context.on_cancel(None)
                execution.end(context)

    def _is_run_by(self, slot: ProcessSlot, child: ChildProcess, run: Run) -> bool:
        """Has a child run a handler to its end; returns False if it ended before it began."""
        has_begun = False
        try:
            child.begin_run(run)
            for context in slot.contexts:
                lease = context.job.id, context.job.delivery
                context.on_cancel(partial(_cancel, child, lease, context))
            while not isinstance(message := child.receive(), Ended):
                has_begun = has_begun or isinstance(message, Began)
                self._take(slot, child, message)
        except Exception:  # noqa: BLE001  # half a message may raise anything
            slot.child = None
            how = child.how_it_ended()
            if has_begun and not child.is_killed:
                self._settle_crashed(slot, how)
            return has_begun or child.is_killed
        child.end_run()
        if message.is_last:
            slot.child = None
            child.close()
        return True

    def _take(self, slot: ProcessSlot, child: ChildProcess, message: Any) -> None:
        session = self._execution.session
        if isinstance(message, Call):
            self._answer(child, message)
        elif isinstance(message, Said):
            context = slot.left.get(message.lease)
            if context is not None:
                self._say(slot, context, message)
        elif isinstance(message, Settled):
            kind = pb.ReleaseItem if message.is_release else pb.FailItem
            if slot.left.pop(message.lease, None) is not None:
                session.settle(kind.FromString(message.item))
        elif isinstance(message, Waits):
            context = slot.left.pop(message.lease, None)
            if context is not None:
                self._execution.flows.push(context, message.outcome)
        else:
            child.handle_log(message)

    def _say(self, slot: ProcessSlot, context: Context, said: Said) -> None:
        """Has the session do something. What a codec cannot seal fails the job, if it is the
        result, and is left out otherwise.
        """
        is_ack = said.method == "ack"
        try:
            say = getattr(self._execution.session, said.method)
            say(context.job, *said.arguments, **said.keywords)
        except CodecError as error:
            if is_ack:
                self._execution.settle_error(context, error)
            else:
                logger.warning("a report of job %d is left out: %s", context.id, error)
        if is_ack:
            del slot.left[said.lease]

    def _answer(self, child: ChildProcess, call: Call) -> None:
        """Makes a call for a handler."""
        try:
            value = getattr(self._execution.flows, call.method)(*call.arguments)
            child.send(Answer(call.number, value, is_error=False))
        except Exception as error:  # noqa: BLE001  # it is raised where the call was made
            child.send(Answer(call.number, as_sent(error), is_error=True))

    def _settle_crashed(self, slot: ProcessSlot, how: str) -> None:
        """Settles the jobs of a child that crashed: each has stalled, unless it is cancelled."""
        session = self._execution.session
        for lease, context in slot.left.items():
            job = context.job
            logger.error(
                "the process that ran job %d (%s/%s) has crashed (%s): the job has stalled, and "
                "another process takes its place",
                job.id, job.queue, job.name, how,
            )  # fmt: skip
            if not session.holds(job):
                continue
            if context.cancel_reason is CancelReason.CANCELLED:
                session.settle(cancelled_fail(job))
            else:
                session.settle(release_of_lease(*lease, ReleaseReason.CRASHED))
        slot.left = {}


def _cancel(child: ChildProcess, lease: Lease, context: Context) -> None:
    if context.cancel_reason is not None:
        child.send(Cancel(lease, context.cancel_reason))
