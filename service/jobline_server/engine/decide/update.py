"""Update: changes a job that waits, and forgets a key."""

from __future__ import annotations

from dataclasses import dataclass

from jobline_server.engine.commands import RefusalKind, Refused
from jobline_server.engine.decide.unique_holders import key_holder
from jobline_server.engine.job import Job
from jobline_server.engine.keys import JOB_KEY, hash_of
from jobline_server.engine.lot import Lot
from jobline_server.engine.room import Room
from jobline_server.engine.unique_entries import UniqueKeyForgotten
from jobline_server.engine.update_entries import JobUpdated, KeyForgotten
from jobline_server.engine.values import WAITING_STATES, Now
from jobline_server.engine.view import ShardView


@dataclass(frozen=True, slots=True)
class JobChange:
    """What to change of a job; `None` changes nothing. `delay_ms` 0 makes it READY."""

    payload: bytes | None = None
    priority: int | None = None
    delay_ms: int | None = None


def decide_update(shard: ShardView, now: Now, job_id: int, change: JobChange) -> None:
    """Changes a live job. Raises `Refused` with WRONG_STATE unless it waits, and if there is no
    room for its larger payload.
    """
    state = shard.state_of(job_id)
    owner = shard.jobs.find(job_id) or shard.lots.find(job_id)
    if state not in WAITING_STATES or owner is None:
        raise wrong_state(job_id, "has ended" if state is None else f"is {state.name}")
    in_group = isinstance(owner, Job) and owner.ties.group and owner.queue.fair is None
    if change.priority is not None and in_group:
        raise Refused(RefusalKind.INVALID_FIELD, "not together with group", field="priority")
    if change.payload is not None:
        more = len(change.payload) - _payload_bytes(owner, job_id)
        refusal = Room(shard.load).refusal(owner.queue, 0, more) if more > 0 else None
        if refusal is not None:
            raise refusal
    delay_ms, run_at_ms = change.delay_ms, None
    if delay_ms is not None:
        run_at_ms = now.wall_ms + delay_ms if delay_ms else 0
    fact = JobUpdated(
        now.wall_ms, owner.queue.name, job_id, change.payload, change.priority, run_at_ms
    )
    shard.emit(fact, volatile=owner.volatile)


def _payload_bytes(owner: Job | Lot, job_id: int) -> int:
    if isinstance(owner, Job):
        return len(owner.payload)
    return owner.payloads.size_of(job_id - owner.first_id)


def wrong_state(job_id: int, what: str) -> Refused:
    """Returns the refusal for a job that does not wait."""
    message = f"job {job_id} {what}: only a job that waits can be changed"
    return Refused(RefusalKind.WRONG_STATE, message, field="id")


def decide_forget_key(shard: ShardView, now: Now, queue: str, key: str) -> int:
    """Forgets a job key; returns the id of the job that it named. Raises `Refused` with
    JOB_NOT_FOUND if the key is not known.
    """
    key_hash = hash_of(JOB_KEY, queue, key.encode())
    record = shard.keys.find(key_hash, shard.age.at(now))
    if record is None:
        message = f"no job of queue {queue} is known by this key"
        raise Refused(RefusalKind.JOB_NOT_FOUND, message, field="job_key.key")
    fact = KeyForgotten(now.wall_ms, queue, key_hash)
    shard.emit(fact, volatile=key_hash in shard.keys.volatile)
    return record.first_id


def decide_forget_unique_key(shard: ShardView, now: Now, queue: str, key: str) -> int:
    """Takes a unique key from the job that holds it, which goes on without; returns its id. Raises
    `Refused` with JOB_NOT_FOUND if nobody holds it.
    """
    job_id = key_holder(shard, now, queue, key)
    if job_id is None:
        message = f"no job of queue {queue} holds this key"
        raise Refused(RefusalKind.JOB_NOT_FOUND, message, field="unique_key.key")
    shard.emit(UniqueKeyForgotten(now.wall_ms, queue, key, shard.age.at(now)))
    return job_id
