"""The contents of received frames as plain values, and the messages that open a stream and release
leases.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from jobline._enums import ReleaseReason, RevokeReason
from jobline._leased import LeasedJob
from jobline._printable import printable_line
from jobline._requests import MESSAGE_BYTES_MAX
from jobline._stream.settles import SettleReport
from jobline.v1 import job_service_pb2 as pb

# Seconds that a worker stays on a stream that is to end, until its settles are confirmed.
_PATIENCE_MIN, _PATIENCE_MAX = 30.0, 3_600.0


@dataclass(frozen=True, slots=True)
class Goaway:
    """The server asks the worker to reconnect elsewhere: `close_at` is wall time in seconds since
    1970, `retry_delay` is in seconds.
    """

    reason: str
    close_at: float
    retry_delay: float

    def patience(self, wall: float) -> float:
        """Returns for how many seconds from now on, `wall`, to wait for the end by the server. It
        ends the stream at `close_at` by its own clock; where one of the two clocks is wrong, the
        worker leaves neither at once nor never.
        """
        return min(max(self.close_at - wall, _PATIENCE_MIN), _PATIENCE_MAX)


@dataclass(frozen=True, slots=True)
class LostLease:
    """A lease that the worker should stop working on. With CANCELLED it is still held, and must be
    settled.
    """

    id: int
    delivery: int
    reason: RevokeReason


@dataclass(slots=True)
class Received:
    """The contents of one frame."""

    opened: bool = False
    resumed: bool = False
    jobs: list[LeasedJob] = field(default_factory=list)
    lost: list[LostLease] = field(default_factory=list)
    reports: list[SettleReport] = field(default_factory=list)
    goaway: Goaway | None = None
    unhandled: list[tuple[str, str, int]] = field(default_factory=list)
    """Queue, name and number of jobs that wait for a worker with another handler."""


def release_of_lease(
    id_: int, delivery: int, why: ReleaseReason, delay: float = 0.0
) -> pb.ReleaseItem:
    """Returns the release of a lease; a `delay` of 0 seconds means at once, at the front."""
    item = pb.ReleaseItem(id=id_, delivery=delivery, why=pb.ReleaseReason.ValueType(why))
    if delay > 0:
        item.delay.FromNanoseconds(round(delay * 1e9))
    return item


def interrupted_release(id_: int, delivery: int) -> pb.ReleaseItem:
    """Returns the release of a lease that this worker does not run."""
    return release_of_lease(id_, delivery, ReleaseReason.INTERRUPTED)


def goaway_of(message: pb.StreamGoaway) -> Goaway:
    """Returns the value of the protocol's message."""
    delay = message.retry_delay
    return Goaway(
        reason=printable_line(message.reason),
        close_at=message.close_time.seconds + message.close_time.nanos / 1e9,
        retry_delay=delay.seconds + delay.nanos / 1e9,
    )


class Announced(NamedTuple):
    """A handler as the server is told of it: `any_name`, all work of its queue that no other takes.
    Schemas are JSON, or "".
    """

    queue: str
    name: str
    any_name: bool = False
    payload_schema: str = ""
    result_schema: str = ""


def opening_of(
    worker: pb.WorkerDescription,
    *,
    queues: Iterable[tuple[str, int]],
    handlers: Iterable[Announced],
) -> pb.StreamOpen:
    """Returns the `open` of a worker: queues with weights, and handlers; none means any name."""
    return pb.StreamOpen(
        worker=worker,
        queues=[pb.QueueWeight(queue=queue, weight=weight) for queue, weight in queues],
        handlers=[pb.HandlerDescription(**one._asdict()) for one in handlers],
        accepts_runs=True,
        max_message_bytes=MESSAGE_BYTES_MAX,
    )
