# Generated from jobline/_asynchronous/producer.py by `make gen`: change that file instead.
"""Pushing, one at a time or many, and waiting for what was pushed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from functools import partial
from typing import Any, Unpack

from jobline import _codec as codec
from jobline._blocking.connection import Connection
from jobline._blocking.entities import EntityRef
from jobline._blocking.observer import Observer
from jobline._blocking.pusher import Pushers
from jobline._entity import Entity
from jobline._enums import AckLevel, AckLevelName
from jobline._ids import RequestIds
from jobline._keywords import spelled_out
from jobline._new_job import key_of, unique_key_of
from jobline._options import JobOptions, OptionsHow, with_keywords
from jobline._push.answers import lot_of, pushed_of
from jobline._push.batch import NOTHING, Own
from jobline._push.batching import BatchLimits
from jobline._push.columns import options_and_own
from jobline._push.messages import (
    BatchKey,
    LotHow,
    PushHow,
    batch_key_of,
    is_refused_by_column,
    level_of,
    request_of_jobs,
    request_of_payloads,
)
from jobline._push.push_middleware import (
    Outgoing,
    PushMiddleware,
    batch_key_of_one,
    jobs_beside,
    listed,
    outgoing_of,
    outgoing_of_one,
    pushed_lot,
    shared_lot,
    through_plain,
)
from jobline._times import Seconds
from jobline._values import Pushed, PushedLot
from jobline.errors import JoblineError


class Producer(Observer):
    """The part of `Client` that pushes."""

    def __init__(
        self,
        connection: Connection,
        limits: BatchLimits,
        middleware: Sequence[PushMiddleware],
    ) -> None:
        super().__init__(connection)
        self._new_id = RequestIds()
        self._pushers = Pushers(connection, limits)
        self._push_middleware = tuple(middleware)

    @spelled_out(OptionsHow)
    def push(  # noqa: PLR0913  # one keyword for each option of a job
        self,
        queue: str,
        payload: Any = b"",
        *,
        options: JobOptions | None = None,
        name: str | None = None,
        job_key: str | None = None,
        delay: Seconds | None = None,
        run_at: datetime | None = None,
        ack_level: AckLevelName | None = None,
        unique_key: str | None = None,
        **more: Unpack[OptionsHow],
    ) -> Pushed:
        """Pushes one job and returns when the ack level is reached.

        Pushes that threads make at the same time share one call; those of one queue and one set of
        options, whatever their headers, keep their order. An answer that is lost is asked for
        again, and nothing is stored twice.

        - `payload`: bytes as they are, anything else as JSON; ≤ 10 MiB.
        - `name`: the kind of work; a worker's handler is found by queue and name.
        - `job_key`: idempotency key, 1 … 256 bytes: again within 24 h it returns the first job's
          id.
        - `unique_key`: one unfinished job a key in a queue, 1 … 256 bytes; what becomes of a second
          one is `unique_mode`. The outcome says what became of this one.
        - `delay` (0 s … 400 days; seconds, a timedelta or text such as "90s", as all spans) or
          `run_at` (aware datetime): when it becomes ready; default at once.
        - `ack_level`: "memory", "buffered" or "fsynced" (default, or the queue's minimum).
        - `max_attempts`, `lease`, `priority`, …: the fields of `JobOptions`, which override those
          of `options`. They belong to the job: workers take them from it.

        Raises BufferFull, InvalidArgument, IdempotencyMismatch, UniqueKeyHeld, QueueFull and other
        refusals (nothing was stored), or OutcomeUnknown when the client's timeout passed without a
        definite answer.
        """
        data, content_type = codec.encode(payload)
        level = None if ack_level is None else level_of(ack_level)
        headers, group = None, ""
        if more or options is not None:
            options, headers, group = options_and_own(options, more, "push")
        own = NOTHING
        if job_key is not None or unique_key is not None or headers is not None or group:
            own = Own(key_of(job_key), unique_key_of(unique_key), headers, group)
        batch_key = BatchKey(queue, options, name, bool(content_type), delay, run_at, level)
        if self._push_middleware:
            job = outgoing_of_one(batch_key, data, own)
            send = partial(self._push_through, level)
            return (through_plain(self._push_middleware, [job], send))[0]
        return self._pushers.current().push(batch_key, data, own)

    @spelled_out(OptionsHow)
    def entity(
        self,
        kind: str | type[Entity],
        key: str,
        *,
        options: JobOptions | None = None,
        **more: Unpack[OptionsHow],
    ) -> EntityRef:
        """Returns a reference to one entity, to call its methods; nothing is sent.

        `kind`: its class, or the kind's name, which is its queue. `key`: which entity, ≤ 256
        characters; the group of its jobs. `options`, or the fields of `JobOptions`: of all calls by
        this reference. Raises InvalidArgument for no kind or key.
        """
        given = with_keywords(options, more, "entity")
        return EntityRef(self, kind, key, given)

    def _push_through(self, ack_level: AckLevel | None, jobs: Sequence[Outgoing]) -> list[Pushed]:
        (job,) = jobs
        batch_key, own = batch_key_of_one(job, ack_level)
        return [self._pushers.current().push(batch_key, job.payload, own)]

    @spelled_out(LotHow)
    def push_many(
        self,
        queue: str,
        jobs: Iterable[Any],
        *,
        atomic: bool = True,
        request_id: str | None = None,
        spread: Seconds | None = None,
        **how: Unpack[LotHow],
    ) -> list[Pushed]:
        """Pushes many jobs in one call, and returns what became of each, in order.

        `jobs` are payloads, or `NewJob`s with something of their own; ≤ 1,000, or ≤ 10,000 if all
        are payloads; ≤ 16 MiB. All or none are stored; with `atomic=False` a job whose key does
        not match is REFUSED alone. The same `request_id` (1 … 64 bytes) within 10 minutes returns
        the same ids. `spread`: the jobs, at most 1,000, become ready one after the other, evenly
        over this time. The other keywords and errors are those of `push`.
        """
        news = listed(jobs)
        if not news:
            return []
        batch_key = batch_key_of(queue, how)._replace(spread=spread)
        if not self._push_middleware:
            return self._push_lot(batch_key, news, atomic, request_id)
        send = partial(self._push_lot_through, batch_key, atomic, request_id)
        return through_plain(self._push_middleware, outgoing_of(batch_key, news), send)

    def _push_lot(
        self, batch_key: BatchKey, jobs: Sequence[Any], atomic: bool, request_id: str | None
    ) -> list[Pushed]:
        request = request_of_jobs(batch_key, jobs, atomic=atomic, request_id=request_id)
        try:
            response = self._connection.push(request)
        except JoblineError as error:
            if not is_refused_by_column(request, jobs, error):
                raise
        else:
            return pushed_of(response, len(jobs))
        request = request_of_jobs(
            batch_key, jobs, atomic=atomic, request_id=request_id, in_rows=True
        )
        return pushed_of(self._connection.push(request), len(jobs))

    def _push_lot_through(
        self,
        call: BatchKey,
        atomic: bool,
        request_id: str | None,
        jobs: Sequence[Outgoing],
    ) -> list[Pushed]:
        batch_key, rest = shared_lot(jobs, call.ack_level)
        batch_key = batch_key._replace(spread=call.spread)
        return self._push_lot(batch_key, rest, atomic, request_id)

    @spelled_out(LotHow)
    def push_payloads(
        self,
        queue: str,
        payloads: Sequence[bytes],
        *,
        groups: Sequence[str | None] | None = None,
        unique_keys: Sequence[str | None] | None = None,
        request_id: str | None = None,
        spread: Seconds | None = None,
        **how: Unpack[LotHow],
    ) -> PushedLot:
        """Pushes up to 10,000 plain jobs (≤ 16 MiB) that share everything but the payload: the
        fastest way.

        All or none are stored, as one lot with consecutive ids. `groups` and `unique_keys`: those
        of each payload, None for one without, for up to 1,000 payloads; `outcomes` then says which
        keys were held. The other keywords and errors are those of `push_many`.
        """
        have_keys = unique_keys is not None
        if self._push_middleware and payloads:
            jobs = jobs_beside(payloads, groups, unique_keys)
            pushed = self.push_many(queue, jobs, request_id=request_id, spread=spread, **how)
            return pushed_lot(pushed, have_keys=have_keys)
        batch_key = batch_key_of(queue, how, "push_payloads")._replace(spread=spread)
        request = request_of_payloads(batch_key, payloads, request_id, groups, unique_keys)
        response = self._connection.push(request)
        return lot_of(response, len(payloads) if have_keys else 0)

    @spelled_out(PushHow)
    def push_and_wait(
        self,
        queue: str,
        payload: Any = b"",
        *,
        timeout: Seconds = 60,
        **how: Unpack[PushHow],
    ) -> Any:
        """Pushes a job and returns its result: the JSON value, or bytes if it is not JSON.

        `timeout`: how long to wait after the push, ≤ 1 h. Raises WaitTimeout (the job goes on; the
        error has its id), JobDead, JobCancelled, JobExpired, JobNotFound (it completed and was not
        kept), and the errors of `push`.
        """
        pushed = self.push(queue, payload, **how)
        end = self.wait_one(pushed.id, timeout=timeout)
        return end.value()
