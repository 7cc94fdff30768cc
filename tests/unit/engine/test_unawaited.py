"""Jobs that nobody of another shard waits for any more: their shard is told, and keeps nothing."""

from __future__ import annotations

import pytest

from jobline_server.engine.decide.admin import decide_cancel
from jobline_server.engine.decide.awaiting import decide_forget
from jobline_server.engine.decide.dependencies import release_dependents
from jobline_server.engine.decide.timers import next_deadline
from jobline_server.engine.dependency_messages import ForgetJobs
from jobline_server.engine.rules import DependencyPolicy
from jobline_server.engine.values import JobState
from tests.unit.engine.two_shards import HERE, Two, two_shards

BLOCKED, READY, DEAD = JobState.BLOCKED, JobState.READY, JobState.DEAD


@pytest.fixture
def two() -> Two:
    return two_shards()


@pytest.mark.parametrize("is_dead", [False, True])
def test_a_shard_that_waits_no_more_is_forgotten(two, is_dead):
    """Else what died would be kept for it until it is deleted, and what lives until it ends."""
    parent = two.there.row()
    children = [two.child(parent, DependencyPolicy.WAIT) for _ in range(2)]
    two.deliver()
    if is_dead:
        two.end("fail")
        two.deliver()
    for child in children:
        assert parent in two.there.shard.dependencies.awaited
        decide_cancel(two.here.shard, two.here.now, [child])
        two.deliver()
    assert two.is_free()
    again = two.child(parent, DependencyPolicy.WAIT, DEAD if is_dead else READY)
    two.deliver()
    assert two.here.state(again) is BLOCKED
    assert parent in two.there.shard.dependencies.awaited


def test_a_shard_is_not_forgotten_if_another_job_waits_by_then(two):
    """The first one was cancelled, and nobody has been told yet."""
    parent = two.there.row()
    child = two.child(parent)
    two.deliver()
    decide_cancel(two.here.shard, two.here.now, [child])
    other = two.child(parent)
    two.deliver()
    assert two.there.shard.dependencies.awaited[parent].shards == (HERE,)
    two.end("ack")
    two.deliver()
    assert two.here.state(other) is READY
    assert two.is_free()


def test_an_end_that_crosses_the_word_that_nobody_waits_means_nothing(two):
    parent = two.there.row()
    child = two.child(parent)
    two.deliver()
    decide_cancel(two.here.shard, two.here.now, [child])
    two.end("ack")
    two.deliver()
    assert two.here.state(child) is None
    assert two.is_free()


def test_other_shards_are_told_of_many_that_nobody_waits_for_in_slices(two):
    parents = [two.there.row() for _ in range(5)]
    children = [two.child(parent) for parent in parents]
    two.deliver()
    decide_cancel(two.here.shard, two.here.now, children)
    assert next_deadline(two.here.shard, two.here.now) == 0
    assert [release_dependents(two.here.shard, two.here.now, 2) for _ in range(3)] == [
        True,
        True,
        False,
    ]
    assert next_deadline(two.here.shard, two.here.now) != 0
    two.deliver()
    assert two.is_free()


def test_a_message_of_an_earlier_version_may_name_a_job_twice(two):
    parent = two.there.row()
    child = two.child(parent)
    two.deliver()
    decide_cancel(two.here.shard, two.here.now, [child])
    decide_forget(two.there.shard, two.there.now, ForgetJobs((parent, parent), HERE))
    two.deliver()
    assert two.is_free()


def test_a_shard_that_waits_no_more_before_its_message_arrives_is_forgotten(two):
    """The parent is over, and so is the job that waited for it."""
    parent = two.there.row()
    child = two.child(parent)
    decide_cancel(two.here.shard, two.here.now, [child])
    two.end("ack")
    two.deliver()
    assert two.is_free()
