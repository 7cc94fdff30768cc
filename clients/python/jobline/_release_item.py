"""The item of a job to release."""

from __future__ import annotations

from jobline._arguments import duration_given, moment_given
from jobline._enums import ReleaseReason, ReleaseReasonName, named
from jobline._requests import Lease, lease_of
from jobline._times import Moment, Seconds
from jobline.errors import InvalidArgument
from jobline.v1 import job_service_pb2 as pb


def release_item(
    job: Lease,
    *,
    delay: Seconds | None,
    why: ReleaseReasonName,
    until: Moment | None = None,
    limiter: str = "",
) -> pb.ReleaseItem:
    """Returns the item of a job to release, for a call or a stream."""
    id_, delivery = lease_of(job)
    reason = named(ReleaseReason, why)
    if reason is ReleaseReason.LIMITED and until is None:
        raise InvalidArgument('until: is needed with why="limited": when jobs may go out again')
    return pb.ReleaseItem(
        id=id_,
        delivery=delivery,
        delay=duration_given("delay", delay),
        why=pb.ReleaseReason.ValueType(reason),
        until=moment_given("until", until),
        limiter=limiter,
    )
