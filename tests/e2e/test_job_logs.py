"""Logs of jobs, over a real server and a socket."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from jobline import (
    AsyncClient,
    FailAction,
    JobNotFound,
    JobState,
    LogLevel,
    SettleOutcome,
    Worker,
)
from jobline_server.runtime.clock import ManualClock
from jobline_server.testing import RunningServer
from tests.client.live.working import working
from tests.e2e.test_restart import a_life


async def texts(client: AsyncClient, job_id: int) -> list[str]:
    return [line.text for line in (await client.jobs.log(job_id)).lines]


async def test_a_handlers_lines_are_read_while_it_runs_and_afterwards(
    server: RunningServer, client: AsyncClient
) -> None:
    """Also the last ones before its result: they go out before it."""
    worker = Worker(server.address)
    seen, go_on = asyncio.Event(), asyncio.Event()

    @worker.handler("mail")
    async def send(_payload, context):
        context.log("connecting", "debug")
        context.log("sent a")
        seen.set()
        await go_on.wait()
        context.log("no such user", LogLevel.WARNING)

    pushed = await client.push("mail", b"x")
    async with working(worker):
        await seen.wait()
        while len((await client.jobs.log(pushed.id)).lines) < 2:  # noqa: ASYNC110  # over a socket
            await asyncio.sleep(0)
        assert (await client.jobs.log(pushed.id)).state is JobState.ACTIVE
        go_on.set()
        await client.wait_one(pushed.id)

    log = await client.jobs.log(pushed.id)
    assert [(line.number, line.level.name, line.text, line.attempt) for line in log.lines] == [
        (1, "DEBUG", "connecting", 1),
        (2, "INFO", "sent a", 1),
        (3, "WARNING", "no such user", 1),
    ]
    assert (log.state, log.dropped) == (JobState.COMPLETED, 0)
    assert all(line.at is not None for line in log.lines)
    assert (await client.jobs.get(pushed.id)).log_lines == 3


async def test_a_log_is_followed_by_number_and_filtered_by_level(client: AsyncClient) -> None:
    pushed = await client.push("mail", b"x")
    (job,) = await client.pull("mail")
    await client.extend(job, log=["a", "b"])
    await client.extend(job, log=["c"], level="error")
    after = await client.jobs.log(pushed.id, after=1)
    assert [(line.number, line.text) for line in after.lines] == [(2, "b"), (3, "c")]
    errors = await client.jobs.log(pushed.id, level="error")
    assert [line.text for line in errors.lines] == ["c"]
    assert (await client.jobs.log(pushed.id, after=3)).lines == ()
    assert (await client.jobs.log(pushed.id, after=1 << 60)).lines == ()


async def test_a_job_keeps_its_last_thousand_lines(client: AsyncClient) -> None:
    """What was dropped is counted, and its numbers are not given again."""
    pushed = await client.push("mail", b"x")
    (job,) = await client.pull("mail")
    await client.extend(job, log=[f"line {number}" for number in range(1, 1_001)])
    await client.extend(job, log=["x" * 20_000])
    log = await client.jobs.log(pushed.id)
    assert (len(log.lines), log.dropped) == (1_000, 1)
    assert (log.lines[0].number, log.lines[0].text) == (2, "line 2")
    assert (log.lines[-1].number, len(log.lines[-1].text)) == (1_001, 16 << 10)


async def test_lines_of_a_lost_lease_change_nothing(client: AsyncClient) -> None:
    pushed = await client.push("mail", b"x")
    (job,) = await client.pull("mail")
    await client.release(job)
    assert await client.extend(job, log=["late"]) == [SettleOutcome.LEASE_LOST]
    assert await texts(client, pushed.id) == []


async def test_there_is_no_log_without_a_job(client: AsyncClient) -> None:
    lot = await client.push_payloads("mail", [b"x"] * 2)
    assert await texts(client, lot.ids[1]) == []
    with pytest.raises(JobNotFound):
        await client.jobs.log(4711)


async def test_logs_outlive_the_process(tmp_path: Path) -> None:
    """Of jobs that live and of jobs that have ended, over two restarts: from the journal, and from
    the checkpoint that was made when the server stopped."""
    clock = ManualClock()
    async with a_life(tmp_path, clock) as client:
        live, dead = (await client.push_payloads("mail", [b"x"] * 2)).ids
        first, second = await client.pull("mail", max_jobs=2)
        await client.extend(first, log=["begun"])
        await client.extend(second, log=["tried"])
        await client.fail(second, "no", then=FailAction.DEAD)
    async with a_life(tmp_path, clock) as client:
        assert await client.extend(first, log=["going on"]) == [SettleOutcome.DONE]
        assert await texts(client, live) == ["begun", "going on"]
        assert await texts(client, dead) == ["tried"]
    async with a_life(tmp_path, clock) as client:
        assert await texts(client, live) == ["begun", "going on"]
        assert (await client.jobs.retry(dead)).count == 1
        (again,) = await client.pull("mail")
        await client.extend(again, log=["tried again"])
        log = await client.jobs.log(dead)
        assert [(line.text, line.attempt) for line in log.lines] == [
            ("tried", 1),
            ("tried again", 1),
        ]
