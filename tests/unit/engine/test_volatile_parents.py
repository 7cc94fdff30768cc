"""Jobs that depend on jobs that are never written, or not kept once they have ended."""

from __future__ import annotations

import pytest

from jobline_server.engine.decide.admin import decide_cancel
from jobline_server.engine.rules import JobRules
from jobline_server.engine.values import AckLevel, EndReason, JobOptions, Retention
from tests.unit.engine.dependents import DEAD, FAIL, WAIT, child, is_free, push, settle, told


def test_parents_that_are_gone_after_a_restart_are_looked_up(world):
    """A volatile parent is lost with the process; its children are not forgotten."""
    parent = world.row(level=AckLevel.MEMORY)
    push(world, child(parent))
    shard = world.recovered()
    # As a recovery ends.
    shard.dependencies.find_ended(shard.state_of)
    assert shard.dependencies.due_look_ups(10) == [parent]


@pytest.mark.parametrize("policy", [FAIL, WAIT])
def test_no_child_waits_for_a_retry_of_a_parent_that_is_not_kept(world, policy):
    """A volatile job that has ended is gone: nobody can retry it."""
    parent = world.row(level=AckLevel.MEMORY)
    waits = push(world, child(parent, policy=policy))
    decide_cancel(world.shard, world.now, [parent])
    told(world)
    [(state, record)] = [world.ended()[waits]]
    assert (state, record.reason) == (DEAD, EndReason.DEPENDENCY_FAILED)
    assert is_free(world)


@pytest.mark.parametrize("policy", [FAIL, WAIT])
@pytest.mark.parametrize("is_lot", [False, True])
def test_no_child_waits_for_a_retry_of_a_parent_that_goes_as_it_dies(world, policy, is_lot):
    """It waited for ever: nothing is left that could be retried, or deleted."""
    removed = JobOptions(
        retention=Retention(remove_on_fail=True), rules=JobRules(ttl_ms=1_000), max_attempts=1
    )
    world.settings(expired_to_dead=True)
    parent = world.plain(b"x", options=removed).first_id
    waits = push(world, child(parent, policy=policy))
    if is_lot:
        world.tick(2_000)
    else:
        settle(world, "fail", parent)
    told(world)
    state, record = world.ended()[waits]
    assert (state, record.reason) == (DEAD, EndReason.DEPENDENCY_FAILED)
    assert is_free(world)
