"""Jobs that are `lifo`: they go to the front of their lanes, and hold up nobody."""

from __future__ import annotations

import pytest

from jobline_server.engine import limits, open_lanes, ranks
from jobline_server.engine.commands import Push, ReleaseItem
from jobline_server.engine.decide.admin import decide_cancel, decide_retry
from jobline_server.engine.decide.lease import decide_lease
from jobline_server.engine.decide.push import decide_push
from jobline_server.engine.holder import Holder
from jobline_server.engine.payloads import Payloads
from jobline_server.engine.rules import JobRules
from jobline_server.engine.ties import Ties
from jobline_server.engine.values import DEFAULT_OPTIONS, AckLevel, JobOptions, JobState
from tests.pushed_rows import NewJob, rows_of
from tests.shard_image import image_of
from tests.unit.engine.world import leases_of

LIFO = JobOptions(rules=JobRules(lifo=True))
MAIL = JobOptions(name="mail", rules=JobRules(lifo=True))


def push_only(world, count=1, options=LIFO) -> list[int]:
    """Pushes rows whose commit is still under way."""
    rows = rows_of([NewJob(b"x", options, "", 0)] * count)
    pushed = decide_push(world.shard, world.now, Push("q", options, rows))
    return list(range(pushed.first_id, pushed.first_id + pushed.count))


def lease_only(world, most=100) -> list[int]:
    """Leases what is on disk, without a commit."""
    queue, holder = world.queue(), Holder("w", "")
    leased = decide_lease(
        world.shard, world.now, queue, holder, max_jobs=most, max_bytes=1 << 30, names=None,
        lease_ms=0,
    )  # fmt: skip
    return [job_id for job_id, _ in leases_of(leased)]


def test_the_last_push_goes_first_and_keeps_its_own_order(world):
    """G12: lots and rows alike, and jobs without the option stay behind."""
    plain = world.row()
    rows = world.push(jobs=[NewJob(b"1", LIFO, "", 0), NewJob(b"2", MAIL, "", 0)]).first_id
    lot = world.plain(b"3", b"4", options=LIFO).first_id
    world.check()
    assert world.ids() == [lot, lot + 1, rows, rows + 1, plain]


def test_beside_jobs_of_groups_they_go_to_the_front_in_their_order(world):
    """One push has both, in any order, after a delay as well."""
    plain = world.row()
    grouped = NewJob(b"g", DEFAULT_OPTIONS, "", 0, ties=Ties("g"))
    first = world.push(
        jobs=[NewJob(b"1", LIFO, "", 0), grouped, NewJob(b"2", LIFO, "", 0)], delay_ms=1_000
    ).first_id
    world.tick(1_000)
    world.check()
    assert world.ids() == [first, first + 2, plain, first + 1]


@pytest.mark.parametrize("delay_ms", [0, 1_000])
def test_one_push_of_rows_and_payloads_keeps_its_order(world, delay_ms, monkeypatch):
    """G12: whichever facts it becomes, also when it starts later."""
    world.row(delay_ms=delay_ms)
    run_at_ms = world.now.wall_ms + delay_ms if delay_ms else 0
    large = b"x" * (limits.MESSAGE_BYTES_DEFAULT - limits.JOB_EXTRA_BYTES + 1)
    rows = rows_of([NewJob(b"r", LIFO, "k", run_at_ms)])
    payloads = Payloads.of([b"a", b"b", large, b"c"])
    push = Push("q", LIFO, rows, payloads, run_at_ms, request_id=b"once")
    pushed = decide_push(world.shard, world.now, push)
    world.commit()
    ids = list(range(pushed.first_id, pushed.first_id + 5))
    again = decide_push(world.shard, world.now, push)
    assert (again.first_id, again.count) == (pushed.first_id, 5)
    world.tick(delay_ms)
    assert world.ids()[:5] == ids


def test_jobs_of_one_moment_keep_their_order_and_later_ones_go_before(world):
    """Volatile ones are no different; lots come as they were pushed."""
    first = world.row(delay_ms=1_000, rules=LIFO.rules)
    volatile = world.row(delay_ms=1_000, rules=LIFO.rules, level=AckLevel.MEMORY)
    third = world.row(delay_ms=1_000, rules=LIFO.rules)
    later = world.plain(b"1", b"2", delay_ms=2_000, options=LIFO).first_id
    plain = world.plain(b"1", delay_ms=2_000).first_id
    world.tick(5_000)
    world.check()
    assert world.ids() == [later, later + 1, first, volatile, third, plain]


def test_jobs_of_one_moment_keep_their_order_in_several_queues(world):
    """However they alternate."""
    ids = [world.row(delay_ms=1_000, rules=LIFO.rules, queue="qp"[n % 2]) for n in range(4)]
    world.tick(1_000)
    world.check()
    assert [*world.ids(), *world.ids(queue="p")] == [ids[0], ids[2], ids[1], ids[3]]


def test_a_retry_goes_to_the_front_and_a_release_to_its_old_place(world):
    first, second = world.row(rules=LIFO.rules), world.row(rules=LIFO.rules)
    job = world.one()
    assert job.id == second
    world.row(rules=LIFO.rules)
    world.release(ReleaseItem(job.id, job.delivery))
    third = world.one()
    assert third.id > second
    world.fail(third.id, third.delivery, retry_after_ms=0)
    assert world.ids() == [third.id, second, first]


def test_retried_by_hand_they_go_to_the_front(world):
    pushed = world.push(jobs=[NewJob(b"1", LIFO, "a", 0), NewJob(b"2", LIFO, "b", 0)]).first_id
    world.ack(leases_of(world.lease()))
    ended = world.ended()
    plain = world.row()
    decide_retry(world.shard, world.now, [(record, state) for state, record in ended.values()])
    world.commit()
    assert world.ids() == [pushed, pushed + 1, plain]


def test_a_job_at_the_front_that_is_not_on_disk_holds_up_nobody(world):
    """G3, G12: with such a push in every commit, nothing behind it would ever be leased. Lots and
    jobs behind it go in their order, in parts, and recovery knows it.
    """
    lot = world.plain(b"1", b"2", b"3").first_id
    others = [world.row() for _ in range(3)]
    first = push_only(world, 4)
    assert lease_only(world, 1) == [lot]
    second = push_only(world, 2)
    assert lease_only(world, 4) == [lot + 1, lot + 2, *others[:2]]
    world.check()
    world.commit()
    recovered = world.recovered()
    assert image_of(recovered)["jobs"] == image_of(world.shard)["jobs"]
    assert world.ids() == [*second, *first, others[2]]


def test_jobs_that_go_from_behind_the_front_may_have_gaps(world):
    """What was cancelled between them is passed over."""
    ids = [world.row() for _ in range(5)]
    fresh = push_only(world, 3)
    decide_cancel(world.shard, world.now, [ids[1], fresh[1]])
    assert lease_only(world) == [ids[0], *ids[2:]]
    world.commit()
    world.check()
    assert world.ids() == [fresh[0], fresh[2]]


def test_the_front_is_passed_over_while_a_lane_is_swept(world):
    """Items that the sweep has not reached are found as well."""
    ids = [world.row() for _ in range(200)]
    for job_id in ids[20:90]:
        decide_cancel(world.shard, world.now, [job_id])
    lane = next(iter(world.queue().lanes()))
    assert lane.unswept
    left = [*ids[:20], *ids[90:]]
    fresh = push_only(world, 2)
    assert lease_only(world) == left[:100]
    world.commit()
    world.check()
    assert world.ids() == [*fresh, *left[100:]]


def test_many_names_are_no_different(world, monkeypatch):
    """G12: lanes that are ordered by their heads look behind those that are not on disk."""
    monkeypatch.setattr(ranks, "LANES_MERGED_MAX", 2)
    monkeypatch.setattr(open_lanes, "FEW_MAX", 1)
    names = [f"n{index}" for index in range(5)]
    ids = [world.row(name=name) for name in names * 2]
    fresh = [
        job_id
        for name in names[:3]
        for job_id in push_only(world, 1, JobOptions(name=name, rules=LIFO.rules))
    ]
    push_only(world, 1, JobOptions(name="alone", rules=LIFO.rules))
    assert lease_only(world, 7) == ids[:7]
    world.commit()
    world.check()
    assert world.ids()[1:] == [*fresh[::-1], *ids[7:]]
    assert world.shard.state_of(fresh[0]) is JobState.ACTIVE
