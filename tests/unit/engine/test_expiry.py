"""Many leases that end at once: the work is cut into slices, and nothing of it is done twice."""

from __future__ import annotations

import pytest

from jobline_server.engine import limits
from jobline_server.engine.commands import ExtendItem
from jobline_server.engine.decide import expiry
from jobline_server.engine.decide.timers import next_deadline
from jobline_server.engine.entries import JobsStalled
from jobline_server.engine.lease_lookup import LeaseLookup
from jobline_server.engine.rules import JobRules
from jobline_server.engine.values import EndReason, JobState, RevokeReason
from tests.unit.engine.effects_of import revoked_in

LEASE_MS = 30_000


@pytest.fixture
def looked(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How much each slice of a look has looked at."""
    monkeypatch.setattr(limits, "LOST_SLICE_JOBS", 5)
    monkeypatch.setattr(limits, "EXAMINED_SLICE_LEASES", 20)
    counts: list[int] = []
    take = LeaseLookup.take

    def counted(look: LeaseLookup, mono_ms: int, *, lost_max: int, examined_max: int):
        before = look.examined
        found = take(look, mono_ms, lost_max=lost_max, examined_max=examined_max)
        counts.append(look.examined - before)
        return found

    monkeypatch.setattr(LeaseLookup, "take", counted)
    return counts


def lost_in(world) -> int:
    """Jobs that went back in the last commit."""
    facts = [fact for _, fact in world.journal if isinstance(fact, JobsStalled)]
    world.journal.clear()
    return sum(len(fact.ids) for fact in facts)


def test_leases_of_many_workers_end_a_slice_at_a_time(world, looked: list[int]) -> None:
    """Trial C2: a pool that dies must not keep the loop from those that live."""
    world.plain(*[b"x"] * 12)
    for name in ("w1", "w2", "w3", "w4"):
        world.lease(3, holder=world.session(name))
    lost = []
    more = world.tick(2 * LEASE_MS)
    while more:
        lost.append(lost_in(world))
        more = world.tick()
    assert lost == [5, 5]
    assert lost_in(world) == 2
    assert world.counts() == (0, 12, 0)
    assert not world.tick(LEASE_MS)
    world.check()


def test_losing_one_worker_looks_at_each_lease_once(world, looked: list[int]) -> None:
    """Trial C2: runs and single jobs, some of which were extended, in slices that look at no more
    than they may.
    """
    first_id = world.plain(*[b"x"] * 30).first_id
    kept = [world.row() for _ in range(30)]
    holder = world.session()
    leased = world.lease(holder=holder)
    delivery = leased.runs[0].delivery
    world.extend(*[ExtendItem(first_id + i, delivery, lease_ms=10 * LEASE_MS) for i in range(10)])
    world.extend(*[ExtendItem(job_id, delivery, lease_ms=10 * LEASE_MS) for job_id in kept])
    world.advance(2 * LEASE_MS)
    while world.tick():
        assert lost_in(world) <= limits.LOST_SLICE_JOBS
    assert max(looked) <= limits.EXAMINED_SLICE_LEASES
    assert sum(looked) == 1 + 30 + 30
    assert world.counts() == (0, 20, 40)
    assert not world.tick(LEASE_MS)
    assert sum(looked) == 1 + 30 + 30
    world.check()


@pytest.mark.parametrize("slice_jobs", [1, 4, 7, 1_000])
def test_lost_jobs_go_out_in_their_old_order_however_the_work_is_cut(
    world, monkeypatch: pytest.MonkeyPatch, slice_jobs: int
) -> None:
    """Trial C2: also those that go out between two slices, and before those that never went out."""
    monkeypatch.setattr(limits, "LOST_SLICE_JOBS", slice_jobs)
    ids = [world.row() for _ in range(5)]
    ids += range(first := world.plain(*[b"x"] * 6).first_id, first + 6)
    ids += [world.row() for _ in range(4)]
    holder = world.session()
    for most in (3, 5, 2, 2):
        world.lease(most, holder=holder)
    world.advance(2 * LEASE_MS)
    out: list[int] = []
    other = world.session("w2")
    more = True
    while more:
        more = world.tick()
        out += world.ids(1, holder=other)
    assert [*out, *world.ids(holder=other)] == ids
    world.check()


def test_a_worker_that_is_heard_between_two_slices_keeps_the_rest(world, looked: list[int]) -> None:
    """Trial C2: what happens meanwhile is seen."""
    world.plain(*[b"x"] * 12)
    holder = world.session()
    world.lease(holder=holder)
    assert world.tick(LEASE_MS + 1_000)
    holder.last_seen_ms = world.now.mono_ms
    assert not world.tick()
    assert world.counts() == (0, 5, 7)
    while world.tick(LEASE_MS + 1_000):
        pass
    while world.tick():
        pass
    assert world.counts() == (0, 12, 0)
    world.check()


def test_workers_that_were_heard_are_not_looked_at(world, looked: list[int]) -> None:
    """Trial C2: they are due all the same, and nothing of theirs can have ended."""
    world.plain(*[b"x"] * 4)
    for name in ("w1", "w2"):
        world.lease(2, holder=world.session(name))
    world.advance(LEASE_MS - 1_000)
    for name in ("w1", "w2"):
        world.session(name)
    assert not world.tick(2_000)
    assert looked == []
    world.tick(LEASE_MS)
    assert world.counts() == (0, 4, 0)


def test_a_broken_stream_with_many_leases_is_not_walked(world, looked: list[int]) -> None:
    """Trial C2: when it breaks, only the moment is noted."""
    world.plain(*[b"x"] * 4)
    holder = world.session()
    world.lease(holder=holder)
    world.shard.clocks.disconnect(world.now, holder, grace_ms=5_000)
    assert looked == []
    world.tick(7_000)
    assert world.counts() == (0, 4, 0)


def test_leases_that_could_not_be_ended_are_tried_again(
    world, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Trial A4: an exception leaves no worker out for good, whichever slice it is in."""
    world.plain(*[b"x"] * 12)
    world.lease(6, holder=world.session())
    world.lease(6, holder=world.session("w2"))
    monkeypatch.setattr(limits, "LOST_SLICE_JOBS", 4)
    assert world.tick(2 * LEASE_MS)
    lose = expiry.lose_leases
    monkeypatch.setattr(expiry, "lose_leases", lambda *_: 1 // 0)
    with pytest.raises(ZeroDivisionError):
        world.tick()
    monkeypatch.setattr(expiry, "lose_leases", lose)
    while world.tick():
        pass
    assert world.counts() == (0, 12, 0)
    world.check()


def test_delayed_jobs_that_could_not_be_made_ready_are_tried_again(
    world, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Trial A4: none is forgotten."""
    ids = [world.row(delay_ms=1_000), world.plain(b"x", delay_ms=2_000).first_id]
    monkeypatch.setattr(type(world.shard), "emit", lambda *_, **__: 1 // 0)
    with pytest.raises(ZeroDivisionError):
        world.tick(5_000)
    monkeypatch.undo()
    world.tick()
    assert world.ids() == ids
    world.check()


def test_work_that_was_cut_goes_on_at_once(world, looked: list[int]) -> None:
    """Of ten lost jobs a slice takes five."""
    world.plain(*[b"x"] * 10)
    world.lease(10, holder=world.session())
    assert world.tick(2 * LEASE_MS)
    assert next_deadline(world.shard, world.now) == 0


def test_lost_lease_after_the_last_moment_for_retries_is_the_end(world):
    """It is no failure: its attempt stalled, its worker is told, and a stall is used up."""
    job_id = world.row(rules=JobRules(retry_until_ms=world.now.wall_ms + 1))
    job = world.one(holder=world.session())
    world.tick(LEASE_MS + 2_000)
    state, record = world.ended()[job_id]
    assert (state, record.reason) == (JobState.DEAD, EndReason.RETRY_UNTIL_PASSED)
    assert (record.stalls, record.attempts, record.history[0].outcome) == (1, 0, 2)
    assert [(one.job_id, one.delivery, one.reason) for one in revoked_in(world.shard)] == [
        (job_id, job.delivery, RevokeReason.LEASE_LOST)
    ]
    assert world.queue().failed_total == 0
