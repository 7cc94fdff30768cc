"""Requests of pushes. Pure.

A single push consists of its batch key (what a request has once) and of its payload, job key and
headers (what it has for each job, in columns); `push_many` makes one request of many jobs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import Any, NamedTuple

from jobline import _codec as codec
from jobline._arguments import duration_given, moment_given
from jobline._enums import AckLevel, AckLevelName, named
from jobline._new_job import NewJob, key_of, unique_key_of
from jobline._option_messages import options_message
from jobline._options import NO_OPTIONS, JobOptions, OptionsHow, with_keywords
from jobline._push.batch import Batch
from jobline._push.calls import call_of, identify
from jobline._push.columns import (
    columns_of_jobs,
    put_columns,
    put_groups,
    put_headers,
    put_keys,
    put_payloads,
    refuse_wrong_headers,
)
from jobline._times import Seconds
from jobline.errors import InvalidArgument, JoblineError
from jobline.v1 import job_pb2
from jobline.v1 import job_service_pb2 as pb

# Share of a push's time that one try may take, and its most seconds: an answer that is lost leaves
# time for others, and a server that hangs is noticed.
TRY_SHARE = 1 / 3
TRY_SECONDS_MAX = 5.0

_OF_KEYS = frozenset({"options", "name", "delay", "run_at", "ack_level"})
# Jobs with something of their own that the server takes in a call.
ROWS_MAX = 1_000

_JSON_OPTIONS = JobOptions(content_type=codec.JSON)


class BatchKey(NamedTuple):
    """What pushes share that may be sent in one request. Headers in `options` are shared, too."""

    queue: str
    options: JobOptions | None
    name: str | None
    is_json: bool
    delay: Seconds | None
    run_at: datetime | None
    ack_level: AckLevel | None
    spread: Seconds | None = None


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
    unique_key: str | None


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


def request_of_batch(batch: Batch[BatchKey, Any]) -> pb.PushRequest:
    """Returns the request of a batch. Pushes with keys are refused one by one for their keys."""
    pushes = batch.pushes
    request = _request_of_key(batch.key)
    identify(request, batch.request_id)
    if pushes.have_payloads_alone():
        request.payloads.extend(pushes.payloads)
        return request
    job_keys, unique_keys, headers, groups = zip(*pushes.own, strict=True)
    put_headers(request, headers)
    if any(job_keys) or any(unique_keys):
        request.atomic = False
    first = pushes.own[0]
    if len(pushes.payloads) == 1 and (first.job_key or first.unique_key):
        # As a row, so that a refusal names the field as it does for `push_many`.
        row = request.jobs.add(data=pushes.payloads[0], job_key=first.job_key)
        _put_unique_key(row, first.unique_key)
        if first.group:
            row.options.group = first.group
        return request
    request.payloads.extend(pushes.payloads)
    put_keys(request, job_keys, unique_keys)
    put_groups(request, groups)
    return request


def request_of_payloads(
    batch_key: BatchKey,
    payloads: Sequence[bytes],
    request_id: str | None,
    groups: Sequence[str | None] | None = None,
    unique_keys: Sequence[str | None] | None = None,
) -> pb.PushRequest:
    """Returns the request of a plain lot. Raises InvalidArgument for what it cannot hold."""
    with fitting():
        request = _request_of_key(batch_key)
        identify(request, request_id or "")
        put_payloads(request, payloads)
        put_columns(request, groups, unique_keys)
    return request


def request_of_jobs(
    batch_key: BatchKey,
    jobs: Iterable[Any],
    *,
    atomic: bool,
    request_id: str | None,
    in_rows: bool = False,
) -> pb.PushRequest:
    """Returns the request of many jobs: one lot if they differ in payload, headers and key alone,
    else one item per job. `in_rows`: one item per job unless they are plain payloads.

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
        if not atomic:
            # The default stays unset: the same jobs make the same request, however pushed.
            request.atomic = False
        identify(request, request_id or "")
        if len(kinds) <= 1 and all(map(_is_plain, news)):
            request.payloads.extend(payload for payload, _ in encoded)
            return request
        fit = len(kinds) <= 1 and len(news) <= ROWS_MAX and not in_rows
        columns = columns_of_jobs(news) if fit else None
        if columns is None:
            _put_rows(request, news, encoded)
            return request
        headers, job_keys, unique_keys = columns
        request.payloads.extend(payload for payload, _ in encoded)
        try:
            put_headers(request, headers)
        except (TypeError, ValueError):
            refuse_wrong_headers(headers)
            raise
        put_keys(request, job_keys, unique_keys)
    return request


def is_refused_by_column(request: pb.PushRequest, jobs: Iterable[Any], error: JoblineError) -> bool:
    """Returns whether to push the jobs of a refused request in rows: then the refusal names the
    job at fault as its caller knows it.
    """
    if request.jobs or not error.definite or error.field is None:
        return False
    return any(isinstance(job, NewJob) and not _is_plain(job) for job in jobs)


def _put_rows(
    request: pb.PushRequest,
    news: Sequence[NewJob],
    encoded: Sequence[tuple[bytes, str]],
) -> None:
    are_mixed = len({content_type for _, content_type in encoded}) > 1
    for job, (payload, content_type) in zip(news, encoded, strict=True):
        is_json = bool(content_type) and are_mixed
        request.jobs.append(row_of(job, payload, is_json=is_json))


def row_of(job: NewJob, payload: bytes, *, is_json: bool) -> job_pb2.NewJob:
    """Returns the message of one job."""
    row = job_pb2.NewJob(data=payload)
    options = shared_options(job.options, None, is_json=is_json)
    if options != NO_OPTIONS:
        row.options.CopyFrom(options_message(options))
    row.job_key = key_of(job.job_key)
    _put_unique_key(row, unique_key_of(job.unique_key))
    _put_start(row, job.delay, job.run_at)
    row.depends_on_indexes.extend(job.depends_on_indexes)
    return row


def _put_unique_key(row: job_pb2.NewJob, unique_key: str) -> None:
    if unique_key:
        row.options.unique_key = unique_key


def _is_plain(job: NewJob) -> bool:
    own = (job.options, job.job_key, job.delay, job.run_at, job.unique_key)
    return all(entry is None for entry in own) and not job.depends_on_indexes


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
    if batch_key.spread is not None:
        request.spread.CopyFrom(duration_given("spread", batch_key.spread))
    return request


def _put_start(
    message: pb.PushRequest | job_pb2.NewJob, delay: Seconds | None, run_at: datetime | None
) -> None:
    if delay is not None and run_at is not None:
        raise InvalidArgument("give delay or run_at, not both")
    if delay is not None:
        message.delay.CopyFrom(duration_given("delay", delay))
    if run_at is not None:
        message.run_at.CopyFrom(moment_given("run_at", run_at))
