"""Requests of pushes, and the values of their replies. Pure.

A single push consists of its batch key (what a request has once) and its payload and job key (what
it has for each job); `push_many` makes one request of many jobs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from itertools import repeat
from typing import Any, NamedTuple

from jobline import _codec as codec
from jobline._enums import AckLevel, AckLevelName, PushOutcome, known, named
from jobline._options import (
    NO_OPTIONS,
    JobOptions,
    NewJob,
    OptionsHow,
    key_of,
    options_message,
    with_keywords,
)
from jobline._push.batching import Batch, PushBatcher
from jobline._push.calls import call_of, identify, is_definite
from jobline._times import Seconds, to_duration, to_timestamp
from jobline._values import Pushed, PushedLot
from jobline.errors import (
    ErrorFacts,
    IdempotencyMismatch,
    Internal,
    InvalidArgument,
    JoblineError,
    TooLarge,
)
from jobline.v1 import job_pb2
from jobline.v1 import job_service_pb2 as pb

# Share of a push's time that one try may take, and its most seconds: an answer that is lost leaves
# time for others, and a server that hangs is noticed.
TRY_SHARE = 1 / 3
TRY_SECONDS_MAX = 5.0

_OF_KEYS = frozenset({"options", "name", "delay", "run_at", "ack_level"})
_JSON_OPTIONS = JobOptions(content_type=codec.JSON)
_NOT_OURS = ErrorFacts(reason="UNEXPECTED_ANSWER")
_MISMATCH = ErrorFacts(reason="IDEMPOTENCY_MISMATCH", code="ALREADY_EXISTS")


class BatchKey(NamedTuple):
    """What pushes share that may be sent in one request."""

    queue: str
    options: JobOptions | None
    name: str | None
    is_json: bool
    delay: Seconds | None
    run_at: datetime | None
    ack_level: AckLevel | None
    has_key: bool


class LotHow(OptionsHow, total=False):
    """Keywords of a call that pushes many jobs; see `Client.push`."""

    options: JobOptions | None
    name: str | None
    delay: Seconds | None
    run_at: datetime | None
    ack_level: AckLevelName | None


class PushHow(LotHow, total=False):
    """Keywords of a call that pushes one job; see `Client.push`."""

    job_key: str | None


def batch_key_of(queue: str, how: LotHow, function: str = "push_many") -> BatchKey:
    """Returns the batch key of a call for many jobs. Raises TypeError for an unknown keyword."""
    more: Any = {key: value for key, value in how.items() if key not in _OF_KEYS}
    return BatchKey(
        queue,
        with_keywords(how.get("options"), more, function),
        how.get("name"),
        is_json=False,
        delay=how.get("delay"),
        run_at=how.get("run_at"),
        ack_level=level_of(how.get("ack_level")),
        has_key=False,
    )


def level_of(ack_level: AckLevelName | None) -> AckLevel | None:
    """Returns an ack level that may be given by its name. Raises InvalidArgument."""
    return None if ack_level is None else named(AckLevel, ack_level)


def options_of_batch(batch_key: BatchKey) -> JobOptions:
    """Returns the options of a batch; its content type is JSON's unless the caller set another."""
    return shared_options(batch_key.options, batch_key.name, is_json=batch_key.is_json)


def shared_options(options: JobOptions | None, name: str | None, *, is_json: bool) -> JobOptions:
    """Returns options and name merged."""
    merged = (_JSON_OPTIONS if is_json else NO_OPTIONS).merged(options)
    return merged if name is None else merged.replaced(name=name)


def built(batch: Batch[BatchKey, Any]) -> pb.PushRequest:
    """Returns the request of a batch. Raises InvalidArgument for what it cannot hold."""
    with fitting():
        return request_of_batch(batch)


@contextmanager
def fitting() -> Iterator[None]:
    """Turns errors of building a request into InvalidArgument."""
    try:
        yield
    except (TypeError, ValueError, OverflowError, AttributeError) as error:
        raise InvalidArgument(f"this cannot be pushed: {error}") from error


def handle_error(
    batcher: PushBatcher[BatchKey, Any],
    now: float,
    batch: Batch[BatchKey, Any],
    error: JoblineError,
) -> bool:
    """Handles a call that failed. Returns True if the batch is done and its pushes must be
    answered.
    """
    if _is_of_one_push(error):
        return not batcher.handle_refused(batch)
    if error.definite or not error.retryable:
        batcher.handle_done(batch, is_known=is_definite(error, batch.tries))
        return True
    return not batcher.handle_unknown(now, batch)


def _is_of_one_push(error: JoblineError) -> bool:
    """Returns whether the refusal is, or may be, about one of the pushes; what they share is
    refused for all at once.
    """
    if isinstance(error, InvalidArgument):
        return error.field is None or error.field.startswith(("payloads", "jobs"))
    return isinstance(error, TooLarge)


def request_of_batch(batch: Batch[BatchKey, Any]) -> pb.PushRequest:
    """Returns the request of a batch. Pushes with keys are refused one by one where keys do not
    match.
    """
    batch_key = batch.key
    request = _request_of_key(batch_key)
    if batch_key.has_key:
        request.atomic = False
        for payload, job_key in zip(batch.payloads, batch.job_keys, strict=True):
            job = request.jobs.add()
            job.data = payload
            job.job_key = job_key
    else:
        identify(request, batch.request_id)
        request.payloads.extend(batch.payloads)
    return request


def request_of_payloads(
    batch_key: BatchKey, payloads: Sequence[bytes], request_id: str | None
) -> pb.PushRequest:
    """Returns the request of a plain lot. Raises InvalidArgument for what it cannot hold."""
    with fitting():
        request = _request_of_key(batch_key)
        identify(request, request_id or "")
        request.payloads.extend(payloads)
    return request


def request_of_jobs(
    batch_key: BatchKey,
    jobs: Iterable[Any],
    *,
    atomic: bool,
    request_id: str | None,
) -> pb.PushRequest:
    """Returns the request of many jobs: one lot if they are plain and alike, else one item per job.

    Raises InvalidArgument for what does not fit into a message, CodecError for what has no JSON.
    """
    news = [job if isinstance(job, NewJob) else NewJob(job) for job in jobs]
    have_keys = any(key_of(job.job_key) for job in news)
    if have_keys and request_id and call_of(request_id) is None:
        raise InvalidArgument("give a request_id or job_keys, not both: either makes a retry safe")
    encoded = [codec.encode(job.payload) for job in news]
    kinds = {content_type for _, content_type in encoded}
    with fitting():
        request = _request_of_key(batch_key._replace(is_json=kinds == {codec.JSON}))
        if (
            not atomic
        ):  # the default stays unset: the same jobs make the same request, however pushed
            request.atomic = False
        identify(request, request_id or "")
        if len(kinds) <= 1 and all(map(_is_plain, news)):
            request.payloads.extend(payload for payload, _ in encoded)
        else:
            _put_rows(request, news, encoded)
    return request


def _put_rows(
    request: pb.PushRequest,
    news: Sequence[NewJob],
    encoded: Sequence[tuple[bytes, str]],
) -> None:
    are_mixed = len({content_type for _, content_type in encoded}) > 1
    for job, (payload, content_type) in zip(news, encoded, strict=True):
        row = request.jobs.add(data=payload)
        options = shared_options(job.options, None, is_json=bool(content_type) and are_mixed)
        if options != NO_OPTIONS:
            row.options.CopyFrom(options_message(options))
        row.job_key = key_of(job.job_key)
        _put_start(row, job.delay, job.run_at)


def _is_plain(job: NewJob) -> bool:
    own = (job.options, job.job_key, job.delay, job.run_at)
    return all(entry is None for entry in own)


def _request_of_key(batch_key: BatchKey) -> pb.PushRequest:
    if not isinstance(batch_key.queue, str):
        raise InvalidArgument(f"queue: a queue is named by text, not by {batch_key.queue!r}")
    request = pb.PushRequest(queue=batch_key.queue)
    options = options_of_batch(batch_key)
    if options != NO_OPTIONS:
        request.options.CopyFrom(options_message(options))
    if batch_key.ack_level is not None:
        request.ack_level = job_pb2.AckLevel.ValueType(batch_key.ack_level)
    _put_start(request, batch_key.delay, batch_key.run_at)
    return request


def _put_start(
    message: pb.PushRequest | job_pb2.NewJob, delay: Seconds | None, run_at: datetime | None
) -> None:
    if delay is not None and run_at is not None:
        raise InvalidArgument("give delay or run_at, not both")
    if delay is not None:
        message.delay.CopyFrom(to_duration(delay))
    if run_at is not None:
        message.run_at.CopyFrom(to_timestamp(run_at))


def pushed_of(response: pb.PushResponse, count: int) -> list[Pushed]:
    """Returns the outcome of each of `count` pushed jobs, in order. Raises Internal if the reply
    does not fit the request.
    """
    level = known(AckLevel, response.ack_level)
    exceptions = {entry.index: entry for entry in response.exceptions if 0 <= entry.index < count}
    if response.count + len(exceptions) != count:
        raise Internal(
            f"{count} jobs were pushed, and the answer speaks of {response.count}", _NOT_OURS
        )
    created = PushOutcome.CREATED
    if not exceptions:
        first = response.first_id
        ids = range(first, first + count)
        return list(map(Pushed._make, zip(ids, repeat(created), repeat(level), strict=False)))
    created_ids = iter(range(response.first_id, response.first_id + response.count))
    return [
        Pushed(entry.id, known(PushOutcome, entry.outcome), level)
        if (entry := exceptions.get(index)) is not None
        else Pushed(next(created_ids), created, level)
        for index in range(count)
    ]


def lot_of(response: pb.PushResponse) -> PushedLot:
    """Returns the outcome of a plain lot."""
    return PushedLot(response.first_id, response.count, known(AckLevel, response.ack_level))


def answers_of_batch(
    response: pb.PushResponse, batch: Batch[BatchKey, Any]
) -> list[Pushed | JoblineError]:
    """Returns what each push of a batch gets: its outcome or its own error."""
    return [
        pushed
        if pushed.outcome is not PushOutcome.REFUSED
        else IdempotencyMismatch(
            f"the job_key {batch.job_keys[index]!r} is known in queue {batch.key.queue!r} "
            "with another payload",
            _MISMATCH,
        )
        for index, pushed in enumerate(pushed_of(response, len(batch.waiters)))
    ]
