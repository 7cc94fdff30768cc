"""The tokens of groups over random histories, and how long they are remembered (G14)."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jobline_server.engine import group_rates
from jobline_server.engine.commands import Refused
from jobline_server.engine.decide.queues import decide_delete_queue
from jobline_server.engine.decide.timers import next_deadline
from jobline_server.engine.group import Group
from jobline_server.engine.group_settings import GroupSettings
from jobline_server.engine.rates import RateLimit
from jobline_server.engine.ties import Ties
from jobline_server.engine.values import DEFAULT_OPTIONS
from tests.pushed_rows import NewJob
from tests.unit.engine.limiter_world import restart
from tests.unit.engine.test_apply_groups import push
from tests.unit.engine.test_group_limits import leases, tick
from tests.unit.engine.world import World


def test_g14_group_that_is_gone_has_no_more_tokens_when_it_comes_back(world):
    world.settings(group=GroupSettings(rate=RateLimit(1, 1_000)))
    push(world, "g")
    world.ack(leases(world))
    assert world.shard.load.group_buckets == 1
    push(world, "g")
    assert leases(world) == []
    assert world.shard.load.group_buckets == 0
    tick(world, 1_000)
    assert len(leases(world)) == 1


def test_buckets_that_are_full_are_forgotten(world):
    world.settings(group=GroupSettings(rate=RateLimit(1, 1_000)))
    for number in range(20):
        push(world, f"g{number}")
        world.ack(leases(world))
        tick(world, 1_000)
    assert world.shard.load.group_buckets < 3
    assert world.shard.load.groups == 0


def test_buckets_that_are_full_go_in_time_also_if_no_group_comes(world, monkeypatch):
    """So groups are let in again; a few of them at a time, and each has its turn."""
    monkeypatch.setattr(group_rates.GroupRates.sweep, "__defaults__", (2,))
    world.settings(group=GroupSettings(rate=RateLimit(1, 60_000)))
    world.shard.load.groups_max = 3
    push(world, "a", "b", "c")
    world.ack(leases(world))
    assert next_deadline(world.shard, world.now) == group_rates.SWEEP_MS
    later = next_deadline(world.shard, world.now, with_sweeps=False)
    assert later is not None
    assert later > group_rates.SWEEP_MS
    tick(world, 59_999)
    assert world.shard.load.group_buckets == 3
    tick(world, 1)
    tick(world, 0)
    assert world.shard.load.group_buckets == 0
    assert next_deadline(world.shard, world.now) is None
    push(world, "d")


def test_tokens_of_groups_go_with_their_queue(world):
    world.settings(group=GroupSettings(rate=RateLimit(1, 60_000)))
    push(world, "g")
    world.ack(leases(world))
    decide_delete_queue(world.shard, world.now, "q", force=True)
    assert world.shard.load.group_buckets == 1
    tick(world, 1_000)
    assert world.shard.load.group_buckets == 0


def test_tokens_of_a_group_are_shown_as_they_would_be(world):
    """To look at them puts no rate in force."""
    rate, slow = RateLimit(2, 1_000), RateLimit(1, 1_000)
    world.settings(group=GroupSettings(rate=rate))
    rates = world.shard.group_rates

    def tokens(limit):
        mono_ms = world.now.mono_ms
        return rates.shown(world.queue(), Group("q", "g"), limit, mono_ms).tokens(mono_ms)

    assert (tokens(rate), tokens(slow)) == (2, 1)
    push(world, "g")
    world.ack(leases(world))
    assert (tokens(rate), tokens(slow)) == (1, 1)
    tick(world, 500)
    assert (tokens(rate), tokens(slow)) == (2, 1)
    assert world.shard.load.group_buckets == 0


def test_shard_that_leaves_takes_its_tokens_along(world):
    world.settings(group=GroupSettings(rate=RateLimit(1, 60_000)))
    push(world, "g")
    world.ack(leases(world))
    load = world.shard.load
    world.shard.leave_load()
    assert load.group_buckets == 0
    assert world.shard.load.group_buckets == 1


def test_server_lets_no_group_in_while_it_remembers_too_many(world):
    world.settings(group=GroupSettings(rate=RateLimit(1, 60_000)))
    world.shard.load.groups_max = 2
    for name in ("a", "b"):
        push(world, name)
        world.ack(leases(world))
    with pytest.raises(Refused, match="remembers the tokens of 2"):
        push(world, "c")


@settings(max_examples=60, deadline=None)
@given(
    rate=st.builds(
        RateLimit, st.integers(1, 4), st.sampled_from([300, 1_000]), st.none() | st.integers(1, 5)
    ),
    concurrency=st.integers(1, 4),
    steps=st.lists(
        st.tuples(
            st.sampled_from([0, 1, 100, 299, 999]),
            st.integers(1, 9),
            st.booleans(),
            st.integers(0, 9),
        ),
        max_size=20,
    ),
)
def test_g14_groups_are_never_over_their_limits(rate, concurrency, steps):
    """G14: of each group in any window at most burst + rate x window hand-outs, and never more than
    its concurrency runs, whatever is pulled, acked and restarted; and drained, nothing is held.
    """
    world = World()
    world.settings(group=GroupSettings(rate=rate, concurrency=concurrency))
    jobs = [NewJob(b"x", DEFAULT_OPTIONS, "", 0, ties=Ties(name)) for name in "abab" * 3]
    world.push(jobs=jobs)
    group_of_job = {job.id: job.ties.group for job in world.shard.jobs.values()}
    taken: list[tuple[int, str]] = []
    held: list[tuple[int, int]] = []
    for wait, wanted, restarts, acked in steps:
        tick(world, wait)
        if restarts:
            restart(world)
        got = leases(world, wanted)
        held += got
        taken += [(world.now.mono_ms, group_of_job[job_id]) for job_id, _ in got]
        world.check()
        for name in "ab":
            assert sum(group_of_job[job_id] == name for job_id, _ in held) <= concurrency
            times = [at for at, group in taken if group == name]
            for first, start in enumerate(times):
                window = Fraction(rate.rate * (world.now.mono_ms - start), rate.period_ms)
                assert len(times) - first <= rate.most() + window
        world.ack(held[:acked])
        held = held[acked:]
    for _ in range(40):
        world.ack(held)
        tick(world, 1_000)
        held = leases(world)
    assert world.shard.load.live_jobs == world.shard.load.groups == 0
    assert world.queue().groups.held == 0
    assert world.shard.closed_groups.wait_ms(world.now) is None
