"""Runners for plain handlers: threads that empty one backlog."""

from __future__ import annotations

import contextvars
import itertools
import threading
from collections.abc import Iterable
from contextlib import suppress
from functools import partial
from queue import Empty, SimpleQueue

from jobline._context import Context
from jobline._leased import LeasedJob
from jobline._worker.execution import Execution, Work
from jobline._worker.middleware import wrapped_plain
from jobline._worker.routes import Route
from jobline._worker.slots import Runners, Slot


class ThreadRunners(Runners):
    """Runs handlers on daemon threads: a thread that ignores the end of the worker does not delay
    the end of the process.
    """

    def __init__(self, execution: Execution, threads: int) -> None:
        super().__init__(execution, threads)
        self._backlog: SimpleQueue[Work | None] = SimpleQueue()
        self._numbers = itertools.count()
        self._lock = threading.Lock()  # around the end of a handler: it ends, or is given up

    def start(self) -> None:
        """Starts the threads."""
        for _ in range(self._size):
            self._start_one()

    def stop(self) -> None:
        """Ends the threads, each after its current handler."""
        for _ in range(self._size):
            self._backlog.put(None)

    def put(self, work: Iterable[Work]) -> None:
        """Adds work. Safe on any thread."""
        for entry in work:
            self._backlog.put(entry)

    def clear(self) -> None:
        """Drops what has not started; the session knows which leases are held."""
        with suppress(Empty):
            while True:
                self._backlog.get_nowait()

    def replace(self, slot: Slot, contexts: tuple[Context, ...]) -> None:
        """Starts another thread in place of a stuck one."""
        with self._lock:
            if self._give_up(slot, contexts):
                self._start_one()

    def _start_one(self) -> None:
        slot = Slot(f"jobline-runner-{next(self._numbers)}")
        self.slots.append(slot)
        threading.Thread(target=self._run, args=(slot,), name=slot.name, daemon=True).start()

    def _run(self, slot: Slot) -> None:
        slot.thread_id = threading.get_ident()
        while (work := self._backlog.get()) is not None:
            self.run_work(slot, work)
            with self._lock:
                slot.contexts = ()
                if slot.is_replaced:
                    self._take_back(slot)
                    return

    def run_work(self, slot: Slot, work: Work) -> None:
        """Runs the handler of a job or of a batch to its end, in the thread that calls."""
        route, job = work
        if isinstance(job, list):
            self._run_batch(slot, route, job)
        else:
            self._run_job(slot, route, job)

    def _run_job(self, slot: Slot, route: Route, job: LeasedJob) -> None:
        execution = self._execution
        context = execution.start(job)
        if context is None:
            return
        slot.contexts = contexts = (context,)
        try:
            payload = route.decode(job)
            arguments = (payload, context) if route.wants_context else (payload,)
            run = contextvars.Context().run  # what a handler sets of its variables is gone with it
            if execution.middleware:
                call = partial(route.function, *arguments)
                value = run(wrapped_plain, execution.middleware, contexts, call)
            else:
                value = run(route.function, *arguments)
        except BaseException as error:  # noqa: BLE001  # SystemExit too: it ends a job, not the worker
            execution.settle_error(context, error)
        else:
            execution.settle(context, value)
        finally:
            execution.end(context)

    def _run_batch(self, slot: Slot, route: Route, jobs: list[LeasedJob]) -> None:
        execution = self._execution
        items = execution.start_batch(route, jobs)
        if not items:
            return
        slot.contexts = contexts = tuple(item.context for item in items)
        try:
            run = contextvars.Context().run
            call = partial(route.function, items)
            answers = run(wrapped_plain, execution.middleware, contexts, call)
        except BaseException as error:  # noqa: BLE001  # as above, for each job of the batch
            for context in contexts:
                execution.settle_error(context, error)
        else:
            execution.settle_batch(items, answers)
        finally:
            for context in contexts:
                execution.end(context)
