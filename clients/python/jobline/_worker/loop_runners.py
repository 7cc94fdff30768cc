"""Runners for async handlers: tasks that empty one backlog."""

from __future__ import annotations

import asyncio
import itertools
import threading
from collections import deque
from collections.abc import Iterable
from functools import partial

from jobline._cancel_reason import CancelReason
from jobline._context import Context
from jobline._leased import LeasedJob
from jobline._worker.execution import Execution, Work
from jobline._worker.isolated import Isolated
from jobline._worker.middleware import wrapped
from jobline._worker.routes import Route
from jobline._worker.slots import Runners, Slot

# Calls of handlers that end without waiting, in one iteration of the loop.
CALLS_A_TURN = 64
# Seconds that tasks have to end when the worker has stopped.
STOP_TIMEOUT = 1.0

# What ends the loop, and with it the program, although a handler raised it.
_ENDS_PROGRAM = (KeyboardInterrupt, SystemExit)


class TaskSlot(Slot):
    """A place on the loop: a task."""

    __slots__ = ("task",)

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.task: asyncio.Task[None] | None = None


class LoopRunners(Runners):
    """`concurrency` tasks on one event loop.

    The reader puts work on the backlog and wakes one runner. A runner wakes the next when its
    handler has to wait, so handlers that end at once are run by one task, and those that wait by
    as many as there may be.
    """

    def __init__(self, execution: Execution, concurrency: int) -> None:
        super().__init__(execution, concurrency)
        self._loop = asyncio.get_running_loop()
        self._thread_id = threading.get_ident()
        self._backlog: deque[Work] = deque()
        self._idle: deque[asyncio.Future[None]] = deque()
        self._tasks: set[asyncio.Task[None]] = set()
        self._numbers = itertools.count()
        self._is_wake_due = False
        self._is_stopping = False

    def start(self) -> None:
        """Starts the tasks, in the loop."""
        for _ in range(self._size):
            self._start_one()

    async def stop(self) -> None:
        """Cancels the tasks; one whose handler ignores the cancellation is left behind."""
        self._is_stopping = True
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=STOP_TIMEOUT)

    def put(self, work: Iterable[Work]) -> None:
        """Adds work. Safe on any thread."""
        self._backlog.extend(work)
        if not self._is_wake_due:
            self._is_wake_due = True
            self._loop.call_soon_threadsafe(self._handle_work)

    def clear(self) -> None:
        """Drops what has not started; the session knows which leases are held."""
        self._backlog.clear()

    def replace(self, slot: Slot, contexts: tuple[Context, ...]) -> None:
        """Starts another task in place of a stuck one, as soon as the loop is free: only between
        steps of its tasks nothing ends or begins.
        """
        self._loop.call_soon_threadsafe(self._replace, slot, contexts)

    def _replace(self, slot: Slot, contexts: tuple[Context, ...]) -> None:
        if not self._is_stopping and self._give_up(slot, contexts):
            self._start_one()

    def _start_one(self) -> None:
        slot = TaskSlot(f"jobline-task-{next(self._numbers)}")
        slot.thread_id = self._thread_id
        self.slots.append(slot)
        slot.task = self._loop.create_task(self._run(slot), name=slot.name)
        self._tasks.add(slot.task)
        slot.task.add_done_callback(self._tasks.discard)

    def _handle_work(self) -> None:
        self._is_wake_due = False
        self._wake_one()

    def _wake_one(self) -> None:
        while self._backlog and self._idle:
            waiter = self._idle.popleft()
            if not waiter.done():
                waiter.set_result(None)
                return

    async def _run(self, slot: TaskSlot) -> None:
        backlog = self._backlog
        calls = 0
        while not self._is_stopping:
            if not backlog:
                waiter = self._loop.create_future()
                self._idle.append(waiter)
                await waiter
                calls = 0
                continue
            route, job = backlog.popleft()
            if isinstance(job, list):
                await self._run_batch(slot, route, job)
            else:
                await self._run_job(slot, route, job)
            if slot.is_replaced:
                self._take_back(slot)
                return
            calls += 1
            if calls >= CALLS_A_TURN:
                # The user's other tasks have a right to this loop too.
                calls = 0
                await asyncio.sleep(0)

    async def _run_job(self, slot: TaskSlot, route: Route, job: LeasedJob) -> None:
        execution = self._execution
        context = execution.start(job)
        if context is None:
            return
        slot.contexts = contexts = (context,)
        try:
            payload = route.decode(job)
            arguments = (payload, context) if route.wants_context else (payload,)
            if execution.middleware:
                call = partial(route.function, *arguments)
                coroutine = wrapped(execution.middleware, contexts, call)
            else:
                coroutine = route.function(*arguments)
            slot.coroutine = coroutine
            context.on_cancel(partial(self._stop_soon, slot, contexts))
            value = await Isolated(coroutine, self._wake_one)
        except asyncio.CancelledError as error:
            self._handle_cancelled(slot, context, error)
        except BaseException as error:  # whatever a handler raises is its job's failure
            execution.settle_error(context, error)
            if isinstance(error, _ENDS_PROGRAM):
                raise
        else:
            execution.settle(context, value)
        finally:
            execution.end(context)
            self._clear(slot)

    async def _run_batch(self, slot: TaskSlot, route: Route, jobs: list[LeasedJob]) -> None:
        execution = self._execution
        items = execution.start_batch(route, jobs)
        if not items:
            return
        slot.contexts = contexts = tuple(item.context for item in items)
        try:
            slot.coroutine = coroutine = wrapped(
                execution.middleware, contexts, partial(route.function, items)
            )
            for context in contexts:
                context.on_cancel(partial(self._stop_soon, slot, contexts))
            answers = await Isolated(coroutine, self._wake_one)
        except asyncio.CancelledError as error:
            for context in contexts:
                self._handle_cancelled(slot, context, error)
        except BaseException as error:  # as above, for each job of the batch
            for context in contexts:
                execution.settle_error(context, error)
            if isinstance(error, _ENDS_PROGRAM):
                raise
        else:
            execution.settle_batch(items, answers)
        finally:
            for context in contexts:
                execution.end(context)
            self._clear(slot)

    # ------------------------------------------------------------------ stopping a handler

    def _stop_soon(self, slot: TaskSlot, contexts: tuple[Context, ...]) -> None:
        """Stops a handler, from any thread; that of a batch when all its jobs are cancelled."""
        if slot.is_ended:
            self._loop.call_soon_threadsafe(self._stop, slot, contexts)

    def _stop(self, slot: TaskSlot, contexts: tuple[Context, ...]) -> None:
        # A callback of the loop runs between steps of the task, so if the handler still runs, the
        # task waits inside it, and nothing else gets the CancelledError.
        task = slot.task
        if slot.contexts is contexts and task is not None and not task.cancelling():
            task.cancel()

    def _handle_cancelled(
        self, slot: TaskSlot, context: Context, error: asyncio.CancelledError
    ) -> None:
        if slot.task is not None and slot.task.cancelling() and not context.cancelled:
            # Not the job but this task is being ended, together with the loop.
            self._is_stopping = True
            context.cancel(CancelReason.STOPPING)
        self._execution.settle_error(context, error)

    def _clear(self, slot: TaskSlot) -> None:
        """Cleans the slot for the next handler."""
        slot.contexts, slot.coroutine = (), None
        task = slot.task
        while task is not None and task.cancelling():
            task.uncancel()
