"""The values of the replies to pushes. Pure."""

from __future__ import annotations

from itertools import repeat
from typing import Any

from jobline._enums import AckLevel, PushOutcome, known
from jobline._push.batch import Batch
from jobline._push.messages import BatchKey
from jobline._values import Pushed, PushedLot
from jobline.errors import ErrorFacts, IdempotencyMismatch, Internal, JoblineError
from jobline.v1 import job_service_pb2 as pb

_NOT_OURS = ErrorFacts(reason="UNEXPECTED_ANSWER")
_MISMATCH = ErrorFacts(reason="IDEMPOTENCY_MISMATCH", code="ALREADY_EXISTS")


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
            f"the job_key {batch.pushes.job_keys[index]!r} is known in queue {batch.key.queue!r} "
            "with another payload",
            _MISMATCH,
        )
        for index, pushed in enumerate(pushed_of(response, len(batch.waiters)))
    ]
