"""Facts of queues."""

from __future__ import annotations

from jobline_server.engine.endings import QueueGone
from jobline_server.engine.queue_entries import (
    QueueChanged,
    QueueDeleted,
    QueuePaused,
    QueueResumed,
)
from jobline_server.engine.values import DEFAULT_SETTINGS, JobState, QueueSettings, RevokeReason
from tests.unit.engine.effects_of import revoked_in, take_endings, take_woken
from tests.unit.engine.world import WALL_MS


def test_new_queue_takes_its_number(world):
    number = world.shard.next_id()
    world.shard.emit(QueueChanged(WALL_MS, "q", DEFAULT_SETTINGS, created_number=number))
    assert (world.queue().number, world.shard.next_id()) == (number, number + 1)
    assert world.shard.changes.queues.to_write == {"q"}


def test_queue_that_is_there_keeps_its_number_and_its_jobs(world):
    world.row()
    queue = world.queue()
    world.shard.emit(QueueChanged(WALL_MS, "q", QueueSettings(max_attempts=1)))
    assert world.queue() is queue
    assert (queue.settings.max_attempts, queue.counts[JobState.READY]) == (1, 1)


def test_resumed_queue_is_woken(world):
    world.row()
    world.shard.emit(QueuePaused(WALL_MS, "q", "ann", "why"))
    assert world.queue().paused_by == "ann"
    take_woken(world.shard)
    world.shard.emit(QueueResumed(WALL_MS, "q"))
    assert take_woken(world.shard) == [world.queue()]


def test_deleted_queue_takes_its_jobs_along_and_no_others(world):
    world.plain(b"1", b"2")
    single, other = world.row(), world.row(queue="other")
    lot = world.plain(b"3", queue="other").first_id
    holder = world.session()
    world.lease(1, holder=holder)
    world.lease(2, holder=holder)
    world.shard.jobs[single].stored = world.queue().stored = True
    world.shard.emit(QueueDeleted(WALL_MS, "q"))
    assert (set(world.shard.jobs), set(world.shard.lots.lots)) == ({other}, {lot})
    assert {reason for *_, reason in revoked_in(world.shard)} == {RevokeReason.QUEUE_DELETED}
    assert (len(revoked_in(world.shard)), holder.in_flight.jobs, holder.leases) == (3, 0, {})
    assert world.shard.changes.jobs.to_delete == [single]
    assert len(world.shard.changes.queues.to_delete) == 1
    world.check()


def test_stored_lot_of_a_deleted_queue_is_buried(world):
    lot = world.plain(b"1", b"2").first_id
    world.shard.lots.find(lot).stored = True
    delayed = world.row(delay_ms=1_000)
    world.shard.emit(QueueDeleted(WALL_MS, "q"))
    assert world.shard.changes.lots.to_delete == [lot]
    assert world.state(delayed) is None
    world.tick(1_000)
    world.check()


def test_deleted_empty_queue_leaves_word(world):
    world.shard.emit(QueueChanged(WALL_MS, "q", DEFAULT_SETTINGS, created_number=1))
    world.shard.emit(QueueDeleted(WALL_MS, "q"))
    assert take_endings(world.shard) == [QueueGone("q", WALL_MS)]
    assert world.shard.changes.queues.to_write == set()
    assert world.shard.changes.queues.to_delete == []


def test_load_keeps_the_totals_of_queues_that_are_deleted(world):
    for name in ("q", "other"):
        world.row(queue=name)
        queue = world.queue(name)
        queue.completed_total, queue.failed_total = 20, 300
        world.shard.emit(QueueDeleted(WALL_MS, name))
    load = world.shard.load
    assert load.gone_pushed_total == 2
    assert (load.gone_completed_total, load.gone_failed_total) == (40, 600)
