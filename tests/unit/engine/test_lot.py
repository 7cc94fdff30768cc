"""Lots: what waits in them, what is leased of them, and how they are found."""

from __future__ import annotations

import pytest

from jobline_server.engine.holder import Holder
from jobline_server.engine.lot import Lot, RunLease
from jobline_server.engine.payloads import Payloads
from jobline_server.engine.queue import Queue
from jobline_server.engine.states import IllegalMove
from jobline_server.engine.values import DEFAULT_OPTIONS

LARGE = b"x" * 10_000


def test_one_large_payload_does_not_count_for_its_neighbours(world):
    """A lot's bytes are those of its payloads, not of its largest one a thousand times."""
    world.plain(LARGE, *[b"x"] * 99)
    assert world.shard.load.payload_bytes == 10_099
    assert world.queue().payload_bytes == 10_099


def test_bytes_of_a_lot_go_as_its_jobs_go(world):
    """Leases, windows and the load count each payload as long as it is, till nothing is left."""
    first_id = world.plain(b"", LARGE, b"xx", b"xxx").first_id
    holder = world.session()
    leased = world.lease(3, holder=holder)
    assert holder.in_flight.payload_bytes == 10_002
    delivery = leased.runs[0].delivery
    assert not world.ack([(first_id + 1, delivery)])
    world.fail(first_id, delivery)
    assert (holder.in_flight.payload_bytes, world.shard.load.payload_bytes) == (2, 5)
    assert not world.ack([(first_id + 2, delivery)])
    world.check()
    assert (holder.in_flight.payload_bytes, world.shard.load.payload_bytes) == (0, 3)


def lot_of(*payloads: bytes, first_id: int = 100) -> Lot:
    return Lot(
        first_id, Queue("q", 1, 0), DEFAULT_OPTIONS, Payloads.of(payloads), pushed_ms=0, run_at_ms=0
    )


def leased(count: int = 5, *, start: int = 0, payload: bytes = b"x") -> RunLease:
    """A lease on members of a lot of ten."""
    lot = lot_of(*[payload] * 10)
    lot.cursor = start + count
    lease = RunLease(lot, start, count, delivery=1, holder=Holder("w1", ""), lease_ms=30_000)
    lot.leases.append(lease)
    return lease


def test_lot_tells_what_waits_in_it():
    lot = lot_of(b"0", b"1", b"2", b"3")
    lot.cursor, lot.holes = 1, {2}
    assert (lot.waiting(), lot.is_ready(), lot.end_id()) == (2, True, 104)
    assert [lot.is_waiting(i) for i in range(4)] == [False, True, False, True]
    lot.holes = {1, 2, 3}
    assert not lot.is_ready()


def test_cursor_skips_what_is_gone():
    lot = lot_of(b"0", b"1", b"2")
    lot.holes = {0, 1}
    lot.reach_ready()
    assert (lot.cursor, lot.holes) == (2, set())


def test_stretches_of_waiting_neighbours_end_at_what_is_gone():
    lot = lot_of(*[b"x"] * 6)
    assert lot.waiting_run_from(0, 4) == (0, 4)
    assert lot.waiting_run_from(4, 4) == (4, 2)
    assert lot.waiting_run_from(6, 4) == (6, 0)
    lot.holes = {0, 3}
    assert lot.waiting_run_from(0, 9) == (1, 2)
    assert lot.waiting_run_from(0, 1) == (1, 1)
    assert lot.waiting_run_from(3, 9) == (4, 2)
    assert lot.waiting_run_from(6, 9)[1] == 0


def test_lease_is_found_by_any_of_its_members():
    lot = lot_of(*[b"x"] * 10)
    assert lot.lease_at(0) is None
    one = RunLease(lot, 0, 2, delivery=1, holder=Holder("w1", ""), lease_ms=1)
    two = RunLease(lot, 4, 3, delivery=1, holder=Holder("w1", ""), lease_ms=1)
    lot.leases = [one]
    assert (lot.lease_at(1), lot.lease_at(2)) == (one, None)
    lot.leases = [one, two]
    assert [lot.lease_at(i) for i in (0, 1, 2, 3, 4, 6, 7)] == [
        one,
        one,
        None,
        None,
        two,
        two,
        None,
    ]
    lot.drop_lease(one)
    assert lot.leases == [two]
    lot.leases.append(RunLease(lot, 8, 1, delivery=1, holder=Holder("w1", ""), lease_ms=1))
    assert lot.lease_at(2) is None


def test_settled_members_are_no_longer_open():
    lease = leased(5, start=2)
    lease.settle(3, 2)
    assert lease.open_indexes() == [2, 5, 6]
    assert lease.open_ids() == [102, 105, 106]
    assert [lease.is_open(i) for i in (2, 3)] == [True, False]
    assert lease.open_totals() == (3, 3)


def test_stretch_of_open_members_ends_at_a_settled_one():
    lease = leased(5)
    assert lease.open_run(1, 99) == 4
    assert lease.open_run(1, 2) == 2
    lease.settle(3, 1)
    assert lease.open_run(1, 99) == 2
    assert lease.open_run(4, 99) == 1


@pytest.mark.parametrize(
    ("starts", "counts", "left"),
    [
        ([100], [5], []),
        ([101], [2], [100, 103, 104]),
        ([104, 100], [1, 1], [101, 102, 103]),
        ([100, 103], [2, 1], [102, 104]),
        ([100, 102], [2, 3], []),
    ],
)
def test_runs_are_settled_together(starts, counts, left):
    lease = leased(5)
    assert lease.settle_runs(starts, counts) == sum(counts)
    assert lease.remaining == len(left)
    if left:
        assert lease.open_ids() == left


@pytest.mark.parametrize(
    ("starts", "counts"), [([101], [1]), ([100], [3]), ([100, 101], [1, 1]), ([100, 101], [1, 2])]
)
def test_settling_what_is_settled_changes_nothing(starts, counts):
    """It is a bug, and the lease is as it was."""
    lease = leased(5)
    lease.settle_runs([101], [1])
    with pytest.raises(IllegalMove, match=f"jobs from {starts[0]} on are not leased"):
        lease.settle_runs(starts, counts)
    assert (lease.remaining, lease.open_ids()) == (4, [100, 102, 103, 104])


def test_settling_a_job_twice_in_one_call_changes_nothing():
    lease = leased(5)
    with pytest.raises(IllegalMove):
        lease.settle_runs([100, 100], [1, 1])
    assert lease.remaining == 5


def test_members_extended_alone_end_alone():
    lease = leased(3)
    lease.deadline_ms = 1_000
    lease.extend(1, 5_000)
    lease.extend(1, 4_000)
    assert [lease.ends_ms(index) for index in lease.open_indexes()] == [1_000, 5_000, 1_000]
    lease.extend(0, 900)
    assert lease.later == {1: 5_000}


def test_ends_that_all_members_have_reached_become_the_ends_of_the_run():
    lease = leased(3)
    lease.deadline_ms = 1_000
    for index, until_ms in enumerate((5_000, 6_000, 5_000)):
        lease.extend(index, until_ms)
    assert (lease.deadline_ms, lease.later) == (5_000, {1: 6_000})
    lease.renew(100)
    assert (lease.deadline_ms, lease.later) == (30_100, {})


def test_bytes_are_counted_for_runs_and_what_is_left():
    even, uneven = lot_of(b"aa", b"bb", b"cc"), lot_of(b"", b"bb", b"ccc")
    assert even.bytes_of_runs([100, 102], [1, 1]) == 4
    assert uneven.bytes_of_runs([100, 102], [1, 1]) == 3
    assert (even.bytes_left(), uneven.bytes_left()) == (6, 5)
    uneven.holes = {1}
    assert uneven.bytes_left() == 3


def test_bytes_left_of_an_uneven_lot_include_what_is_leased(world):
    world.plain(b"", b"bb", b"ccc", b"dddd")
    run = world.lease(3).runs[0]
    world.ack([(run.first_id + 1, run.delivery)])
    [lot] = world.shard.lots.lots.values()
    assert lot.bytes_left() == 7
    assert lot.leases[0].open_totals() == (2, 3)
