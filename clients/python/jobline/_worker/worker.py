"""`Worker`: what a program declares, and the order in which its parts start and stop."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from functools import partial
from typing import Any

import grpc

from jobline._arguments import list_given
from jobline._identity import Tls, Token
from jobline._job_type import JobType
from jobline._stream.frames import opening_of
from jobline._times import Seconds, seconds_of, to_duration
from jobline._worker.declaring import Declaring
from jobline._worker.drain import drain_given
from jobline._worker.entities import let_go_at_end
from jobline._worker.log import plain_log
from jobline._worker.middleware import Middleware
from jobline._worker.program import (
    is_main_thread,
    refuse_in_children,
    run_to_its_end,
    stopped_by_signals,
)
from jobline._worker.routes import weights_given, weights_of
from jobline._worker.settings import describe, lease_given, lifespan_given, settings_given
from jobline._worker.stream import address_of
from jobline._worker.worker_run import WorkerRun, WorkerStats
from jobline.codec import Codec
from jobline.errors import ClientClosed, InvalidArgument
from jobline.v1 import job_service_pb2 as pb

Lifespan = Callable[[], AbstractAsyncContextManager[Any]]
"""Makes what the handlers share (`context.state`) before the first job, and ends it after the
last.
"""


@asynccontextmanager
async def _no_lifespan() -> AsyncIterator[None]:
    yield None


class Worker(Declaring):
    """Runs jobs: handlers by queue and name, fed by one stream.

    - `target` (default: JOBLINE_SERVER, else `localhost:7070`), `token`, `tls`, `insecure_token`,
      `credentials`, `metadata`: as for `Client`. A stream ends with its token, and the next one
      asks a `token` that is a function for another.
    - `jobs`: declared jobs to run; see also `add`, `handler`, `batch_handler`.
    - `concurrency`: async handlers that run at once (default 16). `threads`: plain ones (default
      the same).
    - `processes`: child processes, each for one plain handler at a time, in place of threads: for
      work that needs a processor of its own, or may crash (default 0). See docs/guide/processes.md.
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
    - `pause_after_failures`: after so many attempts that fail in a row no jobs are taken for
      `failure_pause` seconds (30, up to a day), and those that have not begun are given back; then
      one more failure is enough, until a job succeeds. 1 … 1,000,000; None (default): never.
    - `middleware`: around each call of a handler, the first outermost. `lifespan`: makes
      `context.state`.
    - `health_port`: serves `/healthz` and `/metrics` there, 0 for a port of the system's choice,
      which `health_address` tells; None (default) for none. `health_host`: default 127.0.0.1.
    - `codec`: opens payloads and seals what handlers return; see `jobline.codec`.

    Raises InvalidArgument for numbers out of bounds.
    """

    _worker_run: WorkerRun | None = None

    def __init__(  # noqa: PLR0913  # one keyword for each setting of a worker
        self,
        target: str | None = None,
        jobs: Iterable[JobType[Any, Any]] = (),
        *,
        concurrency: int = 16,
        threads: int | None = None,
        processes: int = 0,
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
        pause_after_failures: int | None = None,
        failure_pause: Seconds = 30,
        middleware: Sequence[Middleware] = (),
        lifespan: Lifespan = _no_lifespan,
        health_port: int | None = None,
        health_host: str = "127.0.0.1",
        codec: Codec | None = None,
        credentials: grpc.ChannelCredentials | None = None,
        metadata: Mapping[str, str] | None = None,
        token: Token | None = None,
        tls: bool | Tls | None = None,
        insecure_token: bool = False,
    ) -> None:
        shown = (credentials, metadata, token, tls)
        settings = settings_given(
            address_of(target, *shown, insecure_token=insecure_token),
            concurrency=concurrency,
            threads=threads,
            processes=processes,
            window=window,
            window_bytes=window_bytes,
            cancel_grace=cancel_grace,
            middleware=middleware,
            health=(health_host, health_port),
            codec=codec,
            failure_pause=(pause_after_failures, failure_pause),
        )
        super().__init__(settings, weights_given(queues))
        self._drain = drain_given(soft_stop, hard_stop)
        self._lease = lease_given(lease)
        self._describe = partial(describe, id, version, labels)  # of the process that runs it
        self._describe()  # raises for values that no message holds
        self._lifespan = lifespan_given(lifespan)
        self._is_reached, self._reached_or_over = False, asyncio.Event()
        for job_type in list_given("jobs", jobs):
            self.add(job_type)

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
        refuse_in_children()
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

    @property
    def health_address(self) -> str:
        """Where the health port listens, as `host:port`; "" while it does not."""
        return "" if self._worker_run is None else self._worker_run.health_address

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
