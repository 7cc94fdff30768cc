"""Batched pushes of many threads: locks around the pure `PushBatcher`.

The thread that pushes first sends. The reply of each call arrives on a thread of gRPC, which sends
what has gathered meanwhile. There is no thread of our own, so a single push does not pay for one.

Written by hand, as is `jobline._asynchronous.pusher` with the same names.
"""

from __future__ import annotations

import logging
import random
import threading
import time
from collections.abc import Callable, Iterable
from functools import partial

import grpc

from jobline._blocking.connection import Connection, typed_errors
from jobline._forks import PerProcess
from jobline._push.answers import answers_of_batch
from jobline._push.batch import NOTHING, Batch, Own
from jobline._push.batching import BatchLimits, PushBatcher
from jobline._push.messages import BatchKey, built
from jobline._push.producers import PushCalls
from jobline._push.refusals import handle_error, refusal_of_one, refuse_alone
from jobline._reaching import Trouble
from jobline._status import outcome_unknown
from jobline._values import Pushed
from jobline.errors import ClientClosed, ErrorFacts, Internal, JoblineError, OutcomeUnknown
from jobline.v1 import job_service_pb2 as pb

logger = logging.getLogger("jobline.client")

_Call = Callable[[pb.PushRequest], "grpc.Future[pb.PushResponse]"]


class _Waiter:
    """A thread that waits for one push. A bare lock: a Future costs ten times as much."""

    __slots__ = ("_lock", "answer")

    def __init__(self) -> None:
        self.answer: Pushed | JoblineError | None = None
        self._lock = threading.Lock()
        self._lock.acquire()

    def resolve(self, answer: Pushed | JoblineError) -> None:
        self.answer = answer
        self._lock.release()

    def wait(self) -> Pushed:
        self._lock.acquire()
        if isinstance(self.answer, Pushed):
            return self.answer
        assert self.answer is not None  # noqa: S101  # set before the lock was released
        raise self.answer.twin()


class Pusher:
    """Sends the single pushes of one Client."""

    def __init__(
        self,
        call: _Call,
        limits: BatchLimits,
        calls: PushCalls,
        trouble: Trouble,
    ) -> None:
        self._call = call
        self._trouble = trouble
        self._lock = threading.Lock()
        self._empty = threading.Condition(self._lock)
        self._batcher: PushBatcher[BatchKey, _Waiter] = PushBatcher(
            limits, request_ids=calls, over=calls.over, chance=random.random
        )
        self._timer: threading.Timer | None = None
        self._closed = False

    def push(
        self,
        batch_key: BatchKey,
        payload: bytes,
        own: Own = NOTHING,
    ) -> Pushed:
        """Pushes one job. Interrupted before it left, it is withdrawn; afterwards it may be
        stored.
        """
        if batch_key.options is not None:
            refuse_alone(batch_key.options, own)
        waiter = _Waiter()
        batches: Iterable[Batch[BatchKey, _Waiter]] = ()
        with self._lock:
            if self._closed:
                raise ClientClosed("the client is closed")
            now = time.monotonic()
            if self._batcher.add(now, batch_key, payload, waiter, own):
                batches = self._batcher.batches_to_send(now)
        self._send(batches)
        try:
            return waiter.wait()
        except BaseException:
            with self._lock:
                self._batcher.withdraw(batch_key, waiter)
                self._notify_if_empty()
            raise

    def close(self) -> None:
        """Refuses new pushes, and returns when the others have been answered."""
        with self._lock:
            self._closed = True
            self._empty.wait_for(lambda: not self._batcher.jobs)

    def _send(self, batches: Iterable[Batch[BatchKey, _Waiter]]) -> None:
        for batch in batches:
            try:
                request = built(batch)
                with typed_errors():
                    call = self._call(request)
            except JoblineError as error:
                self._handle_result(batch, partial(self._handle_error, batch, error))
            except Exception as error:
                # No caller may wait for ever, whatever a library raises.
                logger.exception("a push broke")
                broken = Internal(f"the push broke: {error}", ErrorFacts(reason="PUSH_BROKE"))
                self._handle_result(batch, partial(self._handle_error, batch, broken))
            else:
                call.add_done_callback(partial(self._handle_answer, batch))

    def _handle_answer(
        self, batch: Batch[BatchKey, _Waiter], call: grpc.Future[pb.PushResponse]
    ) -> None:
        self._handle_result(batch, partial(self._answers, batch, call))

    def _handle_result(
        self, batch: Batch[BatchKey, _Waiter], answer: Callable[[], list[Pushed | JoblineError]]
    ) -> None:
        """Handles the result of a batch, sends the next batches, and then wakes the waiters."""
        with self._lock:
            answers = answer()
            now = time.monotonic()
            batches = self._batcher.batches_to_send(now)
            self._set_timer(now)
            self._notify_if_empty()
        self._send(batches)
        for waiter, outcome in zip(batch.waiters, answers, strict=False):
            waiter.resolve(outcome)

    def _answers(
        self, batch: Batch[BatchKey, _Waiter], call: grpc.Future[pb.PushResponse]
    ) -> list[Pushed | JoblineError]:
        try:
            with typed_errors():
                response = call.result()
            answers = answers_of_batch(response, batch)
        except JoblineError as error:
            return self._handle_error(batch, error)
        except grpc.FutureCancelledError:
            why = "the channel was closed while the push flew"
        except Exception as error:
            # No caller may wait for ever, whatever a library raises.
            logger.exception("a push broke")
            why = f"the push broke: {error}"
        else:
            self._batcher.handle_done(batch)
            self._trouble.ended()
            return answers
        self._batcher.handle_done(batch, is_known=False)
        unknown = OutcomeUnknown(why, request_id=batch.repeat_id)
        return [unknown] * len(batch.waiters)

    def _handle_error(
        self, batch: Batch[BatchKey, _Waiter], error: JoblineError
    ) -> list[Pushed | JoblineError]:
        """Returns the answer of each push of a batch; none if the batch is sent again."""
        if not handle_error(self._batcher, time.monotonic(), batch, error):
            if not error.definite:
                self._trouble.began(error)
            return []
        unknown = outcome_unknown(error, request_id=batch.repeat_id, tries=batch.tries)
        return [refusal_of_one(unknown, batch)] * len(batch.waiters)

    def _set_timer(self, now: float) -> None:
        deadline = self._batcher.next_deadline()
        if deadline is not None and self._timer is None:
            self._timer = threading.Timer(max(0.0, deadline - now), self._handle_timer)
            self._timer.daemon = True
            self._timer.start()

    def _handle_timer(self) -> None:
        with self._lock:
            self._timer = None
            now = time.monotonic()
            batches = self._batcher.batches_to_send(now)
            self._set_timer(now)
        self._send(batches)

    def _notify_if_empty(self) -> None:
        if self._closed and not self._batcher.jobs:
            self._empty.notify_all()


class Pushers(PerProcess[Pusher]):
    """The pusher of this process, made at the first push."""

    __slots__ = ()

    def __init__(self, connection: Connection, limits: BatchLimits) -> None:
        super().__init__(
            lambda: Pusher(connection.start_push, limits, connection.calls, connection.trouble)
        )

    current = PerProcess.__call__
