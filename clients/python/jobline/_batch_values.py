"""Batches, as the client returns them, and the callbacks that it is given."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from enum import IntEnum
from typing import Any, Literal, Self

from jobline import _codec as codec
from jobline._arguments import duration_given, message_of, tags_given, value_given
from jobline._option_messages import options_message
from jobline._options import JobOptions
from jobline._push.messages import shared_options
from jobline._reading import read
from jobline._times import Seconds
from jobline.v1 import batch_service_pb2


class BatchState(IntEnum):
    """Where a batch stands; `UNSPECIFIED` is a state that this client does not know."""

    UNSPECIFIED = 0
    OPEN = 1
    CLOSED = 2
    COMPLETE = 3


BatchStateName = BatchState | Literal["open", "closed", "complete"]
"""Where a batch stands, or its name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchCallback:
    """A job that a batch pushes.

    - `queue`, `payload`: as for `push`; the payload is ≤ 64 KiB.
    - `options`: its options, without `depends_on` and `batch_id`. The job has one header more,
      `jobline-batch`: the id of the batch.
    - `delay`: how long after that it becomes ready, 0 s … 400 days; default at once.
    """

    queue: str
    payload: Any = b""
    options: JobOptions | None = None
    delay: Seconds | None = None

    def to_message(self) -> batch_service_pb2.BatchCallback:
        """Returns the message of the protocol."""
        data, content_type = codec.encode(self.payload)
        options = shared_options(self.options, None, is_json=bool(content_type))
        return message_of(
            batch_service_pb2.BatchCallback,
            queue=self.queue,
            data=data,
            options=options_message(options),
            delay=duration_given("delay", self.delay),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """Jobs that are counted together, as they were when this was read.

    - `total`: members, ended ones and batches in it included; `done`, `dead`, `cancelled`,
      `expired` and `deleted`: how they ended.
    - `closed_at`, `completed_at`, `cancelled_at`: None if it is not.
    - `success_called`, `complete_called`, `first_death_called`: whether that was decided, and the
      callback pushed if there is one.
    """

    id: int
    name: str
    tags: tuple[str, ...]
    parent_id: int
    state: BatchState
    total: int
    done: int
    dead: int
    cancelled: int
    expired: int
    deleted: int
    created_at: datetime | None
    closed_at: datetime | None
    completed_at: datetime | None
    cancelled_at: datetime | None
    cancelled_by: str
    cancel_reason: str
    success_called: bool
    complete_called: bool
    first_death_called: bool

    @property
    def pending(self) -> int:
        """Members that have not ended."""
        return self.total - self.done - self.dead - self.cancelled - self.expired - self.deleted

    @classmethod
    def from_message(cls, message: batch_service_pb2.Batch) -> Self:
        """Returns the value of the protocol's message."""
        return read(cls, message)


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchCancelled:
    """What a cancel of a batch did: members that are cancelled, and active ones whose workers were
    asked to stop.
    """

    cancelled: int
    requested: int
    operation_id: str
    batch: Batch

    @classmethod
    def from_message(cls, message: batch_service_pb2.CancelBatchResponse) -> Self:
        """Returns the value of the protocol's message."""
        return read(cls, message)


def create_request(
    name: str,
    tags: Iterable[str],
    parent: int,
    request_id: str,
    **callbacks: BatchCallback | None,
) -> batch_service_pb2.CreateBatchRequest:
    """Returns the request for a new batch."""
    given = {
        field: value_given(field, one, BatchCallback).to_message()
        for field, one in callbacks.items()
        if one is not None
    }
    return message_of(
        batch_service_pb2.CreateBatchRequest,
        name=name,
        tags=tags_given("tags", tags),
        parent_id=parent,
        request_id=request_id,
        **given,
    )
