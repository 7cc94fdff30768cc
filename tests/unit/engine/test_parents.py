"""Pushes of jobs that depend on others: what their parents mean for them at that moment."""

from __future__ import annotations

import pytest

from jobline_server.engine import limits
from jobline_server.engine.commands import RefusalKind, Refused
from jobline_server.engine.decide.outcomes import OutcomesNeeded
from jobline_server.engine.values import (
    DEFAULT_OPTIONS,
    AckLevel,
)
from tests.pushed_rows import NewJob
from tests.shard_image import image_of
from tests.unit.engine.dependents import (
    BLOCKED,
    CANCEL,
    CANCELLED,
    COMPLETED,
    CONTINUE,
    DEAD,
    FAIL,
    IGNORE,
    READY,
    WAIT,
    child,
    is_free,
    push,
    settle,
    told,
)


def test_child_of_a_completed_parent_is_ready_at_once(world):
    waits = push(world, child(7), outcomes={7: COMPLETED})
    assert world.state(waits) is READY
    assert world.shard.jobs[waits].ties.parents == (7,)
    assert is_free(world)


def test_parents_of_the_same_push_by_index(world):
    first = push(world, NewJob(b"a", DEFAULT_OPTIONS), child(indexes=[0]), child(indexes=[0, 1]))
    assert [world.state(first + n) for n in range(3)] == [READY, BLOCKED, BLOCKED]
    for job_id in (first, first + 1, first + 2):
        settle(world, "ack", job_id)
        told(world)
    assert is_free(world)


def test_an_index_names_the_job_that_a_known_key_stands_for(world):
    known = world.row(b"a", key="k")
    pushed = world.push(jobs=[NewJob(b"a", DEFAULT_OPTIONS, "k"), child(indexes=[0])])
    assert world.shard.jobs[pushed.first_id].ties.parents == (known,)


def test_an_index_of_a_job_that_is_not_stored_refuses_the_push(world):
    world.row(b"a", key="k")
    jobs = [NewJob(b"other", DEFAULT_OPTIONS, "k"), child(indexes=[0])]
    with pytest.raises(Refused, match="job 0 of this push is not stored") as refused:
        world.push(jobs=jobs, atomic=False)
    assert refused.value.kind is RefusalKind.JOB_NOT_FOUND


def test_unknown_parent_is_looked_up_and_then_not_found(world):
    world.row()
    before = image_of(world.shard)
    with pytest.raises(OutcomesNeeded) as needed:
        push(world, child(99))
    assert needed.value.ids == [99]
    with pytest.raises(Refused, match="there is no job 99") as refused:
        push(world, child(99), outcomes={99: None})
    assert refused.value.kind is RefusalKind.JOB_NOT_FOUND
    assert image_of(world.shard) == before


def test_a_job_cannot_depend_on_itself_or_on_later_ones(world):
    """Their ids do not exist yet."""
    world.row()
    own = world.shard.next_id()
    with pytest.raises(Refused, match="there is no job"):
        push(world, child(own), outcomes={own: None})


@pytest.mark.parametrize(
    ("policy", "state"),
    [(FAIL, None), (CANCEL, None), (IGNORE, READY), (WAIT, BLOCKED), (CONTINUE, READY)],
)
def test_a_parent_that_was_dead_before_applies_the_policy_at_once(world, policy, state):
    waits = push(world, child(7, policy=policy), outcomes={7: DEAD})
    assert world.state(waits) is state
    world.check()
    if state is None:
        assert world.ended()[waits][0] is (DEAD if policy is FAIL else CANCELLED)


def test_children_of_one_that_ends_at_once_end_too(world):
    jobs = [child(7), child(indexes=[0]), child(indexes=[1], policy=CANCEL)]
    first = push(world, *jobs, outcomes={7: CANCELLED})
    told(world)
    ended = world.ended()
    assert [ended[first + n][0] for n in range(3)] == [DEAD, DEAD, CANCELLED]
    assert is_free(world)


def test_a_queue_says_what_its_jobs_do_where_they_say_nothing(world):
    world.settings(on_dependency_failure=CANCEL, block_timeout_ms=5_000)
    parent = world.row()
    waits, own = push(world, child(parent)), push(world, child(parent, policy=IGNORE, timeout_ms=0))
    assert world.shard.jobs[waits].details.blocked_until_ms == world.now.wall_ms + 5_000
    assert not world.shard.jobs[own].details.blocked_until_ms
    settle(world, "fail", parent)
    told(world)
    assert world.ended()[waits][0] is CANCELLED
    assert world.state(own) is READY


def test_dependent_jobs_are_never_volatile(world):
    """What waits must not be lost before its parent ends; a higher level than asked is allowed."""
    parent = world.row()
    pushed = world.push(jobs=[child(parent)], level=AckLevel.MEMORY)
    assert pushed.level is AckLevel.BUFFERED
    assert not world.shard.jobs[pushed.first_id].volatile


def test_dependencies_have_a_limit(world):
    world.shard.load.dependencies_max = 3
    parent = world.row()
    push(world, child(parent), child(parent))
    with pytest.raises(Refused, match="2 of 3 dependencies") as refused:
        push(world, child(parent), child(parent))
    assert refused.value.kind is RefusalKind.DEPENDENCIES_FULL
    assert refused.value.retry_after_ms


def test_a_job_has_so_many_dependents_at_most(world, monkeypatch):
    monkeypatch.setattr(limits, "DEPENDENTS_MAX", 2)
    parent = world.row()
    push(world, child(parent), child(parent))
    with pytest.raises(Refused, match=f"2 jobs wait for job {parent}"):
        push(world, child(parent))
