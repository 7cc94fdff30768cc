"""Limits of queues: what a hand-out gets, and when the queue is asked again (G14)."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jobline_server.engine.decide.queues import (
    decide_delete_idle_queues,
    decide_limit_queue,
    decide_update_queue,
)
from jobline_server.engine.decide.timers import next_deadline, open_gates
from jobline_server.engine.effects import QueueWoken
from jobline_server.engine.limits import EMPTY_QUEUE_MS
from jobline_server.engine.rates import RateLimit
from jobline_server.engine.rules import JobRules
from jobline_server.engine.values import AckLevel, JobOptions, JobState, QueueSettings
from tests.unit.engine.world import World, leases_of

TWO_A_SECOND = RateLimit(2, 1_000, 3)


@pytest.fixture
def limited(world: World) -> World:
    """Ten plain jobs in a queue that lets three out at once, and two a second."""
    world.settings(rate=TWO_A_SECOND)
    world.plain(*[b"x"] * 10)
    return world


def leases(world: World, most: int = 100) -> list[tuple[int, int]]:
    """Leases, as (id, delivery)."""
    return leases_of(world.lease(most))


def restart(world: World) -> None:
    """The process ends after its last commit, and another one takes over."""
    world.commit()
    shard = world.recovered()
    shard.next_offset = world.shard.next_offset
    shard.committed = world.shard.committed
    shard.restart_leases(world.now)
    world.shard = shard


def woken(world: World) -> bool:
    """Whether what was decided since the last call has the queue dispatched."""
    return any(
        isinstance(effect, QueueWoken)
        for applied in world.shard.take_applied()
        for effect in applied.effects
    )


def test_hand_outs_end_with_the_tokens(limited):
    """Also those of one large pull: flashQ counted a batch as one."""
    assert len(limited.ids()) == 3
    assert limited.ids() == []
    assert limited.shard.lots.lots.find(min(limited.shard.lots.lots)).waiting() == 7
    limited.check()


def test_queue_is_asked_again_when_the_next_token_comes(limited):
    limited.ids()
    shard, queue = limited.shard, limited.queue()
    assert next_deadline(shard, limited.now) == 500
    limited.advance(499)
    assert (limited.ids(), open_gates(shard, limited.now)) == ([], [])
    limited.advance(1)
    assert open_gates(shard, limited.now) == [queue]
    assert len(limited.ids()) == 1


def test_empty_pull_takes_no_token(world):
    world.settings(rate=TWO_A_SECOND)
    assert world.ids() == []
    world.plain(*[b"x"] * 5)
    assert len(world.ids()) == 3


def test_settings_that_are_said_again_let_nothing_more_out(limited):
    limited.ids()
    for rate in (TWO_A_SECOND, RateLimit(2, 1_000, 5)):
        limited.settings(rate=rate)
        assert limited.ids() == []


def test_another_limit_keeps_the_tokens(limited):
    limited.ids(1)
    limited.settings(rate=TWO_A_SECOND, concurrency=9)
    assert len(limited.ids()) == 2


def test_restart_lets_nothing_out_at_once(limited):
    """G14: the hand-outs before it may be lost, so none of their tokens may be there again."""
    limited.ids()
    restart(limited)
    assert limited.ids() == []
    limited.advance(500)
    assert len(limited.ids()) == 1


def test_job_takes_the_tokens_that_it_costs_and_is_not_overtaken(world):
    world.settings(rate=TWO_A_SECOND)
    costs = [world.row(rules=JobRules(cost=cost)) for cost in (2, 2, 1)]
    assert world.ids() == costs[:1]
    assert world.ids() == []
    assert next_deadline(world.shard, world.now) == 500
    world.advance(500)
    assert world.ids() == costs[1:2]
    world.advance(500)
    assert world.ids() == costs[2:]


def test_members_of_a_lot_cost_as_much_each(world):
    world.settings(rate=TWO_A_SECOND)
    options = JobOptions(rules=JobRules(cost=2))
    world.plain(*[b"x"] * 3, options=options)
    assert len(world.ids()) == 1
    world.advance(500)
    assert len(world.ids()) == 1


def test_job_that_costs_more_than_there_ever_is_takes_all(world):
    world.settings(rate=TWO_A_SECOND)
    job_id = world.row(rules=JobRules(cost=1_000))
    assert world.ids() == [job_id]
    assert world.queue().allowance.tokens(world.now.mono_ms) == 0


def test_cost_without_a_rate_is_free(world):
    world.settings(concurrency=5)
    job_id = world.row(rules=JobRules(cost=1_000))
    assert world.ids() == [job_id]


def test_no_more_jobs_are_active_than_may_be(world):
    world.settings(concurrency=2)
    world.plain(*[b"x"] * 3)
    first, second = leases(world)
    assert leases(world) == []
    assert world.shard.gates.first_ms() is None, "time alone changes nothing"
    woken(world)
    world.ack([first])
    assert woken(world)
    [third] = leases(world)
    world.fail(*second, retry_after_ms=5_000)
    world.ack([third])
    assert world.queue().counts[JobState.ACTIVE] == 0
    world.check()


def test_concurrency_counts_what_is_active_after_a_restart(world):
    world.settings(concurrency=2)
    world.plain(*[b"x"] * 3)
    leases(world)
    world.commit()
    shard = world.recovered()
    shard.restart_leases(world.now)
    assert shard.queues["q"].allowance.places(world.now, shard.queues["q"].counts[4]) == 0


def test_lower_concurrency_takes_no_job_away(world):
    world.settings(concurrency=3)
    world.plain(*[b"x"] * 4)
    first, second, _ = leases(world)
    world.settings(concurrency=1)
    world.ack([first])
    world.ack([second])
    assert leases(world) == []


def test_g14_rate_that_is_taken_off_and_set_again_keeps_its_tokens(world):
    """G14: it fills while it is off, as if it had been there; a restart knows nothing of it."""
    world.plain(*[b"x"] * 9)
    world.settings(rate=TWO_A_SECOND)
    assert len(world.ids()) == 3
    world.settings()
    world.settings(rate=TWO_A_SECOND)
    assert world.ids() == []
    world.settings()
    world.advance(500)
    world.settings(rate=TWO_A_SECOND)
    assert len(world.ids()) == 1
    world.settings()
    world.shard.restart_leases(world.now)
    assert world.queue().allowance is None


def test_higher_limits_wake_the_queue(world):
    world.settings(concurrency=1)
    woken(world)
    world.settings(concurrency=2)
    assert woken(world)
    world.settings()
    assert woken(world)
    assert world.queue().allowance is None


def test_queue_is_limited_until_a_time(world):
    world.plain(b"x")
    queue, until_ms = world.queue(), world.now.wall_ms + 100_000
    decide_limit_queue(world.shard, world.now, "q", until_ms, "ann", "429")
    assert (queue.limited.until_ms, queue.limited.by, queue.limited.reason) == (
        until_ms,
        "ann",
        "429",
    )
    assert world.ids() == []
    assert next_deadline(world.shard, world.now) == 60_000, "the wall clock may be set"
    world.advance(60_000)
    assert open_gates(world.shard, world.now) == [queue]
    assert world.ids() == []
    assert next_deadline(world.shard, world.now) == 40_000
    world.advance(40_000)
    assert len(world.ids()) == 1


def test_limit_for_a_time_is_lifted_and_survives_a_restart(world):
    world.plain(b"x")
    decide_limit_queue(world.shard, world.now, "q", world.now.wall_ms + 9_000, "ann", "")
    world.commit()
    assert world.recovered().queues["q"].limited == world.queue().limited
    decide_limit_queue(world.shard, world.now, "q", world.now.wall_ms, "ann", "")
    assert world.queue().limited is None
    assert world.queue().allowance is None
    decide_limit_queue(world.shard, world.now, "q", 0, "ann", "")
    assert len(world.commit()) == 1, "lifting it again is no fact"
    assert len(world.ids()) == 1


def test_idle_queue_stays_as_long_as_it_is_limited(world):
    decide_update_queue(world.shard, world.now, "q", QueueSettings(), None)
    until_ms = world.now.wall_ms + 2 * EMPTY_QUEUE_MS
    decide_limit_queue(world.shard, world.now, "q", until_ms, "", "")
    world.advance(2 * EMPTY_QUEUE_MS - 1)
    assert decide_delete_idle_queues(world.shard, world.now) == 0
    world.advance(1)
    assert decide_delete_idle_queues(world.shard, world.now) == 1


def test_volatile_jobs_take_tokens_too(world):
    world.settings(rate=TWO_A_SECOND)
    for _ in range(4):
        world.row(level=AckLevel.MEMORY)
    assert len(world.ids()) == 3


@settings(max_examples=60, deadline=None)
@given(
    rate=st.builds(
        RateLimit, st.integers(1, 5), st.sampled_from([300, 1_000]), st.none() | st.integers(1, 6)
    ),
    concurrency=st.none() | st.integers(1, 6),
    steps=st.lists(
        st.tuples(
            st.sampled_from([0, 1, 100, 250, 999]),
            st.integers(1, 9),
            st.booleans(),
            st.integers(0, 9) | st.none(),
        ),
        max_size=25,
    ),
)
def test_g14_limits_of_a_queue_are_never_exceeded(rate, concurrency, steps):
    """G14: in any window at most burst + rate x window hand-outs, at any instant at most so many
    active jobs, whatever is pulled, acked, and restarted. Drained, nothing is held.
    """
    world = World()
    world.settings(rate=rate, concurrency=concurrency)
    world.plain(*[b"x"] * 12)
    for _ in range(12):
        world.row()
    given: list[tuple[int, int]] = []
    held: list[tuple[int, int]] = []
    for wait, wanted, restarts, acked in steps:
        world.advance(wait)
        if restarts:
            restart(world)
        leased = leases(world, wanted)
        given.append((world.now.mono_ms, len(leased)))
        held += leased
        assert concurrency is None or len(held) <= concurrency
        for first, (start, _) in enumerate(given):
            handed_out = sum(count for _, count in given[first:])
            window = world.now.mono_ms - start
            assert handed_out <= rate.most() + Fraction(rate.rate * window, rate.period_ms)
        world.ack(held[: acked or 0])
        held = held[acked or 0 :]
    for _ in range(200):
        world.ack(held)
        world.advance(rate.period_ms)
        held = leases(world)
    assert world.queue().live() == 0
    world.check()
