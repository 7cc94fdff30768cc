"""Handlers in processes on the real server: what they report, how they end, and how often a job may
crash.
"""

from __future__ import annotations

import asyncio

import pytest

from jobline import AsyncClient, EndReason, Job, JobOptions, JobState, Worker
from jobline_server.testing import running_server
from tests.client.live import process_handlers as handlers
from tests.client.live.working import working


@pytest.fixture
async def served():
    """A server of this test's own, as a client and its address."""
    async with running_server() as server, AsyncClient(server.address) as client:
        yield client, server.address


async def test_all_that_a_context_can_do_works_from_a_child(served, caplog):
    client, address = served
    worker = Worker(address, processes=2)
    worker.handler("q", "report")(handlers.report)
    pushed = await client.push(
        "q", "first", name="report", phases=["one", "two"], headers={"who": "me"}
    )
    async with working(worker):
        end = await client.wait_one(pushed.id, timeout=30)
        assert end.value().startswith("None ")
        assert end.value().endswith(" 1 me")
    job = await client.jobs.get(pushed.id)
    assert [phase.result_value() for phase in job.phases] == [{"of": "one"}, {"of": "two"}]
    assert job.checkpoint == b'{"at":"first"}'
    (line,) = (await client.jobs.log(pushed.id)).lines
    assert line.text == "a line"
    (spawned,) = await client.pull("spawned")
    assert spawned.payload == b"from a child"
    assert "said in report" in caplog.text


async def test_each_outcome_is_what_it_is_in_a_thread(served):
    client, address = served
    worker = Worker(address, processes=2)
    worker.handler("q")(handlers.outcome)
    once = JobOptions(max_attempts=2)
    pushed = {
        kind: (await client.push("q", kind, options=once)).id
        for kind in ("retry", "snooze", "dead", "wait", "error")
    }
    async with working(worker):
        jobs: dict[str, Job] = {}
        while len(jobs) < len(pushed):
            for kind, id_ in pushed.items():
                job = await client.jobs.get(id_)
                if job.error is not None or job.releases or job.state is JobState.BLOCKED:
                    jobs[kind] = job
            await asyncio.sleep(0.02)
    assert jobs["retry"].state is JobState.SCHEDULED
    assert jobs["retry"].error
    assert jobs["retry"].error.type == "LocalError"
    assert jobs["snooze"].state is JobState.SCHEDULED
    assert jobs["dead"].state is JobState.DEAD
    assert jobs["dead"].error
    assert jobs["dead"].error.message == "for good"
    assert jobs["wait"].state is JobState.BLOCKED
    assert jobs["error"].error
    assert "LocalError" in jobs["error"].error.stack


async def test_a_job_that_always_crashes_its_process_is_dead_after_its_stalls(served):
    """It uses no attempt; one that may run once is not run again."""
    client, address = served
    worker = Worker(address, processes=2)
    worker.handler("q")(handlers.crash)
    again = await client.push("q", "exit", max_stalls=1, max_attempts=1)
    once = await client.push("q", "exit", delivery="once")
    async with working(worker):
        ends = {end.id: end async for end in client.wait(again.id, once.id, timeout=30)}
    assert ends[again.id].reason is EndReason.STALLED
    assert ends[once.id].reason is EndReason.INTERRUPTED
    job = await client.jobs.get(again.id)
    assert (job.stalls, job.attempts, job.releases) == (2, 0, 0)
