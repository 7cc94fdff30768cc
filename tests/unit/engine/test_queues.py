"""Queues come, change, pause and go."""

from __future__ import annotations

import pytest

from jobline_server.engine import limits
from jobline_server.engine.commands import RefusalKind, Refused
from jobline_server.engine.decide.queues import (
    decide_delete_active,
    decide_delete_idle_queues,
    decide_delete_queue,
    decide_pause_queue,
    decide_resume_queue,
    decide_update_queue,
    known_queue,
)
from jobline_server.engine.endings import QueueGone
from jobline_server.engine.entries import JobsDeleted
from jobline_server.engine.values import (
    AckLevel,
    JobOptions,
    QueueSettings,
    Retention,
    RevokeReason,
)
from tests.unit.engine.effects_of import revoked_in, take_endings
from tests.unit.engine.world import leases_of

HOUR_MS = 3_600_000


def test_queue_vanishes_an_hour_after_its_last_job_and_not_at_once(world):
    """A job that took longer than an hour does not take its queue away as it ends."""
    options = JobOptions(lease_ms=10 * HOUR_MS, retention=Retention(remove_on_complete=True))
    world.plain(b"x", options=options)
    leased = world.lease().runs[0]
    world.advance(2 * HOUR_MS)
    assert decide_delete_idle_queues(world.shard, world.now) == 0
    world.ack([(leased.first_id, leased.delivery)])
    world.advance(60_000)
    assert decide_delete_idle_queues(world.shard, world.now) == 0
    world.advance(HOUR_MS)
    assert decide_delete_idle_queues(world.shard, world.now) == 1
    assert "q" not in world.shard.queues


def test_settings_are_changed_as_a_whole_or_by_mask(world):
    decide_update_queue(world.shard, world.now, "q", QueueSettings(lease_ms=5_000), None)
    wanted = QueueSettings(max_attempts=7, lease_ms=9_000)
    decide_update_queue(world.shard, world.now, "q", wanted, frozenset({"max_attempts"}))
    assert world.queue().settings == QueueSettings(lease_ms=5_000, max_attempts=7)
    assert len(world.commit()) == 3


def test_queues_of_a_shard_are_bounded(world, monkeypatch):
    """A program that makes a queue for each of its jobs does not fill the memory; queues that are
    there are pushed to and changed as before.
    """
    world.plain(b"x")
    monkeypatch.setattr(limits, "SHARD_QUEUES_MAX", 1)
    world.plain(b"x")
    for refused in (
        lambda: world.plain(b"x", queue="one more"),
        lambda: decide_update_queue(world.shard, world.now, "one more", QueueSettings(), None),
    ):
        with pytest.raises(Refused) as caught:
            refused()
        assert caught.value.kind is RefusalKind.SERVER_FULL
    assert len(world.shard.queues) == 1


def test_settings_that_stay_the_same_are_no_fact(world):
    world.settings(lease_ms=5_000)
    decide_update_queue(world.shard, world.now, "q", QueueSettings(lease_ms=5_000), None)
    assert world.commit() == []


def test_paused_queue_takes_pushes_and_says_who_and_why(world):
    world.row()
    decide_pause_queue(world.shard, world.now, "q", "ann", "too hot")
    decide_pause_queue(world.shard, world.now, "q", "bob", "still too hot")
    queue = world.queue()
    assert (queue.paused, queue.paused_by, queue.pause_reason) == (True, "bob", "still too hot")
    assert world.plain(b"1").count == 1
    decide_resume_queue(world.shard, world.now, "q")
    assert (queue.paused, queue.paused_by, queue.pause_reason) == (False, "", "")
    assert world.lease().count() == 2


def test_queue_that_is_not_paused_is_resumed_without_a_fact(world):
    world.row()
    decide_resume_queue(world.shard, world.now, "q")
    assert world.commit() == []


@pytest.mark.parametrize(
    "deed",
    [
        lambda shard, now: decide_pause_queue(shard, now, "q", "ann", "why"),
        lambda shard, now: decide_resume_queue(shard, now, "q"),
        lambda shard, now: decide_delete_queue(shard, now, "q", force=True),
    ],
)
def test_queue_that_is_not_there_is_not_found(world, deed):
    with pytest.raises(Refused, match="there is no queue q") as refused:
        deed(world.shard, world.now)
    assert (refused.value.kind, refused.value.field) == (RefusalKind.QUEUE_NOT_FOUND, "queue")


def test_queue_with_active_jobs_is_deleted_only_by_force(world):
    world.plain(b"1", b"2", b"3")
    world.row(key="k")
    world.row(delay_ms=1_000)
    holder = world.session()
    world.lease(2, holder=holder)
    with pytest.raises(Refused, match="queue q has 2 active jobs; set force") as refused:
        decide_delete_queue(world.shard, world.now, "q", force=False)
    assert refused.value.kind is RefusalKind.QUEUE_ACTIVE
    assert decide_delete_queue(world.shard, world.now, "q", force=True) == 5
    assert (world.shard.queues, world.shard.load.live_jobs) == ({}, 0)
    assert holder.in_flight.jobs == 0
    assert {reason for *_, reason in revoked_in(world.shard)} == {RevokeReason.QUEUE_DELETED}
    world.check()


def test_ended_jobs_go_with_their_queue_and_count(world):
    world.ack([(world.row(), world.one().delivery)])
    assert decide_delete_queue(world.shard, world.now, "q", force=False) == 1
    assert QueueGone("q", world.now.wall_ms) in take_endings(world.shard)


def test_queue_with_settings_or_paused_does_not_vanish(world):
    world.settings("kept", lease_ms=5_000)
    world.settings("paused")
    decide_pause_queue(world.shard, world.now, "paused", "ann", "why")
    world.advance(10 * HOUR_MS)
    assert decide_delete_idle_queues(world.shard, world.now) == 0


def test_pushing_again_and_again_keeps_an_empty_queue(world):
    known_queue(world.shard, world.now, "q")
    world.advance(HOUR_MS)
    known_queue(world.shard, world.now, "q")
    world.advance(HOUR_MS)
    assert decide_delete_idle_queues(world.shard, world.now) == 0


def test_active_jobs_are_deleted_with_their_queue_in_slices(world):
    """Trial C5: members of a run and single jobs; their workers are told, other queues stay."""
    first_id = world.plain(b"1", b"2", b"3", b"4").first_id
    single, volatile = world.row(), world.row(level=AckLevel.MEMORY)
    leased = dict(leases_of(world.lease()))
    assert len(leased) == 6
    ids = [first_id + 3, first_id, first_id + 1, single, volatile, first_id + 99]
    assert decide_delete_active(world.shard, world.now, ids) == 5
    facts = [fact for fact in world.commit() if isinstance(fact, JobsDeleted)]
    assert [(fact.starts, fact.counts) for fact in facts] == [
        ([first_id, first_id + 3, single], [2, 1, 1])
    ]
    revoked = {(job_id, delivery) for _, job_id, delivery, _ in revoked_in(world.shard)}
    assert revoked == {(one, leased[one]) for one in ids if one in leased}
    assert {why for *_, why in revoked_in(world.shard)} == {RevokeReason.QUEUE_DELETED}
    assert world.counts() == (0, 0, 1)
    world.check()
    assert decide_delete_queue(world.shard, world.now, "q", force=True) == 1
    world.check()


def test_queue_that_is_being_deleted_hands_out_nothing(world):
    """Trial C5: or a job would become active between two slices."""
    world.row()
    world.queue().deleting = True
    assert world.lease().count() == 0


def test_idle_queue_that_is_gone_by_now_is_passed_over(world):
    """Names are collected first and looked at a slice at a time."""
    assert decide_delete_idle_queues(world.shard, world.now, ["gone"]) == 0
