"""`FlowCalls`: what the handlers of a worker do with other jobs, by calls beside the stream.

A handler that returned `WaitFor` is over, and its place is given to another. Its job is held until
its children are stored, which ends the lease in the same transaction. A call may overtake the
stream, so what the handler reported before is confirmed first: the checkpoint above all.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from queue import SimpleQueue
from typing import Any

from jobline._asynchronous.client import AsyncClient
from jobline._backoff import as_asked
from jobline._blocking.client import Client
from jobline._context import Context
from jobline._flow_values import FlowNode
from jobline._ids import RequestIds
from jobline._leased import LeasedJob
from jobline._outcomes import WaitFor
from jobline._requests import fail_item
from jobline._spawns import push_spawned
from jobline._stream.frames import interrupted_release
from jobline._values import Pushed
from jobline._worker.log import attempt_failed
from jobline._worker.shared_session import SharedSession
from jobline._worker.stream import Address
from jobline.codec import Codec
from jobline.errors import JoblineError, LeaseLost, ResourceExhausted, Unavailable

logger = logging.getLogger("jobline.worker")

# Calls under way at a time; the other jobs wait for their turn, and keep their leases.
THREADS_MAX = 8
# Seconds between two looks whether a job is still held, and between two tries of a call.
PAUSE = 1.0
# Seconds for which the children of a job wait for room; then its attempt has failed.
FULL_SECONDS = 300.0
# Seconds for which a handler that reads its children waits for a server that is away.
PATIENCE = 20.0
# Seconds that pushes under way have when the worker has stopped.
CLOSE_SECONDS = 1.0
# Looks after which reports are taken for lost, as the server refused some of them.
LOOKS_MAX = 5


class FlowCalls:
    """Reads the children of jobs, and pushes those that handlers wait for, and those they spawn.

    `done` is called with the context of each job whose children were pushed, or could not be; set
    by those who count what runs.
    """

    def __init__(
        self, address: Address, session: SharedSession, codec: Codec | None = None
    ) -> None:
        self._address = address
        self._codec = codec
        self._session = session
        self._new_id = RequestIds()
        self._work: SimpleQueue[tuple[Context, WaitFor] | None] = SimpleQueue()
        self._threads: list[threading.Thread] = []
        self._lock = threading.Lock()
        self._client: Client | None = None
        self._stopping = threading.Event()
        self._async_client: AsyncClient | None = None
        self._closed = threading.Event()
        self.pending: set[tuple[int, int]] = set()
        """Jobs whose children are to be pushed, as (id, delivery)."""
        self.done: Callable[[Context], None] = _nobody

    def children(self, job_id: int) -> list[FlowNode]:
        """Returns the children of a job, as `client.flows.children` does; a server that restarts is
        waited for, up to `PATIENCE`.
        """
        give_up_at = time.monotonic() + PATIENCE
        while True:
            try:
                return self._connected().flows.children(job_id)
            except Unavailable:
                if time.monotonic() > give_up_at or self._closed.wait(PAUSE):
                    raise

    def spawn(
        self, job: Any, values: tuple[Any, ...], own: dict[str, Any], how: dict[str, Any]
    ) -> Pushed:
        """Pushes a job for a plain handler."""
        pushed: Pushed = push_spawned(self._connected(), job, values, own, how)
        return pushed

    async def spawn_async(
        self, job: Any, values: tuple[Any, ...], own: dict[str, Any], how: dict[str, Any]
    ) -> Pushed:
        """Pushes a job for an async handler, on the worker's loop."""
        if self._async_client is None:
            self._async_client = AsyncClient(**self._settings())
        pushed: Pushed = await push_spawned(self._async_client, job, values, own, how)
        return pushed

    def push(self, context: Context, outcome: WaitFor) -> None:
        """Pushes the children of a job soon."""
        with self._lock:
            self.pending.add((context.job.id, context.job.delivery))
            if len(self._threads) < min(len(self.pending), THREADS_MAX):
                number = len(self._threads)
                thread = threading.Thread(
                    target=self._run, name=f"jobline-flows-{number}", daemon=True
                )
                self._threads.append(thread)
                thread.start()
        self._work.put((context, outcome))

    def stop(self) -> None:
        """Has no job wait for room any more: one whose children cannot be pushed at once is
        released. Handlers that still run may read and push.
        """
        self._stopping.set()

    def close(self) -> None:
        """Ends the threads. What was not pushed is the server's again, with its lease."""
        self._stopping.set()
        self._closed.set()
        for _ in self._threads:
            self._work.put(None)
        with self._lock:
            client = self._client
        if client is not None:
            # It waits for spawns of handlers that were left behind: not here, if it takes long.
            thread = threading.Thread(target=client.close, name="jobline-flows-end", daemon=True)
            thread.start()
            thread.join(CLOSE_SECONDS)

    async def close_async(self) -> None:
        """Closes what async handlers pushed with; once all of them have ended."""
        if self._async_client is not None:
            with suppress(TimeoutError):
                async with asyncio.timeout(CLOSE_SECONDS):
                    await self._async_client.close()

    def _connected(self) -> Client:
        """Returns the client, made at the first call: few workers need one."""
        with self._lock:
            if self._client is None:
                self._client = Client(**self._settings())
            return self._client

    def _settings(self) -> dict[str, Any]:
        """Returns the settings of a client of the worker's server."""
        address, identity = self._address, self._address.identity
        return {
            "target": address.target,
            "credentials": identity.credentials,
            "tls": False if identity.credentials is None else None,
            "metadata": dict(identity.fixed),
            "token": identity.token,
            "insecure_token": True,
            "codec": self._codec,
        }

    def _run(self) -> None:
        while (work := self._work.get()) is not None:
            context, outcome = work
            try:
                self._push(context.job, outcome)
            except Exception as error:  # noqa: BLE001  # payloads are the user's: then the job fails
                if self._session.holds(context.job):
                    attempt_failed(context.job, error)
                    self._session.settle(fail_item(context.job, error))
            finally:
                with self._lock:
                    self.pending.discard((context.job.id, context.job.delivery))
                self.done(context)

    def _push(self, job: LeasedJob, outcome: WaitFor) -> None:
        """Pushes children until the server has taken them or refused them for good, or the lease is
        lost. While it has no room, for up to `FULL_SECONDS`, the job is held and uses up no
        attempt; a worker that stops releases it, unless that would end it. The same request id
        makes sure that they are pushed once.
        """
        request_id = self._new_id()
        # One that may run only once is ended by a release: it waits for as long as handlers run.
        is_once = (job.id, job.delivery) in self._session.begun
        stopping = self._closed if is_once else self._stopping
        give_up_at = time.monotonic() + FULL_SECONDS
        while self._is_reported(job):
            try:
                self._connected().flows.add_children(job, *outcome.children, request_id=request_id)
            except LeaseLost:
                self._session.hand_over(job, is_lost=True)
            except JoblineError as error:
                if error.definite and not _passes(error, time.monotonic() > give_up_at):
                    raise
                if not stopping.is_set():
                    logger.warning("the children of job %d: %s; trying again", job.id, error)
                if stopping.wait(as_asked(error.retry_after, PAUSE)):
                    self._give_back(job, error)
                    return
            else:
                self._session.hand_over(job)

    def _give_back(self, job: LeasedJob, error: JoblineError) -> None:
        """Releases a job whose children cannot be pushed now, as the worker stops."""
        if self._session.holds(job):
            logger.info("job %d is given back as the worker stops: %s", job.id, error)
            self._session.settle(interrupted_release(job.id, job.delivery))

    def _is_reported(self, job: LeasedJob) -> bool:
        """Waits until the server has handled what the handler reported; returns False if the job is
        not held any more.
        """
        passed = threading.Event()
        looks = 0
        while self._session.holds(job) and not self._closed.is_set():
            if looks % LOOKS_MAX == 0:
                self._session.fence(passed.set)
            looks += 1
            if passed.wait(PAUSE):
                return self._session.holds(job)
        return False


def _passes(error: JoblineError, is_late: bool) -> bool:
    """Returns whether the same call may do better later. Before its first call the client may find
    no server: that is no refusal.
    """
    if isinstance(error, ResourceExhausted):
        return error.retryable and not is_late
    return isinstance(error, Unavailable)


def _nobody(_context: Context) -> None:
    """Stands in until somebody counts what runs."""
