"""Jobs that depend on others: what is told to whom, in which order, and what is held at the end."""

from __future__ import annotations

import pytest

from jobline_server.engine import limits
from jobline_server.engine.decide import dependencies as verbs
from jobline_server.engine.decide.admin import (
    decide_cancel,
    decide_delete_ended,
    decide_delete_waiting,
    decide_retry,
)
from jobline_server.engine.decide.dependencies import decide_parents_ended, release_dependents
from jobline_server.engine.decide.queues import decide_delete_queue
from jobline_server.engine.decide.timers import next_deadline
from jobline_server.engine.values import (
    DEFAULT_OPTIONS,
    EndReason,
    FailAction,
)
from tests.pushed_rows import NewJob
from tests.shard_image import image_of
from tests.unit.engine.dependents import (
    BLOCKED,
    CANCEL,
    CANCELLED,
    DEAD,
    FAIL,
    IGNORE,
    READY,
    SCHEDULED,
    WAIT,
    child,
    is_free,
    push,
    settle,
    told,
)
from tests.unit.engine.world import leases_of


def test_child_starts_when_its_parents_have_completed(world):
    """G13: and not before the last of them is on disk."""
    one, two = world.row(), world.row()
    waits = push(world, child(one, two))
    settle(world, "ack", one)
    told(world)
    assert world.state(waits) is BLOCKED
    world.ack([(two, world.shard.find_lease(two)[0].delivery)])
    release_dependents(world.shard, world.now, 10)
    assert world.shard.jobs[waits].offset == world.shard.next_offset
    assert world.shard.jobs[waits].offset > world.shard.committed
    world.commit()
    assert world.ids() == [waits]
    assert is_free(world)


def test_members_of_a_lot_are_parents(world):
    """Completed as runs, which have no object a job."""
    lot = world.plain(b"a", b"b", b"c")
    ids = range(lot.first_id, lot.first_id + 3)
    waits = push(world, child(*ids))
    settle(world, "ack", *ids)
    told(world)
    assert world.ids() == [waits]
    assert is_free(world)


@pytest.mark.parametrize(("policy", "state"), [(None, DEAD), (FAIL, DEAD), (CANCEL, CANCELLED)])
def test_child_ends_with_its_parent(world, policy, state):
    parent = world.row()
    waits = push(world, child(parent, policy=policy))
    settle(world, "fail", parent)
    told(world)
    ended, record = world.ended()[waits]
    assert (ended, record.reason) == (state, EndReason.DEPENDENCY_FAILED)
    assert record.error.message == f"job {parent}, on which it depends, is DEAD"
    assert is_free(world)


def test_child_that_ignores_failures_starts(world):
    parent = world.row()
    waits = push(world, child(parent, policy=IGNORE))
    settle(world, "fail", parent)
    told(world)
    assert world.ids() == [waits]
    assert is_free(world)


def test_child_waits_until_its_dead_parent_is_retried_and_completes(world):
    parent = world.row()
    waits = push(world, child(parent, policy=WAIT))
    settle(world, "fail", parent)
    told(world)
    assert world.state(waits) is BLOCKED
    decide_retry(world.shard, world.now, [world.ended()[parent][::-1]])
    world.commit()
    settle(world, "ack", parent)
    told(world)
    assert world.ids() == [waits]
    assert is_free(world)


def test_child_that_waits_dies_when_its_dead_parent_is_deleted(world):
    """No BLOCKED job outlives all its parents."""
    parent = world.row()
    waits = push(world, child(parent, policy=WAIT))
    settle(world, "fail", parent)
    told(world)
    decide_delete_ended(world.shard, world.now, "q", DEAD, [(parent, 1)])
    told(world)
    assert world.ended()[waits][1].error.message.endswith("was deleted")
    assert is_free(world)


@pytest.mark.parametrize("how", ["cancel", "delete", "delete queue"])
def test_parent_that_is_cancelled_or_deleted_fails_its_children(world, how):
    parent = world.row(queue="other")
    waits = push(world, child(parent))
    if how == "cancel":
        decide_cancel(world.shard, world.now, [parent])
    elif how == "delete":
        decide_delete_waiting(world.shard, world.now, [parent])
    else:
        decide_delete_queue(world.shard, world.now, "other", force=True)
    told(world)
    assert world.ended()[waits][0] is DEAD
    assert is_free(world)


def test_ended_parents_of_a_deleted_queue_are_looked_up(world):
    """Nobody lists them."""
    parent = world.row(queue="other")
    waits = push(world, child(parent, policy=WAIT))
    holder = world.session()
    [lease] = leases_of(world.lease(holder=holder, queue="other"))
    world.fail(*lease, then=FailAction.DEAD)
    told(world)
    decide_delete_queue(world.shard, world.now, "other", force=True)
    assert world.shard.dependencies.due_look_ups(10) == [parent]
    decide_parents_ended(world.shard, world.now, {parent: None})
    told(world)
    assert world.ended()[waits][0] is DEAD
    assert is_free(world)


def test_a_look_up_that_finds_a_parent_alive_changes_nothing(world):
    parent = world.row()
    waits = push(world, child(parent))
    world.shard.dependencies.look_up([parent, 99])
    decide_parents_ended(world.shard, world.now, {parent: READY, 98: None})
    assert world.state(waits) is BLOCKED
    assert not world.shard.dependencies.to_look_up


@pytest.mark.parametrize("how", ["cancel", "delete", "delete queue"])
def test_child_that_goes_first_leaves_nothing(world, how):
    parent = world.row(queue="other")
    waits = push(world, child(parent, timeout_ms=1_000))
    if how == "cancel":
        decide_cancel(world.shard, world.now, [waits])
    elif how == "delete":
        decide_delete_waiting(world.shard, world.now, [waits])
    else:
        decide_delete_queue(world.shard, world.now, "q", force=True)
    told(world)
    assert is_free(world)
    assert world.shard.load.dependencies == 0


def test_a_chain_ends_link_by_link_and_never_calls_itself(world):
    """A thousand links are a thousand rounds in some slices, not a thousand calls in each other."""
    first = push(world, NewJob(b"a", DEFAULT_OPTIONS), *[child(indexes=[n]) for n in range(999)])
    decide_cancel(world.shard, world.now, [first])
    assert told(world) > 10
    assert set(world.counts()) == {0}
    assert is_free(world)


def test_many_children_are_told_in_slices(world):
    """Each slice is a step of the loop; a failure in one tells them again."""
    parent = world.row()
    first = push(world, *[child(parent) for _ in range(30)])
    decide_cancel(world.shard, world.now, [parent])
    assert next_deadline(world.shard, world.now) == 0
    assert told(world, limit=10) == 3
    assert {*world.ended()} == {parent, *range(first, first + 30)}
    assert is_free(world)


def test_a_slice_that_fails_is_told_again(world, monkeypatch):
    parent = world.row()
    push(world, *[child(parent) for _ in range(5)])
    decide_cancel(world.shard, world.now, [parent])
    with monkeypatch.context() as patch:
        patch.setattr(verbs.Verdicts, "emit", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            release_dependents(world.shard, world.now, 3)
    told(world)
    assert is_free(world)


def test_a_parent_that_ends_again_before_all_are_told_tells_what_became_of_it_last(world):
    parent = world.row()
    first = push(world, *[child(parent, policy=WAIT) for _ in range(4)])
    decide_cancel(world.shard, world.now, [parent])
    release_dependents(world.shard, world.now, 2)
    decide_retry(world.shard, world.now, [world.ended()[parent][::-1]])
    world.commit()
    settle(world, "ack", parent)
    told(world)
    assert world.ids() == [*range(first, first + 4)]
    assert is_free(world)


def test_delayed_child_waits_for_its_time_too(world):
    parent = world.row()
    waits = push(world, child(parent, run_at_ms=world.now.wall_ms + 60_000))
    settle(world, "ack", parent)
    told(world)
    assert world.state(waits) is SCHEDULED


@pytest.mark.parametrize(
    ("policy", "state"), [(FAIL, DEAD), (CANCEL, CANCELLED), (WAIT, DEAD), (IGNORE, None)]
)
def test_a_job_that_is_blocked_too_long_follows_its_policy(world, policy, state):
    parents = [world.row(), world.row()]
    waits = push(world, child(*parents, policy=policy, timeout_ms=5_000))
    assert next_deadline(world.shard, world.now) == 5_000
    world.tick(4_999)
    assert world.state(waits) is BLOCKED
    world.tick(1)
    world.check()
    if state is None:
        assert world.state(waits) is READY
    else:
        ended, record = world.ended()[waits]
        assert (ended, record.reason) == (state, EndReason.DEPENDENCY_FAILED)
        assert record.error.type == "BlockTimeout"
    assert is_free(world)


def test_ends_of_blocking_are_swept_and_survive_a_failure(world, monkeypatch):
    parent = world.row()
    waits = push(world, child(parent, timeout_ms=5_000), child(parent, timeout_ms=5_000))
    decide_cancel(world.shard, world.now, [waits])
    with monkeypatch.context() as patch:
        patch.setattr(verbs.Verdicts, "emit", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            world.tick(5_000)
    world.tick()
    assert world.state(waits + 1) is None
    assert is_free(world)


def test_a_journal_yields_the_same_shard(world):
    """G13: and what was not told yet is told after a restart."""
    parent, other = world.row(), world.row()
    waits = push(world, child(parent, other, timeout_ms=60_000), child(parent, policy=WAIT))
    settle(world, "fail", parent)
    release_dependents(world.shard, world.now, 1)
    world.commit()
    shard = world.recovered()
    assert image_of(shard) == image_of(world.shard)
    while release_dependents(shard, world.now, 10):
        pass
    assert shard.state_of(waits) is None
    assert shard.state_of(waits + 1) is BLOCKED


def test_a_job_that_is_blocked_for_long_is_never_deleted_in_silence(world):
    """Predecessors: a job that was blocked for an hour was deleted in silence."""
    parent = world.row()
    waits = push(world, child(parent))
    world.tick(30 * limits.DAY_MS)
    assert world.state(waits) is BLOCKED
    settle(world, "ack", parent)
    told(world)
    assert world.ids() == [waits]
