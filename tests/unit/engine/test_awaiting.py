"""Jobs that depend on jobs of another shard: what the two shards say to each other, and what each
holds in the end.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import pytest

from jobline_server.engine.decide import awaiting
from jobline_server.engine.decide.admin import decide_cancel, decide_delete_ended, decide_retry
from jobline_server.engine.decide.awaiting import decide_forget, note_awaited
from jobline_server.engine.decide.dependencies import decide_parents_ended, release_dependents
from jobline_server.engine.decide.messages import decide_acknowledge, next_batch
from jobline_server.engine.decide.receive import decide_receive
from jobline_server.engine.dependency_messages import AwaitJobs, ForgetJobs
from jobline_server.engine.load import Load
from jobline_server.engine.message_entries import MessagesSent
from jobline_server.engine.rules import DependencyPolicy, JobRules
from jobline_server.engine.shard import Shard
from jobline_server.engine.ties import Ties
from jobline_server.engine.values import DEFAULT_OPTIONS, FailAction, JobState
from tests.pushed_rows import NewJob
from tests.shard_image import image_of
from tests.unit.engine.world import EPOCH, World

HERE, THERE = 1, 2
BLOCKED, READY, DEAD = JobState.BLOCKED, JobState.READY, JobState.DEAD


def test_many_parents_are_awaited_by_several_messages(monkeypatch):
    """Each is a step of the receiver, and all are one fact here."""
    monkeypatch.setattr(awaiting, "AWAITED_MAX", 2)
    here = World()
    parents = tuple(THERE << 43 | at for at in range(5))
    awaiting.await_elsewhere(here.shard, here.now, [*parents, HERE << 43 | 5])
    [sent] = [fact for fact in here.shard.entries if isinstance(fact, MessagesSent)]
    assert sent.messages == [AwaitJobs(parents[at : at + 2], HERE) for at in (0, 2, 4)]


class Two(NamedTuple):
    """A shard with jobs that wait, and the one of their parents."""

    here: World
    there: World

    def deliver(self) -> int:
        """Delivers all messages until there are no more, and decides what follows; says how many
        there were.
        """
        count = 0
        while True:
            self.tell()
            moved = self._deliver(self.here, self.there) + self._deliver(self.there, self.here)
            if not moved:
                return count
            count += moved

    def tell(self) -> None:
        for world in self:
            while release_dependents(world.shard, world.now, 100):
                pass
            world.commit()
            world.check()

    def _deliver(self, sender: World, receiver: World) -> int:
        batch = next_batch(sender.shard, receiver.shard.number)
        if batch is None:
            return 0
        up_to = decide_receive(receiver.shard, receiver.now, batch)
        receiver.commit()
        decide_acknowledge(sender.shard, sender.now, receiver.shard.number, up_to)
        sender.commit()
        return len(batch.messages)

    def child(self, parent: int, policy: DependencyPolicy | None = None, state=READY) -> int:
        """A job here of a parent there, which was in this state when it was looked up."""
        options = replace(DEFAULT_OPTIONS, rules=JobRules(on_dependency_failure=policy))
        job = NewJob(b"c", options, ties=Ties(parents=(parent,)))
        return self.here.push(jobs=[job], outcomes={parent: state}).first_id

    def end(self, how: str) -> None:
        """The only job there ends."""
        lease = self.there.one()
        if how == "ack":
            self.there.ack([(lease.id, lease.delivery)])
        else:
            self.there.fail(lease.id, lease.delivery, then=FailAction.DEAD)

    def is_free(self) -> bool:
        """Nobody waits for anything."""
        return not any(world.shard.dependencies.awaited for world in self)


@pytest.fixture
def two() -> Two:
    there = World()
    there.shard = Shard(THERE, epoch=EPOCH, load=Load())
    return Two(World(), there)


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


def test_a_message_of_an_earlier_version_may_name_a_job_twice(two):
    parent = two.there.row()
    child = two.child(parent)
    two.deliver()
    decide_cancel(two.here.shard, two.here.now, [child])
    decide_forget(two.there.shard, two.there.now, ForgetJobs((parent, parent), HERE))
    two.deliver()
    assert two.is_free()


def test_a_shard_that_waits_no_more_is_forgotten_when_the_parent_ends(two):
    parent = two.there.row()
    child = two.child(parent)
    two.deliver()
    decide_cancel(two.here.shard, two.here.now, [child])
    two.deliver()
    assert not two.here.shard.dependencies.awaited
    two.end("ack")
    two.deliver()
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


def test_a_shard_that_waits_no_more_before_its_message_arrives_is_forgotten(two):
    """The parent is over, and so is the job that waited for it."""
    parent = two.there.row()
    child = two.child(parent)
    decide_cancel(two.here.shard, two.here.now, [child])
    two.end("ack")
    two.deliver()
    assert two.is_free()
