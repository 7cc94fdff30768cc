"""Jobs that depend on jobs of another shard: what the two shards say to each other, and what each
holds in the end.
"""

from __future__ import annotations

import pytest

from jobline_server.engine.decide import awaiting
from jobline_server.engine.decide.admin import decide_delete_ended, decide_retry
from jobline_server.engine.decide.awaiting import note_awaited
from jobline_server.engine.decide.dependencies import decide_parents_ended
from jobline_server.engine.dependency_messages import AwaitJobs
from jobline_server.engine.load import Load
from jobline_server.engine.message_entries import MessagesSent
from jobline_server.engine.rules import DependencyPolicy
from jobline_server.engine.shard import Shard
from jobline_server.engine.ties import Ties
from jobline_server.engine.values import DEFAULT_OPTIONS, JobState
from tests.pushed_rows import NewJob
from tests.shard_image import image_of
from tests.unit.engine.two_shards import HERE, THERE, Two, two_shards
from tests.unit.engine.world import EPOCH, World

BLOCKED, READY, DEAD = JobState.BLOCKED, JobState.READY, JobState.DEAD


def test_many_parents_are_awaited_by_several_messages(monkeypatch):
    """Each is a step of the receiver, and all are one fact here."""
    monkeypatch.setattr(awaiting, "AWAITED_MAX", 2)
    here = World()
    parents = tuple(THERE << 43 | at for at in range(5))
    awaiting.await_elsewhere(here.shard, here.now, [*parents, HERE << 43 | 5])
    [sent] = [fact for fact in here.shard.entries if isinstance(fact, MessagesSent)]
    assert sent.messages == [AwaitJobs(parents[at : at + 2], HERE) for at in (0, 2, 4)]


@pytest.fixture
def two() -> Two:
    return two_shards()


def test_a_child_hears_that_its_parent_completed(two):
    parent = two.there.row()
    child = two.child(parent)
    two.deliver()
    assert two.there.shard.dependencies.awaited[parent].shards == (HERE,)
    two.end("ack")
    two.deliver()
    assert two.here.state(child) is READY
    assert two.is_free()


def test_a_child_hears_that_its_parent_died_and_then_of_its_retry(two):
    parent = two.there.row()
    waits, fails = two.child(parent, DependencyPolicy.WAIT), two.child(parent)
    two.deliver()
    two.end("fail")
    two.deliver()
    assert (two.here.state(waits), two.here.state(fails)) == (BLOCKED, None)
    decide_retry(two.there.shard, two.there.now, [two.there.ended()[parent][::-1]])
    two.there.commit()
    two.end("ack")
    two.deliver()
    assert two.here.state(waits) is READY
    assert two.is_free()


def test_a_child_that_waits_hears_that_its_dead_parent_is_deleted(two):
    parent = two.there.row()
    two.end("fail")
    waits = two.child(parent, DependencyPolicy.WAIT, state=DEAD)
    two.deliver()
    # It was not live when the message came: it is looked up, and found as it was.
    assert two.here.shard.dependencies.due_look_ups(9) == [parent]
    decide_parents_ended(two.here.shard, two.here.now, {parent: DEAD})
    two.deliver()
    assert two.here.state(waits) is BLOCKED
    decide_delete_ended(two.there.shard, two.there.now, "q", DEAD, [(parent, 1)])
    two.deliver()
    assert two.here.state(waits) is None
    assert two.is_free()


def test_a_parent_that_ends_before_the_message_arrives_is_looked_up(two):
    parent = two.there.row()
    child = two.child(parent)
    two.end("ack")
    two.deliver()
    assert two.here.shard.dependencies.due_look_ups(9) == [parent]
    decide_parents_ended(two.here.shard, two.here.now, {parent: JobState.COMPLETED})
    two.deliver()
    assert two.here.state(child) is READY
    assert two.is_free()


def test_a_parent_that_is_noted_at_once_tells_of_its_end_before_the_message_arrives(two):
    """So one that is not kept is not taken for one that was deleted."""
    parent = two.there.row()
    child = two.child(parent)
    note_awaited(two.there.shard, two.there.now, HERE, [parent])
    note_awaited(two.there.shard, two.there.now, HERE, [parent])
    two.end("ack")
    two.deliver()
    decide_parents_ended(two.here.shard, two.here.now, dict.fromkeys(
        two.here.shard.dependencies.due_look_ups(9)
    ))  # fmt: skip
    two.deliver()
    assert two.here.state(child) is READY
    assert two.is_free()


def test_a_parent_of_several_jobs_of_a_push_is_noted_once(two):
    """A shard that was noted twice would be told twice, and forgotten twice."""
    parent = two.there.row()
    children = [two.child(parent), two.child(parent)]
    note_awaited(two.there.shard, two.there.now, HERE, [parent, parent])
    assert two.there.shard.dependencies.awaited[parent].shards == (HERE,)
    two.end("ack")
    two.deliver()
    assert [two.here.state(child) for child in children] == [READY, READY]
    assert two.is_free()


def test_two_children_of_one_parent(two):
    parent = two.there.row()
    children = [two.child(parent), two.child(parent)]
    two.end("ack")
    two.deliver()
    decide_parents_ended(two.here.shard, two.here.now, {parent: JobState.COMPLETED})
    two.deliver()
    assert [two.here.state(child) for child in children] == [READY, READY]
    assert two.is_free()


def test_a_parent_of_jobs_here_and_there(two):
    """Those of its own shard wait already when the other one asks."""
    parent = two.there.row()
    job = NewJob(b"c", DEFAULT_OPTIONS, ties=Ties(parents=(parent,)))
    beside = two.there.push(jobs=[job]).first_id
    elsewhere = two.child(parent)
    two.deliver()
    assert two.there.shard.dependencies.awaited[parent].shards == (HERE,)
    two.end("ack")
    two.deliver()
    assert (two.there.state(beside), two.here.state(elsewhere)) == (READY, READY)
    assert two.is_free()


def test_what_a_shard_knows_of_others_is_in_its_journal(two):
    parent, other = two.there.row(), two.there.row()
    two.child(parent)
    two.child(other)
    two.deliver()
    journal = two.there.journal
    shard = Shard(THERE, epoch=EPOCH + 1, load=Load())
    for offset, fact in journal:
        shard.replay(fact, offset)
    assert image_of(shard)["awaited"] == image_of(two.there.shard)["awaited"]
    assert len(image_of(shard)["awaited"]) == 2


def test_messages_weigh_what_their_ids_take(two):
    """They count as bytes that wait, and push no jobs."""
    message = AwaitJobs((1, 2), HERE)
    assert (message.jobs(), message.payload_bytes()) == (0, 32)
