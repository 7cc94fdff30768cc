"""Schedules over a real server: runs exactly once, and what they do when jobs overlap."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from jobline import (
    AsyncClient,
    EventKind,
    InvalidArgument,
    JobState,
    NewJob,
    QueueFull,
    ScheduleExists,
    ScheduleNotFound,
    ScheduleOverlap,
    ScheduleSkipReason,
)
from jobline_server.runtime.clock import ManualClock
from jobline_server.testing import RunningServer, running_server
from tests.e2e.test_dependencies import _now
from tests.e2e.test_limits import now_of, somebody_waits

MINUTE = 60_000


async def advance(server: RunningServer, milliseconds: int) -> None:
    """Advances the time, and has what came due written."""
    server.advance(milliseconds)
    await server.runtime.core.commits.wait()


async def get(client: AsyncClient, schedule: str) -> Any:
    """Returns a schedule, whose runs are there."""
    return await client.schedules.get(schedule)


async def drained(client: AsyncClient, queue: str = "mail") -> list[Any]:
    """Pulls all jobs of a queue that are ready, for an hour."""
    return list(await client.pull(queue, max_jobs=1_000, wait=0, lease="1h"))


async def test_schedule_pushes_its_job_each_time(
    server: RunningServer, client: AsyncClient
) -> None:
    job = NewJob({"report": 7}, name="report", tags=["daily"], unique_key=None)
    made = await client.schedules.create("nightly", "mail", job, every="10m", overlap="allow")
    assert made.next_run_at == now_of(server) + timedelta(minutes=10)
    assert made.settings.job.options.tags == ("daily",)
    await advance(server, 10 * MINUTE - 1)
    assert await drained(client) == []
    await advance(server, 1)
    [leased] = await drained(client)
    assert (leased.json(), leased.name) == ({"report": 7}, "report")
    assert leased.headers["jobline-schedule"] == "nightly"
    at = datetime.fromisoformat(leased.headers["jobline-scheduled-at"])
    assert at == now_of(server)
    await advance(server, 10 * MINUTE)
    assert len(await drained(client)) == 1
    found = await get(client, "nightly")
    assert (found.count, found.skipped_count, found.missed_count) == (2, 0, 0)


async def test_last_run_says_how_its_job_ended(server: RunningServer, client: AsyncClient) -> None:
    """Also when the job itself is not kept; a job that fails does not end its schedule."""
    await client.schedules.create("one", "mail", NewJob(b"", max_attempts=1), every="1m")
    await advance(server, MINUTE)
    [leased] = await drained(client)
    assert (await get(client, "one")).last_run.state is JobState.ACTIVE
    await client.fail(leased, "boom")
    run = (await get(client, "one")).last_run
    assert (run.job_id, run.state, run.ended_at) == (leased.id, JobState.DEAD, now_of(server))
    await advance(server, MINUTE)
    assert len(await drained(client)) == 1


async def test_overlap_skips_by_default(server: RunningServer, client: AsyncClient) -> None:
    await client.schedules.create("one", "mail", every="1m")
    await advance(server, MINUTE)
    await advance(server, MINUTE)
    found = await get(client, "one")
    assert (found.count, found.skipped_count) == (1, 1)
    assert found.last_skip.reason is ScheduleSkipReason.OVERLAP
    assert found.last_skip.scheduled_at == now_of(server)


async def test_overlap_may_buffer_one(server: RunningServer, client: AsyncClient) -> None:
    await client.schedules.create("one", "mail", every="1m", overlap="buffer_one")
    await advance(server, MINUTE)
    [first] = await drained(client)
    await advance(server, MINUTE)
    await advance(server, MINUTE)
    found = await get(client, "one")
    assert found.waiting_run_at == now_of(server) - timedelta(minutes=1)
    assert (found.count, found.skipped_count) == (1, 1)
    await client.ack(first)
    await advance(server, 0)
    [second] = await drained(client)
    assert datetime.fromisoformat(second.headers["jobline-scheduled-at"]) == found.waiting_run_at
    assert (await get(client, "one")).waiting_run_at is None


async def test_overlap_may_replace(server: RunningServer, client: AsyncClient) -> None:
    """A waiting job is cancelled at once; an active one is asked to stop, and the new one waits."""
    await client.schedules.create("one", "mail", every="1m", overlap="replace")
    await advance(server, MINUTE)
    first = (await get(client, "one")).last_run.job_id
    await advance(server, MINUTE)
    assert (await client.jobs.get(first)).state is JobState.CANCELLED
    [second] = await drained(client)
    await advance(server, MINUTE)
    assert (await client.jobs.get(second.id)).cancel_requested
    assert await drained(client) == []
    await client.ack(second)
    await advance(server, 0)
    assert len(await drained(client)) == 1


async def test_upsert_keeps_counts_and_the_next_run(
    server: RunningServer, client: AsyncClient
) -> None:
    made: Any = await client.schedules.create("one", "mail", every="10m")
    await advance(server, 10 * MINUTE + 5_000)
    with pytest.raises(ScheduleExists):
        await client.schedules.create("one", "mail", every="10m")
    with pytest.raises(ScheduleExists, match="cannot change"):
        await client.schedules.create("one", "other", every="10m", upsert=True)
    found = await client.schedules.create(
        "one", "mail", b"new", every="10m", overlap="allow", upsert=True
    )
    assert (found.count, found.created_at) == (1, made.created_at)
    assert found.next_run_at == made.created_at + timedelta(minutes=20)
    assert found.settings.overlap is ScheduleOverlap.ALLOW


async def test_update_changes_what_is_named(server: RunningServer, client: AsyncClient) -> None:
    job = NewJob(b"\xff", name="n", group="g", headers={"a": "b"}, delay="5s")
    await client.schedules.create("one", "mail", job, every="10m", jitter="1s", limit=5)
    before = (await get(client, "one")).settings
    changed = (await client.schedules.update("one", cron="@daily", limit=None)).settings
    assert (changed.cron, changed.every, changed.limit) == ("@daily", None, None)
    assert (changed.job, changed.jitter) == (before.job, before.jitter)
    assert before.job.payload == b"\xff"
    assert before.job.delay == timedelta(seconds=5)
    with pytest.raises(InvalidArgument, match="Bad day-of-month"):
        await client.schedules.update("one", cron="0 0 32 * *")
    with pytest.raises(ScheduleNotFound):
        await client.schedules.update("two", jitter=None)


async def test_pause_lets_times_pass(server: RunningServer, client: AsyncClient) -> None:
    await client.schedules.create("one", "mail", every="1m", missed="all")
    paused = await client.schedules.pause("one", reason="holidays")
    assert (paused.paused, paused.pause_reason, paused.next_run_at) == (True, "holidays", None)
    await advance(server, 5 * MINUTE + 1)
    found = await client.schedules.resume("one")
    assert (found.count, found.missed_count, found.paused) == (0, 0, False)
    assert found.next_run_at == now_of(server) + timedelta(milliseconds=MINUTE - 1)


async def test_trigger_runs_it_now(server: RunningServer, client: AsyncClient) -> None:
    await client.schedules.create("one", "mail", b"x", cron="0 0 1 1 *")
    await client.schedules.pause("one")
    made = await client.schedules.trigger("one", reason="I want it")
    assert (made.schedule.count, made.skipped) == (1, ScheduleSkipReason.UNSPECIFIED)
    again = await client.schedules.trigger("one")
    assert (again.job_id, again.skipped) == (0, ScheduleSkipReason.OVERLAP)
    [leased] = await drained(client)
    assert leased.id == made.job_id


async def test_refused_push_is_a_skipped_run(server: RunningServer, client: AsyncClient) -> None:
    """The schedule goes on; a run by hand is refused as a push is."""
    await client.queues.update("mail", max_waiting=1)
    await client.push("mail", b"x")
    await client.schedules.create("one", "mail", every="1m")
    await advance(server, MINUTE)
    skip = (await get(client, "one")).last_skip
    assert skip.reason is ScheduleSkipReason.REFUSED
    assert skip.message.startswith("QUEUE_FULL")
    with pytest.raises(QueueFull):
        await client.schedules.trigger("one")
    await client.ack(*await drained(client))
    await advance(server, MINUTE)
    assert (await get(client, "one")).count == 1


async def test_run_without_a_worker_may_be_skipped(
    server: RunningServer, client: AsyncClient
) -> None:
    await client.schedules.create("one", "mail", every="1m", skip_if_no_worker=True)
    await advance(server, MINUTE)
    found = await get(client, "one")
    assert found.last_skip.reason is ScheduleSkipReason.NO_WORKER
    waiting = asyncio.create_task(client.pull("mail", wait=60))
    await somebody_waits(server)
    await advance(server, MINUTE)
    assert len(await waiting) == 1


async def test_schedules_go_with_their_queue(server: RunningServer, client: AsyncClient) -> None:
    await client.schedules.create("one", "mail", every="1m")
    await client.schedules.create("two", "other", every="1m")
    assert [one.name async for one in client.schedules.list()] == ["one", "two"]
    assert [one.name async for one in client.schedules.list(queue="mail")] == ["one"]
    await client.queues.delete("mail", force=True)
    assert [one.name async for one in client.schedules.list(page_size=1)] == ["two"]
    await client.schedules.delete("two")
    await advance(server, 5 * MINUTE)
    assert await drained(client, "other") == []


async def test_limit_and_end_bound_a_schedule(server: RunningServer, client: AsyncClient) -> None:
    await client.schedules.create("few", "mail", every="1m", limit=2, overlap="allow")
    end = now_of(server) + timedelta(minutes=3)
    await client.schedules.create("ends", "mail", every="1m", end=end, overlap="allow")
    for _ in range(5):
        await advance(server, MINUTE)
    few, ends = await get(client, "few"), await get(client, "ends")
    assert (few.count, few.next_run_at) == (2, None)
    assert (ends.count, ends.next_run_at) == (3, None)
    more = await client.schedules.update("few", limit=3)
    assert more.next_run_at is not None


async def test_immediately_runs_at_once(server: RunningServer, client: AsyncClient) -> None:
    await client.schedules.create("one", "mail", every="1h", immediately=True)
    await advance(server, 0)
    assert len(await drained(client)) == 1


async def test_preview_shows_the_next_runs(server: RunningServer, client: AsyncClient) -> None:
    """Over the changes of the clock in spring and autumn."""
    after = datetime(2026, 3, 27, tzinfo=UTC)
    runs = await client.schedules.preview(
        cron="30 2 * * *", time_zone="Europe/Berlin", count=3, after=after
    )
    assert [run.isoformat() for run in runs] == [
        "2026-03-27T01:30:00+00:00",
        "2026-03-28T01:30:00+00:00",
        "2026-03-29T01:00:00+00:00",
    ]
    await client.schedules.create("one", "mail", every="1m", limit=2)
    runs = await client.schedules.preview("one", count=5)
    assert runs == [now_of(server) + timedelta(minutes=n) for n in (1, 2)]


async def test_events_tell_of_runs(server: RunningServer, client: AsyncClient) -> None:
    await client.schedules.create("one", "mail", every="1m")
    kinds = (EventKind.SCHEDULE_FIRED, EventKind.SCHEDULE_SKIPPED)
    token = await _now(client)
    watching = client.watch(queues=["mail"], kinds=kinds, resume_token=token)
    await advance(server, MINUTE)
    await advance(server, MINUTE)
    fired, skipped = (await anext(watching)).event, (await anext(watching)).event
    last = (await get(client, "one")).last_run
    assert (fired.name, fired.job_id, fired.run_at) == ("one", last.job_id, last.scheduled_at)
    assert (skipped.message, skipped.run_at) == ("OVERLAP", now_of(server))


@pytest.mark.parametrize(
    ("missed", "pushed", "left_out"), [("skip", 0, 5), ("once", 1, 4), ("all", 5, 0)]
)
async def test_missed_runs_after_a_stop(
    tmp_path: Path, missed: Any, pushed: int, left_out: int
) -> None:
    clock = ManualClock()
    async with running_server(tmp_path, clock=clock) as server, AsyncClient(server.address) as one:
        await one.schedules.create("one", "mail", every="10m", missed=missed, overlap="allow")
    clock.advance(55 * MINUTE)
    async with running_server(tmp_path, clock=clock) as server, AsyncClient(server.address) as one:
        await advance(server, 0)
        found = await get(one, "one")
        assert (found.count, found.missed_count) == (pushed, left_out)
        assert found.next_run_at == now_of(server) + timedelta(minutes=5)
        await advance(server, 5 * MINUTE)
        assert (await get(one, "one")).count == pushed + 1


async def test_late_run_is_not_missed_within_a_minute(tmp_path: Path) -> None:
    clock = ManualClock()
    async with running_server(tmp_path, clock=clock) as server, AsyncClient(server.address) as one:
        await one.schedules.create("one", "mail", every="10m")
    clock.advance(11 * MINUTE)
    async with running_server(tmp_path, clock=clock) as server, AsyncClient(server.address) as one:
        await advance(server, 0)
        assert (await get(one, "one")).count == 1
