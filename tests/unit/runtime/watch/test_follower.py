"""The follower reads each event, over restarts, and says when some are gone."""

from __future__ import annotations

from pathlib import Path

from jobline_server.engine.values import AckLevel
from jobline_server.runtime.clock import ManualClock
from jobline_server.runtime.runtime import Runtime
from jobline_server.runtime.watch import kept_batches
from jobline_server.runtime.watch.feed import Feed
from jobline_server.runtime.watch.follower import Follower
from tests.unit.runtime.conftest import opened
from tests.unit.runtime.watch.test_feed import push


def follow(runtime: Runtime) -> Follower:
    """One that a webhook needs."""
    runtime.core.load.tells_webhooks = True
    return runtime.follower


def jobs_of(follower: Follower, told: tuple[int, ...] = ()) -> tuple[int, bool]:
    """How many jobs the next events are about, to the end; and whether some are gone."""
    jobs, missed = 0, False
    while True:
        answer, gone = follower.read(told)
        missed |= gone
        if answer is None:
            return jobs, missed
        jobs += sum(part.count for part in answer.parts if part.run.starts)


async def test_events_since_they_are_wanted_are_read_once(runtime: Runtime) -> None:
    """Also those before the first read; those before that are nobody's."""
    await push(runtime, 3)
    follower = follow(runtime)
    await push(runtime, 5)
    assert jobs_of(follower) == (5, False)
    assert jobs_of(follower) == (0, False)
    await push(runtime, 2)
    assert jobs_of(follower) == (2, False)
    follower.keep()
    assert runtime.core.slots[0].shard.told_offset == runtime.core.slots[0].shard.committed


async def test_nothing_is_told_before_the_first_read(runtime: Runtime) -> None:
    assert follow(runtime).told() == ()


async def test_too_slow_a_follower_goes_on_with_what_is_kept(runtime: Runtime, monkeypatch) -> None:
    monkeypatch.setattr(kept_batches, "BATCHES_KEPT_MAX", 2)
    follower = follow(runtime)
    await push(runtime, 1)
    assert jobs_of(follower) == (1, False)
    await push(runtime, 1, commits=5)
    assert jobs_of(follower) == (2, True)


async def test_it_goes_on_after_a_restart(tmp_path: Path) -> None:
    """With what facts say, or the shard; without either, with all that is in the journal."""
    clock = ManualClock()
    async with opened(tmp_path, clock) as runtime:
        follow(runtime)
        await push(runtime, 1, commits=4)
        told = runtime.core.slots[0].shard.committed - 1
    async with opened(tmp_path, clock) as runtime:
        assert jobs_of(follow(runtime)) == (4, False)
        assert jobs_of(Follower(runtime.core, runtime.feed), (told,)) == (1, False)
        runtime.core.slots[0].shard.told_offset = told
        assert jobs_of(Follower(runtime.core, runtime.feed)) == (1, False)


async def test_rows_that_were_folded_before_they_were_read_are_gone(runtime: Runtime) -> None:
    """As after a crash between the checkpoint and the read; what is kept is read."""
    await push(runtime, 1, commits=4)
    # A feed that begins after those rows.
    late = Feed(runtime.core)
    runtime.core.load.tells_webhooks = True
    follower = Follower(runtime.core, late)
    assert jobs_of(follower, (2,)) == (0, True)
    assert jobs_of(follower, (2,)) == (0, False)


async def test_what_is_in_no_journal_is_not_missed(runtime: Runtime) -> None:
    """Pushes that are kept in memory alone, before the first webhook and while nobody watches."""
    await push(runtime, 1, commits=2)
    told = runtime.core.slots[0].shard.committed
    await push(runtime, 1, commits=2, level=AckLevel.MEMORY)
    runtime.core.slots[0].shard.told_offset = runtime.core.slots[0].shard.committed
    follower = follow(runtime)
    assert jobs_of(follower) == (0, False)
    late = Follower(runtime.core, runtime.feed)
    runtime.core.slots[0].shard.told_offset = told - 1
    assert jobs_of(late) == (0, True)
