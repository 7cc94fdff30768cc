"""How long ended jobs stay, and how many: settings of queues, of jobs, and the defaults."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from jobline_server.background import retention
from jobline_server.engine import limits
from jobline_server.engine.limits import DAY_MS, HOUR_MS, MINUTE_MS
from jobline_server.engine.values import JobState
from jobline_server.runtime.ended import due
from jobline_server.runtime.ended import retention as ended_retention
from jobline_server.storage.ended_store import EndedScan, ScanOrder
from tests.unit.background.conftest import Keeping
from tests.unit.runtime.watching import now_of, seen_since

COMPLETED, CANCELLED, STALE = JobState.COMPLETED, JobState.CANCELLED, JobState.STALE


# Settings of queues, and the defaults.


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
    await keeping.sets(age_ms=MINUTE_MS)
    (job_id,) = await keeping.complete()
    assert await keeping.after(MINUTE_MS) == {}
    assert await keeping.after(1) == {"staled": 1}
    assert await keeping.kept() == {job_id: STALE}


async def test_queues_count_keeps_the_newest_of_each_state(keeping: Keeping) -> None:
    await keeping.sets(count=2)
    cancelled = await keeping.cancel(3)
    completed = [(await keeping.complete())[0] for _ in range(4)]
    assert await keeping.after(0) == {"evicted": 3}
    assert list(await keeping.kept()) == [*cancelled[1:], *completed[2:]]


async def test_job_that_has_just_become_stale_is_not_evicted_as_well(keeping: Keeping) -> None:
    """Each step of a run sees the changes of the step before: they are in the file."""
    await keeping.sets(age_ms=MINUTE_MS, count=2)
    old = await keeping.cancel(3)
    keeping.clock.advance(MINUTE_MS)
    new = await keeping.cancel(3)
    assert await keeping.after(1) == {"staled": 3, "evicted": 1}
    assert await keeping.kept() == dict.fromkeys(old, STALE) | dict.fromkeys(new[1:], CANCELLED)


async def test_job_that_was_put_back_is_not_deleted(keeping: Keeping) -> None:
    await keeping.sets(age_ms=0)
    (job_id,) = await keeping.cancel()
    assert await keeping.after(1) == {"staled": 1}
    keeping.clock.advance(2 * HOUR_MS)
    await keeping.retry(job_id)
    assert await keeping.after(0) == {}
    assert await keeping.kept() == {}
    assert (await keeping.runtime.jobs.get_job(job_id)).state is JobState.READY


async def test_run_that_left_something_is_followed_soon(
    keeping: Keeping, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One slice every ten seconds would be too slow where jobs end one by one."""
    monkeypatch.setattr(ended_retention, "SLICE_PARTS", 2)
    await keeping.sets(age_ms=0)
    await keeping.cancel(3)
    assert await keeping.after(1) == {"staled": 2}
    assert keeping.task.every_seconds == retention.AGAIN_SECONDS
    assert await keeping.after(0) == {"staled": 1}
    assert keeping.task.every_seconds == retention.EVERY_SECONDS


async def test_file_is_not_asked_about_queues_where_nothing_can_be_due(
    keeping: Keeping, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Most queues hold fewer completed jobs than stay anyway."""

    async def asked(*_: object, **__: object) -> None:
        raise AssertionError

    await keeping.complete(3)
    monkeypatch.setattr(due, "past_age", asked)
    monkeypatch.setattr(due, "too_many", asked)
    assert await keeping.after(DAY_MS) == {}


# Settings of jobs.


async def test_own_age_is_exact(keeping: Keeping) -> None:
    (job_id,) = await keeping.complete(age_ms=MINUTE_MS)
    assert await keeping.after(MINUTE_MS - 1) == {}
    assert await keeping.after(1) == {"staled": 1}
    assert await keeping.kept() == {job_id: STALE}
    assert await keeping.after(HOUR_MS + 1) == {"deleted": 1}


async def test_own_age_goes_before_the_queues(keeping: Keeping) -> None:
    """Longer or shorter, and jobs without one are not touched by it."""
    await keeping.sets(age_ms=HOUR_MS)
    await keeping.cancel(age_ms=MINUTE_MS)
    (longer,) = await keeping.cancel(age_ms=DAY_MS)
    await keeping.cancel()
    assert await keeping.after(MINUTE_MS) == {"staled": 1}
    assert await keeping.after(HOUR_MS) == {"staled": 1}
    assert (await keeping.kept())[longer] == CANCELLED
    await keeping.after(DAY_MS)
    assert await keeping.kept() == {longer: STALE}


async def test_jobs_with_their_own_age_do_not_use_up_the_newest(
    keeping: Keeping, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "KEEP_NEWEST", 2)
    plain = [(await keeping.complete())[0] for _ in range(2)]
    await keeping.complete(5, age_ms=DAY_MS)
    assert await keeping.after(2 * HOUR_MS) == {}
    assert [job_id for job_id in await keeping.kept() if job_id in plain] == plain


async def test_own_age_of_nothing_means_the_next_run(keeping: Keeping) -> None:
    """In whatever state they ended, a lot whole."""
    await keeping.complete(3, age_ms=0)
    await keeping.cancel(age_ms=0, queue="other")
    assert await keeping.after(0) == {"staled": 4}
    assert set((await keeping.kept()).values()) == {STALE}


async def test_own_count_deletes_what_as_many_ended_after(keeping: Keeping) -> None:
    first, second, _ = [(await keeping.complete(count=2))[0] for _ in range(3)]
    assert await keeping.after(0) == {"evicted": 1}
    assert first not in await keeping.kept()
    await keeping.cancel(5)
    await keeping.complete(5, queue="other")
    assert await keeping.after(0) == {}, "only its own queue and state count"
    await keeping.complete()
    assert await keeping.after(0) == {"evicted": 1}
    assert second not in await keeping.kept()


async def test_own_count_of_none_means_the_next_run(keeping: Keeping) -> None:
    await keeping.complete(3, count=0)
    assert await keeping.after(0) == {"evicted": 3}
    assert await keeping.kept() == {}


async def test_each_count_of_jobs_own_is_heeded(keeping: Keeping) -> None:
    """In one queue, and in several; those that go together count for each other."""
    left = {}
    for count in (1, 5, 0, 2, 1, 3, 9):
        for queue in ("mail", "other"):
            (left[queue, count],) = await keeping.complete(count=count, queue=queue)
    assert await keeping.after(0) == {"evicted": 10}
    stay = [job_id for (_, count), job_id in left.items() if count in {3, 9}]
    assert list(await keeping.kept()) == stay
    assert await keeping.after(0) == {}


async def test_queues_count_goes_before_a_larger_one_of_a_job(keeping: Keeping) -> None:
    """So does any age: limits of number protect the disk."""
    await keeping.sets(count=1)
    jobs = [(await keeping.complete(count=100, age_ms=DAY_MS))[0] for _ in range(3)]
    assert await keeping.after(0) == {"evicted": 2}
    assert list(await keeping.kept()) == jobs[2:]


# Only queues that changed.


class Asked:
    """Counts queries to the ended store about single queues."""

    def __init__(self, keeping: Keeping, monkeypatch: pytest.MonkeyPatch) -> None:
        self.count = 0
        ended_store = keeping.runtime.ended.ended_store
        for name in ("scan", "count", "totals", "next_own_count"):
            monkeypatch.setattr(ended_store, name, self._counted(getattr(ended_store, name)))

    def _counted(self, ask: Callable[..., Any]) -> Callable[..., Any]:
        async def asked(*arguments: Any) -> Any:
            of = arguments[0]
            self.count += not isinstance(of, EndedScan) or of.order is ScanOrder.ENDED
            return await ask(*arguments)

        return asked


async def test_run_asks_nothing_about_queues_where_nothing_is_due(
    keeping: Keeping, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Trial C5: not about queues where jobs ended, before or since, until the first of them reach
    their age.
    """
    queues = [f"queue-{number}" for number in range(20)]
    for queue in queues:
        await keeping.cancel(queue=queue)
    await keeping.after(0)
    asked = Asked(keeping, monkeypatch)
    for queue in queues:
        await keeping.cancel(queue=queue)
    assert await keeping.after(HOUR_MS - 1) == {}
    assert asked.count == 0
    assert (await keeping.after(2))["staled"] == 2 * len(queues)
    assert asked.count <= 2 * len(queues)
    asked.count = 0
    assert await keeping.after(1) == {}
    assert asked.count == 0


async def test_queue_with_new_settings_is_checked_again(keeping: Keeping) -> None:
    """Trial C5: jobs that are older than the new age are due at once, those beyond the new number
    too.
    """
    old = await keeping.cancel(4)
    assert await keeping.after(MINUTE_MS) == {}
    await keeping.sets(count=3)
    assert await keeping.after(0) == {"evicted": 1}
    await keeping.sets(age_ms=MINUTE_MS)
    assert await keeping.after(1) == {"staled": 3}
    assert await keeping.kept() == dict.fromkeys(old[1:], STALE)


async def test_check_that_failed_is_retried(
    keeping: Keeping, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Trial C5: the changes are not lost."""

    async def failing(*_: object, **__: object) -> None:
        raise OSError

    await keeping.after(0)
    await keeping.sets(count=1)
    await keeping.cancel(3)
    with monkeypatch.context() as patch:
        patch.setattr(due, "too_many", failing)
        with pytest.raises(OSError):  # noqa: PT011  # the very one from above
            await keeping.after(0)
    assert await keeping.after(0) == {"evicted": 2}
    with monkeypatch.context() as patch:
        patch.setattr(due, "past_age", failing)
        with pytest.raises(OSError):  # noqa: PT011  # the very one from above
            await keeping.after(2 * HOUR_MS)
    assert await keeping.after(0) == {"staled": 1}


async def test_oldest_of_the_newest_goes_when_more_have_ended(
    keeping: Keeping, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Trial C5: the store is not asked before that."""
    monkeypatch.setattr(limits, "KEEP_NEWEST", 2)
    first, second = [(await keeping.complete())[0] for _ in range(2)]
    assert await keeping.after(2 * HOUR_MS) == {}
    (third,) = await keeping.complete()
    assert await keeping.after(0) == {"staled": 1}
    assert await keeping.kept() == {first: STALE, second: COMPLETED, third: COMPLETED}


async def test_evicted_dead_letters_are_told_counted_and_logged(
    keeping: Keeping, caplog: pytest.LogCaptureFixture
) -> None:
    """Trial B10: nobody chose these jobs, so eviction is an event, a metric and a warning."""
    await keeping.sets(count=1)
    begun = await now_of(keeping.runtime)
    dead = await keeping.die(3)
    assert await keeping.after(0) == {"evicted": 2}
    seen = [event for event, _ in await seen_since(keeping.runtime, begun)]
    evicted = [job_id for kind, job_id in seen if kind == "DEAD_EVICTED"]
    assert evicted == dead[:2]
    assert keeping.runtime.evictions.count == 2
    (line,) = [line for line in caplog.records if "dead letters evicted" in line.getMessage()]
    assert line.levelname == "WARNING"
