"""Groups: one job at a time, in order, whatever becomes of it (G11)."""

from __future__ import annotations

import pytest

from jobline_server.engine.commands import ReleaseItem
from jobline_server.engine.decide.admin import (
    decide_cancel,
    decide_delete_waiting,
    decide_promote,
    decide_retry,
)
from jobline_server.engine.decide.groups import (
    decide_pause_group,
    decide_resume_group,
    decide_update_group,
)
from jobline_server.engine.decide.queues import decide_delete_idle_queues, decide_delete_queue
from jobline_server.engine.group_settings import GroupSettings, OnDeadHead
from jobline_server.engine.load import Load
from jobline_server.engine.states import IllegalMove
from jobline_server.engine.ties import Ties
from jobline_server.engine.values import (
    DEFAULT_OPTIONS,
    AckLevel,
    FailAction,
    JobOptions,
    JobState,
)
from tests.pushed_rows import NewJob
from tests.shard_image import image_of
from tests.unit.engine.world import leases_of

S = JobState
HOLD = GroupSettings(on_dead_head=OnDeadHead.HOLD)
ONE_TRY = JobOptions(max_attempts=1)


def push(world, *groups, options=DEFAULT_OPTIONS, delay_ms=0, queue="q", **rest):
    """Pushes a job per group, "" for none, and returns the ids."""
    run_at_ms = world.now.wall_ms + delay_ms if delay_ms else 0
    jobs = [NewJob(b"x", options, "", run_at_ms, ties=Ties(group)) for group in groups]
    pushed = world.push(queue=queue, jobs=jobs, **rest)
    return list(range(pushed.first_id, pushed.first_id + pushed.count))


def settings(world, wanted, group="g"):
    decide_update_group(world.shard, world.now, "q", group, wanted, None)
    world.commit()


def recovers(world):
    """The journal yields the same groups."""
    world.check()
    assert image_of(world.recovered()) == image_of(world.shard)


def run(world, *, fail=None):
    """Leases what may run, one at a time, and completes it; returns the order."""
    order = []
    while leased := leases_of(world.lease(1)):
        order += [job_id for job_id, _ in leased]
        world.ack(leased)
    return order


def test_jobs_of_a_group_run_one_at_a_time_and_in_order(world):
    """G11: the next one is handed out once the one before it has ended."""
    first, second, third = push(world, "g", "g", "g")
    [lease] = leases_of(world.lease())
    assert lease[0] == first
    assert world.ids() == []
    assert world.counts() == (0, 2, 1)
    recovers(world)
    world.ack([lease])
    assert run(world) == [second, third]
    assert not world.queue().groups
    assert world.shard.load.groups == 0
    recovers(world)


def test_groups_do_not_hold_up_each_other_nor_other_jobs(world):
    a1, _, b1, plain = push(world, "a", "a", "b", "")
    assert world.ids() == [a1, b1, plain]
    recovers(world)


def test_next_job_waits_for_the_commit_of_what_ended_the_one_before(world):
    """G3, G11: a crash must not undo an end whose successor ran."""
    push(world, "g", "g")
    [lease] = leases_of(world.lease())
    committed = world.shard.committed
    world.ack([lease])
    world.shard.committed = committed
    assert world.lease().count() == 0
    world.commit()
    assert world.lease().count() == 1


def test_retry_keeps_its_place_and_no_later_job_of_its_group_overtakes_it(world):
    """G11. Predecessors: a retry lets later jobs of its group overtake."""
    first, second = push(world, "g", "g")
    job = world.one()
    world.fail(job.id, job.delivery, retry_after_ms=5_000)
    assert world.ids() == []
    recovers(world)
    world.tick(5_000)
    job = world.one()
    assert job.id == first
    world.fail(job.id, job.delivery, retry_after_ms=0)
    assert run(world) == [first, second]


def test_group_goes_on_after_a_lost_lease(world):
    """G11. Predecessors: a group stays blocked after a timeout."""
    first, second = push(world, "g", "g", options=JobOptions(max_stalls=1))
    world.one()
    world.tick(31_000)
    assert world.one().id == first
    recovers(world)
    world.tick(31_000)
    assert world.state(first) is None
    assert run(world) == [second]


def test_released_job_is_next_again(world):
    first, second = push(world, "g", "g")
    job = world.one()
    world.release(ReleaseItem(job.id, job.delivery))
    job = world.one()
    assert job.id == first
    world.release(ReleaseItem(job.id, job.delivery, delay_ms=1_000))
    assert world.ids() == []
    decide_promote(world.shard, world.now, [first])
    world.commit()
    assert run(world) == [first, second]
    recovers(world)


def test_delayed_job_takes_its_place_when_it_is_due(world):
    [late] = push(world, "g", delay_ms=1_000)
    first, second = push(world, "g", "g")
    world.tick(1_000)
    assert run(world) == [first, second, late]
    recovers(world)


@pytest.mark.parametrize("end", [decide_cancel, decide_delete_waiting])
def test_jobs_that_wait_or_are_next_can_be_cancelled_and_deleted(world, end):
    first, second, third, fourth = push(world, "g", "g", "g", "g")
    end(world.shard, world.now, [first, third])
    world.commit()
    recovers(world)
    assert run(world) == [second, fourth]
    recovers(world)


def test_many_cancels_behind_a_head_leave_nothing_behind(world):
    """What is skipped is swept before it outgrows what waits."""
    push(world, "g")
    for _ in range(10):
        ids = push(world, *["g"] * 100)
        decide_cancel(world.shard, world.now, ids)
        world.commit()
    group = world.queue().groups.find("g")
    assert len(group._waiting or ()) <= 100
    recovers(world)


def test_jobs_that_are_tried_again_by_hand_go_to_the_end_of_their_group(world):
    first, second = push(world, "g", "g", options=ONE_TRY)
    job = world.one()
    world.fail(job.id, job.delivery)
    [third] = push(world, "g")
    [(state, record)] = world.ended().values()
    decide_retry(world.shard, world.now, [(record, state)])
    world.commit()
    assert run(world) == [second, third, first]
    recovers(world)


def test_job_cancelled_by_its_worker_frees_its_group(world):
    _, second = push(world, "g", "g")
    job = world.one()
    world.fail(job.id, job.delivery, then=FailAction.CANCEL)
    assert run(world) == [second]


def test_several_jobs_of_a_group_run_where_it_may(world):
    ids = push(world, *["g"] * 5)
    settings(world, GroupSettings(concurrency=2))
    leases = leases_of(world.lease())
    assert [job_id for job_id, _ in leases] == ids[:2]
    recovers(world)
    world.ack(leases[1:])
    assert world.ids() == [ids[2]]
    settings(world, GroupSettings())
    world.ack(leases[:1])
    assert world.ids() == []
    recovers(world)


def test_pause_takes_the_next_job_out_of_its_lane(world):
    """The one that runs goes on; one that comes back waits at the head."""
    first, second, third = push(world, "g", "g", "")
    decide_pause_group(world.shard, world.now, "q", "g", "ada", "why not")
    world.commit()
    recovers(world)
    assert world.ids() == [third]
    group = world.queue().groups.find("g")
    assert (group.paused_by, group.pause_reason) == ("ada", "why not")
    decide_resume_group(world.shard, world.now, "q", "g")
    world.commit()
    job = world.one()
    decide_pause_group(world.shard, world.now, "q", "g", "ada", "again")
    world.commit()
    world.release(ReleaseItem(job.id, job.delivery))
    assert world.ids() == []
    recovers(world)
    decide_resume_group(world.shard, world.now, "q", "g")
    decide_resume_group(world.shard, world.now, "q", "g")
    world.commit()
    assert run(world) == [first, second]
    assert not world.queue().groups
    recovers(world)


def test_group_can_be_paused_before_its_first_job(world):
    """And it is there until it is resumed: its queue does not vanish."""
    push(world, "")
    decide_pause_group(world.shard, world.now, "q", "g", "", "")
    world.commit()
    [job] = push(world, "g")
    assert job not in world.ids()
    decide_cancel(world.shard, world.now, [job])
    world.commit()
    assert world.queue().groups.find("g").paused
    assert not world.queue().is_plain(world.now.wall_ms)
    assert decide_delete_idle_queues(world.shard, world.now, ["q"]) == 0


def test_queue_goes_with_its_groups(world):
    """And its dead heads, records and jobs that run."""
    push(world, "g", "g", "h", options=ONE_TRY)
    settings(world, HOLD)
    job = world.one()
    world.fail(job.id, job.delivery)
    world.one()
    decide_delete_queue(world.shard, world.now, "q", force=True)
    world.commit()
    assert world.shard.load.groups == 0
    assert not world.shard.group_records
    recovers(world)


def test_job_of_a_group_is_never_volatile(world):
    """Its order would have a hole after a crash; the push says which level it reached."""
    job = NewJob(b"x", DEFAULT_OPTIONS, ties=Ties("g"))
    pushed = world.push(jobs=[job], level=AckLevel.MEMORY)
    assert pushed.level is AckLevel.BUFFERED
    assert not world.shard.jobs[pushed.first_id].volatile


def test_group_that_leaves_with_its_shard_is_counted_no_longer(world):
    push(world, "g", "h")
    load = world.shard.load
    world.shard.leave_load()
    assert load == Load()


def test_job_of_an_unknown_group_is_a_bug(world):
    """Nothing is guessed."""
    [first] = push(world, "g")
    world.shard.jobs[first].ties = Ties("another")
    with pytest.raises(IllegalMove, match="no known group"):
        decide_cancel(world.shard, world.now, [first])
