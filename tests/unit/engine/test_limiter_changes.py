"""Limiters are changed, emptied and deleted; restarts; and G14 over random histories."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jobline_server.engine import limits
from jobline_server.engine.allowance import TimeLimit
from jobline_server.engine.commands import RefusalKind, Refused
from jobline_server.engine.decide import pass_limiters
from jobline_server.engine.decide.limiters import (
    decide_delete_limiter,
    decide_empty_limiter,
    decide_put_limiter,
    existing_limiter,
)
from jobline_server.engine.gates import MOMENTS_SPARE
from jobline_server.engine.holder import Holder
from jobline_server.engine.limiters import Limiters, LimiterSettings
from jobline_server.engine.load import Load
from jobline_server.engine.rates import RateLimit
from jobline_server.engine.rules import JobRules
from jobline_server.engine.shard import Shard
from jobline_server.engine.values import JobOptions, JobState, Now
from tests.unit.engine.limiter_world import ONE_A_SECOND, leases, lot, put, restart, rules
from tests.unit.engine.world import World, leases_of


def test_limiter_is_empty_until_a_time(world):
    put(world, most=5)
    lot(world, 1, "api")
    decide_empty_limiter(world.shard, world.now, "api", world.now.wall_ms + 9_000, "ann", "429")
    assert leases(world) == []
    world.advance(8_999)
    assert leases(world) == []
    world.advance(1)
    assert len(leases(world)) == 1
    settings = existing_limiter(world.shard, "api")
    assert settings.limited == TimeLimit(world.now.wall_ms, "ann", "429")
    decide_empty_limiter(world.shard, world.now, "api", 0, "", "")
    assert existing_limiter(world.shard, "api").limited is None
    world.commit()
    decide_empty_limiter(world.shard, world.now, "api", 0, "", "")
    assert world.commit() == []


def test_push_with_a_limiter_that_does_not_exist_is_refused(world):
    put(world, most=1)
    for job, field in (
        (lambda: lot(world, 1, "api", "other"), "options.limiters"),
        (lambda: world.row(rules=rules("other")), "jobs[0].options.limiters"),
    ):
        with pytest.raises(Refused) as refused:
            job()
        assert refused.value.kind is RefusalKind.LIMITER_NOT_FOUND
        assert refused.value.field == field


def test_push_that_is_repeated_after_its_limiter_was_deleted_is_answered(world):
    """Nothing new is pushed, so nothing is refused."""
    put(world, most=1)
    again = {"payloads": [b"x"], "job_keys": ["k"], "options": JobOptions(rules=rules("api"))}
    world.push(**again)
    decide_delete_limiter(world.shard, world.now, "api")
    assert world.push(**again).count == 0


def test_settings_survive_and_what_is_active_is_counted_anew(world):
    put(world, rate=ONE_A_SECOND, most=3)
    put(world, "gone", most=1)
    decide_delete_limiter(world.shard, world.now, "gone")
    lot(world, 2, "api")
    world.row(rules=rules("api"))
    assert len(leases(world)) == 2
    restart(world)
    assert [*world.shard.own_limiters] == ["api"]
    limiter = world.shard.limiters.find("api")
    assert limiter.active == 2
    assert leases(world) == [], "the bucket is empty"
    world.advance(1_000)
    assert len(leases(world)) == 1
    world.check()


def test_shard_that_goes_takes_its_active_jobs_along(world):
    put(world, most=2)
    lot(world, 3, "api")
    restart(world)
    load = world.shard.load
    assert len(leases(world)) == 2
    assert leases(world) == []
    world.shard.leave_load()
    limiter = load.limiters.find("api")
    assert (limiter.active, limiter.line) == (0, {})


def test_settings_that_are_said_again_are_no_fact(world):
    put(world, most=1)
    decide_put_limiter(world.shard, world.now, "api", None, 1)
    assert world.commit() == []
    put(world, most=2)
    assert world.shard.limiters.find("api").allowance.concurrency == 2


def test_there_are_only_so_many_limiters(world, monkeypatch):
    monkeypatch.setattr(limits, "SHARD_LIMITERS_MAX", 1)
    put(world, most=1)
    put(world, most=2)
    with pytest.raises(Refused) as refused:
        put(world, "other", most=1)
    assert refused.value.kind is RefusalKind.LIMITERS_FULL


def test_limiter_that_does_not_exist_is_not_found(world):
    for change in (
        lambda: existing_limiter(world.shard, "other"),
        lambda: decide_delete_limiter(world.shard, world.now, "other"),
        lambda: decide_empty_limiter(world.shard, world.now, "other", 0, "", ""),
    ):
        with pytest.raises(Refused) as refused:
            change()
        assert refused.value.kind is RefusalKind.LIMITER_NOT_FOUND


def test_jobs_beside_those_of_a_limiter_are_not_counted(world):
    """Also those whose lane is theirs alone for another reason."""
    put(world, most=9)
    for own in (rules("api"), JobRules(), JobRules(min_worker_version="1.0")):
        world.row(rules=own)
    lot(world, 1)
    held = leases_of(world.lease(holder=Holder("w1", "", version="2.0")))
    limiter = world.shard.limiters.find("api")
    assert (len(held), limiter.active) == (4, 1)
    world.ack(held)
    assert limiter.active == 0


def test_what_limiters_do_not_know_changes_nothing(world):
    """As in a recovery, whose limiters know no more than its facts say."""
    limiters = Limiters()
    limiters.drop("api", 0)
    limiters.free(rules("api"), 1, 0)
    put(world, most=1)
    lot(world, 2, "api")
    leases(world)
    limiters.leave(world.queue())
    assert not limiters


@pytest.mark.parametrize("limit", ["CHOICES_MAX", "EXAMINED_MAX"])
def test_hand_out_that_closed_many_lanes_goes_on_later(world, monkeypatch, limit):
    monkeypatch.setattr(pass_limiters, limit, 2)
    put(world, most=1)
    put(world, "free", most=100)
    lot(world, 1, "api", queue="other")
    leases(world, "other")
    for number in range(3):
        options = JobOptions(name=f"n{number}", rules=rules("api"))
        world.plain(b"x", options=options)
    job_id = lot(world, 1, "free")
    assert leases(world, most=1) == []
    assert world.shard.gates.first_ms() == world.now.mono_ms
    assert [one for one, _ in leases(world, most=1)] == [job_id]
    world.check()


def test_times_that_do_not_count_any_more_are_swept():
    limiters = Limiters()
    limiters.put(LimiterSettings("api", 1, RateLimit(1)), 0)
    limiter = limiters.by_name["api"]
    for number in range(4 * MOMENTS_SPARE):
        limiter.asked_ms = None
        limiters._ask(limiter, 10_000 - number)
    assert len(limiters._heap) <= MOMENTS_SPARE + 4
    assert limiters.first_ms() == 10_000 - 4 * MOMENTS_SPARE + 1


def test_shards_share_what_a_limiter_lets_out():
    """One object for all of them."""
    load = Load()
    now = Now(1_800_000_000_000, 1_000)
    shards = [Shard(number, epoch=1, load=load) for number in (1, 2)]
    for shard in shards:
        shard.restart_leases(now)
    decide_put_limiter(shards[0], now, "api", None, 1)
    assert shards[1].limiters.find("api") is shards[0].limiters.find("api")


@settings(max_examples=60, deadline=None)
@given(
    rate=st.none()
    | st.builds(
        RateLimit, st.integers(1, 5), st.sampled_from([300, 1_000]), st.none() | st.integers(1, 6)
    ),
    most=st.integers(1, 6),
    steps=st.lists(
        st.tuples(
            st.sampled_from([0, 1, 100, 250, 999]),
            st.sampled_from(["a", "b", "c"]),
            st.integers(1, 9),
            st.booleans(),
            st.integers(0, 9),
        ),
        max_size=25,
    ),
)
def test_g14_limiters_are_never_exceeded(rate, most, steps):
    """G14: in any window at most burst + rate x window hand-outs, at any instant at most so many
    active jobs, over all queues that share the limiter, whatever is pulled, acked and restarted.
    Drained, nothing is held by anyone: no place, no lane.
    """
    world = World()
    put(world, rate=rate, most=most)
    for queue in ("a", "b", "c"):
        lot(world, 5, "api", queue=queue)
        for _ in range(3):
            world.row(queue=queue, rules=rules("api"))
    taken: list[tuple[int, int]] = []
    held: list[tuple[int, int]] = []
    for wait, queue, wanted, restarts, acked in steps:
        world.advance(wait)
        if restarts:
            restart(world)
        leased = leases(world, queue, wanted)
        taken.append((world.now.mono_ms, len(leased)))
        held += leased
        assert len(held) <= most
        world.check()
        for first, (start, _) in enumerate(taken if rate else ()):
            handed_out = sum(count for _, count in taken[first:])
            window = world.now.mono_ms - start
            assert handed_out <= rate.most() + Fraction(rate.rate * window, rate.period_ms)
        world.ack(held[:acked])
        held = held[acked:]
    for _ in range(300):
        world.ack(held)
        world.advance(1_000)
        held = [lease for queue in ("a", "b", "c") for lease in leases(world, queue)]
    assert world.shard.load.live_jobs == 0
    limiter = world.shard.limiters.by_name["api"]
    assert (limiter.active, limiter.line) == (0, {})
    assert all(not world.queue(queue).gates.closed for queue in ("a", "b", "c"))
    assert world.queue("a").counts[JobState.ACTIVE] == 0
