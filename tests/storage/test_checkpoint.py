"""Checkpoints: what costs a row, what is removed, and what a broken-off one leaves behind."""

from __future__ import annotations

import pytest

from jobline.v1 import store_pb2
from jobline_server.engine.commands import Push
from jobline_server.engine.decide.admin import decide_cancel
from jobline_server.engine.decide.push import decide_push
from jobline_server.engine.decide.queues import decide_delete_queue
from jobline_server.engine.decide.timers import tick
from jobline_server.engine.limits import DAY_MS, HOUR_MS, REQUEST_WINDOW_MS
from jobline_server.engine.payloads import Payloads
from jobline_server.engine.values import DEFAULT_OPTIONS, AckLevel, JobState, Now
from jobline_server.storage.checkpoint import Checkpoint
from jobline_server.storage.codec.shared import payloads_of
from jobline_server.storage.store import ItemKind
from tests.storage.checkpointing import (
    LARGE,
    check_recovery,
    lease,
    push_jobs,
    push_lot,
    put_back,
    stored,
    work_off,
)
from tests.storage.recovery_world import SHARD, World


@pytest.fixture
def world():
    return World()


def pass_time(world, milliseconds):
    now = world.now
    world.now = Now(now.wall_ms + milliseconds, now.mono_ms + milliseconds)
    tick(world.shard, world.now)


def test_job_that_lived_between_two_checkpoints_costs_no_row(world):
    push_jobs(world, 5)
    push_lot(world, [b"a", b"b"])
    work_off(world, 7)
    before = world.store.rows_written
    world.finish_checkpoint(truncate=True)
    assert world.store.rows_written - before == 2, "the queue and the shard's counters"
    assert stored(world, ItemKind.JOB) == stored(world, ItemKind.LOT) == []


def test_job_that_ends_after_its_slice_is_removed(world):
    ids = push_jobs(world, 3, payload=LARGE)
    assert world.stage(2)
    assert world.stage(2)
    work_off(world, 1)
    world.finish_checkpoint(truncate=True)
    assert stored(world, ItemKind.JOB) == ids[1:]
    check_recovery(world)


def test_job_that_changes_after_its_slice_is_written_again(world):
    push_jobs(world, 3, payload=LARGE)
    assert world.stage(2)
    lease(world, 1)
    world.finish_checkpoint(truncate=True)
    assert world.shard.queues["q"].counts[JobState.ACTIVE] == 1
    check_recovery(world)


def test_job_that_came_back_before_it_was_removed_keeps_its_row(world):
    (job_id,) = push_jobs(world)
    world.finish_checkpoint(truncate=True)
    work_off(world, 1)
    put_back(world, job_id)
    world.finish_checkpoint(truncate=True)
    assert stored(world, ItemKind.JOB) == [job_id]
    check_recovery(world)


def test_job_that_came_back_and_ended_before_it_was_written_loses_its_row(world):
    """Its old row was removed first; that it came back in between is written nowhere."""
    ids = push_jobs(world, 20, payload=LARGE)
    world.finish_checkpoint(truncate=True)
    decide_cancel(world.shard, world.now, ids)
    for job_id in ids:
        put_back(world, job_id)
    world.stage(2)
    assert not world.shard.changes.jobs.to_delete, "the removal was taken up"
    job_id = next(iter(world.shard.changes.jobs.to_write))  # and not yet written
    decide_cancel(world.shard, world.now, [job_id])
    world.finish_checkpoint(truncate=True)
    assert job_id not in stored(world, ItemKind.JOB)
    check_recovery(world)


def test_what_an_earlier_process_wrote_is_removed_when_it_ends(world):
    push_jobs(world, 1)
    push_lot(world, [b"a"])
    world.finish_checkpoint(truncate=True)
    check_recovery(world)
    work_off(world, 2)
    decide_delete_queue(world.shard, world.now, "q", force=False)
    world.finish_checkpoint(truncate=True)
    for kind in (ItemKind.JOB, ItemKind.LOT, ItemKind.QUEUE):
        assert stored(world, kind) == []


def test_what_is_never_written_is_in_no_checkpoint(world):
    push_jobs(world, 2, key="k", level=AckLevel.MEMORY)
    push_lot(world, [b"a"], level=AckLevel.MEMORY)
    world.finish_checkpoint(truncate=True)
    for kind in (ItemKind.JOB, ItemKind.LOT, ItemKind.KEYS):
        assert stored(world, kind) == []
    check_recovery(world)


def test_payloads_that_nobody_needs_are_left_out(world):
    """A lot's row begins with the first payload that may still be asked for."""
    first_id = push_lot(world, [b"%d" % index for index in range(10)])
    work_off(world, 4)
    world.finish_checkpoint(truncate=True)
    message = store_pb2.StoredLot.FromString(world.store.blob_of(SHARD, ItemKind.LOT, first_id))
    kept = payloads_of(message, message.count - 4, skipped=4)
    assert (message.first_index, kept[4]) == (4, b"4")
    check_recovery(world)


def test_abandoned_checkpoint_loses_nothing(world):
    """All that its slices took is written, and all that they removed is removed, by the next."""
    push_jobs(world, 2, key="old", payload=LARGE)
    push_lot(world, [b"a", b"b"])
    decide_push(world.shard, world.now, Push("gone", DEFAULT_OPTIONS, payloads=Payloads.of([b"x"])))
    world.finish_checkpoint(truncate=True)
    work_off(world, 3)
    decide_delete_queue(world.shard, world.now, "gone", force=True)
    kept = push_jobs(world, 3, key="new", payload=LARGE)
    kept_lot = push_lot(world, [b"c"])
    for _ in range(3):
        while world.stage(1):
            pass
        world.abandon_checkpoint()
        assert world.shard.changes.jobs.to_delete
    world.finish_checkpoint(truncate=True)
    assert stored(world, ItemKind.JOB) == kept
    assert stored(world, ItemKind.LOT) == [kept_lot]
    assert len(stored(world, ItemKind.QUEUE)) == 1
    assert len(stored(world, ItemKind.KEYS)) == 2
    check_recovery(world)


def test_key_that_a_volatile_push_took_over_is_not_written(world):
    """Within the hour in which the key of the push before would have gone, unwritten."""
    assert world.now.wall_ms % HOUR_MS < HOUR_MS - 2 * REQUEST_WINDOW_MS
    for level in (AckLevel.FSYNCED, AckLevel.MEMORY):
        push = Push("q", DEFAULT_OPTIONS, payloads=Payloads.of([b"x"]), level=level)
        push.request_id = b"again"
        decide_push(world.shard, world.now, push)
        pass_time(world, REQUEST_WINDOW_MS)
    world.finish_checkpoint(truncate=True)
    assert stored(world, ItemKind.KEYS) == []


def test_keys_go_with_their_hour(world):
    push_jobs(world, key="k")
    world.finish_checkpoint(truncate=True)
    assert len(stored(world, ItemKind.KEYS)) == 1
    check_recovery(world)
    pass_time(world, DAY_MS + 2 * HOUR_MS)
    world.finish_checkpoint(truncate=True)
    assert stored(world, ItemKind.KEYS) == []
    check_recovery(world)


def test_keys_whose_removal_was_abandoned_go_later(world):
    push_jobs(world, key="k")
    world.finish_checkpoint(truncate=True)
    pass_time(world, DAY_MS + 2 * HOUR_MS)
    checkpoint = world.checkpoint = Checkpoint(world.shard, world.segments)
    world.commit()
    checkpoint.finish()
    world.abandon_checkpoint()
    world.finish_checkpoint(truncate=True)
    assert stored(world, ItemKind.KEYS) == []


def test_keys_of_later_checkpoints_stand_beside_those_of_earlier_ones(world):
    for key in ("a", "b", "c"):
        push_jobs(world, key=key)
        world.finish_checkpoint(truncate=True)
        check_recovery(world)
    assert len(stored(world, ItemKind.KEYS)) == 3


def test_checkpoint_ends_only_where_the_journal_does(world):
    push_jobs(world)
    with pytest.raises(RuntimeError, match="take the entries first"):
        Checkpoint(world.shard, world.segments).finish()
