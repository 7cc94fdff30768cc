"""Dead jobs are put back by themselves when their time has come, without a look at any other."""

from __future__ import annotations

from pathlib import Path

import pytest

from jobline_server.background import dead_letters
from jobline_server.background.dead_letters import RetryDeadJobs
from jobline_server.engine.dead_letters import AutoRetry, DeadLetters
from jobline_server.engine.limits import DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS
from jobline_server.engine.values import JobState, QueueSettings, Retention
from jobline_server.runtime.clock import ManualClock
from jobline_server.runtime.ended import auto_retry, due
from jobline_server.runtime.ended.auto_retry import AutoRetries
from jobline_server.runtime.views import Audit
from tests.unit.background.conftest import Keeping
from tests.unit.runtime.conftest import working

READY, DEAD, STALE = JobState.READY, JobState.DEAD, JobState.STALE


class Retrying:
    """The task beside a runtime, and its queue's settings."""

    def __init__(self, keeping: Keeping) -> None:
        self.keeping = keeping
        runtime = keeping.runtime
        self.task = RetryDeadJobs(runtime.core, AutoRetries(runtime.core, runtime.ended))

    async def sets(
        self, rule: AutoRetry | None, queue: str = "mail", *, max_waiting: int | None = None
    ) -> None:
        letters = DeadLetters(auto_retry=rule)
        settings = QueueSettings(dead_letters=letters, max_waiting=max_waiting)
        await self.keeping.runtime.queues.update_queue(queue, settings, None, Audit())

    async def after(self, milliseconds: int) -> int:
        """Lets time pass and runs the task once; returns how many jobs were put back."""
        self.keeping.clock.advance(milliseconds)
        counts = await self.task.run_once(self.keeping.clock.now())
        assert counts is not None
        return counts["retried"]

    async def state(self, job_id: int) -> JobState:
        return (await self.keeping.runtime.jobs.get_job(job_id)).state


@pytest.fixture
def retrying(keeping: Keeping) -> Retrying:
    return Retrying(keeping)


async def test_dead_job_is_put_back_when_its_time_has_come(retrying: Retrying) -> None:
    await retrying.sets(AutoRetry())
    (job_id,) = await retrying.keeping.die()
    view = await retrying.keeping.runtime.jobs.get_job(job_id)
    assert (view.retry_ms, view.expires_ms) == (view.ended_ms + HOUR_MS, view.ended_ms + 7 * DAY_MS)
    assert await retrying.after(HOUR_MS - 1) == 0
    assert await retrying.after(1) == 1
    view = await retrying.keeping.runtime.jobs.get_job(job_id)
    assert (view.state, view.auto_retries, view.retry_ms) == (READY, 1, 0)
    assert await retrying.after(DAY_MS) == 0


async def test_jobs_of_queues_without_it_are_not_looked_at(
    retrying: Retrying, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def asked(*_: object, **__: object) -> None:
        raise AssertionError

    await retrying.keeping.die(2)
    monkeypatch.setattr(due, "past_retry", asked)
    assert await retrying.after(DAY_MS) == 0


async def test_turned_off_it_retries_nothing_and_turned_on_again_what_is_due(
    retrying: Retrying,
) -> None:
    await retrying.sets(AutoRetry())
    (job_id,) = await retrying.keeping.die()
    await retrying.sets(None)
    assert (await retrying.keeping.runtime.jobs.get_job(job_id)).retry_ms == 0
    assert await retrying.after(2 * HOUR_MS) == 0
    await retrying.sets(AutoRetry())
    assert await retrying.after(0) == 1


async def test_jobs_without_room_stay_dead_and_are_tried_again(retrying: Retrying) -> None:
    """Retries obey the limit of waiting jobs, as pushes do."""
    await retrying.sets(AutoRetry())
    ids = await retrying.keeping.die(3)
    await retrying.sets(AutoRetry(), max_waiting=2)
    assert await retrying.after(HOUR_MS) == 2
    assert [await retrying.state(job_id) for job_id in ids] == [READY, READY, DEAD]
    assert await retrying.after(SECOND_MS) == 0
    await retrying.sets(AutoRetry(), max_waiting=3)
    assert await retrying.after(0) == 1


async def test_it_looks_less_often_while_nothing_is_to_be_retried(retrying: Retrying) -> None:
    """An idle server is woken as seldom as may be."""
    assert await retrying.after(0) == 0
    assert retrying.task.every_seconds == dead_letters.AT_REST_SECONDS
    await retrying.sets(AutoRetry())
    await retrying.keeping.die(1)
    assert await retrying.after(SECOND_MS) == 0
    assert retrying.task.every_seconds == dead_letters.EVERY_SECONDS


async def test_jobs_without_room_are_not_looked_at_again_at_once(retrying: Retrying) -> None:
    await retrying.sets(AutoRetry())
    await retrying.keeping.die(2)
    await retrying.sets(AutoRetry(), max_waiting=1)
    assert await retrying.after(HOUR_MS) == 1
    assert await retrying.after(MINUTE_MS - 1) == 0
    assert retrying.task.every_seconds == dead_letters.EVERY_SECONDS


async def test_many_due_jobs_are_retried_in_slices(
    retrying: Retrying, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(auto_retry, "SLICE_JOBS", 2)
    await retrying.sets(AutoRetry())
    await retrying.keeping.die(5)
    assert await retrying.after(HOUR_MS) == 2
    assert retrying.task.every_seconds == dead_letters.AGAIN_SECONDS
    assert [await retrying.after(0) for _ in range(3)] == [2, 1, 0]
    assert retrying.task.every_seconds == dead_letters.EVERY_SECONDS


async def test_slices_that_follow_leave_what_has_just_ended(
    retrying: Retrying, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They come twenty times a second. If each wrote what had ended since the last, nothing that a
    queue does not keep would be left out any more, as long as dead jobs are put back.
    """
    monkeypatch.setattr(auto_retry, "SLICE_JOBS", 2)
    store = retrying.keeping.runtime.ended.ended_store
    await retrying.sets(AutoRetry())
    await retrying.sets(AutoRetry(), "other")
    old = await retrying.keeping.die(5)
    assert await retrying.after(HOUR_MS) == 2
    new = await retrying.keeping.die(1, "other")
    assert [await retrying.after(0) for _ in range(2)] == [2, 1]
    assert not (await store.get_many(new)).rows
    await retrying.keeping.runtime.ended.write()
    assert await retrying.after(HOUR_MS) == 1
    assert [await retrying.state(job_id) for job_id in [*old, *new]] == [READY] * 6


async def test_slices_pass_jobs_that_cannot_be_put_back(
    retrying: Retrying, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those of another queue behind them are not kept waiting either."""
    monkeypatch.setattr(auto_retry, "SLICE_JOBS", 2)
    await retrying.sets(AutoRetry())
    await retrying.sets(AutoRetry(), "other")
    await retrying.keeping.die(3)
    await retrying.keeping.die(1, "other")
    await retrying.sets(AutoRetry(), max_waiting=1)
    counts = [await retrying.after(HOUR_MS), await retrying.after(0), await retrying.after(0)]
    assert sum(counts) == 2
    assert retrying.task.every_seconds == dead_letters.EVERY_SECONDS


async def test_many_queues_are_checked_in_turn(
    retrying: Retrying, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dead_letters, "QUEUES_MAX", 1)
    for queue in ("a", "b"):
        await retrying.sets(AutoRetry(), queue)
        await retrying.keeping.die(1, queue)
    retried = [await retrying.after(HOUR_MS), *[await retrying.after(0) for _ in range(4)]]
    assert sum(retried) == 2
    assert max(retried) == 1


async def test_full_disk_keeps_dead_jobs_where_they_are(retrying: Retrying) -> None:
    await retrying.sets(AutoRetry())
    await retrying.keeping.die()
    retrying.keeping.runtime.core.commits.disk_full = True
    assert await retrying.after(HOUR_MS) == 0
    retrying.keeping.runtime.core.commits.disk_full = False
    assert await retrying.after(0) == 1


async def test_check_that_fails_is_made_again(
    retrying: Retrying, monkeypatch: pytest.MonkeyPatch
) -> None:
    await retrying.sets(AutoRetry())
    await retrying.keeping.die()
    with monkeypatch.context() as patched:
        patched.setattr(due, "past_retry", None)
        with pytest.raises(TypeError):
            await retrying.after(HOUR_MS)
    assert await retrying.after(MINUTE_MS) == 1


async def test_run_before_the_next_try_of_what_failed_is_no_success(
    retrying: Retrying, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It ended each row of failures a second after it had begun."""
    await retrying.sets(AutoRetry())
    await retrying.keeping.die()
    with monkeypatch.context() as away:
        away.setattr(due, "past_retry", None)
        for milliseconds in (HOUR_MS, 0):  # the second for the hint that its end has left
            with pytest.raises(TypeError):
                await retrying.after(milliseconds)
    for milliseconds in (0, MINUTE_MS - 1):
        retrying.keeping.clock.advance(milliseconds)
        assert await retrying.task.run_once(retrying.keeping.clock.now()) is None
    assert await retrying.after(1) == 1
    assert await retrying.after(SECOND_MS) == 0


async def test_queue_that_is_scheduled_twice_for_a_time_is_checked_once(
    retrying: Retrying,
) -> None:
    """New settings have it checked at once, and then scheduled for the same time again."""
    await retrying.sets(AutoRetry())
    assert await retrying.after(0) == 0
    await retrying.keeping.die()
    await retrying.keeping.runtime.ended.write()
    assert await retrying.after(0) == 0
    await retrying.sets(AutoRetry())
    assert await retrying.after(0) == 0
    assert await retrying.after(HOUR_MS) == 1


async def test_retry_outlives_the_process(tmp_path: Path) -> None:
    """Predecessors: retries of dead letters were lost at a restart."""
    clock = ManualClock()
    async with working(tmp_path, clock) as runtime:
        retrying = Retrying(Keeping(runtime, clock))
        await retrying.sets(AutoRetry())
        (job_id,) = await retrying.keeping.die()
        assert await retrying.after(HOUR_MS) == 1
    async with working(tmp_path, clock) as runtime:
        assert (await runtime.jobs.get_job(job_id)).auto_retries == 1
        retrying = Retrying(Keeping(runtime, clock))
        await retrying.sets(AutoRetry(), "other")
        (other,) = await retrying.keeping.die(1, "other")
    async with working(tmp_path, clock) as runtime:
        retrying = Retrying(Keeping(runtime, clock))
        assert await retrying.after(HOUR_MS - 1) == 0
        assert await retrying.after(1) == 1
        assert await retrying.state(other) is READY


# Expiry and size.


async def test_dead_jobs_expire_after_their_own_time(keeping: Keeping) -> None:
    settings = QueueSettings(
        retention=Retention(age_ms=5), dead_letters=DeadLetters(expire_after_ms=HOUR_MS)
    )
    await keeping.runtime.queues.update_queue("mail", settings, None, Audit())
    (job_id,) = await keeping.die()
    assert await keeping.after(HOUR_MS) == {}
    assert await keeping.after(1) == {"staled": 1}
    assert await keeping.kept() == {job_id: STALE}


async def test_dead_jobs_that_are_kept_for_ever_do_not_expire(keeping: Keeping) -> None:
    settings = QueueSettings(dead_letters=DeadLetters(keep_forever=True))
    await keeping.runtime.queues.update_queue("mail", settings, None, Audit())
    (job_id,) = await keeping.die()
    assert (await keeping.runtime.jobs.get_job(job_id)).expires_ms == 0
    assert await keeping.after(400 * DAY_MS) == {}
    await keeping.runtime.queues.update_queue("mail", QueueSettings(), None, Audit())
    assert await keeping.after(1) == {"staled": 1}


async def test_dead_jobs_over_their_bytes_go_oldest_first(keeping: Keeping) -> None:
    ids = await keeping.die(3)
    await keeping.runtime.ended.write()
    totals = await keeping.runtime.ended.ended_store.totals("mail", int(DEAD))
    letters = DeadLetters(max_bytes=totals.bytes - 1)
    await keeping.runtime.queues.update_queue(
        "mail", QueueSettings(dead_letters=letters), None, Audit()
    )
    assert await keeping.after(0) == {"evicted": 1}
    assert list(await keeping.kept()) == ids[1:]
    assert keeping.runtime.evictions.count == 1
