"""What a checkpoint keeps of groups, and what a start makes of it where something is damaged."""

from __future__ import annotations

from jobline_server.engine import invariants
from jobline_server.engine.commands import Push
from jobline_server.engine.decide.groups import decide_pause_group, decide_update_group
from jobline_server.engine.decide.push import decide_push
from jobline_server.engine.decide.queues import decide_update_queue
from jobline_server.engine.decide.update import JobChange, decide_update
from jobline_server.engine.group_settings import GroupSettings, OnDeadHead
from jobline_server.engine.lane import SMALL_BYTES
from jobline_server.engine.ties import Ties
from jobline_server.engine.values import DEFAULT_OPTIONS, QueueSettings
from jobline_server.storage.store import ItemKind
from tests.pushed_rows import NewJob, rows_of
from tests.storage.checkpointing import check_recovery, lease, stored, work_off
from tests.storage.recovery_world import World
from tests.storage.test_stored_messages import rot


def push(world: World, *groups: str) -> int:
    rows = rows_of(NewJob(b"x", DEFAULT_OPTIONS, ties=Ties(group)) for group in groups)
    return decide_push(world.shard, world.now, Push("q", DEFAULT_OPTIONS, rows)).first_id


def test_groups_are_as_they_were_after_a_checkpoint() -> None:
    """Who is admitted and who waits, in order; pauses, and settings of groups without jobs."""
    world = World()
    first_id = push(world, "g", "g", "h", "g")
    decide_update_group(
        world.shard,
        world.now,
        "q",
        "idle",
        GroupSettings(concurrency=2, on_dead_head=OnDeadHead.HOLD),
        None,
    )
    decide_pause_group(world.shard, world.now, "q", "h", "ann", "why")
    assert [job_id for job_id, _ in lease(world, 10)] == [first_id]
    world.finish_checkpoint(truncate=True)
    assert len(stored(world, ItemKind.GROUP)) == 2
    check_recovery(world)


def test_record_of_a_group_goes_with_its_reason() -> None:
    world = World()
    settings = GroupSettings(concurrency=2)
    decide_update_group(world.shard, world.now, "q", "g", settings, None)
    world.finish_checkpoint(truncate=True)
    assert len(stored(world, ItemKind.GROUP)) == 1
    decide_update_group(world.shard, world.now, "q", "g", GroupSettings(), None)
    world.finish_checkpoint(truncate=True)
    assert stored(world, ItemKind.GROUP) == []
    check_recovery(world)


def test_group_goes_on_without_its_damaged_head() -> None:
    """Nobody else would admit the next job."""
    world = World()
    first_id = push(world, "g", "g", "g")
    world.finish_checkpoint(truncate=True)
    rot(world, ItemKind.JOB, first_id)
    invariants.check(world.shard)
    assert [job_id for job_id, _ in lease(world, 10)] == [first_id + 1]


def test_groups_are_let_in_in_the_same_order_though_a_checkpoint_was_between() -> None:
    """A queue that is fair no more lets them in by their first jobs. The order in which a shard
    came to know its groups is not stored: a start knows them by the ids of the jobs that are left.
    """
    world = World()
    decide_update_queue(world.shard, world.now, "q", QueueSettings(fair=True), None)
    first_id = push(world, "g", "h", "g")
    work_off(world, 1)
    world.finish_checkpoint(truncate=True)
    decide_update_queue(world.shard, world.now, "q", QueueSettings(), None)
    check_recovery(world)
    assert [job_id for job_id, _ in lease(world, 10)] == [first_id + 1, first_id + 2]


def test_jobs_let_in_keep_their_order_though_one_was_changed_before_a_checkpoint() -> None:
    """That is the order in which they wait once their group is paused."""
    world = World()
    settings = GroupSettings(concurrency=2)
    decide_update_queue(world.shard, world.now, "q", QueueSettings(group=settings), None)
    first_id = push(world, "g", "g", "g")
    change = JobChange(payload=bytes(SMALL_BYTES + 1))
    decide_update(world.shard, world.now, first_id, change)
    world.finish_checkpoint(truncate=True)
    decide_pause_group(world.shard, world.now, "q", "g", "ann", "why")
    check_recovery(world)
