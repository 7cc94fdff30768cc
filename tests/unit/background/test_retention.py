"""How long ended jobs stay, and how many."""

from __future__ import annotations

import pytest

from jobline_server.background import retention
from jobline_server.engine import limits
from jobline_server.engine.limits import DAY_MS, HOUR_MS, MINUTE_MS
from jobline_server.engine.values import JobState
from jobline_server.runtime import ageing
from tests.unit.background.conftest import Keeping

COMPLETED, CANCELLED, STALE = JobState.COMPLETED, JobState.CANCELLED, JobState.STALE


async def test_cancelled_jobs_stay_an_hour_and_stale_ones_another(keeping: Keeping) -> None:
    (job_id,) = await keeping.cancel()
    assert await keeping.after(HOUR_MS) == {}
    assert await keeping.after(1) == {"staled": 1}
    assert await keeping.kept() == {job_id: STALE}
    assert await keeping.after(HOUR_MS) == {}
    assert await keeping.after(1) == {"deleted": 1}
    assert await keeping.kept() == {}


async def test_newest_completed_jobs_stay_where_nobody_says_how_long(
    keeping: Keeping, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "KEEP_NEWEST", 2)
    first, second, third = [(await keeping.complete())[0] for _ in range(3)]
    assert await keeping.after(2 * HOUR_MS) == {"staled": 1}
    assert await keeping.kept() == {first: STALE, second: COMPLETED, third: COMPLETED}


async def test_queues_own_age_holds_for_its_newest_too(keeping: Keeping) -> None:
    await keeping.says(age_ms=MINUTE_MS)
    (job_id,) = await keeping.complete()
    assert await keeping.after(MINUTE_MS) == {}
    assert await keeping.after(1) == {"staled": 1}
    assert await keeping.kept() == {job_id: STALE}


async def test_queues_count_keeps_the_newest_of_each_state(keeping: Keeping) -> None:
    await keeping.says(count=2)
    cancelled = await keeping.cancel(3)
    completed = [(await keeping.complete())[0] for _ in range(4)]
    assert await keeping.after(0) == {"evicted": 3}
    assert list(await keeping.kept()) == [*cancelled[1:], *completed[2:]]


async def test_job_that_has_just_become_stale_is_not_evicted_as_well(keeping: Keeping) -> None:
    """Whoever looks sees what was changed a moment ago: it is in the file by then."""
    await keeping.says(age_ms=MINUTE_MS, count=2)
    old = await keeping.cancel(3)
    keeping.clock.advance(MINUTE_MS)
    new = await keeping.cancel(3)
    assert await keeping.after(1) == {"staled": 3, "evicted": 1}
    assert await keeping.kept() == dict.fromkeys(old, STALE) | dict.fromkeys(new[1:], CANCELLED)


async def test_job_that_was_put_back_is_not_deleted(keeping: Keeping) -> None:
    await keeping.says(age_ms=0)
    (job_id,) = await keeping.cancel()
    assert await keeping.after(1) == {"staled": 1}
    keeping.clock.advance(2 * HOUR_MS)
    await keeping.retry(job_id)
    assert await keeping.after(0) == {}
    assert await keeping.kept() == {}
    assert (await keeping.runtime.get_job(job_id)).state is JobState.READY


async def test_run_that_left_something_is_followed_soon(
    keeping: Keeping, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A slice every ten seconds would not do for a queue whose jobs end one by one."""
    monkeypatch.setattr(ageing, "SLICE_PARTS", 2)
    await keeping.says(age_ms=0)
    await keeping.cancel(3)
    assert await keeping.after(1) == {"staled": 2}
    assert keeping.beat.every_seconds == retention.AGAIN_SECONDS
    assert await keeping.after(0) == {"staled": 1}
    assert keeping.beat.every_seconds == retention.EVERY_SECONDS


async def test_file_is_not_asked_about_queues_where_nothing_can_be_due(
    keeping: Keeping, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Most queues hold fewer completed jobs than stay anyway."""

    async def asked(*_: object) -> None:
        raise AssertionError

    await keeping.complete(3)
    monkeypatch.setattr(keeping.runtime.ended.finished, "due_for_stale", asked)
    monkeypatch.setattr(keeping.runtime.ended.finished, "evictable", asked)
    assert await keeping.after(DAY_MS) == {}
