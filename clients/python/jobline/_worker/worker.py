"""`Worker`: what a program declares, and the order in which its parts start and stop."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from functools import partial
from typing import Any, TypeVar

import grpc

from jobline._arguments import list_given, number_given, span_given
from jobline._channel import credentials_of, metadata_of, target_of
from jobline._entity import Entity
from jobline._forks import NeverPickled
from jobline._handlers import UNSAID, refuse_bare
from jobline._job_type import JobType
from jobline._stream.frames import opening_of
from jobline._times import Seconds, seconds_of, to_duration
from jobline._worker.drain import Drain
from jobline._worker.entities import ActiveEntities, let_go_at_end
from jobline._worker.log import plain_log
from jobline._worker.middleware import Middleware
from jobline._worker.program import is_main_thread, run_to_its_end, stopped_by_signals
from jobline._worker.routes import (
    Handler,
    Route,
    Routes,
    route_of,
    route_of_type,
    weights_given,
    weights_of,
)
from jobline._worker.settings import describe, lease_given, lifespan_given, settings_given
from jobline._worker.stream import Address
from jobline._worker.worker_run import WorkerRun, WorkerStats
from jobline.errors import ClientClosed, InvalidArgument
from jobline.v1 import job_service_pb2 as pb

F = TypeVar("F", bound=Callable[..., Any])

Lifespan = Callable[[], AbstractAsyncContextManager[Any]]
"""Makes what the handlers share (`context.state`) before the first job, and ends it after the
last.
"""


@asynccontextmanager
async def _no_lifespan() -> AsyncIterator[None]:
    yield None


class Worker(NeverPickled):
    """Runs jobs: handlers by queue and name, fed by one stream.

    - `target` (default: JOBLINE_SERVER, else `localhost:7070`), `credentials`, `metadata`: as for
      `Client`.
    - `jobs`: declared jobs to run; see also `add`, `handler`, `batch_handler`.
    - `concurrency`: async handlers that run at once (default 16). `threads`: plain ones (default
      the same).
    - `window`: jobs to have at hand, started ones included, 0 … 100,000; None follows the work.
      `window_bytes`: of their payloads (64 MiB).
    - `lease`: overrides the jobs' own, 1 s … 12 h. Leases are kept alive by the stream, however
      long a handler takes.
    - `queues`: all that the worker takes from, as names, or as weights 1 … 1,000 by name where some
      should get more than others. Default: those of its handlers, alike.
    - `id` (default host and pid), `labels`: what operators see. `version`: of this program, for
      `min_worker_version` too; 1 … 64 of A-Z a-z 0-9 . + _ -, the first a letter or digit.
    - `soft_stop`, `hard_stop`: seconds that handlers have to finish after SIGTERM (20), and to
      end after their cancellation (5); what is left is released. Together with up to 5 s
      for the last confirms they should fit the time before a SIGKILL.
    - `cancel_grace`: seconds that a handler has to stop when its job was cancelled or its lease is
      lost (30). One that does not is logged with its stack and counted as `stats.stuck`; another
      takes its slot, and its outcome is dropped.
    - `middleware`: around each call of a handler, the first outermost. `lifespan`: makes
      `context.state`.

    Raises InvalidArgument for numbers out of bounds.
    """

    def __init__(  # noqa: PLR0913  # one keyword for each setting of a worker
        self,
        target: str | None = None,
        jobs: Iterable[JobType[Any, Any]] = (),
        *,
        concurrency: int = 16,
        threads: int | None = None,
        window: int | None = None,
        window_bytes: int = 64 << 20,
        lease: Seconds | None = None,
        queues: Mapping[str, int] | Sequence[str] | None = None,
        id: str | None = None,  # noqa: A002  # the protocol's word
        version: str = "",
        labels: Mapping[str, str] | None = None,
        soft_stop: Seconds = 20,
        hard_stop: Seconds = 5,
        cancel_grace: Seconds = 30,
        middleware: Sequence[Middleware] = (),
        lifespan: Lifespan = _no_lifespan,
        credentials: grpc.ChannelCredentials | None = None,
        metadata: Mapping[str, str] | None = None,
    ) -> None:
        self._settings = settings_given(
            Address(target_of(target), credentials_of(credentials), metadata_of(metadata)),
            concurrency=concurrency,
            threads=threads,
            window=window,
            window_bytes=window_bytes,
            cancel_grace=cancel_grace,
            middleware=middleware,
        )
        self._drain = Drain(
            soft_stop=span_given("soft_stop", soft_stop),
            hard_stop=span_given("hard_stop", hard_stop),
        )
        self._routes = Routes()
        self._entities: list[ActiveEntities] = []
        self._lease = lease_given(lease)
        self._weights = weights_given(queues)
        # Called when it runs: that may be in a child of this process.
        self._describe = partial(describe, id, version, labels)
        self._describe()  # raises for values that no message holds
        self._lifespan = lifespan_given(lifespan)
        self._worker_run: WorkerRun | None = None
        self._has_served = False
        self._is_reached = False
        self._reached_or_over = asyncio.Event()
        for job_type in list_given("jobs", jobs):
            self.add(job_type)

    # ------------------------------------------------------------------ handlers

    def add(self, job_type: JobType[Any, Any], function: Handler | None = None) -> None:
        """Runs a declared job; `function` in place of the declared one, if given.

        Raises InvalidArgument if there is no function, if its queue and name have a handler
        already, or once the worker has started.
        """
        self._add(route_of_type(job_type, function))

    def handler(self, queue: str, name: str = "", *, payload: Any = UNSAID) -> Callable[[F], F]:
        """Makes the function below it the handler of a kind of work: `handler(payload)`,
        `handler(payload, context)`, or with several parameters as for `job`; async or plain.

        `name`: default "", jobs without one; `ANY` takes every name of the queue that no other
        handler takes. `payload`: the type to read payloads as; default: the annotation of the
        first argument, and without one JSON if the content type is JSON, else bytes. Attempts,
        backoff and lease are not set here: options are part of the push.

        Raises InvalidArgument as `add` does, for a function that cannot be called so, and for a
        queue that is not among the worker's `queues`.
        """
        refuse_bare(queue, "@worker.handler")

        def declare(function: F) -> F:
            self._add(route_of(queue, name, function, payload=payload))
            return function

        return declare

    def batch_handler(
        self,
        queue: str,
        name: str = "",
        *,
        size: int = 100,
        wait: Seconds = 0.05,
        payload: Any = UNSAID,
    ) -> Callable[[F], F]:
        """Makes the function below it the handler of many jobs at a time: `handler(items)`.

        It gets up to `size` `BatchItem`s (default 100), at the latest `wait` seconds after the
        first (default 0.05), and returns a sequence, one answer for each in their order, or a
        mapping by id: its result (None is one), an exception, or an outcome. A job without
        an answer fails, and all fail if a sequence has another length. What it raises fails all.
        Payloads are read as `handler` reads them; the annotation is that of the items, such as
        `list[BatchItem[int]]`.
        """
        refuse_bare(queue, "@worker.batch_handler")
        number_given("size", size, minimum=1)
        span_given("wait", wait)

        def declare(function: F) -> F:
            self._add(route_of(queue, name, function, payload=payload, size=size, wait=wait))
            return function

        return declare

    def add_entity(
        self, entity: type[Entity], *, max_active: int = 1_000, idle_after: Seconds = 300
    ) -> None:
        """Runs the methods of a class made from `Entity`: one job at a time for each key.

        `max_active`: objects to keep in memory, those that run jobs beside them (default 1,000);
        the least recently used goes first. `idle_after`: seconds without a job after which one is
        let go of (300). Raises InvalidArgument as `add` does.
        """
        most = number_given("max_active", max_active, minimum=1)
        active = ActiveEntities(
            entity, max_active=most, idle_after=span_given("idle_after", idle_after)
        )
        for route in active.routes():
            self._add(route)
        self._entities.append(active)

    def _add(self, route: Route) -> None:
        if self._has_served:
            raise InvalidArgument("handlers are added before the worker starts")
        if self._weights and route.queue not in self._weights:
            raise InvalidArgument(
                f"a handler for the queue {route.queue!r} would get nothing: this worker takes "
                f"from {', '.join(self._weights)} alone; add {route.queue!r} to its queues="
            )
        self._routes.add(route)

    # ------------------------------------------------------------------ running

    def run(self, *, exit_when_idle: Seconds | None = None) -> None:
        """Runs until SIGTERM or SIGINT, drains, and returns. A second signal goes to the next
        stage of the drain at once. Blocking; it makes an event loop of its own. In a thread other
        than the main one, which alone gets signals, it runs until `stop`.

        `exit_when_idle`: end, too, when the worker is connected and no job has come or run for so
        long; jobs that wait for their time do not count. It returns although a handler ignores its
        end, and raises what `serve` raises, and InvalidArgument where an event loop runs already:
        `await worker.serve()` there.

        Where the program has not set up `logging`, it logs to stderr: connections, attempts that
        fail with their tracebacks, jobs that die.
        """
        with plain_log():
            serve = partial(self.serve, signals=is_main_thread(), exit_when_idle=exit_when_idle)
            run_to_its_end(serve)

    async def serve(self, *, signals: bool = False, exit_when_idle: Seconds | None = None) -> None:
        """Runs in the current event loop until `stop`, drains, and returns.

        `signals`: SIGTERM and SIGINT stop it; in the main thread only. `exit_when_idle`: as for
        `run`. Cancelled, it gives handlers `hard_stop` seconds to
        end. Raises what makes a stream impossible (InvalidArgument, NotServed, PermissionDenied,
        Unauthenticated), ClientClosed if it is called twice, and Internal for a bug of its own.
        """
        if self._has_served:
            raise ClientClosed("a worker runs once: make another one")
        opening = self._opening()
        if exit_when_idle is not None:
            self._drain.stop_when_idle(seconds_of(exit_when_idle))
        self._has_served = True
        try:
            with stopped_by_signals(self.stop) if signals else nullcontext():
                async with self._lifespan() as state, let_go_at_end(self._entities):
                    self._worker_run = WorkerRun(
                        self._settings,
                        self._routes,
                        opening,
                        state,
                        drain=self._drain,
                        connected=self._handle_connected,
                    )
                    await self._worker_run.run_until_stopped()
        finally:
            self._reached_or_over.set()

    def stop(self) -> None:
        """Begins the drain, or its next stage if it has begun: finish, then cancel, then release.
        Returns at once; `serve` and `run` return when it is done. Safe on any thread and in a
        signal handler.
        """
        self._drain.request_stop()  # kept for a worker that has not started
        if self._worker_run is not None:
            self._worker_run.wake()

    async def wait_connected(self) -> None:
        """Returns when the server has answered on a stream for the first time. Call it beside
        `serve`, in the same loop. Raises ClientClosed if the worker has ended before.
        """
        await self._reached_or_over.wait()
        if not self._is_reached:
            raise ClientClosed("the worker ended before it was connected; `serve` says why")

    @property
    def stats(self) -> WorkerStats:
        """What it has done, and what it is doing."""
        if self._worker_run is None:
            return WorkerStats()
        return self._worker_run.stats()

    def _handle_connected(self) -> None:
        self._is_reached = True
        self._reached_or_over.set()

    def _opening(self) -> pb.StreamOpen:
        queues = weights_of(self._routes.queues(), self._weights)
        if not queues:
            raise InvalidArgument("a worker needs at least one handler")
        opening = opening_of(self._describe(), queues=queues, handlers=self._routes.announced())
        if self._lease is not None:
            opening.lease.CopyFrom(to_duration(self._lease))
        return opening
