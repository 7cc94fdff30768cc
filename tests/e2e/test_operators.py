"""What operators ask, over a socket."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from jobline import (
    AsyncClient,
    EventKind,
    FailAction,
    InvalidArgument,
    JobError,
    JobFilter,
    JobNotFound,
    JobOptions,
    NewJob,
    ObstacleKind,
    QueueActive,
    QueueNotFound,
)
from jobline.v1 import job_service_pb2
from jobline.v1.job_service_pb2_grpc import JobServiceStub
from jobline_server.testing import RunningServer


async def test_lists_page_through_live_and_ended_jobs_by_id(client: AsyncClient) -> None:
    """Each job once, whatever state it is in, however small the page."""
    lot = await client.push_payloads("mail", [b"x"] * 5)
    rows = await client.push_many("mail", [NewJob(b"y", job_key=f"k{i}") for i in range(3)])
    pulled = await client.pull("mail", max_jobs=3)
    await client.ack(pulled[0], pulled[2])
    listed = [job.id async for job in client.jobs.list(page_size=2)]
    assert listed == sorted([*lot.ids, *(row.id for row in rows)])
    ended = client.jobs.list("state:completed")
    assert [job.id async for job in ended] == [pulled[0].id, pulled[2].id]


async def test_a_filter_lets_through_what_it_says(client: AsyncClient) -> None:
    """By queue, name, state and error."""
    await client.push("mail", b"x", name="welcome")
    bye = await client.push("mail", b"x", name="bye")
    await client.push("other", b"x", name="bye")
    wanted = client.jobs.list(queue="mail", name="bye", state="ready")
    assert [job.id async for job in wanted] == [bye.id]


async def test_tags_choose_jobs_alive_dead_and_ended(client: AsyncClient) -> None:
    """All tags of a filter must be there; members of a lot, single jobs and ended ones alike."""
    lot = await client.push_payloads("mail", [b"x"] * 2, tags=["eu"])
    both = [NewJob(b"y", options=JobOptions(tags=["night"])), NewJob(b"z")]
    night, day = await client.push_many("mail", both, options=JobOptions(tags=["eu"]))
    await client.push("mail", b"x")
    jobs = await client.pull("mail", max_jobs=4)
    await client.ack(jobs[0])
    await client.fail(jobs[2], "e", then=FailAction.DEAD)

    assert [job.id async for job in client.jobs.list("tag:eu")] == [*lot.ids, night.id, day.id]
    assert [job.id async for job in client.jobs.list(tags=["night", "eu"])] == [night.id]
    assert [job.id async for job in client.dead.list("tag:night")] == [night.id]
    assert [job.id async for job in client.dead.list("tag:day")] == []
    assert (await client.jobs.get(night.id)).options.tags == ("eu", "night")
    assert (await client.jobs.delete("tag:eu state:completed")).count == 1
    assert (await client.jobs.retry("tag:eu")).count == 1


async def test_an_empty_filter_needs_all(client: AsyncClient) -> None:
    """Nobody cancels everything by a slip."""
    await client.push("mail", b"x")
    with pytest.raises(InvalidArgument):
        await client.jobs.cancel(JobFilter())
    assert (await client.jobs.cancel(JobFilter(), everything=True, dry_run=True)).count == 1
    assert (await client.jobs.cancel(JobFilter(), everything=True)).count == 1


async def test_a_lot_is_cancelled_in_part(client: AsyncClient) -> None:
    """Its other members are handed out as before."""
    lot = await client.push_payloads("mail", [b"%d" % i for i in range(6)])
    await client.jobs.cancel(lot.first_id + 1, lot.first_id + 4)
    pulled = await client.pull("mail", max_jobs=10)
    assert [job.payload for job in pulled] == [b"0", b"2", b"3", b"5"]
    counts = (await client.queues.get("mail")).counts
    assert (counts.active, counts.cancelled) == (4, 2)


async def test_promote_makes_a_delayed_job_ready(client: AsyncClient) -> None:
    """Those that are not SCHEDULED are said to be skipped."""
    later = await client.push("mail", b"x", delay=3_600)
    done = await client.jobs.promote(later.id, 77)
    assert (done.count, list(done.skipped_ids)) == (1, [77])
    assert [job.id for job in await client.pull("mail", wait=5)] == [later.id]


async def test_explain_says_what_keeps_a_job(client: AsyncClient, server: RunningServer) -> None:
    """From the engine's own state, the first obstacle first."""

    async def obstacles(job_id: int) -> list[ObstacleKind]:
        return [one.kind for one in (await client.jobs.explain(job_id)).obstacles]

    first = await client.push("mail", b"x")
    second = await client.push("mail", b"x")
    later = await client.push("mail", b"x", delay=60)
    assert await obstacles(second.id) == [
        ObstacleKind.NO_WORKER,
        ObstacleKind.JOBS_AHEAD,
    ]
    assert await obstacles(later.id) == [ObstacleKind.NOT_DUE]
    await client.queues.pause("mail", reason="stop")
    assert ObstacleKind.QUEUE_PAUSED in await obstacles(first.id)
    await client.queues.resume("mail")
    (leased,) = await client.pull("mail")
    assert await obstacles(first.id) == [ObstacleKind.RUNNING]
    await client.ack(leased)
    assert await obstacles(first.id) == [ObstacleKind.ENDED]


async def test_a_paused_queue_takes_pushes_and_hands_out_nothing(client: AsyncClient) -> None:
    """A pull that waits is served when it is resumed."""
    pushed = await client.push("mail", b"x")
    await client.queues.pause("mail")
    assert await client.pull("mail") == []
    waiting = asyncio.create_task(client.pull("mail", wait=20))
    await client.push("mail", b"y")
    await client.queues.resume("mail")
    assert [job.id for job in await waiting] == [pushed.id]


async def test_drain_deletes_what_waits_and_leaves_what_runs(client: AsyncClient) -> None:
    """READY and SCHEDULED ones go; active ones finish."""
    await client.push_payloads("mail", [b"x"] * 10)
    await client.push("mail", b"later", delay=60)
    (leased,) = await client.pull("mail")
    assert (await client.queues.drain("mail", dry_run=True)).count == 10
    assert (await client.queues.drain("mail")).count == 10
    counts = (await client.queues.get("mail")).counts
    assert (counts.ready, counts.scheduled, counts.active) == (0, 0, 1)
    await client.ack(leased)


async def test_a_queue_with_active_jobs_is_deleted_only_by_force(client: AsyncClient) -> None:
    """Then it is gone with all its jobs, ended ones too."""
    await client.push_payloads("mail", [b"x"] * 4)
    first, second = await client.pull("mail", max_jobs=2)
    await client.ack(first)
    with pytest.raises(QueueActive):
        await client.queues.delete("mail")
    assert (await client.queues.delete("mail", force=True)).count == 4
    with pytest.raises(QueueNotFound):
        await client.queues.get("mail")
    for job in (first, second):
        with pytest.raises(JobNotFound):
            await client.jobs.get(job.id)


async def test_dead_letters_are_counted_listed_and_purged(client: AsyncClient) -> None:
    """By queue, name, reason and type of error."""
    await client.push_payloads("mail", [b"x"] * 3, options=JobOptions(name="welcome"))
    for job in await client.pull("mail", max_jobs=3):
        await client.fail(job, JobError(type="Smtp", message="no"), then=FailAction.DEAD)
    stats = await client.dead.stats("mail")
    assert stats.total == 3
    assert [(one.name, one.error_type, one.count) for one in stats.counts] == [
        ("welcome", "Smtp", 3)
    ]
    found = [job async for job in client.dead.list(queue="mail", error_type="Smtp")]
    assert [(job.attempts, job.failed) for job in found] == [(1, 1)] * 3
    assert (await client.dead.purge("queue:mail error:Smtp")).count == 3
    assert (await client.dead.stats()).total == 0


async def _now(client: AsyncClient) -> str:
    """The token of a watch that has begun and heard of nothing yet."""
    watch: Any = JobServiceStub(client.channel).Watch(job_service_pb2.WatchRequest())
    begun = await watch.read()
    watch.cancel()
    assert not begun.events
    return str(begun.resume_token)


async def test_a_watch_that_breaks_before_its_first_event_misses_nothing(
    client: AsyncClient,
) -> None:
    """Its first answer comes at once, with the token to go on from there."""
    token = await _now(client)
    pushed = await client.push("mail", b"x")
    kinds = [EventKind.PUSHED]
    async for watched in client.watch(queues=["mail"], kinds=kinds, resume_token=token):
        assert watched.event.job_id == pushed.id
        break


async def test_watch_tells_what_happened_in_order_and_resumes(client: AsyncClient) -> None:
    """Each event once, after it is on disk; a token goes on after the last one seen."""
    seen: list[tuple[EventKind, int]] = []
    events = client.watch(queues=["mail"], resume_token=await _now(client))
    pushed = await client.push("mail", b"x")
    first = await anext(events)
    while first.event.kind == EventKind.QUEUE_CREATED:
        first = await anext(events)
    seen.append((first.event.kind, first.event.job_id))
    await events.aclose()
    (leased,) = await client.pull("mail")
    await client.ack(leased)
    async for watched in client.watch(queues=["mail"], resume_token=first.resume_token):
        seen.append((watched.event.kind, watched.event.job_id))
        if len(seen) == 3:
            break
    assert seen == [
        (EventKind.PUSHED, pushed.id),
        (EventKind.LEASED, pushed.id),
        (EventKind.COMPLETED, pushed.id),
    ]
