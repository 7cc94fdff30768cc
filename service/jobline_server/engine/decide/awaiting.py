"""Awaiting: what shards do for each other when jobs depend on jobs of another shard. Each function
but the first two helpers decides one message (`dependency_messages`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import islice

from jobline_server.engine.blocked_entries import JobsAwaited, JobsNotAwaited, ParentsEnded
from jobline_server.engine.decide.messages import decide_send
from jobline_server.engine.dependency_messages import (
    AwaitJobs,
    EndsOfJobs,
    ForgetJobs,
    JobsNotLive,
)
from jobline_server.engine.liveness import not_live
from jobline_server.engine.shard_messages import ShardMessage
from jobline_server.engine.values import Now, ids_of_shard, shard_of
from jobline_server.engine.view import ShardView

# Jobs of one message: each is noted, and maybe looked up, in a step of the receiver.
AWAITED_MAX = 1_000


def await_elsewhere(shard: ShardView, now: Now, parents: Iterable[int]) -> None:
    """Asks the shards of jobs to tell this one of their ends."""
    for to_shard, ids in _by_shard(shard, parents).items():
        parts = [ids[low : low + AWAITED_MAX] for low in range(0, len(ids), AWAITED_MAX)]
        awaits = [AwaitJobs(tuple(part), shard.number) for part in parts]
        decide_send(shard, now, to_shard, awaits)


def forget_elsewhere(shard: ShardView, now: Now, parents: Iterable[int]) -> None:
    """Tells the shards of jobs that nobody here waits for them any more."""
    for to_shard, ids in _by_shard(shard, parents).items():
        decide_send(shard, now, to_shard, [ForgetJobs(tuple(ids), shard.number)])


def forget_unawaited(shard: ShardView, now: Now, limit: int) -> bool:
    """Tells the shards of up to `limit` jobs that nobody here waits for them any more, as those who
    did were cancelled, deleted or ended by others; returns whether more are left.
    """
    dependencies = shard.dependencies
    ids = [*islice(dependencies.unawaited, limit)]
    # Somebody else may wait for one by now.
    forget_elsewhere(shard, now, [one for one in ids if dependencies.awaited.find(one) is None])
    dependencies.note_told(ids)
    return bool(dependencies.unawaited)


def _by_shard(shard: ShardView, parents: Iterable[int]) -> dict[int, list[int]]:
    """Returns those of the jobs that other shards have, by shard, each once."""
    ids: dict[int, list[int]] = {}
    own = ids_of_shard(shard.number)
    for parent in dict.fromkeys(parents):
        if parent not in own:
            ids.setdefault(shard_of(parent), []).append(parent)
    return ids


def decide_await(shard: ShardView, now: Now, message: AwaitJobs) -> None:
    """Notes that a shard waits for jobs, and answers which of them are not live."""
    note_awaited(shard, now, message.by_shard, message.ids)
    over = not_live(shard, message.ids)
    if over:
        answers: Sequence[ShardMessage] = [JobsNotLive(tuple(over))]
        decide_send(shard, now, message.by_shard, answers)


def note_awaited(shard: ShardView, now: Now, by_shard: int, ids: Iterable[int]) -> None:
    """Notes that a shard waits for jobs. A push does so at once for parents whose shard is in the
    same process: one that ends before the message arrives, and is not kept, leaves its end.
    """
    find = shard.dependencies.awaited.find
    records = [(job_id, find(job_id)) for job_id in dict.fromkeys(ids)]
    new = [one for one, record in records if record is None or by_shard not in record.shards]
    if new:
        shard.emit(JobsAwaited(now.wall_ms, by_shard, new))


def decide_not_live(shard: ShardView, now: Now, message: JobsNotLive) -> None:
    """Has jobs looked up that others wait for here; the others are to be forgotten."""
    find = shard.dependencies.awaited.find
    shard.dependencies.look_up(message.ids)
    forget_elsewhere(shard, now, [job_id for job_id in message.ids if find(job_id) is None])


def decide_ends(shard: ShardView, now: Now, message: EndsOfJobs) -> None:
    """Notes the ends of jobs that others wait for here; the others are to be forgotten."""
    find = shard.dependencies.awaited.find
    pairs = [*zip(message.ids, message.ends, strict=True)]
    known = [(job_id, end) for job_id, end in pairs if find(job_id) is not None]
    if known:
        ids, ends = [job_id for job_id, _ in known], [end for _, end in known]
        shard.emit(ParentsEnded(now.wall_ms, ids, ends))
    forget_elsewhere(shard, now, [job_id for job_id in message.ids if find(job_id) is None])


def decide_forget(shard: ShardView, now: Now, message: ForgetJobs) -> None:
    """Forgets that a shard waited for jobs."""
    find = shard.dependencies.awaited.find
    records = [(job_id, find(job_id)) for job_id in dict.fromkeys(message.ids)]
    known = [one for one, record in records if record and message.by_shard in record.shards]
    if known:
        shard.emit(JobsNotAwaited(now.wall_ms, message.by_shard, known))
