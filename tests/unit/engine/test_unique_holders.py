"""Unique keys: those that operators free, their invariants, and what a start makes of them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from jobline_server.engine import invariants
from jobline_server.engine.apply.unique import free_orphans
from jobline_server.engine.commands import RefusalKind, Refused
from jobline_server.engine.decide.update import decide_forget_unique_key
from jobline_server.engine.notices import DuplicatesFound
from jobline_server.engine.ties import Claim
from jobline_server.engine.unique import Throttle, ThrottleTable, UniqueKeys, let_go, unique_hash
from tests.unit.engine.unique_jobs import (
    Mode,
    Out,
    S,
    check_recovery,
    holder_of,
    one,
)
from tests.unit.engine.world import World


@pytest.fixture(autouse=True)
def _recovers(world: World) -> Any:
    yield
    check_recovery(world)


@pytest.fixture
def parked(world: World) -> tuple[World, int, int]:
    """A holder that runs, and a job behind it."""
    _, holder = one(world)
    world.one()
    return world, holder, one(world, Mode.REPLACE)[1]


class TestForget:
    def test_a_key_that_is_freed_is_held_by_the_next_job(self, world):
        """The job that held it goes on, and frees nothing when it ends."""
        _, first = one(world)
        assert decide_forget_unique_key(world.shard, world.now, "q", "u") == first
        assert holder_of(world) is None
        outcome, second = one(world)
        assert (outcome, world.state(first)) == (Out.CREATED, S.READY)
        world.ack([(first, world.one().delivery)])
        assert one(world) == (Out.DUPLICATE, second)

    def test_the_job_behind_takes_it_over_at_once(self, parked):
        world, holder, behind = parked
        assert decide_forget_unique_key(world.shard, world.now, "q", "u") == holder
        world.commit()
        assert world.ids() == [behind]
        assert holder_of(world) == behind

    def test_a_throttle_is_over(self, world):
        _, first = one(world, Mode.THROTTLE, ttl_ms=60_000)
        world.ack([(first, world.one().delivery)])
        assert decide_forget_unique_key(world.shard, world.now, "q", "u") == first
        assert world.shard.load.throttles == 0
        assert one(world, Mode.THROTTLE, ttl_ms=60_000)[0] is Out.CREATED

    def test_nothing_of_a_throttle_that_was_freed_waits_for_the_sweep(self, world):
        """Its hash is filed no more, and is counted no second time."""
        one(world, Mode.THROTTLE, ttl_ms=60_000)
        decide_forget_unique_key(world.shard, world.now, "q", "u")
        assert not world.shard.unique.throttled.has_any
        world.tick(130_000)
        assert world.shard.load.throttles == 0

    def test_the_time_of_a_holder_stays_where_it_is_over(self, world):
        """What waits behind it is next already, and need not wait for its end any more."""
        one(world, ttl_ms=1_000)
        leased = world.one()
        _, behind = one(world, Mode.REPLACE)
        world.tick(1_000)
        until_ms = world.shard.jobs[leased.id].ties.claim.until_ms
        assert decide_forget_unique_key(world.shard, world.now, "q", "u") == behind
        assert world.shard.jobs[leased.id].ties.claim.until_ms == until_ms
        world.commit()
        assert world.ids() == [behind]

    def test_nobodys_key_cannot_be_freed(self, world):
        one(world)
        for queue, key in (("q", "v"), ("other", "u")):
            with pytest.raises(Refused) as refused:
                decide_forget_unique_key(world.shard, world.now, queue, key)
            assert refused.value.kind is RefusalKind.JOB_NOT_FOUND


def broken(world: World) -> str:
    with pytest.raises(invariants.Violation) as violation:
        world.check()
    return str(violation.value)


def test_invariants_notice_a_key_without_its_job(parked):
    world, holder, behind = parked
    holders, waiting = world.shard.unique.holders, world.shard.unique.parked
    own = unique_hash("q", "u")
    for job_id, problem in (
        (behind + 1, f"G6: job {behind + 1} holds a unique key and is not live"),
        (behind, f"G6: job {behind} holds a unique key and is parked, or the reverse"),
    ):
        holders[own] = job_id
        assert broken(world) == problem
    del holders[own]
    assert broken(world) == "G6: a job waits for a unique key that nobody holds"
    holders[own] = holder
    other = unique_hash("q", "v")
    waiting[other] = waiting.pop(own)
    assert broken(world) == f"G6: job {behind} holds a unique key that is not its own"
    waiting[own] = waiting.pop(other)


def test_invariants_notice_claims_that_are_not_counted(parked):
    world, holder, behind = parked
    unique, job = world.shard.unique, world.shard.jobs[behind]
    unique.held += 1
    assert broken(world) == "G6: 2 jobs have a unique key, 3 are counted"
    unique.held -= 1
    job.state = S.SCHEDULED
    assert broken(world) == f"G6: job {behind} is SCHEDULED and waits for its unique key"
    job.state = S.BLOCKED
    waiting = unique.parked.pop(unique_hash("q", "u"))
    let_go(job)
    assert broken(world) == f"G6: jobs {behind} and {holder} both hold a unique key"
    unique.parked[unique_hash("q", "u")] = waiting
    job.ties = replace(job.ties, claim=Claim(parked=True))
    key_hash = unique_hash("q", "t")
    unique.throttled.add(key_hash, Throttle(1 << 50, 1))
    assert broken(world) == f"G6: a throttled key points to {1 << 50}, which was never used"
    del unique.throttled.records[key_hash]


def test_of_a_checkpoint_the_job_with_the_latest_time_holds_the_key(world):
    """Two jobs of one key are live where the time of the first was over; in any order."""
    found = []
    for ttl_ms in (1_000, 5_000, 0):
        found.append(world.shard.jobs[one(world, ttl_ms=ttl_ms or None)[1]])
        world.tick(5_000)
    for order in (found, found[::-1]):
        keys = UniqueKeys(world.shard.changes.throttles)
        for job in order:
            keys.load(job, world.shard.jobs.find)
        assert (keys.holder(unique_hash("q", "u")), keys.held) == (found[-1].id, 3)


def test_a_parked_job_of_a_checkpoint_without_its_holder_is_an_orphan(parked):
    world, _, behind = parked
    keys = UniqueKeys(world.shard.changes.throttles)
    keys.load(world.shard.jobs[behind], world.shard.jobs.find)
    assert keys.orphans() == [unique_hash("q", "u")]


def test_a_loaded_throttle_is_not_written_again(world):
    changes = world.shard.changes.throttles
    table, throttle = ThrottleTable(changes), Throttle(1, 5)
    throttle.stored = True
    table.add(b"1" * 16, throttle)
    assert not changes.to_write


def test_an_orphan_is_freed_when_all_is_loaded(parked):
    """It goes on as if its holder had ended; without orphans nothing happens."""
    world, holder, behind = parked
    free_orphans(world.shard)
    assert world.state(behind) is S.BLOCKED
    # As if the holder's record had been damaged.
    world.shard.unique.holders[unique_hash("q", "u")] = behind
    world.shard.unique.free(world.shard.jobs[behind])
    world.shard.unique.parked[unique_hash("q", "u")] = behind
    free_orphans(world.shard)
    assert (world.state(behind), world.shard.effects) == (S.READY, [])
    world.shard.unique.held += 1
    assert holder_of(world) == behind
    world.ack([(holder, world.shard.jobs[holder].delivery)])


def test_a_notice_stands_between_facts_and_is_not_written(world):
    shard = world.shard
    one(world)
    shard.take_applied()
    one(world, key="v")
    notice = DuplicatesFound(0, "q", [], [], [], [])
    shard.notice(notice)
    assert [each.fact for each in shard.take_applied()][-1] is notice
    assert shard.take_entries() == []
