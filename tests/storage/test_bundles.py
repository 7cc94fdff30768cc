"""Bundles: single jobs that a checkpoint keeps in one item, until something happens to them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobline_server.engine.commands import Push
from jobline_server.engine.decide.admin import decide_cancel, decide_promote
from jobline_server.engine.decide.push import decide_push
from jobline_server.engine.decide.timers import tick
from jobline_server.engine.job import Details, Job
from jobline_server.engine.limits import SECOND_MS
from jobline_server.engine.payloads import Payloads
from jobline_server.engine.queue import Queue
from jobline_server.engine.ties import Ties
from jobline_server.engine.values import DEFAULT_OPTIONS, JobOptions, JobState, LeaseReason
from jobline_server.storage.kinds.bundles import (
    BUNDLE_BYTES_MAX,
    JOB_BYTES_MAX,
    NEIGHBOUR_BITS,
    decode_bundle,
    encode_bundle,
    is_untouched,
)
from jobline_server.storage.store import ItemKind
from tests.pushed_rows import NewJob, rows_of
from tests.storage import value_strategies as own
from tests.storage.checkpointing import (
    LARGE,
    check_recovery,
    lease,
    push_jobs,
    put_back,
    stored,
    work_off,
)
from tests.storage.recovery_world import SHARD, World

QUEUES = {"q": Queue("q", 1, 5), "r": Queue("r", 2, 5)}
# What an untouched job has; `stored` is its bundle.
COLUMNS = {
    "id",
    "queue",
    "options",
    "payload",
    "state",
    "pushed_ms",
    "run_at_ms",
    "job_key",
    "order",
}


@pytest.fixture
def world():
    return World()


def bundled(world):
    """The ids of the jobs in each bundle that the checkpoint has."""
    found = []
    for key in stored(world, ItemKind.BUNDLE):
        blob = world.store.blob_of(SHARD, ItemKind.BUNDLE, key)
        _, jobs = decode_bundle(key, blob, lambda name: Queue(name, 0, 0))
        found.append([job.id for job in jobs])
    return found


# Bytes.


@st.composite
def untouched_jobs(draw: st.DrawFn) -> list[Job]:
    """Neighbours, or nearly so; few columns are alike."""
    ids = sorted(draw(st.sets(own.ids | st.integers(7, 20), min_size=1, max_size=6)))
    kinds = draw(st.lists(own.job_options, min_size=1, max_size=2))
    first = draw(st.integers(-(2**60), 2**60))
    jobs = []
    for index, job_id in enumerate(ids):
        queue = QUEUES[draw(st.sampled_from(["q", "q", "r"]))]
        options, payload = draw(st.sampled_from(kinds)), draw(st.binary(max_size=8))
        job = Job(job_id, queue, options, payload, draw(st.sampled_from([7, 7, 8])))
        job.order = first + index if draw(st.integers(0, 5)) else draw(st.integers(0, 99))
        job.job_key = draw(st.just("") | own.text)
        job.run_at_ms = draw(st.just(0) | own.moments)
        job.state = JobState.SCHEDULED if job.run_at_ms else JobState.READY
        jobs.append(job)
    return jobs


@given(untouched_jobs())
def test_jobs_of_a_bundle_come_back(jobs):
    bundle, again = decode_bundle(jobs[0].id, encode_bundle(jobs), QUEUES.__getitem__)
    for job, found in zip(jobs, again, strict=True):
        assert [getattr(found, name) for name in COLUMNS] == [getattr(job, n) for n in COLUMNS]
        assert found.stored is bundle
    assert (bundle.first_id, bundle.end_id) == (jobs[0].id, jobs[-1].id + 1)
    assert bundle.jobs == len(jobs)


def test_what_a_bundle_does_not_say_is_as_in_a_new_job():
    """A field that is added to `Job` needs a column, or keeps its job out of bundles."""
    touched = {"delivery", "lease_reason", "details", "ties"}
    implied = {"attempts", "stalls", "releases", "lease_ms", "leased_ms", "cancel_requested"}
    bookkeeping = {"holder", "deadline_ms", "offset", "ready_ms", "volatile", "stored"}
    assert set(Job.__slots__) == COLUMNS | touched | implied | bookkeeping
    for name, value in (
        ("delivery", 1),
        ("lease_reason", LeaseReason.RETRY),
        ("details", Details()),
        ("ties", Ties(group="g")),
    ):
        job = Job(1, QUEUES["q"], DEFAULT_OPTIONS, b"", 7)
        assert is_untouched(job)
        setattr(job, name, value)
        assert not is_untouched(job)


# What is bundled.


def test_jobs_that_were_pushed_together_are_few_items(world):
    ids = push_jobs(world, 1_000)
    world.finish_checkpoint(truncate=True)
    assert [job_id for jobs in bundled(world) for job_id in jobs] == ids
    assert len(bundled(world)) <= 1_000 // (1 << NEIGHBOUR_BITS) + 2
    assert stored(world, ItemKind.JOB) == []
    check_recovery(world)


def test_jobs_of_several_pushes_and_queues_share_a_bundle(world):
    for queue in ("q", "r", "q"):
        rows = rows_of([NewJob(b"x", DEFAULT_OPTIONS, "")])
        decide_push(world.shard, world.now, Push(queue, DEFAULT_OPTIONS, rows))
    world.finish_checkpoint(truncate=True)
    assert [len(jobs) for jobs in bundled(world)] == [3]
    check_recovery(world)


def test_large_job_has_an_item_of_its_own(world):
    """It would be written again with each neighbour that leaves."""
    small = push_jobs(world, 2)
    large = push_jobs(world, 1, payload=LARGE)
    small += push_jobs(world, 2)
    world.finish_checkpoint(truncate=True)
    assert bundled(world) == [small]
    assert stored(world, ItemKind.JOB) == large
    check_recovery(world)


def test_headers_count_as_what_a_job_has_to_write(world):
    headers = [(("h", "v" * size),) for size in (1, 1, JOB_BYTES_MAX)]
    rows = rows_of([NewJob(b"x", JobOptions(headers=own), "") for own in headers])
    first_id = decide_push(world.shard, world.now, Push("q", DEFAULT_OPTIONS, rows)).first_id
    world.finish_checkpoint(truncate=True)
    assert bundled(world) == [[first_id, first_id + 1]]
    assert stored(world, ItemKind.JOB) == [first_id + 2]
    check_recovery(world)


def test_bundle_is_no_larger_than_a_few_pages(world):
    push_jobs(world, 200, payload=bytes(JOB_BYTES_MAX))
    world.finish_checkpoint(truncate=True)
    most = BUNDLE_BYTES_MAX // JOB_BYTES_MAX
    assert max(len(jobs) for jobs in bundled(world)) == most
    check_recovery(world)


def test_job_without_neighbours_has_an_item_of_its_own(world):
    ids = push_jobs(world, 1)
    world.finish_checkpoint(truncate=True)
    assert (stored(world, ItemKind.JOB), bundled(world)) == (ids, [])


# What happens to a bundle.


def test_job_that_is_touched_leaves_its_bundle(world):
    ids = push_jobs(world, 4)
    world.finish_checkpoint(truncate=True)
    assert [job_id for job_id, _ in lease(world, 1)] == ids[:1]
    world.finish_checkpoint(truncate=True)
    assert (stored(world, ItemKind.JOB), bundled(world)) == (ids[:1], [ids[1:]])
    check_recovery(world)


def test_job_that_ends_leaves_its_bundle(world):
    ids = push_jobs(world, 4)
    world.finish_checkpoint(truncate=True)
    check_recovery(world)
    decide_cancel(world.shard, world.now, [ids[0], ids[2]])
    world.finish_checkpoint(truncate=True)
    assert (stored(world, ItemKind.JOB), bundled(world)) == ([], [[ids[1], ids[3]]])
    check_recovery(world)


def test_bundle_goes_with_its_last_job(world):
    push_jobs(world, 4)
    world.finish_checkpoint(truncate=True)
    work_off(world, 2)
    lease(world, 2)
    world.finish_checkpoint(truncate=True)
    assert bundled(world) == []
    assert len(stored(world, ItemKind.JOB)) == 2
    assert not world.shard.bundles
    check_recovery(world)


def test_neighbours_that_end_together_cost_one_write(world):
    """A bundle is written once for all that left it since the checkpoint before."""
    push_jobs(world, 1 << NEIGHBOUR_BITS)
    world.finish_checkpoint(truncate=True)
    work_off(world, 10)
    before = world.store.rows_written
    world.finish_checkpoint(truncate=True)
    assert world.store.rows_written - before == 1 + 1, "the bundle and the shard's counters"


def test_bundle_that_loses_a_job_after_its_slice_is_written_again(world):
    ids = push_jobs(world, 5)
    assert world.stage(1)
    lease(world, 1)
    work_off(world, 1)
    world.finish_checkpoint(truncate=True)
    assert (stored(world, ItemKind.JOB), bundled(world)) == (ids[:1], [ids[2:]])
    check_recovery(world)


def test_jobs_whose_time_comes_stay_in_their_bundle(world):
    now_ms = world.now.wall_ms
    rows = rows_of([NewJob(b"x", DEFAULT_OPTIONS, "", now_ms + SECOND_MS)] * 5)
    decide_push(world.shard, world.now, Push("q", DEFAULT_OPTIONS, rows))
    world.finish_checkpoint(truncate=True)
    before = bundled(world)
    check_recovery(world)
    decide_promote(world.shard, world.now, before[0][:1])
    world.time_passes(2 * SECOND_MS)
    tick(world.shard, world.now)
    assert world.shard.queues["q"].counts[JobState.READY] == 5
    world.finish_checkpoint(truncate=True)
    assert (stored(world, ItemKind.JOB), bundled(world)) == ([], before)
    check_recovery(world)


def test_ended_job_that_comes_back_is_not_bundled(world):
    """Its old bundle may be there still, under its id."""
    ids = push_jobs(world, 3)
    world.finish_checkpoint(truncate=True)
    work_off(world, 1)
    put_back(world, ids[0])
    world.finish_checkpoint(truncate=True)
    assert (stored(world, ItemKind.JOB), bundled(world)) == (ids[:1], [ids[1:]])
    check_recovery(world)


def test_abandoned_checkpoint_leaves_no_bundle_behind(world):
    """What it staged stays staged: the next one writes it again, or removes it."""
    first, second = push_jobs(world, 70), []
    for _ in range(3):
        while world.stage(1):
            pass
        world.abandon_checkpoint()
        decide_cancel(world.shard, world.now, first[:30])
        first = first[30:]
        second += push_jobs(world, 5)
    world.finish_checkpoint(truncate=True)
    assert sorted(job_id for jobs in bundled(world) for job_id in jobs) == second
    check_recovery(world)


def test_bad_bundle_is_set_apart_and_its_neighbours_go_on(world):
    """The journal goes on about its jobs, and about others."""
    ids = push_jobs(world, 200)
    world.finish_checkpoint(truncate=True)
    leased = lease(world, 200)
    decide_cancel(world.shard, world.now, [leased[0][0]])
    bad, *good = bundled(world)
    world.store.rotten.add((ItemKind.BUNDLE, bad[0]))
    world.commit()
    world.crash(ops_kept=0)
    assert sorted(world.shard.jobs) == [job_id for jobs in good for job_id in jobs]
    assert world.reports[0].what == f"bundle item {ids[0]}"
    assert world.shard.queues["q"].counts[JobState.ACTIVE] == 200 - len(bad)


def test_bundle_beside_lots_keeps_their_order(world):
    """Lanes are as they were, whichever item was loaded first."""
    for _ in range(3):
        push_jobs(world, 3)
        push = Push("q", DEFAULT_OPTIONS, payloads=Payloads.of([b"a", b"b"]))
        decide_push(world.shard, world.now, push)
    lease(world, 1)
    world.finish_checkpoint(truncate=True)
    check_recovery(world)
