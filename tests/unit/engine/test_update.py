"""Changes of a job that waits: its payload, priority and time."""

from __future__ import annotations

from typing import Any

import pytest

from jobline_server.engine.blocked_entries import JobsUnblocked
from jobline_server.engine.commands import RefusalKind, Refused
from jobline_server.engine.decide.lease import decide_lease
from jobline_server.engine.decide.update import JobChange, decide_forget_key, decide_update
from jobline_server.engine.entries import JobsPushed
from jobline_server.engine.lane import SMALL_BYTES
from jobline_server.engine.load import Load
from jobline_server.engine.queue_entries import QueueChanged
from jobline_server.engine.update_entries import KeyForgotten
from jobline_server.engine.values import (
    DEFAULT_OPTIONS,
    DEFAULT_SETTINGS,
    AckLevel,
    JobOptions,
    JobState,
)
from tests.pushed_rows import NewJob
from tests.shard_image import image_of
from tests.unit.engine.world import WALL_MS, World


@pytest.fixture
def world() -> World:
    return World()


def update(world: World, job_id: int, **change: Any) -> None:
    decide_update(world.shard, world.now, job_id, JobChange(**change))
    world.commit()
    world.check()


def test_a_new_payload_alone_keeps_the_place(world):
    """Of a single job; what waits behind it still does."""
    ids = [world.row(b"a"), world.row(b"b"), world.row(b"c")]
    update(world, ids[1], payload=b"another")
    leased = world.lease().jobs
    assert [job.id for job in leased] == ids
    assert leased[1].payload == b"another"


def test_a_new_payload_goes_out_after_its_commit(world):
    """G3: a crash must not hand out the old one after the new one."""
    job_id = world.row(b"old")
    decide_update(world.shard, world.now, job_id, JobChange(payload=b"new"))
    world.shard.committed = world.shard.next_offset - 1
    assert world.shard.has_uncommitted()
    assert not decide_lease(
        world.shard,
        world.now,
        world.queue(),
        world.session(),
        max_jobs=1,
        max_bytes=9,
        names=None,
        lease_ms=0,
    ).jobs
    world.commit()
    assert world.one().payload == b"new"


def test_a_payload_of_another_size_keeps_the_place_in_its_lane(world):
    """Large ones have lanes of their own; what is left in the old lane is skipped."""
    ids = [world.row(b"a"), world.row(b"b"), world.row(b"c")]
    update(world, ids[1], payload=b"x" * (SMALL_BYTES + 1))
    assert [job.id for job in world.lease().jobs] == ids
    assert world.shard.load.payload_bytes == SMALL_BYTES + 3


def test_another_priority_means_the_end_of_its_lane(world):
    """It was never promised to be before those that have it already."""
    low, high = world.row(), world.row(priority=5)
    update(world, low, priority=5)
    assert world.ids() == [high, low]


def test_the_same_priority_changes_nothing(world):
    """Its place is its own."""
    ids = [world.row(), world.row()]
    update(world, ids[0], priority=0)
    assert world.ids() == ids


def test_a_job_that_waits_may_be_put_off_and_called_back(world):
    """READY becomes SCHEDULED, and the other way round; each time it is handed out once."""
    job_id, other = world.row(), world.row()
    update(world, job_id, delay_ms=60_000)
    assert (world.state(job_id), world.counts()) == (JobState.SCHEDULED, (1, 1, 0))
    assert world.ack([(other, world.one().delivery)]) == []
    update(world, job_id, delay_ms=120_000)
    world.tick(70_000)
    assert world.state(job_id) is JobState.SCHEDULED
    update(world, job_id, delay_ms=0)
    assert world.ids() == [job_id]
    world.tick(600_000)
    assert world.counts()[:2] == (0, 1)


def test_a_scheduled_job_keeps_its_time(world):
    """When only its payload or priority changes."""
    job_id = world.row(delay_ms=60_000)
    update(world, job_id, payload=b"new", priority=3)
    world.tick(61_000)
    leased = world.one()
    assert (leased.payload, leased.options.priority) == (b"new", 3)


@pytest.mark.parametrize("delay_ms", [0, 60_000])
def test_a_member_leaves_its_lot_and_goes_to_the_tail(world, delay_ms):
    """Whether the lot is READY or SCHEDULED; the others stay as they are."""
    first_id = world.plain(*[b"x"] * 4, delay_ms=delay_ms).first_id
    update(world, first_id + 1, payload=b"new")
    update(world, first_id + 3, delay_ms=0)
    last = world.row()
    world.tick(61_000)
    found = world.ids()
    assert sorted(found) == [*range(first_id, first_id + 4), last]
    if not delay_ms:
        assert found == [first_id, first_id + 2, first_id + 1, first_id + 3, last]
    assert world.shard.lots.lots.get(first_id) is not None


def test_the_last_member_takes_its_lot_with_it(world):
    """Nothing is left of it."""
    first_id = world.plain(b"x").first_id
    update(world, first_id, priority=2)
    assert not world.shard.lots.lots
    assert world.ids() == [first_id]


def test_updates_of_jobs_that_are_never_written_are_not_either(world):
    """They go with the process."""
    job_id = world.row(b"x", level=AckLevel.MEMORY)
    before = world.shard.next_offset
    update(world, job_id, payload=b"new", priority=1)
    assert world.shard.next_offset == before
    update(world, job_id, delay_ms=1_000)
    world.tick(2_000)
    assert world.one().payload == b"new"


def test_only_a_job_that_waits_can_be_changed(world):
    """An active one has its payload in somebody's hands; one that ended has none to change."""
    job_id = world.row()
    leased = world.one()
    for what in ("is ACTIVE", "has ended"):
        with pytest.raises(Refused) as refused:
            update(world, job_id, priority=1)
        assert refused.value.kind is RefusalKind.WRONG_STATE
        assert refused.value.message == f"job {job_id} {what}: only a job that waits can be changed"
        world.ack([(leased.id, leased.delivery)])


def test_a_larger_payload_needs_room():
    """A smaller one never does."""
    world = World(Load(waiting_bytes_max=10))
    first_id = world.plain(b"12345", b"123").first_id
    with pytest.raises(Refused) as refused:
        update(world, first_id, payload=b"12345678")
    assert refused.value.kind is RefusalKind.SERVER_FULL
    update(world, first_id, payload=b"1")
    update(world, first_id + 1, payload=b"123456789")
    assert world.shard.load.payload_bytes == 10


def test_jobs_with_one_new_priority_share_their_options(world):
    """A million of them cost no options each."""
    ids = [world.row(), world.row()]
    for job_id in ids:
        update(world, job_id, priority=9)
    first, second = (world.shard.jobs[job_id].options for job_id in ids)
    assert first is second == JobOptions(priority=9)


def test_recovery_sees_what_was_changed(world):
    """Each of the ways in which a job may move."""
    first_id = world.plain(*[b"x"] * 4).first_id
    later, single = world.row(delay_ms=60_000), world.row(priority=1)
    update(world, first_id + 1, payload=b"new")
    update(world, first_id + 2, delay_ms=30_000)
    update(world, later, delay_ms=0)
    update(world, single, priority=2, payload=b"y", delay_ms=90_000)
    assert image_of(world.recovered()) == image_of(world.shard)


def test_a_key_that_is_forgotten_is_free_again(world):
    """The job that it named stays; the next push with it is another one, and known again."""
    first = world.row(key="k")
    assert decide_forget_key(world.shard, world.now, "q", "k") == first
    world.commit()
    second = world.row(key="k")
    assert second != first
    assert world.push(jobs=[NewJob(b"x", DEFAULT_OPTIONS, "k", 0)]).exceptions[0][2] == second
    assert world.state(first) is JobState.READY
    assert image_of(world.recovered()) == image_of(world.shard)
    world.check()


def test_a_key_that_is_not_known_cannot_be_forgotten(world):
    """Nor can one twice, or one of another queue."""
    world.row(key="k")
    decide_forget_key(world.shard, world.now, "q", "k")
    for queue, key in (("q", "k"), ("q", "other"), ("other", "k")):
        with pytest.raises(Refused) as refused:
            decide_forget_key(world.shard, world.now, queue, key)
        assert refused.value.kind is RefusalKind.JOB_NOT_FOUND


def test_a_key_of_a_job_that_is_never_written_is_forgotten_with_nothing_written(world):
    """It would have gone with the process."""
    world.row(key="k", level=AckLevel.MEMORY)
    before = world.shard.next_offset
    decide_forget_key(world.shard, world.now, "q", "k")
    world.commit()
    assert world.shard.next_offset == before
    assert not image_of(world.shard)["keys"]


def test_a_key_whose_window_ends_meanwhile_is_no_matter(world):
    """Recovery may apply the fact after it swept the key."""
    world.shard.emit(KeyForgotten(WALL_MS, "q", b"0" * 16))
    assert not len(world.shard.keys.records)


def test_a_blocked_job_gets_its_time_when_it_is_unblocked(world):
    """Its payload at once."""
    shard = world.shard
    shard.emit(QueueChanged(WALL_MS, "q", DEFAULT_SETTINGS, created_number=1))
    job_id = shard.next_id()
    shard.emit(JobsPushed(WALL_MS, "q", job_id, [DEFAULT_OPTIONS], [b"x"], blocked=[0]))
    world.commit()
    update(world, job_id, payload=b"new", priority=2)
    update(world, job_id, delay_ms=60_000)
    assert (world.state(job_id), world.shard.jobs[job_id].payload) == (JobState.BLOCKED, b"new")
    shard.emit(JobsUnblocked(WALL_MS, "q", [job_id]))
    assert world.state(job_id) is JobState.SCHEDULED
    world.check()
