"""G11 as properties: jobs of groups run in order and one at a time, whatever happens to them."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from jobline_server.engine.commands import ReleaseItem
from jobline_server.engine.decide.admin import decide_cancel
from jobline_server.engine.values import JobOptions, JobState
from tests.unit.engine.test_apply_groups import push
from tests.unit.engine.world import World

STEPS = st.lists(
    st.tuples(
        st.sampled_from(["push", "lease", "lease", "ack", "fail", "release", "lose", "cancel"]),
        st.integers(0, 20),
    ),
    max_size=40,
)
PATIENT = JobOptions(max_attempts=0, max_stalls=1_000)


@given(STEPS)
@settings(max_examples=200, deadline=None)
def test_g11_hand_outs_of_a_group_follow_its_pushes_one_at_a_time(steps):
    """Over retries, releases, lost leases and cancels; drained, no group is left."""
    world = World()
    order: dict[str, list[int]] = {"a": [], "b": []}
    first: list[int] = []
    for what, pick in steps:
        name = "ab"[pick % 2]
        if what == "push":
            order[name] += push(world, name, name, options=PATIENT)
        elif world.shard.queues:
            _step(world, what, pick, first)
        _one_at_a_time(world)
    while world.shard.jobs:
        _step(world, "lease", 0, first)
        _step(world, "ack", 0, first)
        world.tick(40_000)
        _one_at_a_time(world)
    for pushed in order.values():
        ran = [job_id for job_id in dict.fromkeys(first) if job_id in pushed]
        assert ran == [job_id for job_id in pushed if job_id in ran]
    assert world.shard.load.groups == 0
    assert not world.shard.group_records
    assert all(not queue.groups.held for queue in world.shard.queues.values())


def _step(world: World, what: str, pick: int, first: list[int]) -> None:
    active = [job for job in world.shard.jobs.values() if job.state is JobState.ACTIVE]
    if what == "lease":
        first += world.ids(1 + pick)
    elif what == "lose":
        world.tick(31_000)
    elif what == "cancel":
        waiting = [job.id for job in world.shard.jobs.values() if job.state is JobState.READY]
        decide_cancel(world.shard, world.now, waiting[pick : pick + 1])
        world.commit()
    elif active:
        job = active[pick % len(active)]
        if what == "ack":
            world.ack([(one.id, one.delivery) for one in active[: 1 + pick]])
        elif what == "fail":
            world.fail(job.id, job.delivery, retry_after_ms=pick * 100)
        else:
            world.release(ReleaseItem(job.id, job.delivery, delay_ms=pick * 100))


def _one_at_a_time(world: World) -> None:
    """Of each group at most one job is active, and none behind it has gone first."""
    world.check()
    active = [job.ties.group for job in world.shard.jobs.values() if job.state is JobState.ACTIVE]
    assert len(active) == len(set(active))
