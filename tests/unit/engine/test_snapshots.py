"""Jobs as they are noted for the history, in columns."""

from __future__ import annotations

import pytest

from jobline_server.engine.apply.noted import note_jobs, note_lot
from jobline_server.engine.job import Job
from jobline_server.engine.load import Load
from jobline_server.engine.queue import Queue
from jobline_server.engine.shard import Shard
from jobline_server.engine.snapshots import RunsNoted, alike, jobs_noted
from jobline_server.engine.values import (
    DEFAULT_OPTIONS,
    AckLevel,
    Attempt,
    AttemptOutcome,
    JobState,
)
from tests.unit.engine.world import World


def job(number: int, queue: Queue, state: JobState = JobState.READY) -> Job:
    return Job(number, queue, DEFAULT_OPTIONS, b"x" * number, 1_000, state)


def test_what_all_jobs_share_is_one_value() -> None:
    queue = Queue("q", 1, 0)
    noted = jobs_noted([job(1, queue), job(2, queue)])
    assert (noted.queue, noted.state, noted.ids) == ("q", JobState.READY, [1, 2])
    assert (noted.pushed_ms, noted.options, noted.holder) == (1_000, DEFAULT_OPTIONS, None)
    assert noted.payload_bytes == [1, 2]


def test_one_job_is_noted_as_several_are() -> None:
    """The fast path beside its slow twin."""
    queue = Queue("q", 1, 0)
    one, other = job(1, queue), job(1, queue)
    assert jobs_noted([one])._replace(ids=[1, 1]) == jobs_noted([one, other])
    assert jobs_noted([one], JobState.ACTIVE).state is JobState.ACTIVE


def test_jobs_are_noted_apart_by_queue_and_state_in_their_order() -> None:
    one, other = Queue("a", 1, 0), Queue("b", 2, 0)
    jobs = [job(1, one), job(2, one), job(3, one, JobState.ACTIVE), job(4, other), job(5, one)]
    assert [[each.id for each in part] for part in alike(jobs)] == [[1, 2], [3], [4], [5]]


def test_the_first_lease_is_known_while_the_history_reaches_back_so_far() -> None:
    queue = Queue("q", 1, 0)
    never, again, long = job(1, queue), job(2, queue), job(3, queue)
    for each, number in ((again, 1), (long, 30)):
        attempt = Attempt(number, 1, "w", 5_000, 6_000, AttemptOutcome.FAILED)
        each.leased_ms = 9_000
        each.writable_details().history = (attempt,)
    assert jobs_noted([never, again, long]).first_leased_ms == [0, 5_000, 0]


def test_jobs_that_are_in_no_journal_are_in_no_history() -> None:
    shard = Shard(0, epoch=1, load=Load(keeps_history=True))
    queue = Queue("q", 1, 0)
    stored, volatile = job(1, queue), job(2, queue)
    volatile.volatile = True
    note_jobs(shard, [volatile])
    assert shard.effects == []
    note_jobs(shard, [volatile, stored])
    (noted,) = shard.effects
    assert noted == jobs_noted([stored])


def test_members_of_a_lot_are_noted_with_their_lease() -> None:
    """All of them, as what they are when their queue is deleted."""
    world = World(Load(keeps_history=True))
    first_id = world.plain(b"a", b"b", b"c", b"d").first_id
    world.lease(1)
    [lot] = world.shard.lots.lots.values()
    [lease] = lot.leases
    note_lot(world.shard, lot)
    assert world.shard.effects == [
        RunsNoted(lot, JobState.READY, (first_id + 1,), (3,), lot.ready_ms),
        RunsNoted(lot, JobState.ACTIVE, (first_id,), (1,), lot.ready_ms, lease),
    ]


@pytest.mark.parametrize(
    ("keeps_history", "level"), [(False, AckLevel.FSYNCED), (True, AckLevel.MEMORY)]
)
def test_members_of_a_lot_are_not_noted_without_history_or_journal(
    *, keeps_history: bool, level: AckLevel
) -> None:
    world = World(Load(keeps_history=keeps_history))
    world.plain(b"a", b"b", level=level)
    [lot] = world.shard.lots.lots.values()
    note_lot(world.shard, lot)
    assert world.shard.effects == []
