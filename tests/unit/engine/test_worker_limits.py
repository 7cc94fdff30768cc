"""Workers say until when limiters and queues let nothing out; `test_group_limits` has groups."""

from __future__ import annotations

from dataclasses import replace

from jobline_server.engine.allowance import TimeLimit
from jobline_server.engine.commands import ReleaseItem
from jobline_server.engine.decide.limiters import (
    decide_empty_limiter,
    decide_worker_limit,
    existing_limiter,
    may_empty,
)
from jobline_server.engine.decide.queues import LIMITED_BY_WORKER
from jobline_server.engine.values import JobOptions, ReleaseReason
from tests.pushed_rows import NewJob
from tests.unit.engine.limiter_world import leases, lot, put, rules


def test_worker_says_until_when_a_limiter_is_empty(world):
    """It takes back nothing that was said before, and no more than the server lets workers say:
    others share the limiter.
    """
    put(world, most=5)
    world.shard.load.worker_limit_ms_max = 60_000
    now = world.now.wall_ms
    decide_worker_limit(world.shard, world.now, "api", now + 9_000, "w1")
    decide_worker_limit(world.shard, world.now, "api", now + 5_000, "w2")
    decide_worker_limit(world.shard, world.now, "gone", now + 5_000, "w2")
    limited = existing_limiter(world.shard, "api").limited
    assert limited == TimeLimit(now + 9_000, "w1", LIMITED_BY_WORKER)
    decide_worker_limit(world.shard, world.now, "api", now + 10**15, "w2")
    limited = existing_limiter(world.shard, "api").limited
    assert limited == TimeLimit(now + 60_000, "w2", LIMITED_BY_WORKER)


def test_worker_takes_no_time_back_that_an_operator_said(world):
    """That may be longer than what workers may say."""
    put(world, most=5)
    far_ms = world.now.wall_ms + 2 * world.shard.load.worker_limit_ms_max
    decide_empty_limiter(world.shard, world.now, "api", far_ms, "ann", "429")
    decide_worker_limit(world.shard, world.now, "api", far_ms, "w1")
    assert existing_limiter(world.shard, "api").limited == TimeLimit(far_ms, "ann", "429")


def test_worker_may_empty_the_limiters_of_a_job_that_it_has(world):
    """A lease that is lost says nothing, whatever it names."""
    put(world, most=5)
    put(world, "disk", most=5)
    lot(world, 1, "api")
    options = JobOptions(rules=rules("api", "disk"))
    world.push(jobs=[NewJob(b"x", options, "", 0)])
    for held in leases(world):
        assert may_empty(world.shard, ReleaseItem(*held, limiter="api"))
        assert not may_empty(world.shard, ReleaseItem(*held, limiter="other"))
        assert may_empty(world.shard, ReleaseItem(held[0], held[1] - 1, limiter="other"))
    assert may_empty(world.shard, ReleaseItem(99, 1, limiter="other"))


def test_worker_says_until_when_a_queue_is_limited(world):
    world.plain(b"x", b"y")
    first, second = leases(world)
    until_ms = world.now.wall_ms + 5_000
    limited = ReleaseItem(*first, why=ReleaseReason.LIMITED, until_ms=until_ms)
    world.release(limited, replace(limited, id=second[0], until_ms=until_ms - 1))
    assert (world.queue().limited.until_ms, world.queue().limited.by) == (until_ms, "w1")
    assert leases(world) == []
    world.advance(5_000)
    [again] = leases(world, most=1)
    assert again[0] == first[0], "at its old place"
    single = ReleaseItem(*again, why=ReleaseReason.LIMITED, until_ms=until_ms + 9_000)
    world.release(single)
    assert world.queue().limited.until_ms == until_ms + 9_000


def test_worker_limits_a_queue_for_no_longer_than_workers_may(world):
    """The job was one of a run, or single."""
    world.shard.load.worker_limit_ms_max = 60_000
    world.plain(b"x")
    [held] = leases(world)
    for longer_ms in (0, 60_000):
        world.advance(longer_ms)
        [held] = [held] if longer_ms == 0 else leases(world)
        world.release(ReleaseItem(*held, why=ReleaseReason.LIMITED, until_ms=1 << 50))
        assert world.queue().limited.until_ms == world.now.wall_ms + 60_000
