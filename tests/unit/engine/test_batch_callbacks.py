"""Callbacks of batches, their members in other shards, and batches that are forgotten."""

from __future__ import annotations

from dataclasses import replace

import pytest

from jobline_server.engine import limits
from jobline_server.engine.apply import batches as applying
from jobline_server.engine.batch_entries import BatchCalled, BatchesCounted, BatchesJoined
from jobline_server.engine.batches import (
    Batch,
    BatchCall,
    BatchCount,
    BatchCounts,
    BatchSpec,
    MemberEnd,
)
from jobline_server.engine.commands import RefusalKind, Refused
from jobline_server.engine.decide.admin import (
    decide_retry,
)
from jobline_server.engine.decide.batches import (
    decide_counted,
    decide_joined,
    settle_batches,
)
from jobline_server.engine.decide.timers import next_deadline
from jobline_server.engine.rules import NO_RULES
from jobline_server.engine.shard_messages import PushJobs
from jobline_server.engine.states import IllegalMove
from jobline_server.engine.ties import Ties
from jobline_server.engine.unique_rule import UniqueMode, UniqueRule
from jobline_server.engine.values import DEFAULT_OPTIONS, FailAction
from tests.pushed_rows import NewJob
from tests.unit.engine.batch_words import (
    ALL,
    ELSEWHERE,
    ONE_DONE,
    THEN,
    ack_all,
    close,
    created,
    member,
    settled,
)


def test_callbacks_go_to_other_shards_as_messages(world):
    there = replace(THEN, shard=4, group="g", delay_ms=5)
    close(world, created(world, BatchSpec(on_success=there)))
    assert settled(world) == []
    (sent,) = world.shard.messages.outbox(4)
    message = sent.message
    assert isinstance(message, PushJobs)
    assert (message.queue, message.ties, message.delay_ms) == ("then", Ties("g"), 5)


def test_callback_says_of_which_batch_it_is(world):
    batch = created(world, BatchSpec(on_success=replace(THEN, group="g", delay_ms=10)))
    close(world, batch)
    settled(world)
    world.tick(10)
    job = world.one(queue="then")
    assert (job.options.headers, job.group) == ((("jobline-batch", str(batch.id)),), "g")


@pytest.mark.parametrize("priority", [0, 5])
def test_callback_that_its_queue_does_not_take_goes_without_what_is_in_the_way(world, priority):
    """Without its group if it has a priority, without its key if that is held."""
    rules = replace(NO_RULES, unique=UniqueRule(UniqueMode.REJECT))
    held = NewJob(b"x", replace(DEFAULT_OPTIONS, rules=rules), ties=Ties(unique_key="u"))
    world.push(queue="then", jobs=[held])
    options = replace(DEFAULT_OPTIONS, priority=priority, rules=rules)
    callback = replace(THEN, options=options, unique_key="u", group="g" if priority else "")
    close(world, created(world, BatchSpec(on_success=callback)))
    assert settled(world) == ["then"]
    assert len(world.lease(queue="then").jobs + world.lease(queue="then").runs) <= 2
    assert world.shard.queues["then"].pushed_total == 2


def test_more_callbacks_than_one_step_pushes_are_left_to_the_timers(world):
    for _ in range(3):
        close(world, created(world))
    assert settle_batches(world.shard, world.now, 2)
    assert next_deadline(world.shard, world.now) == 0
    world.tick()
    assert not world.shard.batches.due


def test_counts_of_other_shards_are_added(world):
    batch = created(world)
    decide_joined(world.shard, world.now, {batch.id: 2, 99: 1})
    decide_joined(world.shard, world.now, {99: 1})
    close(world, batch)
    died = BatchCount((0, 0, 0, 0, 0), has_died=True)
    decide_counted(world.shard, world.now, BatchCounts((batch.id, 99), (died, died)))
    assert settled(world) == ["death"]
    message = BatchCounts((batch.id,), (BatchCount((2, 0, 0, 0, 0)),))
    assert (message.jobs(), message.payload_bytes()) == (0, 32)
    decide_counted(world.shard, world.now, message)
    decide_counted(world.shard, world.now, BatchCounts((99,), (ONE_DONE,)))
    assert settled(world) == ["then", "always"]


def test_members_of_a_batch_elsewhere_are_noted_and_sent(world, monkeypatch):
    """In one message, as long as the one before is not acknowledged."""
    shard = world.shard
    table = shard.load.batches[3] = type(shard.batches)(3, shard.changes.batches)
    table.add(Batch(ELSEWHERE, BatchSpec(), 0))
    world.plain(b"a", b"b", b"c", options=member(ELSEWHERE))
    assert shard.batches.take_joining() == {ELSEWHERE: 3}
    (run,) = world.lease().runs
    first = run.first_id, run.delivery
    world.ack([first])
    assert next_deadline(shard, world.now) == 0
    assert settled(world) == []
    world.ack([(first[0] + 1, first[1])])
    world.ack([(first[0] + 2, first[1])])
    settled(world)
    assert shard.batches.unsent[ELSEWHERE].by_end == [2, 0, 0, 0, 0]
    (sent,) = shard.messages.outbox(3)
    assert sent.message == BatchCounts((ELSEWHERE,), (ONE_DONE,))
    assert not shard.batches.live


def test_complete_batches_are_forgotten_after_their_time(world, monkeypatch):
    outer = created(world)
    inner = created(world, BatchSpec(parent=outer.id, request_id="r"))
    for batch in (inner, outer):
        close(world, batch)
    settled(world)
    kept_ms = world.shard.load.batch_kept_ms
    assert next_deadline(world.shard, world.now) == kept_ms
    world.tick(kept_ms - 1)
    assert len(world.shard.batches.records) == 2
    world.tick(1)
    table = world.shard.batches
    assert not any([table.records, table.children, table.by_request, table.completed])
    assert next_deadline(world.shard, world.now) is None
    monkeypatch.setattr(limits, "SHARD_BATCHES_KEPT_MAX", 1)
    for _ in range(3):
        close(world, created(world))
    settled(world)
    world.tick()
    assert len(table.records) == 1


def test_members_outlive_a_batch_that_was_forgotten(world):
    batch = created(world, BatchSpec())
    world.row(rules=member(batch).rules)
    close(world, batch)
    job = world.one()
    world.fail(job.id, job.delivery, then=FailAction.DEAD)
    settled(world)
    world.tick(world.shard.load.batch_kept_ms)
    state, record = world.ended()[job.id]
    decide_retry(world.shard, world.now, [(record, state)])
    world.commit()
    ack_all(world)
    assert not world.shard.batches.live


def test_applying_counts_of_unknown_batches_changes_nothing(world):
    """Another shard may be late."""
    applying.join(world.shard, 99 | 1 << limits.SEQUENCE_BITS, 1)
    world.shard.emit(BatchesCounted(1, [99], [ONE_DONE]))
    world.shard.emit(BatchesJoined(1, [99], [1]))
    assert not world.shard.batches.records


def test_facts_of_batches_that_are_not_there_are_illegal(world):
    with pytest.raises(IllegalMove, match="no batch"):
        world.shard.emit(BatchCalled(1, 5, BatchCall.COMPLETE, ""))
    batch = created(world)
    close(world, batch)
    settled(world)
    with pytest.raises(IllegalMove, match="decided before"):
        world.shard.emit(BatchCalled(1, batch.id, BatchCall.COMPLETE, ""))


def test_recovery_has_the_same_batches(world):
    batch = created(world)
    world.plain(b"a", b"b", options=member(batch))
    close(world, batch)
    world.lease(1)
    world.commit()
    found = world.recovered().batches
    assert found.live == {batch.id: 2}
    copy = found.records[batch.id]
    assert (copy.total, copy.closed_ms, copy.spec) == (2, batch.closed_ms, ALL)


def test_push_into_a_batch_of_a_lost_shard_is_refused_for_now(world):
    """The same push may be taken elsewhere."""
    world.shard.load.batches[3] = None
    with pytest.raises(Refused) as caught:
        world.plain(b"a", options=member(ELSEWHERE))
    assert caught.value.kind is RefusalKind.SHARD_UNAVAILABLE


def test_batches_that_were_loaded_are_in_the_order_in_which_they_completed(world):
    """Of one moment by id; what was not called yet is due."""
    table = world.shard.batches
    for batch_id, completed_ms in ((1, 9), (2, 0), (4, 5), (3, 5)):
        batch = Batch(batch_id, BatchSpec(), 0)
        batch.completed_ms = completed_ms
        batch.called = BatchCall.COMPLETE | BatchCall.SUCCESS if batch_id == 4 else BatchCall.NONE
        table.add(batch)
    assert list(table.due) == [1, 3]
    table.finish_loading()
    assert list(table.completed) == [3, 4, 1]
    assert table.unfinished() == 1


def test_what_a_checkpoint_has_of_a_batch_is_deleted_with_it(world):
    """A batch, and what was unsent of one that is at home elsewhere."""
    table, changes = world.shard.batches, world.shard.changes.batches
    for stored in (False, True):
        batch = created(world)
        batch.stored = stored
        table.remove(batch)
        table.note_unsent(ELSEWHERE, MemberEnd.DONE, 1)
        table.unsent[ELSEWHERE].stored = stored
        table.forget_unsent(ELSEWHERE)
        assert changes.to_delete == ([batch.id, ELSEWHERE] if stored else [])
        assert changes.to_write == set()
