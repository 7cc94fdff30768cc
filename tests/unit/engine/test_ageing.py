"""By how much jobs rise in priority while they wait, and since when they do."""

from __future__ import annotations

import pytest

from jobline_server.engine.ageing import Ageing
from jobline_server.engine.commands import ReleaseItem
from jobline_server.engine.decide.admin import decide_cancel, decide_retry
from jobline_server.engine.decide.update import JobChange, decide_update
from jobline_server.engine.values import JobState
from tests.unit.engine.world import WALL_MS, World, leases_of


@pytest.mark.parametrize(
    ("ageing", "waited_ms", "rise"),
    [
        (Ageing(1_000), 999, 0),
        (Ageing(1_000), 1_000, 1),
        (Ageing(1_000), 3_999, 3),
        (Ageing(1_000, 5), 2_000, 10),
        (Ageing(1_000, 5, 12), 9_000, 12),
        (Ageing(1_000, 5, 3), 1_000, 3),
        (Ageing(1_000), -5_000, 0),
    ],
)
def test_priority_rises_by_a_step_for_each_time_waited(ageing, waited_ms, rise):
    """Up to the limit; a clock that was set back makes nothing younger than new."""
    assert ageing.rise(waited_ms) == rise


@pytest.fixture
def world() -> World:
    return World()


def since(world: World, job_id: int) -> int:
    """Since when a job waits, from the start of the test on."""
    item = world.shard.jobs.find(job_id) or world.shard.lots.find(job_id)
    assert item is not None
    return item.waits_from_ms() - WALL_MS


def lease(world: World) -> tuple[int, int]:
    """Id and delivery of the next job."""
    [found] = leases_of(world.lease(1))
    return found


def test_jobs_wait_from_their_push_or_from_their_time(world: World) -> None:
    world.advance(1)
    row, lot = world.row(), world.plain(b"1", b"2").first_id
    later, late_lot = world.row(delay_ms=500), world.plain(b"1", b"2", delay_ms=500).first_id
    world.tick(700)
    assert [since(world, one) for one in (row, lot, later, late_lot)] == [1, 1, 701, 701]


def test_a_job_that_returns_to_its_place_keeps_its_age(world: World) -> None:
    """A lost lease, or a release: it waited before, and stands where it stood."""
    job_id = world.plain(b"x").first_id
    for _ in range(2):
        world.advance(10)
        world.release(ReleaseItem(*lease(world)))
        assert since(world, job_id) == 0
    lease(world)
    world.tick(31_000)
    world.tick()
    assert world.shard.jobs[job_id].state is JobState.READY
    assert since(world, job_id) == 0


def test_a_job_that_gets_a_new_place_waits_anew(world: World) -> None:
    """A retry, and one that was released for later, even if it kept its age before."""
    job_id = world.row()
    for retry_after_ms in (0, 50):
        world.release(ReleaseItem(*lease(world)))
        world.advance(100)
        world.fail(*lease(world), retry_after_ms=retry_after_ms)
        world.tick(retry_after_ms)
        assert since(world, job_id) == world.now.wall_ms - WALL_MS
    world.advance(7)
    world.release(ReleaseItem(*lease(world), 5))
    world.tick(5)
    assert since(world, job_id) == world.now.wall_ms - WALL_MS


def test_another_priority_makes_a_job_no_younger(world: World) -> None:
    job_id = world.row()
    world.advance(100)
    decide_update(world.shard, world.now, job_id, JobChange(priority=3))
    assert since(world, job_id) == 0


def test_a_job_that_was_brought_back_waits_from_then(world: World) -> None:
    job_id = world.row()
    decide_cancel(world.shard, world.now, [job_id])
    world.commit()
    state, record = world.ended()[job_id]
    world.advance(100)
    decide_retry(world.shard, world.now, [(record, state)])
    assert since(world, job_id) == 100
