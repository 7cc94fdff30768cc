"""What a commit did to a shard: facts in order, and their effects by kind."""

from __future__ import annotations

import asyncio

from jobline_server.engine.commands import Push
from jobline_server.engine.decide.ack import decide_ack
from jobline_server.engine.decide.admin import decide_cancel
from jobline_server.engine.decide.push import decide_push
from jobline_server.engine.endings import RunsEnded
from jobline_server.engine.entries import CancelRequested, JobsCompleted
from jobline_server.engine.payloads import Payloads
from jobline_server.engine.values import DEFAULT_OPTIONS, AckLevel, JobState, RevokeReason
from jobline_server.runtime.commits.batches import CommittedBatch
from jobline_server.runtime.runtime import Runtime
from tests.unit.runtime.commits.test_commits import a_pull


def a_batch(runtime: Runtime, *, is_commit: bool = True) -> CommittedBatch:
    """All that happened since the last."""
    slot = runtime.core.slots[0]
    slot.shard.take_entries()
    return CommittedBatch(slot, 9, slot.shard.take_applied(), is_commit=is_commit)


def push(runtime: Runtime, queue: str, jobs: int = 1) -> int:
    payloads = Payloads.of([b"x"] * jobs)
    command = Push(queue, DEFAULT_OPTIONS, payloads=payloads, level=AckLevel.MEMORY)
    return decide_push(runtime.core.slots[0].shard, runtime.core.now(), command).first_id


async def test_a_batch_without_facts_has_no_effects(runtime: Runtime) -> None:
    batch = a_batch(runtime, is_commit=False)
    assert (batch.applied, batch.endings, batch.revoked, batch.woken) == ([], [], [], {})
    assert (batch.slot, batch.shard) == (runtime.core.slots[0], runtime.core.slots[0].shard)
    assert (batch.offset, batch.is_commit) == (9, False)


async def test_each_queue_is_woken_once_in_the_order_of_the_facts(runtime: Runtime) -> None:
    """However many pushes it got."""
    for queue in ("b", "a", "b"):
        push(runtime, queue)
    assert [queue.name for queue in a_batch(runtime).woken] == ["b", "a"]


async def test_effects_are_parted_by_those_who_want_them(runtime: Runtime) -> None:
    """Jobs that ended are kept, holders told to stop, and queues looked at."""
    first_id = push(runtime, "mail", 3)
    task = a_pull(runtime, max_jobs=2)
    await asyncio.sleep(0)
    (run,) = (await task).runs
    a_batch(runtime)
    shard, now = runtime.core.slots[0].shard, runtime.core.now()
    decide_ack(shard, now, [first_id], [run.delivery], {})
    decide_cancel(shard, now, [first_id + 1])
    decide_cancel(shard, now, [first_id + 2])
    batch = a_batch(runtime)
    facts = [type(one.fact) for one in batch.applied]
    assert facts[:2] == [JobsCompleted, CancelRequested]
    assert all(isinstance(ending, RunsEnded) for ending in batch.endings)
    assert [(ending.state, list(ending.ids())) for ending in batch.endings] == [  # type: ignore[union-attr]  # checked
        (JobState.COMPLETED, [first_id]),
        (JobState.CANCELLED, [first_id + 2]),
    ]
    assert [(one.job_id, one.delivery, one.reason) for one in batch.revoked] == [
        (first_id + 1, run.delivery, RevokeReason.CANCELLED)
    ]
