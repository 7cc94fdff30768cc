"""The records of jobs that others wait for, where ends, looks and tellings meet."""

from __future__ import annotations

import pytest

from jobline_server.engine import dependency_invariants
from jobline_server.engine.blocked_entries import DependentsTold
from jobline_server.engine.changes import Changes
from jobline_server.engine.decide.admin import decide_cancel
from jobline_server.engine.decide.awaiting import decide_forget
from jobline_server.engine.decide.dependencies import end_block_timeouts, release_dependents
from jobline_server.engine.decide.timers import next_deadline
from jobline_server.engine.dependencies import Dependencies, ParentEnd
from jobline_server.engine.dependency_messages import ForgetJobs
from jobline_server.engine.invariants import Violation, check
from jobline_server.engine.values import JobState
from tests.unit.engine.dependents import child, is_free, push, told


@pytest.fixture
def changes() -> Changes:
    return Changes()


@pytest.fixture
def records(changes) -> Dependencies:
    return Dependencies(changes.awaited)


def one(_child: int, _parent: int, _end: ParentEnd) -> int:
    """Each child costs as much."""
    return 1


def test_a_job_that_ended_twice_before_anybody_was_told_is_told_once(records):
    records.wait([5], [1])
    records.note_end(1, ParentEnd.DEAD)
    records.note_end(1, ParentEnd.COMPLETED)
    [found] = records.next_told(9, one)
    assert (found.end, found.children, found.is_last) == (ParentEnd.COMPLETED, [5], True)


def test_a_job_that_nobody_waits_for_leaves_nothing(records):
    records.note_end(1, ParentEnd.DEAD)
    records.forget_end(1)
    assert not records.awaited


def test_a_job_that_ends_again_while_others_are_told_is_told_once_a_slice(records):
    """Its first entry is obsolete, as all were told of that end out of turn."""
    records.wait([5], [1])
    records.wait([6], [2])
    records.note_end(1, ParentEnd.DEAD)
    records.note_end(2, ParentEnd.DEAD)
    records.forget_end(2)
    assert [found.parent for found in records.next_told(9, one)] == [1]
    records.note_end(2, ParentEnd.COMPLETED)
    assert [found.parent for found in records.next_told(9, one)] == [1, 2]


def test_an_end_that_is_forgotten_half_told_begins_again_with_the_first_child(records):
    """The parent was retried meanwhile, and ended another time."""
    records.wait([5], [1])
    records.wait([6], [1])
    records.note_end(1, ParentEnd.DEAD)
    [found] = records.next_told(1, one)
    assert (found.children, found.is_last) == ([5], False)
    records.forget_end(1)
    assert records.next_told(9, one) == []
    records.note_end(1, ParentEnd.COMPLETED)
    [found] = records.next_told(9, one)
    assert (found.children, found.is_last) == ([5, 6], True)


def test_parents_that_cost_more_than_a_slice_are_told_in_the_next(records):
    """A parent costs one, besides its children."""
    for parent in (1, 2):
        records.wait([parent + 4], [parent])
        records.note_end(parent, ParentEnd.DEAD)
    assert [found.parent for found in records.next_told(2, one)] == [1]
    records.stop_waiting(5, [1])
    records.forget_end(1)
    assert [found.parent for found in records.next_told(2, one)] == [2]


def test_what_a_checkpoint_keeps_is_told_and_then_deleted_there(records, changes):
    """One without an end is kept for a shard, and is not told."""
    records.add_stored(1, ParentEnd.DEAD, ())
    records.add_stored(2, None, (3,))
    records.wait([5], [1, 2])
    assert [found.parent for found in records.next_told(9, one)] == [1]
    records.stop_waiting(5, [1])
    records.forget_end(1)
    assert (changes.awaited.to_delete, 1 in records.awaited) == ([1], False)
    assert records.awaited[2].shards == (3,)


def test_only_ended_jobs_without_an_end_are_looked_up(records):
    records.wait([5], [1, 2, 3])
    records.note_end(3, ParentEnd.DEAD)
    records.find_ended({1: JobState.READY}.get)
    assert records.due_look_ups(9) == [2]
    records.look_up([3, 4])
    assert records.due_look_ups(9) == [2]


def test_ends_that_were_never_noted_are_forgotten_in_peace(world):
    """A volatile job's end is in no journal, and the fact that all were told of it is."""
    world.row()
    world.shard.emit(DependentsTold(0, [99]))
    assert is_free(world)


def test_a_child_that_goes_between_two_slices_is_skipped(world):
    parent = world.row()
    first = push(world, child(parent), child(parent))
    decide_cancel(world.shard, world.now, [parent])
    release_dependents(world.shard, world.now, 1)
    decide_cancel(world.shard, world.now, [first + 1])
    told(world)
    assert world.ended()[first + 1][0] is JobState.CANCELLED
    assert is_free(world)


def test_a_job_that_waits_without_a_limit_needs_no_timer(world):
    push(world, child(world.row()))
    assert next_deadline(world.shard, world.now) is None


def test_invariants_hold_while_children_are_yet_to_be_told(world):
    parent = world.row()
    push(world, child(parent))
    decide_cancel(world.shard, world.now, [parent])
    world.check()
    assert world.shard.dependencies.awaited[parent].end is ParentEnd.CANCELLED
    told(world)
    assert is_free(world)


def test_a_child_of_two_that_fail_together_ends_once(world):
    one_parent, other = world.row(), world.row()
    waits = push(world, child(one_parent, other))
    decide_cancel(world.shard, world.now, [one_parent, other])
    told(world)
    assert world.ended()[waits][0] is JobState.DEAD
    assert is_free(world)


def test_ends_of_blocking_come_in_slices_and_skip_what_is_obsolete(world):
    parent = world.row()
    push(world, *[child(parent, timeout_ms=1_000) for _ in range(3)])
    world.shard.dependencies.timeouts.add(world.now.wall_ms, 99)
    world.advance(1_000)
    assert end_block_timeouts(world.shard, world.now, 2)
    assert world.shard.queues["q"].counts[JobState.BLOCKED] == 2
    assert not end_block_timeouts(world.shard, world.now, 9)
    assert is_free(world)


def test_a_shard_that_never_waited_is_forgotten_in_peace(world):
    world.row()
    decide_forget(world.shard, world.now, ForgetJobs((99,), 2))
    assert world.commit() == []


def broken(world) -> str:
    with pytest.raises(Violation) as violation:
        check(world.shard)
    return str(violation.value)


def test_wrong_records_are_noticed(world):
    parent = world.row()
    waits = push(world, child(parent, timeout_ms=1_000))
    held = world.shard.dependencies
    held.edges = 7
    assert broken(world) == "G13: 7 dependencies are counted, there are 1"
    held.edges = 1
    gone = world.shard.id_of(99)
    held.record(gone)
    assert broken(world) == "G13: a job is listed that nobody waits for"
    held.awaited[gone].shards = (2,)
    assert broken(world) == f"G13: jobs wait for job {gone}, which is not live"
    held.awaited[gone].end = ParentEnd.DEAD
    assert broken(world) == f"G13: job {gone} is over, and nobody is told"
    del held.awaited[gone]
    held.awaited[parent].children.add(98)
    assert broken(world).startswith("G13: of parents and jobs that wait for them, [(")
    held.awaited[parent].children.remove(98)
    details = world.shard.jobs[waits].details
    details.blocked_until_ms = 5
    assert broken(world) == f"G13: job {waits} is BLOCKED until 5 and has no entry"
    details.blocked_until_ms = 0
    world.shard.jobs[parent].writable_details().blocked_until_ms = 5
    assert broken(world) == f"G13: job {parent} is READY until 5"
    assert dependency_invariants.DEPENDENCIES
