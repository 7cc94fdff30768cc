"""What a start makes of unique keys where something of a checkpoint is damaged."""

from __future__ import annotations

from jobline_server.engine import invariants
from jobline_server.engine.commands import Push, RefusalKind
from jobline_server.engine.decide.push import decide_push
from jobline_server.engine.rules import JobRules
from jobline_server.engine.ties import Ties
from jobline_server.engine.unique_rule import UniqueMode, UniqueRule
from jobline_server.engine.values import JobOptions, JobState, Now, PushOutcome
from jobline_server.storage.checkpoint import Checkpoint
from jobline_server.storage.store import ItemKind
from tests.pushed_outcomes import outcomes_of
from tests.pushed_rows import NewJob, rows_of
from tests.storage.checkpointing import check_recovery, lease, stored
from tests.storage.recovery_world import World
from tests.storage.test_stored_messages import rot


def push(
    world: World,
    mode: UniqueMode,
    *,
    key: str = "u",
    group: str = "",
    delay_ms: int = 0,
    ttl_ms: int | None = None,
    max_wait_ms: int | None = None,
) -> tuple[PushOutcome | RefusalKind, int]:
    options = JobOptions(rules=JobRules(unique=UniqueRule(mode, ttl_ms, max_wait_ms)))
    run_at_ms = world.now.wall_ms + delay_ms if delay_ms else 0
    rows = rows_of([NewJob(b"x", options, run_at_ms=run_at_ms, ties=Ties(group, key))])
    pushed = decide_push(world.shard, world.now, Push("q", options, rows))
    return outcomes_of(pushed, 1)[0]


def holder_and_parked(world: World, **parked: int | str) -> tuple[int, int]:
    _, holder = push(world, UniqueMode.KEEP)
    assert [job_id for job_id, _ in lease(world, 1)] == [holder]
    outcome, behind = push(world, UniqueMode.REPLACE, **parked)  # type: ignore[arg-type]
    assert outcome is PushOutcome.PARKED
    world.finish_checkpoint(truncate=True)
    rot(world, ItemKind.JOB, holder)
    invariants.check(world.shard)
    return holder, behind


def test_a_parked_job_goes_on_without_its_damaged_holder() -> None:
    """Nobody else would hand the key over."""
    world = World()
    _, behind = holder_and_parked(world)
    assert push(world, UniqueMode.KEEP) == (PushOutcome.DUPLICATE, behind)
    assert [job_id for job_id, _ in lease(world, 10)] == [behind]


def test_a_parked_job_of_a_group_goes_to_its_group() -> None:
    world = World()
    _, behind = holder_and_parked(world, group="g")
    queue = world.shard.queues["q"]
    group = queue.groups.find("g")
    assert group is not None
    assert [job.id for job in group.admitted] == [behind]
    assert [job_id for job_id, _ in lease(world, 10)] == [behind]


def test_a_parked_job_keeps_its_time() -> None:
    world = World()
    _, behind = holder_and_parked(world, delay_ms=60_000)
    assert world.shard.state_of(behind) is JobState.SCHEDULED
    assert world.shard.jobs[behind].run_at_ms > world.now.wall_ms + 59_000


def test_throttles_are_as_they_were_after_a_checkpoint() -> None:
    world = World()
    _, job_id = push(world, UniqueMode.THROTTLE, ttl_ms=60_000)
    lease(world, 1)
    world.finish_checkpoint(truncate=True)
    assert len(stored(world, ItemKind.THROTTLE)) == 1
    check_recovery(world)
    again = push(world, UniqueMode.THROTTLE, ttl_ms=60_000)
    assert again == (PushOutcome.THROTTLED, job_id)


def test_a_series_of_pushes_goes_on_after_a_start() -> None:
    """Its end is where it was: neither a restart nor a checkpoint begins another one."""
    world = World()
    began_ms = world.now.wall_ms
    for _ in range(2):
        push(world, UniqueMode.DEBOUNCE, delay_ms=30_000, max_wait_ms=40_000)
        world.now = Now(world.now.wall_ms + 10_000, world.now.mono_ms + 10_000)
        world.finish_checkpoint(truncate=True)
        check_recovery(world)
    outcome, last = push(world, UniqueMode.DEBOUNCE, delay_ms=30_000, max_wait_ms=40_000)
    assert outcome is PushOutcome.DEBOUNCED
    assert world.shard.jobs[last].run_at_ms == began_ms + 40_000


def test_throttles_are_written_in_the_order_of_their_ids() -> None:
    """In that of their hashes, a million were 12 MB of writes for each slice of 0.1 MB."""
    world = World()
    ids = [push(world, UniqueMode.THROTTLE, key=str(one), ttl_ms=60_000)[1] for one in range(999)]
    checkpoint, found = Checkpoint(world.shard, world.segments), list[list[int]]()
    while piece := checkpoint.slice(100):
        found.append([row.key for row in piece.rows if row.kind is ItemKind.THROTTLE])
    assert sorted(key for keys in found for key in keys) == ids
    assert all(max(keys) - min(keys) < 2 * len(keys) + 64 for keys in found if keys)


def test_throttles_of_an_abandoned_checkpoint_are_written_by_the_next() -> None:
    """But for those whose time was over meanwhile."""
    world = World()
    push(world, UniqueMode.THROTTLE, key="gone", ttl_ms=1_000)
    _, kept = push(world, UniqueMode.THROTTLE, ttl_ms=600_000)
    while world.stage(1):
        pass
    world.time_passes(130_000)
    world.abandon_checkpoint()
    world.finish_checkpoint(truncate=True)
    assert stored(world, ItemKind.THROTTLE) == [kept]
    check_recovery(world)
