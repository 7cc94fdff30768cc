"""Middleware around pushes: what a program does with all it pushes. Pure.

One call that pushes goes through all middleware once, whether it pushes one job or many, and each
sees the jobs as they will be stored: payloads in bytes, options complete.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from itertools import islice
from typing import Any, TypeVar

from jobline import _codec as codec
from jobline._arguments import headers_given, refuse
from jobline._enums import AckLevel
from jobline._new_job import NewJob, key_of, unique_key_of
from jobline._options import JobOptions, with_headers, without_headers
from jobline._push.batch import Own
from jobline._push.columns import column_given, group_apart, headers_apart
from jobline._push.messages import BatchKey, options_of_batch, shared_options
from jobline._times import Seconds
from jobline._unique_mode import STORED_OUTCOMES
from jobline._values import Pushed, PushedLot
from jobline.errors import ErrorFacts, InvalidArgument, TooLarge

R = TypeVar("R")
# Of one call; jobs that are more than a payload are at most 1,000, which the server checks.
JOBS_MAX = 10_000


@dataclass(frozen=True, slots=True)
class Outgoing:
    """A job on its way out. `dataclasses.replace` makes a changed one, `with_headers` one with more
    headers.
    """

    queue: str
    payload: bytes
    options: JobOptions
    job_key: str = ""
    delay: Seconds | None = None
    run_at: datetime | None = None
    unique_key: str = ""
    depends_on_indexes: tuple[int, ...] = ()

    def with_headers(self, headers: Mapping[str, str]) -> Outgoing:
        """Returns the job with these headers, which go before those that it has."""
        options = self.options
        own = {**options.headers, **headers_given(headers)} if options.headers else headers
        return Outgoing(
            self.queue,
            self.payload,
            with_headers(options, own),
            self.job_key,
            self.delay,
            self.run_at,
            self.unique_key,
            self.depends_on_indexes,
        )


class PushMiddleware:
    """Base class; override one method or both. The first of a client's list is the outermost.

    It wraps each call that pushes: `jobs` is one for `push` and `push_and_wait`, and all of them
    for `push_many` and `push_payloads`. `call_next` pushes them and returns the outcome of each, in
    order; give it other jobs (as many, all of one queue) to change them, raise to refuse them. Jobs
    that are alike are still sent as one lot.
    """

    async def around(
        self,
        jobs: Sequence[Outgoing],
        call_next: Callable[[Sequence[Outgoing]], Awaitable[list[Pushed]]],
    ) -> list[Pushed]:
        """Wraps the calls of an `AsyncClient`."""
        return await call_next(jobs)

    def around_plain(
        self, jobs: Sequence[Outgoing], call_next: Callable[[Sequence[Outgoing]], list[Pushed]]
    ) -> list[Pushed]:
        """Wraps the calls of a `Client`, in the thread of the caller."""
        return call_next(jobs)


def through(
    middleware: Sequence[PushMiddleware],
    jobs: Sequence[Outgoing],
    send: Callable[[Sequence[Outgoing]], Coroutine[Any, Any, list[Pushed]]],
) -> Awaitable[list[Pushed]]:
    """Pushes jobs through all middleware of an `AsyncClient`."""
    call: Callable[[Sequence[Outgoing]], Awaitable[list[Pushed]]] = partial(
        _checked, send, len(jobs)
    )
    for layer in reversed(middleware):
        call = partial(_turned, layer.around, call)
    return call(jobs)


def through_plain(
    middleware: Sequence[PushMiddleware],
    jobs: Sequence[Outgoing],
    send: Callable[[Sequence[Outgoing]], list[Pushed]],
) -> list[Pushed]:
    """Pushes jobs through all middleware of a `Client`."""
    call: Callable[[Sequence[Outgoing]], list[Pushed]] = partial(_checked, send, len(jobs))
    for layer in reversed(middleware):
        call = partial(_turned, layer.around_plain, call)
    return call(jobs)


def _turned(
    around: Callable[[Sequence[Outgoing], Any], R], call_next: Any, jobs: Sequence[Outgoing]
) -> R:
    """Calls `around` with its arguments in their own order."""
    return around(jobs, call_next)


def _checked(send: Callable[[Sequence[Outgoing]], R], count: int, jobs: Sequence[Outgoing]) -> R:
    if len(jobs) != count:
        raise InvalidArgument(f"middleware made {len(jobs)} jobs of {count}")
    if count > 1 and len({job.queue for job in jobs}) > 1:
        raise InvalidArgument("middleware sent the jobs of one call to several queues")
    return send(jobs)


# ---------------------------------------------------------------------- from calls, and to calls


def outgoing_of(batch_key: BatchKey, jobs: Iterable[Any]) -> list[Outgoing]:
    """Returns the jobs of one call (payloads, or `NewJob`s), each merged with what they share."""
    found = []
    # One value for all that are alike: they are compared by it, and cost no more than one.
    of_bytes = shared_options(batch_key.options, batch_key.name, is_json=batch_key.is_json)
    of_json = shared_options(batch_key.options, batch_key.name, is_json=True)
    for job in jobs:
        new = job if isinstance(job, NewJob) else NewJob(job)
        payload, content_type = codec.encode(new.payload)
        shared = of_json if content_type else of_bytes
        has_start = new.delay is not None or new.run_at is not None
        start = new if has_start else batch_key
        found.append(
            Outgoing(
                queue=batch_key.queue,
                payload=payload,
                options=shared.merged(new.options),
                job_key=key_of(new.job_key),
                delay=start.delay,
                run_at=start.run_at,
                unique_key=unique_key_of(new.unique_key),
                depends_on_indexes=new.depends_on_indexes,
            )
        )
    return found


def outgoing_of_one(batch_key: BatchKey, payload: bytes, own: Own) -> Outgoing:
    """Returns the job of a single push."""
    options = options_of_batch(batch_key)
    if own.group:
        options = options.replaced(group=own.group)
    if own.headers is not None:
        options = with_headers(options, own.headers)
    start = batch_key.delay, batch_key.run_at
    return Outgoing(batch_key.queue, payload, options, own.job_key, *start, own.unique_key)


def batch_key_of_one(job: Outgoing, ack_level: AckLevel | None) -> tuple[BatchKey, Own]:
    """Returns the batch key of one job, whose options are complete, and what it has of its own."""
    options, group = group_apart(job.options)
    options, headers = headers_apart(options)
    own = Own(job.job_key, job.unique_key, headers, group)
    return _batch_key(job, options, ack_level), own


def _batch_key(job: Outgoing, options: JobOptions | None, ack_level: AckLevel | None) -> BatchKey:
    return BatchKey(job.queue, options, None, False, job.delay, job.run_at, ack_level)


def shared_lot(jobs: Sequence[Outgoing], ack_level: AckLevel | None) -> tuple[BatchKey, list[Any]]:
    """Returns what jobs of one call share, and what is left of each: payloads alone if they are
    alike, headers and keys with them if they differ in these alone.
    """
    first = jobs[0]
    batch_key = _batch_key(first, first.options, ack_level)
    start = (first.delay, first.run_at)
    have_indexes = any(job.depends_on_indexes for job in jobs)
    if not have_indexes and all(
        (job.options, job.job_key, job.unique_key, job.delay, job.run_at)
        == (first.options, "", "", *start)
        for job in jobs
    ):
        return batch_key, [job.payload for job in jobs]
    shared = without_headers(first.options)
    if not have_indexes and all(
        (without_headers(job.options), job.delay, job.run_at) == (shared, *start) for job in jobs
    ):
        rows = [
            NewJob(
                job.payload,
                headers=job.options.headers,
                job_key=job.job_key or None,
                unique_key=job.unique_key or None,
            )
            for job in jobs
        ]
        return batch_key._replace(options=shared), rows
    rows = [
        NewJob(
            job.payload,
            options=job.options,
            job_key=job.job_key or None,
            delay=job.delay,
            run_at=job.run_at,
            unique_key=job.unique_key or None,
            depends_on_indexes=job.depends_on_indexes,
        )
        for job in jobs
    ]
    return batch_key._replace(options=None, delay=None, run_at=None), rows


def jobs_beside(
    payloads: Sequence[bytes],
    groups: Sequence[str | None] | None,
    unique_keys: Sequence[str | None] | None,
) -> Sequence[Any]:
    """Returns payloads as jobs with the group and the unique key of each; as they are if there are
    none.
    """
    columns = column_given("groups", groups), column_given("unique_keys", unique_keys)
    if not any(columns):
        return payloads
    for name, column in zip(("groups", "unique_keys"), columns, strict=True):
        if column and len(column) != len(payloads):
            refuse(name, f"must be as many as payloads, {len(payloads)}, and are {len(column)}")
    own_groups, own_keys = [column or [""] * len(payloads) for column in columns]
    beside = zip(own_groups, own_keys, strict=True)
    own = [(JobOptions(group=group) if group else None, key or None) for group, key in beside]
    return [
        payload if one == (None, None) else NewJob(payload, options=one[0], unique_key=one[1])
        for payload, one in zip(payloads, own, strict=True)
    ]


def pushed_lot(pushed: Sequence[Pushed], *, have_keys: bool) -> PushedLot:
    """Returns the outcome of a plain lot, whose ids are consecutive, or of jobs with keys."""
    if not have_keys:
        return PushedLot(pushed[0].id, len(pushed), pushed[0].ack_level)
    stored = [each.id for each in pushed if each.outcome in STORED_OUTCOMES]
    first_id = min(stored, default=0)
    return PushedLot(first_id, len(stored), pushed[0].ack_level, tuple(pushed))


def listed(jobs: Iterable[Any]) -> list[Any]:
    """Returns the jobs of `push_many` as a list. Raises InvalidArgument for a single job: text
    would be pushed letter by letter, a dict by its keys.
    """
    single = (str, bytes, bytearray, memoryview, Mapping, NewJob)
    if isinstance(jobs, single) or not isinstance(jobs, Iterable):
        kind = type(jobs).__name__
        raise InvalidArgument(f"jobs: push_many() takes a list, not one {kind}; push() takes one")
    found = list(islice(jobs, JOBS_MAX + 1))  # an iterator may have no end
    if len(found) > JOBS_MAX:
        why = f"at most {JOBS_MAX:,} in a call: push them in several"
        raise TooLarge(f"jobs: {why}", ErrorFacts(fields={"jobs": why}))
    return found
