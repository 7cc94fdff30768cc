"""How long jobs are STALE before they are deleted: settings of queues, of jobs, and the default."""

from __future__ import annotations

from pathlib import Path

from jobline_server.engine.limits import DAY_MS, HOUR_MS, MINUTE_MS
from jobline_server.engine.values import JobState
from jobline_server.runtime.clock import ManualClock
from jobline_server.runtime.obstacles import ObstacleKind
from tests.unit.background.conftest import Keeping
from tests.unit.runtime.conftest import working

STALE = JobState.STALE


async def test_stale_jobs_stay_as_long_as_their_queue_says(keeping: Keeping) -> None:
    """And those of others an hour."""
    await keeping.sets(age_ms=MINUTE_MS, delete_after_ms=5 * MINUTE_MS)
    await keeping.sets("other", age_ms=MINUTE_MS)
    await keeping.cancel()
    other = await keeping.cancel(queue="other")
    assert await keeping.after(MINUTE_MS + 1) == {"staled": 2}
    assert await keeping.after(5 * MINUTE_MS) == {}
    assert await keeping.after(1) == {"deleted": 1}
    assert await keeping.kept() == dict.fromkeys(other, STALE)
    assert await keeping.after(HOUR_MS - 5 * MINUTE_MS) == {"deleted": 1}


async def test_jobs_with_a_time_of_their_own_stay_that_long(keeping: Keeping) -> None:
    """Shorter than their queue says, alone and in lots; longer would have no limit."""
    await keeping.sets(age_ms=0, delete_after_ms=DAY_MS)
    long = await keeping.complete(3, delete_after_ms=2 * DAY_MS)
    short = await keeping.complete(3, delete_after_ms=HOUR_MS)
    at_once = await keeping.cancel(delete_after_ms=0)
    plain = await keeping.cancel()
    assert await keeping.after(1) == {"staled": 8}
    assert await keeping.after(1) == {"deleted": 1}
    assert at_once[0] not in await keeping.kept()
    assert await keeping.after(HOUR_MS) == {"deleted": 3}
    assert await keeping.kept() == dict.fromkeys([*long, *plain], STALE)
    assert not {*short} & {*await keeping.kept()}
    assert await keeping.after(DAY_MS - HOUR_MS) == {"deleted": 4}


async def test_a_change_is_for_jobs_that_become_stale_after_it(keeping: Keeping) -> None:
    await keeping.sets(age_ms=0, delete_after_ms=HOUR_MS)
    (before,) = await keeping.cancel()
    assert await keeping.after(1) == {"staled": 1}
    await keeping.sets(age_ms=0, delete_after_ms=0)
    (after,) = await keeping.cancel()
    assert await keeping.after(1) == {"staled": 1}
    assert await keeping.after(1) == {"deleted": 1}
    assert after not in await keeping.kept()
    assert await keeping.kept() == {before: STALE}


async def test_a_job_that_is_retried_starts_over(keeping: Keeping) -> None:
    """Its next end has the whole time again."""
    await keeping.sets(age_ms=0, delete_after_ms=HOUR_MS)
    (job_id,) = await keeping.cancel()
    assert await keeping.after(1) == {"staled": 1}
    await keeping.retry(job_id)
    assert await keeping.after(2 * HOUR_MS) == {}
    assert await keeping.kept() == {}


async def test_explain_says_when_a_stale_job_is_deleted(keeping: Keeping) -> None:
    """Also while its change is on its way to the disk."""
    await keeping.sets(age_ms=0, delete_after_ms=HOUR_MS)
    (job_id,) = await keeping.cancel(delete_after_ms=MINUTE_MS)
    explain = keeping.runtime.explainer.explain_job
    state, [obstacle] = await explain(job_id)
    assert (state, obstacle.until_ms) == (JobState.CANCELLED, 0)
    assert "for 60 s more as STALE" in obstacle.message
    assert await keeping.after(1) == {"staled": 1}
    state, [obstacle] = await explain(job_id)
    assert (state, obstacle.kind) == (STALE, ObstacleKind.ENDED)
    assert obstacle.until_ms == keeping.clock.now().wall_ms + MINUTE_MS


async def test_stale_jobs_are_not_aged_again_after_a_start(tmp_path: Path) -> None:
    """They are past their age; others of their queue are aged as before."""
    clock = ManualClock()
    async with working(tmp_path, clock) as runtime:
        keeping = Keeping(runtime, clock)
        await keeping.sets(age_ms=MINUTE_MS)
        (stale,) = await keeping.cancel()
        assert await keeping.after(MINUTE_MS + 1) == {"staled": 1}
        (other,) = await keeping.cancel()
    async with working(tmp_path, clock) as runtime:
        keeping = Keeping(runtime, clock)
        assert await keeping.after(1) == {}
        assert await keeping.after(MINUTE_MS) == {"staled": 1}
        assert await keeping.kept() == {stale: STALE, other: STALE}
        assert await keeping.after(HOUR_MS) == {"deleted": 1}
        assert await keeping.after(1 + MINUTE_MS) == {"deleted": 1}
