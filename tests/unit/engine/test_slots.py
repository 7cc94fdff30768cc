"""Jobs that take several places of their worker's window, and jobs for workers of some version."""

from __future__ import annotations

from typing import Any

import pytest

from jobline_server.engine.decide.admin import decide_cancel
from jobline_server.engine.decide.lease import decide_lease
from jobline_server.engine.decide.queues import decide_delete_queue
from jobline_server.engine.entries import JobsLeased
from jobline_server.engine.heads import LaneHeads
from jobline_server.engine.holder import Holder
from jobline_server.engine.rules import JobRules
from jobline_server.engine.values import JobOptions
from tests.unit.engine.world import World, leases_of

LARGE = JobRules(slots=3)


@pytest.fixture
def world() -> World:
    return World()


def taken(
    world: World, holder: Holder, *, room: int, most: int | None = None, **how: Any
) -> list[int]:
    """The jobs that a consumer with so many free places takes."""
    leased = decide_lease(
        world.shard,
        world.now,
        world.queue(),
        holder,
        max_jobs=room if most is None else most,
        max_slots=room,
        max_bytes=how.get("max_bytes", 1 << 30),
        names=None,
        lease_ms=0,
    )
    world.commit()
    world.check()
    return [job_id for job_id, _ in leases_of(leased)]


def a_lot(world: World, count: int, **rules: Any) -> list[int]:
    options = JobOptions(rules=JobRules(**rules))
    first_id = world.plain(*[b"x"] * count, options=options).first_id
    return [*range(first_id, first_id + count)]


def test_a_large_job_takes_its_places_of_the_window(world):
    """And what is behind it waits for it: order goes before a full window."""
    ids = [world.row(), world.row(rules=LARGE), world.row(), world.row()]
    holder = world.session()
    assert taken(world, holder, room=3) == ids[:1]
    assert taken(world, holder, room=2) == []
    assert taken(world, holder, room=4) == ids[1:3]
    assert (holder.in_flight.jobs, holder.in_flight.extra_slots) == (3, 2)


def test_a_worker_that_holds_nothing_takes_any_job(world):
    """Or nobody would, if it takes more than every window has."""
    ids = [world.row(rules=JobRules(slots=1_000)), world.row()]
    holder = world.session()
    assert taken(world, holder, room=2) == ids[:1]
    assert holder.in_flight.extra_slots == 999


def test_a_lot_of_jobs_larger_than_a_window_goes_out_one_by_one(world):
    """The journal takes whole numbers only, and refuses a truth value for one."""
    ids = a_lot(world, 2, slots=9)
    assert taken(world, world.session(), room=3) == ids[:1]
    leased = [fact for _, fact in world.journal if isinstance(fact, JobsLeased)]
    assert [type(count) for count in leased[0].counts] == [int]


def test_a_share_of_the_backlog_is_counted_in_jobs(world):
    """Two workers share two large jobs: each gets one, which takes three places."""
    ids = [world.row(rules=LARGE), world.row(rules=LARGE)]
    assert taken(world, world.session(), room=9, most=1) == ids[:1]


def test_members_of_a_lot_take_their_places_each(world):
    """A run has as many as fit; one that is settled or leaves its lot gives its places back."""
    ids = a_lot(world, 5, slots=2)
    holder = world.session()
    assert taken(world, holder, room=5) == ids[:2]
    assert holder.in_flight.extra_slots == 2
    delivery = next(iter(holder.leases.values())).delivery
    world.fail(ids[0], delivery, retry_after_ms=60_000)
    assert holder.in_flight.extra_slots == 1
    world.ack([(ids[1], delivery)])
    assert (holder.in_flight.jobs, holder.in_flight.extra_slots) == (0, 0)


def test_a_lot_that_fits_lets_those_behind_it_through(world):
    """Empty ones are no end either."""
    ids = [*a_lot(world, 2, slots=2), *a_lot(world, 1), *a_lot(world, 1)]
    assert taken(world, world.session(), room=6) == ids
    assert world.counts() == (0, 0, 4)


def test_a_lot_without_jobs_is_passed(world):
    """All of them were cancelled, and it is still in the middle of its lane."""
    first = world.row(rules=JobRules(slots=2))
    gone = a_lot(world, 2, slots=2)
    last = world.row(rules=JobRules(slots=2))
    decide_cancel(world.shard, world.now, gone)
    assert taken(world, world.session(), room=9) == [first, last]


def test_bytes_and_places_are_both_kept(world):
    """The first of a worker that holds nothing may be larger than both."""
    ids = [world.row(b"x" * 9, rules=LARGE), world.row(b"x" * 9, rules=LARGE)]
    holder = world.session()
    assert taken(world, holder, room=9, max_bytes=5) == ids[:1]
    assert taken(world, holder, room=6, max_bytes=5) == []


def test_single_jobs_give_their_places_back_however_they_end(world):
    """Acked together, released, failed, or with their queue."""
    ids = [world.row(rules=LARGE) for _ in range(4)] + a_lot(world, 2, slots=4)
    holder = world.session()
    assert taken(world, holder, room=99) == ids
    assert holder.in_flight.extra_slots == 4 * 2 + 2 * 3
    leases = dict(holder.held())
    world.ack([(ids[0], leases[ids[0]]), (ids[1], leases[ids[1]])])
    world.fail(ids[2], leases[ids[2]])
    assert holder.in_flight.extra_slots == 2 + 6
    decide_delete_queue(world.shard, world.now, "q", force=True)
    assert (holder.in_flight.jobs, holder.in_flight.extra_slots) == (0, 0)


def test_a_session_that_returns_counts_the_places_again(world):
    """On the stream on which its worker came back."""
    world.row(rules=LARGE)
    holder = world.session()
    taken(world, holder, room=9)
    returned = Holder("w1", "s").in_flight
    holder.count_with(returned)
    assert (returned.jobs, returned.extra_slots) == (1, 2)


def test_jobs_for_newer_workers_hold_up_nobody(world):
    """An older worker gets those behind them, one without a version too."""
    newer, plain = world.row(rules=JobRules(min_worker_version="1.10")), world.row()
    old = world.shard.clocks.holder_of("old", "w", "1.9")
    new = world.shard.clocks.holder_of("new", "w", "1.10")
    assert taken(world, old, room=9) == [plain]
    assert taken(world, Holder("w", ""), room=9) == []
    assert taken(world, new, room=9) == [newer]


def test_ten_thousand_versions_are_no_scan(world):
    """The lanes that a worker may take from are in a heap of its own version."""
    for number in range(200):
        world.row(rules=JobRules(min_worker_version=f"1.{number}"))
    queue = world.queue()
    (old,), (new,) = queue.open.fronts(None, None, "1.20"), queue.open.fronts(None, None, "2")
    assert isinstance(old[0], LaneHeads)
    assert old[0] is not new[0]
    holder = world.shard.clocks.holder_of("old", "w", "1.20")
    assert len(taken(world, holder, room=500)) == 21
    late, early = world.row(rules=JobRules(min_worker_version="1.30")), world.row()
    assert taken(world, holder, room=500) == [early]
    assert late in taken(world, world.shard.clocks.holder_of("new", "w", "2"), room=500)
