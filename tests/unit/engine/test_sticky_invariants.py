"""The invariant of reserved jobs notices when it is broken."""

from __future__ import annotations

import pytest

from jobline_server.engine.job import Reserved
from jobline_server.engine.sticky_invariants import reservations_add_up
from tests.unit.engine.test_sticky import had, pushed

SESSION = "session of w1"


@pytest.fixture
def reserved(world):
    """A job that is reserved, in a world that keeps all promises."""
    had(world, "a", "w1")
    [job_id] = pushed(world, "a")
    world.check()
    return world.shard.jobs[job_id]


def test_wrong_number_of_jobs_behind_gates_is_noticed(world, reserved):
    world.queue().gates.shut += 1
    assert reservations_add_up(world.shard) == "queue q counts 2 jobs behind gates, and has 1"


def test_lane_of_a_session_that_is_open_is_noticed(world, reserved):
    gates = world.queue().gates
    gates.own["another"] = gates.own.pop(SESSION)
    assert "is not closed for another" in reservations_add_up(world.shard)


def test_empty_lane_of_a_session_is_noticed(world, reserved):
    gates = world.queue().gates
    [lane] = gates.own[SESSION].values()
    lane.ready = gates.shut = 0
    assert "is kept for session of w1 and empty" in reservations_add_up(world.shard)


def test_leased_job_that_is_reserved_is_noticed(world, reserved):
    job = world.one(holder=world.session("w1"))
    reserved.details.reserved = Reserved("another", 9)
    assert reservations_add_up(world.shard) == f"job {job.id} is leased and reserved for another"
