"""Batched pushes on an event loop: futures around the pure `PushBatcher`.

Written by hand, as is `jobline._blocking.pusher` with the same names.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable

from jobline._asynchronous.connection import Connection, of_another_loop
from jobline._forks import Forks, PerProcess
from jobline._push.answers import answers_of_batch
from jobline._push.batch import NOTHING, Batch, Own
from jobline._push.batching import BatchLimits, PushBatcher
from jobline._push.messages import BatchKey, built
from jobline._push.producers import PushCalls
from jobline._push.refusals import handle_error, refusal_of_one, refuse_alone
from jobline._reaching import Trouble
from jobline._status import outcome_unknown
from jobline._values import Pushed
from jobline.errors import ClientClosed, JoblineError, OutcomeUnknown
from jobline.v1 import job_service_pb2 as pb

logger = logging.getLogger("jobline.client")

_Waiter = asyncio.Future[Pushed]
_Call = Callable[[pb.PushRequest], Awaitable[pb.PushResponse]]


class Pusher:
    """Sends the single pushes of one AsyncClient."""

    def __init__(
        self,
        call: _Call,
        limits: BatchLimits,
        calls: PushCalls,
        trouble: Trouble,
    ) -> None:
        self._call = call
        self._trouble = trouble
        self.loop = asyncio.get_running_loop()
        self._batcher: PushBatcher[BatchKey, _Waiter] = PushBatcher(
            limits, request_ids=calls, over=calls.over, chance=random.random
        )
        self._flights: set[asyncio.Task[None]] = set()
        self._is_flush_due = False
        self._timer: asyncio.TimerHandle | None = None
        self._closed = False
        self._empty = asyncio.Event()

    async def push(
        self,
        batch_key: BatchKey,
        payload: bytes,
        own: Own = NOTHING,
    ) -> Pushed:
        """Pushes one job. Cancelled before it left, it is withdrawn; afterwards it may be
        stored.
        """
        waiter = self._start(batch_key, payload, own)
        try:
            return await waiter
        except asyncio.CancelledError:
            self._batcher.withdraw(batch_key, waiter)
            self._notify_if_empty()
            raise

    def _start(self, batch_key: BatchKey, payload: bytes, own: Own) -> _Waiter:
        if self._closed:
            raise ClientClosed("the client is closed")
        if batch_key.options is not None:
            refuse_alone(batch_key.options, own)
        waiter: _Waiter = self.loop.create_future()
        is_due = self._batcher.add(self.loop.time(), batch_key, payload, waiter, own)
        if is_due and not self._is_flush_due:
            # After this iteration of the loop, so that all pushes made in it share a call.
            self._is_flush_due = True
            self.loop.call_soon(self._flush)
        return waiter

    async def close(self) -> None:
        """Refuses new pushes, and returns when the others have been answered."""
        self._closed = True
        self._empty.clear()
        self._notify_if_empty()
        await self._empty.wait()

    def _flush(self) -> None:
        self._is_flush_due = False
        for batch in self._batcher.batches_to_send(self.loop.time()):
            task = self.loop.create_task(self._send(batch))
            self._flights.add(task)
            task.add_done_callback(self._flights.discard)
        self._set_timer()

    def _set_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        deadline = self._batcher.next_deadline()
        if deadline is not None:
            self._timer = self.loop.call_at(deadline, self._flush)

    async def _send(self, batch: Batch[BatchKey, _Waiter]) -> None:
        try:
            answers = await self._answers(batch)
        except JoblineError as error:
            self._handle_error(batch, error)
        except asyncio.CancelledError:
            # The loop ends, and with it everything that waits.
            self._give_up(batch, "the call was cancelled while the push flew")
            raise
        except Exception as error:
            # No caller may wait for ever, whatever a library raises.
            logger.exception("a push broke")
            self._give_up(batch, f"the push broke: {error}")
        else:
            self._batcher.handle_done(batch)
            for waiter, answer in zip(batch.waiters, answers, strict=True):
                if waiter.done():
                    continue
                if isinstance(answer, JoblineError):
                    waiter.set_exception(answer)
                else:
                    waiter.set_result(answer)
        # The waiters wake before the flush, so what they push next shares a call.
        self._flush_soon()

    async def _answers(self, batch: Batch[BatchKey, _Waiter]) -> list[Pushed | JoblineError]:
        response = await self._call(built(batch))
        self._trouble.ended()
        return answers_of_batch(response, batch)

    def _handle_error(self, batch: Batch[BatchKey, _Waiter], error: JoblineError) -> None:
        if handle_error(self._batcher, self.loop.time(), batch, error):
            unknown = outcome_unknown(error, request_id=batch.repeat_id, tries=batch.tries)
            self._fail(batch, refusal_of_one(unknown, batch))
        elif not error.definite:
            self._trouble.began(error)

    def _give_up(self, batch: Batch[BatchKey, _Waiter], why: str) -> None:
        self._batcher.handle_done(batch, is_known=False)
        self._fail(batch, OutcomeUnknown(why, request_id=batch.repeat_id))
        self._notify_if_empty()

    def _fail(self, batch: Batch[BatchKey, _Waiter], error: JoblineError) -> None:
        for waiter in batch.waiters:
            if not waiter.done():
                waiter.set_exception(error.twin())

    def _flush_soon(self) -> None:
        if not self._is_flush_due:
            self._is_flush_due = True
            self.loop.call_soon(self._flush)
        self._notify_if_empty()

    def _notify_if_empty(self) -> None:
        if self._closed and not self._batcher.jobs:
            self._empty.set()


class Pushers:
    """The pusher of this process and event loop, made at the first push."""

    def __init__(self, connection: Connection, limits: BatchLimits) -> None:
        self._connection = connection
        self._limits = limits
        self._in_process = PerProcess(self._make)
        self._last: Pusher | None = None
        self._last_forks = 0

    def __call__(self) -> Pusher:
        """Returns the pusher. Raises FailedPrecondition if it belongs to another event loop."""
        return self.current()

    def current(self) -> Pusher:
        """As a call, and cheaper: it is on the way of every push."""
        # A loop that does not run at a fork may go on in both processes: a pusher of the loop that
        # runs may be the parent's.
        loop = asyncio.get_running_loop()
        pusher = self._last
        if pusher is None or pusher.loop is not loop or self._last_forks != Forks.count:
            pusher = self._in_process()
            if pusher.loop is not loop:
                raise of_another_loop()
            self._last, self._last_forks = pusher, Forks.count
        return pusher

    def made(self) -> Pusher | None:
        """Returns the pusher of this process if there is one."""
        return self._in_process.made()

    def _make(self) -> Pusher:
        link = self._connection
        return Pusher(link.try_push, self._limits, link.calls, link.trouble)
