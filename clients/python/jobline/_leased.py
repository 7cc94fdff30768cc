"""A job in a worker's hands."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any, Self

from jobline import _codec as codec
from jobline import _typed_json as typed_json
from jobline._base_errors import SealError
from jobline._enums import LeaseReason, known
from jobline._options import JobOptions
from jobline._sealed_frames import Opened, is_frame, refuse_sealed
from jobline._times import from_timestamp
from jobline.v1 import job_pb2


class RunHeaders:
    """Headers that the jobs of a run have of their own, in columns. One object for all of them."""

    __slots__ = ("_columns", "_first_id")

    def __init__(self, first_id: int, columns: Iterable[job_pb2.HeaderColumn]) -> None:
        self._first_id = first_id
        self._columns = list(columns)

    def of_job(self, job_id: int) -> dict[str, str]:
        """Returns the headers of one job; those that the run shares are not among them."""
        index = job_id - self._first_id
        return {column.key: value for column in self._columns if (value := column.values[index])}


class LeasedJob:
    """A job that is leased to a worker. `(id, delivery)` is the lease; `delivery` only grows, so it
    serves as a fencing token downstream.

    `attempt` counts from 1. `lease`: how long the worker may
    stay silent. `checkpoint`: what an earlier attempt left. `group`: its group, "" without one.
    `continues_group`: the same session had the last job of its group.
    `phase_results`: results of the phases that are finished, in the order of `options.phases`.
    """

    __slots__ = (
        "_pushed_at",
        "attempt",
        "checkpoint",
        "delivery",
        "group",
        "continues_group",
        "id",
        "job_key",
        "lease_ms",
        "options_message",
        "payload",
        "phase_results",
        "queue",
        "reason",
        "run_headers",
        "seal",
    )

    def __init__(  # noqa: PLR0913  # one argument a field of the protocol's message
        self,
        id: int,  # noqa: A002  # the attribute's name
        delivery: int,
        queue: str,
        options: job_pb2.JobOptions,
        payload: bytes,
        *,
        lease_ms: int = 0,
        attempt: int = 1,
        reason: LeaseReason = LeaseReason.FIRST,
        checkpoint: bytes = b"",
        job_key: str = "",
        pushed_at: Any = None,
        group: str = "",
        phase_results: tuple[bytes, ...] = (),
        continues_group: bool = False,
    ) -> None:
        self.id = id
        self.delivery = delivery
        self.queue = queue
        self.options_message = options
        self.payload = payload
        self.lease_ms = lease_ms
        self.attempt = attempt
        self.reason = reason
        self.checkpoint = checkpoint
        self.job_key = job_key
        self.group = group
        self.phase_results = phase_results
        self.continues_group = continues_group
        self._pushed_at = pushed_at
        self.run_headers: RunHeaders | None = None
        # What a codec found in a sealed payload, or why it could not be opened. One attribute: each
        # costs a fast worker something.
        self.seal: Opened | SealError | None = None

    @classmethod
    def from_message(cls, message: job_pb2.LeasedJob) -> Self:
        """Returns the value of the protocol's message."""
        return cls(
            message.id,
            message.delivery,
            message.queue,
            message.options,
            message.payload,
            lease_ms=message.lease_ms,
            attempt=message.attempt,
            reason=known(LeaseReason, message.reason),
            checkpoint=message.checkpoint,
            job_key=message.job_key,
            pushed_at=message.pushed_at,
            group=message.group,
            phase_results=tuple(message.phase_results),
            continues_group=message.continues_group,
        )

    def to_message(self) -> job_pb2.LeasedJob:
        """Returns a message of the protocol, with the headers of a run among the options."""
        message = job_pb2.LeasedJob(
            id=self.id,
            delivery=self.delivery,
            queue=self.queue,
            options=self.options_message,
            payload=self.payload,
            lease_ms=self.lease_ms,
            attempt=self.attempt,
            reason=job_pb2.LeaseReason.ValueType(self.reason),
            checkpoint=self.checkpoint,
            job_key=self.job_key,
            pushed_at=self._pushed_at,
            group=self.group,
            phase_results=self.phase_results,
            continues_group=self.continues_group,
        )
        if self.run_headers is not None:
            message.options.headers.update(self.run_headers.of_job(self.id))
        if isinstance(self.seal, Opened):
            message.options.content_type = self.seal.content_type
        return message

    @classmethod
    def from_run(cls, run: job_pb2.LeasedRun) -> list[Self]:
        """Returns the jobs of a run. They share everything but id, payload, job key, and headers
        of their own, which are looked up when they are asked for.
        """
        first, delivery, queue, options = run.first_id, run.delivery, run.queue, run.options
        lease_ms, pushed_at = run.lease_ms, run.pushed_at
        jobs = [
            cls(id_, delivery, queue, options, payload, lease_ms=lease_ms, pushed_at=pushed_at)
            for id_, payload in enumerate(run.payloads, first)
        ]
        if run.header_columns:
            headers = RunHeaders(first, run.header_columns)
            for job in jobs:
                job.run_headers = headers
        for job, job_key in zip(jobs, run.job_keys, strict=False):  # none at all, or as many
            job.job_key = job_key
        return jobs

    @property
    def options(self) -> JobOptions:
        """The options it was pushed with."""
        options = JobOptions.from_message(self.options_message)
        if self.run_headers is None:
            return options
        return options.replaced(headers=self.headers or None)

    @property
    def name(self) -> str:
        """The kind of work."""
        return self.options_message.name

    @property
    def headers(self) -> dict[str, str]:
        """The headers it was pushed with."""
        headers = dict(self.options_message.headers)
        if self.run_headers is not None:
            headers.update(self.run_headers.of_job(self.id))
        return headers

    @property
    def content_type(self) -> str:
        """The content type of the payload."""
        inside = self.seal
        return (
            inside.content_type if isinstance(inside, Opened) else self.options_message.content_type
        )

    @property
    def lease(self) -> timedelta:
        """How long the worker may stay silent."""
        return timedelta(milliseconds=self.lease_ms)

    @property
    def pushed_at(self) -> datetime | None:
        """When it was pushed."""
        return from_timestamp(self._pushed_at) if self._pushed_at is not None else None

    def value(self, kind: Any = Any) -> Any:
        """Returns the payload as a type: by default JSON if the content type is JSON, else bytes.
        Raises CodecError.
        """
        return typed_json.decode_as(kind, self.payload, self.content_type)

    def json(self) -> Any:
        """Returns the payload as JSON, whatever its content type. Raises CodecError."""
        if is_frame(self.payload):
            refuse_sealed(self.payload)
        return codec.decode_json(self.payload)

    def __repr__(self) -> str:
        return f"<LeasedJob {self.id} {self.queue}/{self.name} delivery {self.delivery}>"
