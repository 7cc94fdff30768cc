"""The values of the replies to pushes. Pure."""

from __future__ import annotations

from itertools import repeat
from typing import Any

from jobline._enums import AckLevel, PushOutcome, known
from jobline._push.batch import Batch
from jobline._push.messages import BatchKey
from jobline._unique_mode import STORED_OUTCOMES
from jobline._values import Pushed, PushedLot
from jobline.errors import (
    AlreadyExists,
    ErrorFacts,
    FailedPrecondition,
    IdempotencyMismatch,
    Internal,
    JoblineError,
    UniqueKeyHeld,
)
from jobline.v1 import job_service_pb2 as pb

_NOT_OURS = ErrorFacts(reason="UNEXPECTED_ANSWER")
# Class, status code and message of each reason for which a job is refused alone.
_REFUSALS: dict[str, tuple[type[JoblineError], str, str]] = {
    "IDEMPOTENCY_MISMATCH": (
        IdempotencyMismatch,
        "ALREADY_EXISTS",
        "the job_key {job_key!r} is known in queue {queue!r} with another payload",
    ),
    "UNIQUE_KEY_HELD": (
        UniqueKeyHeld,
        "ALREADY_EXISTS",
        "another job of queue {queue!r} holds the unique_key {unique_key!r}",
    ),
    "JOB_AWAITED": (
        FailedPrecondition,
        "FAILED_PRECONDITION",
        "others depend on the job of queue {queue!r} that has the unique_key {unique_key!r}",
    ),
}
_OTHER = (AlreadyExists, "ALREADY_EXISTS", "the server refused the job for its keys: {reason}")


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
        columns = zip(ids, repeat(created), repeat(level), repeat(""), strict=False)
        return list(map(Pushed._make, columns))
    created_ids = iter(range(response.first_id, response.first_id + response.count))
    pushed = []
    for index in range(count):
        entry = exceptions.get(index)
        outcome = created if entry is None else known(PushOutcome, entry.outcome)
        job_id = next(created_ids) if entry is None or _is_stored(entry) else entry.id
        pushed.append(Pushed(job_id, outcome, level, "" if entry is None else entry.reason))
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
        _answer_of(batch, index, pushed)
        for index, pushed in enumerate(pushed_of(response, len(batch.waiters)))
    ]


def _answer_of(batch: Batch[BatchKey, Any], index: int, pushed: Pushed) -> Pushed | JoblineError:
    if pushed.outcome is not PushOutcome.REFUSED:
        return pushed
    own = batch.pushes.own[index]
    return refusal_of(batch.key.queue, pushed.reason, own.job_key, own.unique_key)


def refusal_of(
    queue: str, reason: str, job_key: str | None, unique_key: str | None
) -> JoblineError:
    """Returns the error of a job that was refused alone, for this reason."""
    kind, code, message = _REFUSALS.get(reason, _OTHER)
    text = message.format(queue=queue, reason=reason, job_key=job_key, unique_key=unique_key)
    return kind(text, ErrorFacts(reason=reason, code=code))
