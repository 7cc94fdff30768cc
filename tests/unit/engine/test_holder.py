"""Holders and the wheel that looks at them."""

from __future__ import annotations

from jobline_server.engine import limits
from jobline_server.engine.holder import NO_GRACES, Holder, InFlight, LeaseWheel, graces_in
from jobline_server.engine.job import Job
from jobline_server.engine.lease_lookup import LeaseLookup
from jobline_server.engine.queue import Queue
from jobline_server.engine.values import DEFAULT_OPTIONS


def leased(
    holder: Holder,
    *,
    lease_ms: int = 5_000,
    deadline_ms: int = 5_000,
    job_id: int = 1,
    queue: str = "q",
) -> Job:
    """A single job in the hands of a holder."""
    job = Job(job_id, Queue(queue, 9, 0), DEFAULT_OPTIONS, b"xyz", 0)
    job.lease_ms, job.deadline_ms = lease_ms, deadline_ms
    holder.add(job, job.id, 1, 3)
    return job


def lost_ids(holder: Holder, mono_ms: int) -> list[int]:
    """The jobs whose leases have ended by then, found in one go."""
    lost, has_ended = LeaseLookup(holder).take(mono_ms, lost_max=100, examined_max=100)
    assert has_ended
    return [job_id for _, job_id in lost]


def test_window_is_what_was_added_and_not_settled():
    holder = Holder("w1", "s1")
    leased(holder)
    leased(holder, job_id=2)
    holder.settle(1, 3)
    assert (holder.in_flight.jobs, holder.in_flight.payload_bytes) == (1, 3)


def test_lease_of_a_pull_ends_at_its_deadline():
    """Nobody is heard between two calls."""
    holder = Holder("w1", "")
    job = leased(holder)
    holder.last_seen_ms = 90_000
    assert holder.deadline_of(job) == 5_000
    assert (lost_ids(holder, 4_999), lost_ids(holder, 5_000)) == ([], [1])
    assert holder.next_check() == 5_000


def test_what_is_heard_of_a_session_extends_all_its_leases():
    holder = Holder("w1", "s1")
    jobs = [leased(holder), leased(holder, lease_ms=9_000, deadline_ms=30_000, job_id=2)]
    holder.last_seen_ms = 10_000
    assert [holder.deadline_of(job) for job in jobs] == [15_000, 30_000]
    assert holder.next_check() == 15_000
    assert lost_ids(holder, 15_000) == [1]


def test_broken_stream_cuts_leases_short_and_never_lengthens_them():
    holder = Holder("w1", "s1")
    short, long = leased(holder), leased(holder, deadline_ms=60_000, job_id=2)
    holder.disconnected_ms, holder.grace_ms = 1_000, 15_000
    assert [holder.deadline_of(job) for job in (short, long)] == [5_000, 16_000]
    assert holder.next_check() == 5_000


def test_queues_may_have_graces_of_their_own():
    """Shorter or longer than the server's; the next check is early enough for all."""
    holder = Holder("w1", "s1")
    jobs = [
        leased(holder, deadline_ms=60_000, job_id=number, queue=f"q{number}")
        for number in (1, 2, 3)
    ]
    holder.disconnected_ms, holder.grace_ms = 1_000, 15_000
    holder.graces = {"q1": 2_000, "q2": 40_000}
    assert [holder.deadline_of(job) for job in jobs] == [3_000, 41_000, 16_000]
    assert holder.next_check() == 3_000
    assert lost_ids(holder, 16_000) == [1, 3]


def test_graces_are_those_of_the_queues_that_have_one(world):
    """Others have the server's."""
    world.settings("a", disconnect_grace_ms=0)
    world.settings("b", max_stalls=1)
    assert graces_in(world.shard.queues, [("a", 1), ("b", 2), ("c", 1)]) == {"a": 0}
    assert graces_in(world.shard.queues, [("b", 2)]) is NO_GRACES


def test_a_grace_is_forgotten_at_a_restart(world):
    """Nobody is connected then: each lease has its own length."""
    world.settings(disconnect_grace_ms=1_000)
    world.row()
    holder = world.session()
    world.lease(holder=holder)
    graces = graces_in(world.shard.queues, [("q", 1)])
    world.shard.clocks.disconnect(world.now, holder, grace_ms=15_000, graces=graces)
    world.shard.restart_leases(world.now)
    assert holder.graces is NO_GRACES
    world.tick(5_000)
    assert world.counts() == (0, 0, 1)


def test_holder_without_leases_need_not_be_looked_at():
    assert Holder("w1", "s1").next_check() is None


def test_members_of_a_run_are_lost_each_at_its_own_end(world):
    first_id = world.plain(b"1", b"2", b"3").first_id
    holder = Holder("w1", "")
    world.lease(holder=holder)
    run = world.shard.lots.find(first_id).leases[0]
    ends_ms = world.now.mono_ms + 30_000
    run.extend(1, ends_ms + 1)
    assert lost_ids(holder, ends_ms) == [first_id, first_id + 2]
    assert lost_ids(holder, ends_ms + 1) == [first_id, first_id + 1, first_id + 2]


def test_leases_are_counted_in_the_window_of_the_stream_their_worker_came_back_on(world):
    world.plain(b"1", b"22")
    world.row(b"333")
    holder = world.session()
    world.lease(holder=holder)
    in_flight = InFlight()
    holder.count_with(in_flight)
    assert (in_flight.jobs, in_flight.payload_bytes) == (3, 6)
    holder.count_with(in_flight)
    assert in_flight.jobs == 3


def test_holder_tells_what_it_holds(world):
    first_id = world.plain(b"1", b"2").first_id
    holder = world.session()
    delivery = world.lease(holder=holder).runs[0].delivery
    world.ack([(first_id, delivery)])
    assert list(holder.held()) == [(first_id + 1, delivery)]


def test_what_is_settled_between_two_slices_is_not_told(world, monkeypatch):
    """Trial C2: a slice lists as many leases as a step may."""
    monkeypatch.setattr(limits, "HELD_SLICE_LEASES", 2)
    holder = world.session()
    ids = [world.row() for _ in range(5)]
    deliveries = {i: world.one(holder=holder).delivery for i in ids}
    slices = holder.held_slices()
    assert next(slices) == (ids[:2], [deliveries[i] for i in ids[:2]])
    world.ack([(ids[3], deliveries[ids[3]])])
    assert [of_slice for of_slice, _ in slices] == [[ids[2], ids[4]], []]


def test_wheel_holds_a_holder_once_however_often_it_is_armed():
    """Two sessions that lease in turn do not fill the wheel."""
    wheel, one, two = LeaseWheel(), Holder("w1", "s1"), Holder("w2", "s2")
    for ms in range(5_000, 6_000, 10):
        wheel.arm(one, ms)
        wheel.arm(two, ms)
    assert sum(len(bucket) for bucket in wheel._buckets.values()) == 2
    assert [wheel.pop_due(6_000), wheel.pop_due(6_000)] == [one, two]
    assert wheel.pop_due(60_000) is None


def test_wheel_keeps_nobody_alive():
    """A pull whose jobs are done leaves nothing behind but its place."""
    wheel, holder = LeaseWheel(), Holder("w1", "")
    wheel.arm(holder, 5_000)
    del holder
    assert wheel.pop_due(6_000) is None


def test_holder_armed_for_an_earlier_second_is_looked_at_then_and_not_twice():
    """A shorter lease brings the check forward."""
    wheel, holder = LeaseWheel(), Holder("w1", "s1")
    wheel.arm(holder, 9_000)
    wheel.arm(holder, 5_000)
    assert wheel.next_deadline() == 6_000
    assert wheel.pop_due(6_000) is holder
    wheel.arm(holder, 20_000)
    assert wheel.pop_due(10_000) is None
    assert wheel.pop_due(21_000) is holder


def test_leases_of_a_worker_that_sent_something_have_their_full_time_again():
    holder = Holder("w1", "s1")
    leased(holder)
    holder.renew(4_000)
    assert lost_ids(holder, 8_999) == []
    assert lost_ids(holder, 9_000) == [1]
