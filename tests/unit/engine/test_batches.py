"""Batches in their home shard: what is counted, when they are complete, and which callbacks go."""

from __future__ import annotations

from dataclasses import replace

import pytest

from jobline_server.engine import limits
from jobline_server.engine.apply import batches as applying
from jobline_server.engine.batch_entries import BatchCalled
from jobline_server.engine.batches import (
    Batch,
    BatchCall,
    BatchCount,
    BatchCounts,
    BatchSpec,
    Callback,
    MemberEnd,
)
from jobline_server.engine.commands import RefusalKind, Refused
from jobline_server.engine.decide.admin import (
    decide_cancel,
    decide_delete_waiting,
    decide_retry,
)
from jobline_server.engine.decide.batches import (
    decide_cancel_batch,
    decide_close_batch,
    decide_counted,
    decide_create_batch,
    decide_joined,
    settle_batches,
)
from jobline_server.engine.decide.queues import decide_delete_queue
from jobline_server.engine.decide.timers import next_deadline
from jobline_server.engine.rules import NO_RULES
from jobline_server.engine.shard_messages import PushJobs
from jobline_server.engine.states import IllegalMove
from jobline_server.engine.ties import Ties
from jobline_server.engine.unique_rule import UniqueMode, UniqueRule
from jobline_server.engine.values import DEFAULT_OPTIONS, AckLevel, FailAction, JobState
from tests.pushed_rows import NewJob

THEN = Callback("then", 1, DEFAULT_OPTIONS, b"then")
ALWAYS = Callback("always", 1, DEFAULT_OPTIONS, b"always")
DEATH = Callback("death", 1, DEFAULT_OPTIONS, b"death")
ALL = BatchSpec("import", on_success=THEN, on_complete=ALWAYS, on_first_death=DEATH)
ELSEWHERE = 3 << limits.SEQUENCE_BITS | 7
ONE_DONE = BatchCount((1, 0, 0, 0, 0))


def created(world, spec: BatchSpec = ALL) -> Batch:
    """A new batch of the world's shard."""
    return decide_create_batch(world.shard, world.now, spec)


def member(batch: Batch | int):
    """Options of its members."""
    batch_id = batch if isinstance(batch, int) else batch.id
    return replace(DEFAULT_OPTIONS, rules=replace(NO_RULES, batch_id=batch_id))


def settled(world) -> list[str]:
    """The queues to which callbacks were pushed by now, in order."""
    settle_batches(world.shard, world.now, 100)
    facts = world.commit()
    return [fact.queue for fact in facts if type(fact).__name__ in {"LotPushed", "JobsPushed"}]


def ends(batch: Batch) -> dict[str, int]:
    counts = zip(MemberEnd, batch.ends.by_end, strict=True)
    return {end.name: count for end, count in counts if count}


def close(world, batch: Batch) -> None:
    decide_close_batch(world.shard, world.now, batch.id)


def ack_all(world, queue: str = "q") -> None:
    leased = world.lease(queue=queue)
    world.ack([(job.id, job.delivery) for job in leased.jobs])
    for run in leased.runs:
        world.ack([(run.first_id + at, run.delivery) for at in range(run.count())])


def test_a_lot_is_counted_as_a_whole(world):
    batch = created(world)
    world.plain(b"a", b"b", b"c", options=member(batch))
    assert (batch.total, batch.pending()) == (3, 3)
    ack_all(world)
    assert (ends(batch), batch.completed_ms) == ({"DONE": 3}, 0)
    assert settled(world) == []
    close(world, batch)
    assert settled(world) == ["then", "always"]
    assert settled(world) == []


def test_single_jobs_end_in_every_way(world):
    batch = created(world)
    options = member(batch)
    ids = [world.row(rules=options.rules) for _ in range(5)]
    close(world, batch)
    world.ack([(world.one().id, world.shard.find_lease(ids[0])[0].delivery)])
    dead = world.one()
    world.fail(dead.id, dead.delivery, then=FailAction.DEAD)
    assert settled(world) == ["death"]
    decide_cancel(world.shard, world.now, [ids[2]])
    decide_delete_waiting(world.shard, world.now, [ids[3]])
    assert batch.pending() == 1
    decide_cancel(world.shard, world.now, [ids[4]])
    assert ends(batch) == {"DONE": 1, "DEAD": 1, "CANCELLED": 2, "DELETED": 1}
    assert settled(world) == ["always"]
    assert batch.called == BatchCall.COMPLETE | BatchCall.FIRST_DEATH


def test_a_queue_that_is_deleted_deletes_members(world):
    batch = created(world)
    world.plain(b"a", b"b", options=member(batch))
    world.row(rules=member(batch).rules)
    decide_delete_queue(world.shard, world.now, "q", force=True)
    assert ends(batch) == {"DELETED": 3}
    assert not world.shard.batches.live


def test_a_retried_member_counts_out_and_each_callback_goes_once(world):
    batch = created(world)
    world.row(rules=member(batch).rules)
    close(world, batch)
    job = world.one()
    world.fail(job.id, job.delivery, then=FailAction.DEAD)
    assert settled(world) == ["death", "always"]
    state, record = world.ended()[job.id]
    decide_retry(world.shard, world.now, [(record, state)])
    world.commit()
    assert (batch.completed_ms, ends(batch), batch.pending()) == (0, {}, 1)
    again = world.one()
    world.fail(again.id, again.delivery, then=FailAction.DEAD)
    assert settled(world) == []
    state, record = world.ended()[job.id]
    decide_retry(
        world.shard,
        world.now,
        [(record, JobState.STALE)],
        outcomes={job.id: state},
    )
    world.commit()
    ack_all(world)
    assert settled(world) == ["then"]
    assert ends(batch) == {"DONE": 1}


def test_nested_batch_counts_as_one_member(world):
    outer = created(world)
    inner = created(world, BatchSpec("inner", parent=outer.id, on_complete=THEN))
    world.row(rules=member(inner).rules)
    close(world, outer)
    close(world, inner)
    assert (outer.total, outer.completed_ms) == (1, 0)
    job = world.one()
    world.fail(job.id, job.delivery, then=FailAction.DEAD)
    assert ends(outer) == {"DEAD": 1}
    assert sorted(settled(world)) == ["always", "death", "then"]
    state, record = world.ended()[job.id]
    decide_retry(world.shard, world.now, [(record, state)])
    world.commit()
    assert (outer.completed_ms, ends(outer)) == (0, {})
    ack_all(world)
    assert settled(world) == ["then"]
    assert ends(outer) == {"DONE": 1}


def test_outcome_of_a_nested_batch_is_its_worst_end():
    batch = Batch(1, ALL, 0)
    for end, outcome in (
        (MemberEnd.DELETED, MemberEnd.DELETED),
        (MemberEnd.EXPIRED, MemberEnd.EXPIRED),
        (MemberEnd.CANCELLED, MemberEnd.CANCELLED),
        (MemberEnd.DEAD, MemberEnd.DEAD),
    ):
        batch.ends.add(end, 1)
        assert batch.final_outcome() is outcome


def test_empty_batch_is_complete_when_it_is_closed(world):
    batch = created(world)
    close(world, batch)
    close(world, batch)
    assert settled(world) == ["then", "always"]


def refusal_of(call) -> tuple[RefusalKind, str]:
    with pytest.raises(Refused) as caught:
        call()
    return caught.value.kind, caught.value.field


def test_pushes_into_batches_that_take_no_more_are_refused(world):
    complete, cancelled = created(world), created(world)
    close(world, complete)
    decide_cancel_batch(world.shard, world.now, cancelled.id, "me", "why")
    decide_cancel_batch(world.shard, world.now, cancelled.id, "other", "again")
    decide_cancel_batch(world.shard, world.now, 99, "me", "unknown")
    assert cancelled.cancelled_by == "me"
    place = "options.batch_id"
    for batch, kind in (
        (complete, RefusalKind.BATCH_COMPLETE),
        (cancelled, RefusalKind.BATCH_COMPLETE),
        (5, RefusalKind.BATCH_NOT_FOUND),
        (ELSEWHERE, RefusalKind.BATCH_NOT_FOUND),
    ):
        options = member(batch)
        assert refusal_of(lambda: world.plain(b"a", options=options)) == (kind, place)  # noqa: B023
        rows = [NewJob(b"a", DEFAULT_OPTIONS), NewJob(b"b", options)]
        found = refusal_of(lambda: world.push(jobs=rows))  # noqa: B023
        assert found == (kind, "jobs[1].options.batch_id")
    alone = refusal_of(lambda: world.plain(b"a", options=member(5), shared_options=DEFAULT_OPTIONS))
    assert alone == (RefusalKind.BATCH_NOT_FOUND, "jobs[0].options.batch_id")


def test_known_key_is_a_duplicate_and_no_member(world):
    """Also of a batch that is complete since."""
    batch = created(world)
    first = world.row(key="k", rules=member(batch).rules)
    close(world, batch)
    ack_all(world)
    assert batch.completed_ms
    again = world.push(jobs=[NewJob(b"x", member(batch), "k")])
    assert [job_id for _, _, job_id in again.exceptions] == [first]
    assert batch.total == 1


def test_members_are_written(world):
    """A crash must not lose a member that was counted, or keep one that was not."""
    batch = created(world)
    pushed = world.plain(b"a", options=member(batch), level=AckLevel.MEMORY)
    assert pushed.level is AckLevel.BUFFERED
    rows = [NewJob(b"a", member(batch))]
    assert world.push(jobs=rows, level=AckLevel.MEMORY).level is AckLevel.BUFFERED
    rows = [NewJob(b"a", DEFAULT_OPTIONS)]
    assert world.push(jobs=rows, level=AckLevel.MEMORY).level is AckLevel.MEMORY


def test_same_request_returns_the_same_batch(world):
    spec = BatchSpec("a", request_id="r")
    batch = created(world, spec)
    assert created(world, spec) is batch
    kind = RefusalKind.IDEMPOTENCY_MISMATCH
    assert refusal_of(lambda: created(world, replace(spec, name="b"))) == (kind, "request_id")


def test_parents_and_depths_and_numbers_have_limits(world, monkeypatch):
    no_parent = refusal_of(lambda: created(world, BatchSpec(parent=5)))
    assert no_parent == (RefusalKind.BATCH_NOT_FOUND, "parent_id")
    monkeypatch.setattr(limits, "BATCH_DEPTH_MAX", 2)
    outer = created(world)
    inner = created(world, BatchSpec(parent=outer.id))
    too_deep = refusal_of(lambda: created(world, BatchSpec(parent=inner.id)))
    assert too_deep == (RefusalKind.INVALID_FIELD, "parent_id")
    close(world, inner)
    over = refusal_of(lambda: created(world, BatchSpec(parent=inner.id)))
    assert over == (RefusalKind.BATCH_COMPLETE, "parent_id")
    monkeypatch.setattr(limits, "SHARD_BATCHES_MAX", 1)
    assert refusal_of(lambda: created(world))[0] is RefusalKind.BATCHES_FULL


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


def test_applying_counts_of_unknown_batches_changes_nothing(world):
    """Another shard may be late."""
    applying.join(world.shard, 99 | 1 << limits.SEQUENCE_BITS, 1)
    world.shard.emit(applying.BatchesCounted(1, [99], [ONE_DONE]))
    world.shard.emit(applying.BatchesJoined(1, [99], [1]))
    assert not world.shard.batches.records
