"""Batches in their home shard: what is counted, when they are complete, and which callbacks go."""

from __future__ import annotations

from dataclasses import replace

import pytest

from jobline_server.engine import limits
from jobline_server.engine.batches import (
    Batch,
    BatchCall,
    BatchSpec,
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
    forget_batches,
)
from jobline_server.engine.decide.queues import decide_delete_queue
from jobline_server.engine.values import DEFAULT_OPTIONS, AckLevel, FailAction, JobState
from tests.pushed_rows import NewJob
from tests.unit.engine.batch_words import (
    ALL,
    ELSEWHERE,
    THEN,
    ack_all,
    close,
    created,
    ends,
    member,
    settled,
)


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


def test_a_push_may_have_several_members_of_a_batch_with_options_of_their_own(world):
    batch = created(world)
    options = member(batch)
    world.push(jobs=[NewJob(b"a", options), NewJob(b"b", replace(options, priority=1))])
    assert batch.total == 2


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


def test_what_belongs_to_no_batch_counts_in_none(world):
    """Also while the shard has members of one."""
    batch = created(world)
    world.row(rules=member(batch).rules)
    world.plain(b"a", b"b", queue="other")
    ack_all(world, "other")
    assert (ends(batch), batch.pending()) == ({}, 1)


def test_a_batch_in_another_is_forgotten_alone(world):
    outer = created(world)
    inner = [created(world, BatchSpec(parent=outer.id)) for _ in range(2)]
    close(world, inner[0])
    world.advance(world.shard.load.batch_kept_ms)
    settled(world)
    assert not forget_batches(world.shard, world.now)
    assert list(world.shard.batches.children[outer.id]) == [inner[1].id]


def test_a_batch_is_not_forgotten_before_its_callbacks(world):
    """They may be late, as the disk was full."""
    batch = created(world)
    close(world, batch)
    world.advance(world.shard.load.batch_kept_ms)
    forget_batches(world.shard, world.now)
    assert batch.id in world.shard.batches.records
    assert settled(world) == ["then", "always"]
    forget_batches(world.shard, world.now)
    assert batch.id not in world.shard.batches.records
