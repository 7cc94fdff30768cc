"""Jobs that continue when one that they depend on fails, and policies about one of these alone."""

from __future__ import annotations

from dataclasses import replace

import pytest

from jobline_server.engine.decide.dependencies import end_block_timeouts, tell_round
from jobline_server.engine.decide.parents import sort_out
from jobline_server.engine.rules import DependencyPolicy, JobRules
from jobline_server.engine.ties import Ties
from jobline_server.engine.unique_rule import UniqueMode, UniqueRule
from jobline_server.engine.values import DEFAULT_OPTIONS, FailAction
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
from tests.unit.engine.world import leases_of


def test_child_that_continues_starts_with_the_first_failure(world):
    """Whatever else it waited for goes on, and means nothing to it; another one ignores the failure
    alone.
    """
    failed, other, last = world.row(), world.row(), world.row()
    waits = push(world, child(failed, other, last, policy=CONTINUE, timeout_ms=9_000))
    ignores = push(world, child(failed, other, policy=IGNORE))
    leases = dict(leases_of(world.lease(holder=world.session())))
    world.fail(failed, leases[failed], then=FailAction.DEAD)
    told(world)
    assert (world.state(waits), world.state(ignores)) == (READY, BLOCKED)
    details = world.shard.jobs[waits].details
    assert (details.parents_left, details.blocked_until_ms) == ((), 0)
    assert image_of(world.recovered()) == image_of(world.shard)
    assert world.ids() == [waits]
    world.ack([(one, leases[one]) for one in (other, last)])
    told(world)
    assert world.ids() == [ignores]
    assert is_free(world)


@pytest.mark.parametrize("first", ["ack", "fail"])
def test_one_that_continues_is_told_of_several_ends_at_once(world, first):
    """Its parents end in one step, the one that fails before or after the others."""
    parents = [world.row() for _ in range(3)]
    waits = push(world, child(*parents, policy=CONTINUE))
    leases = dict(leases_of(world.lease(3, holder=world.session())))
    order = [parents[1], *parents[::2]] if first == "fail" else parents
    for one in order:
        if one == parents[1]:
            world.fail(one, leases[one], then=FailAction.DEAD)
        else:
            world.ack([(one, leases[one])])
    told(world)
    assert world.ids() == [waits]
    assert is_free(world)


def test_one_that_continues_still_waits_for_its_unique_key(world):
    parent = world.row()
    rules = JobRules(on_dependency_failure=CONTINUE, unique=UniqueRule(UniqueMode.AFTER_ACTIVE))
    options = replace(DEFAULT_OPTIONS, rules=rules)
    holds = push(world, NewJob(b"h", options, ties=Ties(unique_key="u")))
    world.lease(2, holder=world.session())
    waits = push(world, NewJob(b"c", options, ties=Ties(unique_key="u", parents=(parent,))))
    world.fail(parent, world.shard.jobs[parent].delivery, then=FailAction.DEAD)
    told(world)
    job = world.shard.jobs[waits]
    assert (job.state, job.details.parents_left) == (BLOCKED, ())
    assert image_of(world.recovered()) == image_of(world.shard)
    world.ack([(holds, world.shard.jobs[holds].delivery)])
    world.commit()
    assert world.ids() == [waits]
    assert is_free(world)


def test_one_that_continues_starts_when_it_was_blocked_for_too_long(world):
    parents = [world.row() for _ in range(20)]
    waits = push(world, child(*parents, policy=CONTINUE, timeout_ms=5_000))
    world.advance(5_000)
    assert not end_block_timeouts(world.shard, world.now, 10)
    told(world)
    assert (world.state(waits), world.shard.load.dependencies) == (READY, 0)
    assert is_free(world)


def of_each(parents, *policies, own=FAIL):
    """A job with a policy for each of its parents; None: its own."""
    job = child(*parents, policy=own)
    numbers = bytes(policy or 0 for policy in policies)
    return job._replace(ties=replace(job.ties, on_failure=numbers))


@pytest.mark.parametrize(
    ("policy", "state"),
    [(FAIL, DEAD), (CANCEL, CANCELLED), (IGNORE, BLOCKED), (WAIT, BLOCKED), (CONTINUE, READY)],
)
@pytest.mark.parametrize("own", DependencyPolicy)
def test_a_policy_about_one_parent_goes_before_that_of_the_job(world, policy, state, own):
    """And only where that one fails; also after a start."""
    parents = [world.row() for _ in range(2)]
    waits = push(world, of_each(parents, policy, None, own=own))
    other = push(world, of_each(parents, None, policy, own=WAIT))
    world.commit()
    recovered = world.recovered()
    assert recovered.jobs[waits].ties == world.shard.jobs[waits].ties
    settle(world, "fail", parents[0])
    told(world)
    assert state in {world.state(waits), world.ended().get(waits, [None])[0]}
    assert world.state(other) is BLOCKED
    assert image_of(world.recovered()) == image_of(world.shard)


@pytest.mark.parametrize(
    ("policy", "state"), [(FAIL, DEAD), (CANCEL, CANCELLED), (IGNORE, READY), (CONTINUE, READY)]
)
def test_a_policy_about_a_parent_that_was_dead_before_the_push(world, policy, state):
    waits = push(world, of_each([7], policy, own=WAIT), outcomes={7: DEAD})
    assert state in {world.state(waits), world.ended().get(waits, [None])[0]}
    world.check()


def test_neighbours_in_a_push_that_differ_in_a_policy_or_a_parent_alone(world):
    """What was found for the one before counts for its like only."""
    live = world.row()
    jobs = [
        child(7, policy=IGNORE),
        child(7, policy=FAIL),
        child(7, policy=FAIL),
        of_each([7], IGNORE, own=FAIL),
        child(8, policy=FAIL),
        child(7, 8, policy=CANCEL),
        child(7, 8, live, policy=IGNORE),
        child(7, live, policy=CONTINUE),
    ]
    first = push(world, *jobs, outcomes={7: DEAD, 8: COMPLETED})
    world.commit()
    ended = {job_id - first: row[0] for job_id, row in world.ended().items()}
    assert ended == {1: DEAD, 2: DEAD, 5: CANCELLED}
    assert {world.state(first + at) for at in (0, 3, 4, 7)} == {READY}
    assert world.state(first + 6) is BLOCKED
    assert world.shard.jobs[first + 6].details.parents_left == (live,)
    settle(world, "ack", live)
    told(world)
    assert world.ids() == [first + 6]
    assert is_free(world)


@pytest.mark.parametrize("fails_first", [True, False])
def test_parents_with_different_policies_that_fail_at_once(world, fails_first):
    """The first one that decides, in the order of their ends, does so for good."""
    parents = [world.row() for _ in range(3)]
    policies = (FAIL, CONTINUE) if fails_first else (CONTINUE, FAIL)
    waits = push(world, of_each(parents, *policies, None))
    settle(world, "fail", *parents)
    told(world)
    if fails_first:
        assert world.ended()[waits][0] is DEAD
    else:
        assert world.ids() == [waits]
    assert is_free(world)


class _Unsearched(tuple[int, ...]):
    """Parents that must not be searched for one by one: 10,000 times 10,000 take half a second."""

    __slots__ = ()

    def index(self, *_arguments) -> int:
        raise AssertionError("searched")


def test_parents_that_are_over_already_are_not_searched_for():
    """As many as a flow has, cancelled while it was taken in: they are gone through in order."""
    ties = Ties(parents=_Unsearched([7, 8, 9]), on_failure=bytes([IGNORE, 0, IGNORE]))
    over = dict.fromkeys(ties.parents, CANCELLED)
    assert sort_out(over, ties, IGNORE) == ((), None)
    left, failed = sort_out(over, ties, FAIL)
    assert left == ()
    assert failed is not None
    assert failed[0] == 8


def test_one_that_went_on_between_two_slices_is_told_nothing(world):
    """It waited for too long, while others heard of the end of its parent."""
    parent = world.row()
    waiting = [push(world, child(parent, policy=CONTINUE, timeout_ms=5_000)) for _ in range(2)]
    settle(world, "fail", parent)
    assert tell_round(world.shard, world.now, 1) == 1
    world.commit()
    world.advance(5_000)
    assert not end_block_timeouts(world.shard, world.now, 10)
    world.commit()
    told(world)
    assert sorted(world.ids()) == waiting
    assert is_free(world)
