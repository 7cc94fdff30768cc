"""Recovery where something is wrong, or must start afresh. That all else is as it was is shown by
`test_recovery_machine`.
"""

from __future__ import annotations

from typing import cast

import pytest

from jobline_server.engine import invariants, limits
from jobline_server.engine.commands import Push
from jobline_server.engine.decide.ack import decide_ack
from jobline_server.engine.decide.admin import decide_cancel, decide_delete_waiting
from jobline_server.engine.decide.lease import decide_lease
from jobline_server.engine.decide.push import decide_push
from jobline_server.engine.decide.queues import decide_delete_queue
from jobline_server.engine.decide.timers import tick
from jobline_server.engine.entries import JobsCompleted
from jobline_server.engine.keys import KeyRecord
from jobline_server.engine.load import Load
from jobline_server.engine.payloads import Payloads
from jobline_server.engine.values import DEFAULT_OPTIONS, JobOptions, JobState, Now
from jobline_server.storage.codec import encode_batch
from jobline_server.storage.kinds.keys import encode_keys
from jobline_server.storage.kinds.loading import PAUSED_BY
from jobline_server.storage.recovery import Recovery
from jobline_server.storage.store import DataLoss, ItemKind, ItemRow, JournalRow
from tests.pushed_rows import NewJob, rows_of
from tests.storage.checkpointing import LARGE
from tests.storage.memory_store import run
from tests.storage.recovery_world import SHARD, World


@pytest.fixture
def world():
    return World()


def push_jobs(world, count=1, queue="q", payload=b"x"):
    rows = rows_of([NewJob(payload, DEFAULT_OPTIONS)] * count)
    first_id = decide_push(world.shard, world.now, Push(queue, DEFAULT_OPTIONS, rows)).first_id
    return list(range(first_id, first_id + count))


def push_lot(world, count, queue="q"):
    payloads = Payloads.of([b"x"] * count)
    return decide_push(
        world.shard, world.now, Push(queue, JobOptions(name="lot"), payloads=payloads)
    ).first_id


def lease(world, max_jobs, session="", queue="q"):
    """(id, delivery) of jobs from the front."""
    world.commit()
    shard = world.shard
    holder = shard.clocks.holder_of(session or "s", "w")
    leased = decide_lease(
        shard,
        world.now,
        shard.queues[queue],
        holder,
        max_jobs=max_jobs,
        max_bytes=10_000,
        names=None,
        lease_ms=0,
    )
    shard.clocks.arm(holder)
    found = [(job.id, job.delivery) for job in leased.jobs]
    for one in leased.runs:
        found += [(one.first_id + index, one.delivery) for index in range(len(one.payloads))]
    return found


def ack(world, leases):
    ids, deliveries = [i for i, _ in leases], [d for _, d in leases]
    return decide_ack(world.shard, world.now, ids, deliveries, {})


def rot(world, kind, key):
    """An item's checksum is wrong from now on, and the process starts anew."""
    world.store.rotten.add((kind, key))
    world.commit()
    world.crash(ops_kept=0)
    invariants.check(world.shard)


def recovery_of(world):
    """The shard, opened once more and empty so far."""
    image = run(world.store.open_shard(SHARD, 0, limits.ID_BLOCK))
    return Recovery(image, load=Load(), report=world.reports.append)


# Items that are set apart.


def test_bad_job_is_set_apart_and_its_neighbours_go_on(world):
    ids = push_jobs(world, 3, payload=LARGE)
    world.finish_checkpoint(truncate=True)
    rot(world, ItemKind.JOB, ids[1])
    assert sorted(world.shard.jobs) == [ids[0], ids[2]]
    (report,) = world.reports
    assert report.what == f"job item {ids[1]}"
    assert [job_id for job_id, _ in lease(world, 3)] == [ids[0], ids[2]]


def test_journal_that_tells_of_a_bad_job_goes_on_without_it(world):
    """Facts about the lost job are reported; what stands beside it in the same fact has effect."""
    ids = push_jobs(world, 3, payload=LARGE)
    world.finish_checkpoint(truncate=True)
    ack(world, lease(world, 3))
    new = push_jobs(world, 1)
    rot(world, ItemKind.JOB, ids[1])
    assert sorted(world.shard.jobs) == new
    assert world.shard.queues["q"].kept() == {JobState.COMPLETED: 2}
    kinds = [report.what.split(" of ")[0] for report in world.reports]
    assert kinds == [f"job item {ids[1]}", "a JobsLeased", "a JobsCompleted"]


def test_journal_that_tells_of_a_bad_lot_goes_on_without_it(world):
    bad, good = push_lot(world, 5), push_lot(world, 5)
    world.finish_checkpoint(truncate=True)
    leases = lease(world, 8)
    ack(world, leases[::2])
    rot(world, ItemKind.LOT, bad)
    assert list(world.shard.lots.lots) == [good]
    assert world.shard.queues["q"].counts[JobState.ACTIVE] == 3 - 1
    assert {report.shard for report in world.reports} == {SHARD}


def test_deletion_in_which_a_bad_job_stands_deletes_the_others(world):
    """Waiting ones, of their own and in lots."""
    bad, good = push_lot(world, 3), push_lot(world, 3)
    ids = push_jobs(world, 2)
    world.finish_checkpoint(truncate=True)
    deleted = [bad, good, ids[0]]
    assert decide_delete_waiting(world.shard, world.now, deleted) == (3, [])
    rot(world, ItemKind.LOT, bad)
    assert sorted(job_id for job_id, _ in lease(world, 9)) == [good + 1, good + 2, ids[1]]


def test_bad_keys_are_forgotten_and_their_place_goes_with_their_hour(world):
    push = Push("q", DEFAULT_OPTIONS, rows_of([NewJob(b"x", DEFAULT_OPTIONS, "k")]))
    decide_push(world.shard, world.now, push)
    world.finish_checkpoint(truncate=True)
    (key,) = world.store.item_keys(SHARD, ItemKind.KEYS)
    rot(world, ItemKind.KEYS, key)
    assert world.shard.keys.records == {}
    assert list(world.segments.ended(1 << 53).values()) == [[key]]


def test_queue_whose_record_is_bad_comes_back_paused(world):
    """Its jobs are safe, and do not run under settings nobody chose."""
    ids = push_jobs(world, 2)
    number = world.shard.queues["q"].number
    world.finish_checkpoint(truncate=True)
    new = push_jobs(world, 1)
    rot(world, ItemKind.QUEUE, number)
    queue = world.shard.queues["q"]
    assert (queue.paused, queue.paused_by, queue.counts[JobState.READY]) == (True, PAUSED_BY, 3)
    assert sorted(world.shard.jobs) == ids + new
    assert lease(world, 3) == []
    world.finish_checkpoint(truncate=True)
    world.store.rotten.clear()
    world.crash(ops_kept=0)
    assert world.shard.queues["q"].paused_by == PAUSED_BY


def test_push_to_a_queue_whose_record_is_bad_is_not_lost(world):
    """The journal's pushes are applied although the queue had nothing else."""
    decide_cancel(world.shard, world.now, push_jobs(world, 1))
    number = world.shard.queues["q"].number
    world.finish_checkpoint(truncate=True)
    ids = push_jobs(world, 1)
    rot(world, ItemKind.QUEUE, number)
    assert sorted(world.shard.jobs) == ids


def test_bad_counters_repeat_no_id_and_no_place(world):
    ids = push_jobs(world, 3, payload=LARGE)
    world.finish_checkpoint(truncate=True)
    rot(world, ItemKind.SHARD, SHARD)
    new = push_jobs(world, 1)
    assert new > ids
    assert [job_id for job_id, _ in lease(world, 4)] == ids + new


def test_item_that_cannot_be_understood_refuses_the_start(world):
    """Its checksum is right, so a newer version wrote it: to go on would be to lose it."""
    recovery = recovery_of(world)
    with pytest.raises(DataLoss, match="job item 7 cannot be understood"):
        recovery.take_items([ItemRow(SHARD, ItemKind.JOB, 7, b"\xff\xff")])


def test_item_of_a_kind_that_is_not_known_refuses_the_start(world):
    recovery = recovery_of(world)
    with pytest.raises(DataLoss, match="99 item 7 cannot be understood"):
        recovery.take_items([ItemRow(SHARD, cast("ItemKind", 99), 7, b"")])


def test_journal_row_that_cannot_be_understood_refuses_the_start(world):
    recovery = recovery_of(world)
    with pytest.raises(DataLoss, match="journal row 1 cannot be understood"):
        recovery.take_journal([JournalRow(SHARD, 1, 1, 0, 0, b"\xff\xff")])


def test_journal_row_that_does_not_fit_refuses_the_start(world):
    """Every row before it was verified, so this is a bug, or a journal of something else."""
    recovery = recovery_of(world)
    blob = encode_batch([JobsCompleted(at_ms=1, starts=[7], counts=[1])])
    with pytest.raises(DataLoss, match="journal row 1 does not fit: job 7 is not leased"):
        recovery.take_journal([JournalRow(SHARD, 1, 1, 0, 0, blob)])


# What starts afresh.


def test_lease_gets_its_full_time_again(world):
    """However long the server was away."""
    push_jobs(world, 1)
    lease(world, 1)
    world.commit()
    world.now = Now(world.now.wall_ms + limits.HOUR_MS, world.now.mono_ms)
    world.crash(ops_kept=0)
    queue = world.shard.queues["q"]
    for passed_ms, active in ((29_000, 1), (3_000, 0)):
        now = world.now
        world.now = Now(now.wall_ms + passed_ms, now.mono_ms + passed_ms)
        tick(world.shard, world.now)
        assert queue.counts[JobState.ACTIVE] == active


def test_lease_is_still_valid_after_a_restart(world):
    """The worker that had it acks it as if nothing had happened."""
    push_lot(world, 3)
    leases = lease(world, 3)
    world.commit()
    world.crash(ops_kept=0)
    assert ack(world, leases) == []
    assert world.shard.queues["q"].kept() == {JobState.COMPLETED: 3}


def test_leases_of_a_session_are_in_one_hand_again(world):
    """The worker that resumes its session finds all it had, from items and journal alike."""
    push_lot(world, 2)
    lease(world, 2, session="one")
    world.finish_checkpoint(truncate=True)
    push_jobs(world, 1)
    lease(world, 1, session="one")
    world.commit()
    world.crash(ops_kept=0)
    holder = world.shard.clocks.holders["one"]
    assert (holder.worker, holder.in_flight.jobs, len(holder.leases)) == ("w", 3, 2)


def test_session_without_leases_is_forgotten(world):
    push_jobs(world, 1)
    ack(world, lease(world, 1, session="one"))
    world.commit()
    world.crash(ops_kept=0)
    assert world.shard.clocks.holders == {}


def test_hand_out_that_was_lost_shares_its_number_with_no_later_one(world):
    """Hand-outs do not wait for their commit; the epoch keeps their numbers apart."""
    push_jobs(world, 1)
    ((job_id, before),) = lease(world, 1)
    world.crash(ops_kept=0)
    ((again, after),) = lease(world, 1)
    assert again == job_id
    assert after > before


def test_totals_begin_with_the_process(world):
    """Those of queues that were deleted, too."""
    push_jobs(world, 2)
    push_jobs(world, 1, queue="gone")
    ack(world, lease(world, 1))
    decide_delete_queue(world.shard, world.now, "gone", force=True)
    world.commit()
    world.crash(ops_kept=0)
    queue, load = world.shard.queues["q"], world.shard.load
    assert (queue.pushed_total, queue.completed_total, load.gone_pushed_total) == (0, 0, 0)


def test_later_record_of_a_key_counts(world):
    """A key that was taken over after its window stands in two segments, in any order."""
    key = b"k" * 16
    records = {hour: KeyRecord(7, 1, 1, hour * limits.KEY_BUCKET_MS + 5) for hour in (10, 40)}
    rows = [
        ItemRow(SHARD, ItemKind.KEYS, hour << 23, encode_keys(hour, [(key, record)]))
        for hour, record in records.items()
    ]
    for order in (rows, rows[::-1]):
        recovery = recovery_of(world)
        recovery.take_items(order)
        assert recovery.finish({}, world.now).keys.records == {key: records[40]}
