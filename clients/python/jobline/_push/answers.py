"""The values of the replies to pushes. Pure."""

from __future__ import annotations

from itertools import repeat
from typing import Any

from jobline._enums import AckLevel, PushOutcome, known
from jobline._push.batch import Batch
from jobline._push.messages import BatchKey
from jobline._unique_mode import STORED_OUTCOMES, UniqueMode
from jobline._values import Pushed, PushedLot
from jobline.errors import ErrorFacts, IdempotencyMismatch, Internal, JoblineError, UniqueKeyHeld
from jobline.v1 import job_service_pb2 as pb

_NOT_OURS = ErrorFacts(reason="UNEXPECTED_ANSWER")
_HELD = ErrorFacts(reason="UNIQUE_KEY_HELD", code="ALREADY_EXISTS")
_MISMATCH = ErrorFacts(reason="IDEMPOTENCY_MISMATCH", code="ALREADY_EXISTS")


def pushed_of(response: pb.PushResponse, count: int) -> list[Pushed]:
    """Returns the outcome of each of `count` pushed jobs, in order. Raises Internal if the reply
    does not fit the request.
    """
    refuse_misfit(response, count)
    level = known(AckLevel, response.ack_level)
    exceptions = _exceptions(response, count)
    created = PushOutcome.CREATED
    if not exceptions:
        first = response.first_id
        ids = range(first, first + count)
        return list(map(Pushed._make, zip(ids, repeat(created), repeat(level), strict=False)))
    created_ids = iter(range(response.first_id, response.first_id + response.count))
    pushed = []
    for index in range(count):
        entry = exceptions.get(index)
        outcome = created if entry is None else known(PushOutcome, entry.outcome)
        job_id = next(created_ids) if entry is None or _is_stored(entry) else entry.id
        pushed.append(Pushed(job_id, outcome, level))
    return pushed


def refuse_misfit(response: pb.PushResponse, count: int) -> None:
    """Raises Internal if the reply is none to a push of `count` jobs."""
    not_stored = sum(not _is_stored(entry) for entry in _exceptions(response, count).values())
    if response.count + not_stored != count:
        raise Internal(
            f"{count} jobs were pushed, and the answer speaks of {response.count}", _NOT_OURS
        )


def _exceptions(response: pb.PushResponse, count: int) -> dict[int, pb.PushException]:
    return {entry.index: entry for entry in response.exceptions if 0 <= entry.index < count}


def _is_stored(entry: pb.PushException) -> bool:
    """Returns whether a job was created, though not simply so: it took another one's place."""
    return known(PushOutcome, entry.outcome) in STORED_OUTCOMES


def lot_of(response: pb.PushResponse, with_keys: int = 0) -> PushedLot:
    """Returns the outcome of a plain lot, or of this many payloads with unique keys."""
    level = known(AckLevel, response.ack_level)
    outcomes = tuple(pushed_of(response, with_keys)) if with_keys else ()
    return PushedLot(response.first_id, response.count, level, outcomes)


def answers_of_batch(
    response: pb.PushResponse, batch: Batch[BatchKey, Any]
) -> list[Pushed | JoblineError]:
    """Returns what each push of a batch gets: its outcome or its own error."""
    return [
        pushed if pushed.outcome is not PushOutcome.REFUSED else _refusal(batch, index)
        for index, pushed in enumerate(pushed_of(response, len(batch.waiters)))
    ]


def _refusal(batch: Batch[BatchKey, Any], index: int) -> JoblineError:
    """Returns the error of a push that was refused alone. One with both kinds of keys was refused
    for its job key unless it asked for REJECT.
    """
    own = batch.pushes.own[index]
    options, queue = batch.key.options, batch.key.queue
    mode = None if options is None else options.unique_mode
    if own.unique_key and (not own.job_key or mode in {UniqueMode.REJECT, "reject"}):
        message = f"another job of queue {queue!r} holds the unique_key {own.unique_key!r}"
        return UniqueKeyHeld(message, _HELD)
    message = f"the job_key {own.job_key!r} is known in queue {queue!r} with another payload"
    return IdempotencyMismatch(message, _MISMATCH)
