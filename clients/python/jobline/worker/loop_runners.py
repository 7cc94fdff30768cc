"""Runners for async handlers: a fixed set of tasks that empty one backlog."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterable
from functools import partial

from jobline.context import CancelReason, Context
from jobline.leased import LeasedJob
from jobline.worker.isolated import Isolated
from jobline.worker.middleware import wrapped
from jobline.worker.routes import Route
from jobline.worker.running import Shop, Work

# Handlers that end without waiting for anything may fill so many calls of one turn of the loop.
CALLS_A_TURN = 64
# Seconds that tasks have to end when the worker has stopped.
STOP_TIMEOUT = 1.0

# What ends the loop, and with it the program, although a handler raised it.
_ENDS_PROGRAM = (KeyboardInterrupt, SystemExit)

_Task = asyncio.Task[None]


class LoopRunners:
    """`concurrency` tasks on one event loop.

    The reader puts work on the backlog and wakes one runner. A runner wakes the next when its
    handler has to wait, so handlers that end at once are run by one task, and those that wait by
    as many as there may be.
    """

    def __init__(self, shop: Shop, concurrency: int) -> None:
        self._shop = shop
        self._concurrency = concurrency
        self._loop = asyncio.get_running_loop()
        self._backlog: deque[Work] = deque()
        self._idle: deque[asyncio.Future[None]] = deque()
        self._tasks: list[_Task] = []
        self._is_wake_due = False
        self._is_stopping = False

    def start(self) -> None:
        """Starts the tasks, in the loop."""
        self._tasks = [
            self._loop.create_task(self._run(), name=f"jobline-runner-{number}")
            for number in range(self._concurrency)
        ]

    async def stop(self) -> None:
        """Ends the tasks; one whose handler does not heed its cancellation is left behind."""
        self._is_stopping = True
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=STOP_TIMEOUT)

    def put(self, work: Iterable[Work]) -> None:
        """Takes work, on any thread."""
        self._backlog.extend(work)
        if not self._is_wake_due:
            self._is_wake_due = True
            self._loop.call_soon_threadsafe(self._handle_work)

    def clear(self) -> None:
        """Forgets what has not started; the session knows what is held."""
        self._backlog.clear()

    def _handle_work(self) -> None:
        self._is_wake_due = False
        self._wake_one()

    def _wake_one(self) -> None:
        while self._backlog and self._idle:
            waiter = self._idle.popleft()
            if not waiter.done():
                waiter.set_result(None)
                return

    async def _run(self) -> None:
        backlog = self._backlog
        task = asyncio.current_task()
        assert task is not None  # noqa: S101  # a coroutine of the loop runs in a task
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
                await self._run_batch(task, route, job)
            else:
                await self._run_job(task, route, job)
            calls += 1
            if calls >= CALLS_A_TURN:
                # The user's other tasks have a right to this loop too.
                calls = 0
                await asyncio.sleep(0)

    async def _run_job(self, task: _Task, route: Route, job: LeasedJob) -> None:
        shop = self._shop
        context = shop.start(job)
        if context is None:
            return
        try:
            payload = route.decode(job)
            arguments = (payload, context) if route.wants_context else (payload,)
            if shop.middleware:
                call = partial(route.function, *arguments)
                coroutine = wrapped(shop.middleware, context, call)
            else:
                coroutine = route.function(*arguments)
            context.on_cancel(partial(self._stop_soon, task, context))
            value = await Isolated(coroutine, self._wake_one)
        except asyncio.CancelledError as error:
            self._handle_cancelled(task, context, error)
        except BaseException as error:  # whatever a handler raises is its job's failure
            shop.settle_error(context, error)
            if isinstance(error, _ENDS_PROGRAM):
                raise
        else:
            shop.settle(context, value)
        finally:
            shop.end(context)
            self._forget_cancel(task)

    async def _run_batch(self, task: _Task, route: Route, jobs: list[LeasedJob]) -> None:
        shop = self._shop
        items = shop.start_batch(route, jobs)
        if not items:
            return
        try:
            for item in items:
                item.context.on_cancel(partial(self._stop_batch_soon, task, item.context))
            said = await Isolated(route.function(items), self._wake_one)
        except asyncio.CancelledError as error:
            for item in items:
                self._handle_cancelled(task, item.context, error)
        except BaseException as error:  # as above, for each job of the batch
            for item in items:
                shop.settle_error(item.context, error)
            if isinstance(error, _ENDS_PROGRAM):
                raise
        else:
            shop.settle_batch(items, said)
        finally:
            for item in items:
                shop.end(item.context)
            self._forget_cancel(task)

    # ------------------------------------------------------------------ stopping a handler

    def _stop_soon(self, task: _Task, context: Context) -> None:
        """Stops a handler, from any thread."""
        self._loop.call_soon_threadsafe(self._stop, task, context)

    def _stop_batch_soon(self, task: _Task, context: Context) -> None:
        """A batch goes on without one of its jobs; only the end of the worker stops it."""
        if context.cancel_reason is CancelReason.STOPPING:
            self._stop_soon(task, context)

    def _stop(self, task: _Task, context: Context) -> None:
        # A callback of the loop runs between steps of the task, so if the job is still running the
        # task waits inside its handler, and nothing else gets the CancelledError.
        if self._shop.running.get(context.id) is context and not task.cancelling():
            task.cancel()

    def _handle_cancelled(
        self, task: _Task, context: Context, error: asyncio.CancelledError
    ) -> None:
        if task.cancelling() and not context.cancelled:
            # Not the job but this task is being ended, together with the loop.
            self._is_stopping = True
            context.cancel(CancelReason.STOPPING)
        self._shop.settle_error(context, error)

    def _forget_cancel(self, task: _Task) -> None:
        """The next handler starts with a clean task."""
        while task.cancelling():
            task.uncancel()
