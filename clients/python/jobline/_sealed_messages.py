"""Sealing and opening in messages of the protocol, for the calls of a client. Pure.

Pushes are sealed before they become messages (`sealing`): a repeated call must be the same bytes.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import Any

from google.protobuf.message import Message

from jobline._arguments import middleware_given, value_given
from jobline._base_errors import InvalidArgument, SealError
from jobline._leased import LeasedJob
from jobline._push.push_middleware import Outgoing, PushMiddleware
from jobline._requests import Lease
from jobline._sealed_frames import SEALED
from jobline._values import Pushed
from jobline.codec import KEY_HEADER, REPORT_BYTES_MAX, RESULT_BYTES_MAX, Codec
from jobline.v1 import (
    batch_service_pb2,
    event_pb2,
    flow_service_pb2,
    job_admin_service_pb2,
    job_pb2,
    job_service_pb2,
    schedule_service_pb2,
)

# The bytes of answers that may be frames.
_OPENED: dict[type[Message], tuple[str, ...]] = {
    job_pb2.Job: ("result", "checkpoint"),
    job_pb2.Phase: ("result",),
    job_service_pb2.WaitResponse: ("result", "partial"),
    flow_service_pb2.FlowNode: ("result",),
    event_pb2.Event: ("partial",),
}
_WITH_TEMPLATES = (
    batch_service_pb2.CreateBatchRequest,
    flow_service_pb2.PushFlowRequest,
    schedule_service_pb2.CreateScheduleRequest,
    schedule_service_pb2.UpdateScheduleRequest,
)
_TEMPLATES = (job_pb2.NewJob, batch_service_pb2.BatchCallback)


class Sealing(PushMiddleware):
    """Seals jobs as the innermost middleware: others see them as they are."""

    def __init__(self, codec: Codec) -> None:
        self._codec = codec

    async def around(
        self,
        jobs: Sequence[Outgoing],
        call_next: Callable[[Sequence[Outgoing]], Awaitable[list[Pushed]]],
    ) -> list[Pushed]:
        """Seals the jobs of an `AsyncClient`."""
        return await call_next([self._codec.sealed_job(job) for job in jobs])

    def around_plain(
        self, jobs: Sequence[Outgoing], call_next: Callable[[Sequence[Outgoing]], list[Pushed]]
    ) -> list[Pushed]:
        """Seals the jobs of a `Client`."""
        return call_next([self._codec.sealed_job(job) for job in jobs])


def seal_request(codec: Codec, request: Message) -> None:
    """Seals the jobs in a request that is no push, in place."""
    if isinstance(request, job_admin_service_pb2.UpdateJobRequest):
        if request.HasField("payload"):
            # Its group, and with it the key, is known to the server alone.
            raise InvalidArgument("payload: a client with a codec cannot change that of a job")
    elif isinstance(request, _WITH_TEMPLATES):
        _seal_templates(codec, request)


def _seal_templates(codec: Codec, message: Message) -> None:
    for inner in _inner_of(message):
        if isinstance(inner, _TEMPLATES):
            _seal_template(codec, inner)
        else:
            _seal_templates(codec, inner)


def _seal_template(codec: Codec, job: Any) -> None:
    options = job.options
    if options.content_type == SEALED:
        return
    data, key_id = codec.sealed(job.data, options.content_type, group=options.group)
    job.data = data
    options.content_type = SEALED
    if key_id:
        options.headers[KEY_HEADER] = key_id
    if options.tags:
        hashed = codec.hashed(options.tags)
        del options.tags[:]
        options.tags.extend(hashed)


def open_response(codec: Codec, response: Message) -> None:
    """Opens what an answer has, in place. What cannot be opened stays a frame: whoever reads its
    value is told why.
    """
    for name in _OPENED.get(type(response), ()):
        data = getattr(response, name)
        if data:
            setattr(response, name, _opened(codec, data))
    if isinstance(response, job_pb2.Job):
        _open_payload(codec, response)
    for inner in _inner_of(response):
        if not isinstance(inner, job_pb2.LeasedJob | job_pb2.LeasedRun):  # opened one by one
            open_response(codec, inner)


def _opened(codec: Codec, data: bytes) -> bytes:
    try:
        return codec.opened(data)
    except SealError:
        return data


def _open_payload(codec: Codec, job: job_pb2.Job) -> None:
    try:
        inside = codec.open(job.payload)
    except SealError:
        return
    if inside is not None:
        job.payload, job.options.content_type = inside.data, inside.content_type


def _inner_of(message: Message) -> list[Message]:
    """Returns the messages in a message that are set; maps have none."""
    found: list[Message] = []
    for field, value in message.ListFields():
        if field.message_type is None or field.message_type.GetOptions().map_entry:
            continue
        found.extend(value if field.is_repeated else [value])
    return found


def open_jobs(codec: Codec | None, jobs: Sequence[LeasedJob]) -> None:
    """Opens jobs in hand. What cannot be opened stays sealed: whoever reads it is told why."""
    if codec is not None:
        for job in jobs:
            with suppress(SealError):
                codec.open_job(job)


def seal_acks(
    codec: Codec | None, jobs: Sequence[Lease], request: job_service_pb2.AckRequest, kind: str
) -> None:
    """Seals the results of jobs in hand. Raises InvalidArgument for a job that is given by its id
    and delivery alone, KeyErased and CodecError.
    """
    if codec is None:
        return
    for job, item in zip(jobs, request.items, strict=False):
        if item.result:
            item.result = codec.sealed_for(
                _in_hand(job), item.result, kind, what="a result", longest=RESULT_BYTES_MAX
            )


def seal_extend(codec: Codec | None, job: Lease, item: job_service_pb2.ExtendItem) -> None:
    """Seals the checkpoint and the result of a phase; raises as `seal_acks` does."""
    if codec is None:
        return
    if item.checkpoint:
        item.checkpoint = codec.sealed_for(
            _in_hand(job), item.checkpoint, "", what="a checkpoint", longest=REPORT_BYTES_MAX
        )
    if item.phase_result:
        item.phase_result = codec.sealed_for(
            _in_hand(job), item.phase_result, "", what="a result", longest=RESULT_BYTES_MAX
        )


def _in_hand(job: Lease) -> LeasedJob:
    if not isinstance(job, LeasedJob):
        raise InvalidArgument(
            "jobs: with a codec, a result is given with the job itself, not with its id and "
            "delivery: its group and its key say how to seal it"
        )
    return job


def push_middleware_given(
    middleware: Sequence[PushMiddleware], codec: Codec | None
) -> Sequence[PushMiddleware]:
    """Returns the middleware of a client, its codec the innermost. Raises InvalidArgument."""
    given = middleware_given(middleware, PushMiddleware)
    if codec is None:
        return given
    return [*given, Sealing(value_given("codec", codec, Codec))]
