"""Workers that pause after failures in a row, on the real server."""

from __future__ import annotations

import asyncio
from collections import Counter

import pytest

from jobline import AsyncClient, JobOptions, Worker
from jobline_server.testing import running_server
from tests.client.live import process_handlers
from tests.client.live.working import working

# Any attempt and any lost lease is the last of a job.
FRAGILE = JobOptions(max_attempts=1, max_stalls=0)
HOUR = 3_600.0


async def until(is_so):
    """Waits until something is so, up to a minute."""
    async with asyncio.timeout(60):
        while not is_so():  # noqa: ASYNC110  # a counter has no event
            await asyncio.sleep(0.005)


@pytest.fixture
async def served():
    """A server of this test's own, as a client and its address."""
    async with running_server() as server, AsyncClient(server.address) as client:
        yield client, server.address


class Service:
    """What the jobs need. The first job succeeds, then so many fail."""

    def __init__(self, failures: int) -> None:
        self._answers = [True] + [False] * failures

    def call(self) -> None:
        if self._answers and not self._answers.pop(0):
            raise ConnectionError("the database is down")


def calling(service: Service, worker: Worker, kind: str) -> Worker:
    """Gives a worker a handler that needs the service."""

    async def one(payload):
        service.call()

    def plain(payload):
        service.call()

    def batch(payloads):
        service.call()
        return [None]

    if kind == "batch":
        worker.batch_handler("down", size=1)(batch)
    else:
        worker.handler("down")(plain if kind == "plain" else one)
    return worker


async def states_of(client, ids):
    """How many jobs have ended in each state."""
    return Counter([end.state.name async for end in client.wait(*ids)])


@pytest.mark.parametrize("kind", ["async", "plain", "batch"])
async def test_a_pause_gives_back_what_has_not_begun_at_no_cost(served, caplog, kind):
    """Another worker does it: it has used neither an attempt nor a stall."""
    client, address = served
    worker = Worker(address, pause_after_failures=3, failure_pause=HOUR, concurrency=1, window=20)
    lot = await client.push_payloads("down", [b""] * 20, options=FRAGILE)
    async with working(calling(Service(failures=20), worker, kind)):
        await until(lambda: worker.stats.failed == 3 and worker.stats.waiting == 0)
        stats = worker.stats
        assert (stats.done, stats.paused, stats.window) == (1, True, 0)
        assert "3 attempts in a row have failed: no jobs are taken for 3600 s" in caplog.text
        other = Worker(address, concurrency=1, window=20)
        async with working(calling(Service(failures=0), other, kind)):
            assert await states_of(client, lot.ids) == {"COMPLETED": 17, "DEAD": 3}
    assert (worker.stats.failed, worker.stats.paused) == (3, False)


async def test_after_a_pause_one_more_failure_is_enough_until_a_job_succeeds(served, caplog):
    """Four of twenty jobs fail, in two pauses."""
    client, address = served
    worker = Worker(address, concurrency=1, window=20, pause_after_failures=3, failure_pause=0.1)
    lot = await client.push_payloads("down", [b""] * 20, options=FRAGILE)
    async with working(calling(Service(failures=4), worker, "async")):
        assert await states_of(client, lot.ids) == {"COMPLETED": 16, "DEAD": 4}
    assert caplog.text.count("3 attempts in a row have failed") == 2
    assert (worker.stats.done, worker.stats.failed, worker.stats.lost) == (16, 4, 0)


async def test_a_timeout_is_a_failure_and_other_outcomes_are_none(served):
    """Neither is what asks for a later time, or for an end."""
    client, address = served
    worker = Worker(address, concurrency=1, pause_after_failures=1, failure_pause=HOUR)

    @worker.handler("slow")
    async def slow(payload):
        await asyncio.Event().wait()

    worker.handler("q")(process_handlers.outcome)
    for kind in ("snooze", "dead", "wait"):
        await client.push("q", kind)
    async with working(worker):
        await until(lambda: worker.stats.failed == 1 and worker.stats.released == 2)
        assert not worker.stats.paused
        await client.push("slow", "", attempt_timeout=1)
        await until(lambda: worker.stats.paused)


async def test_failures_in_child_processes_count(served):
    client, address = served
    worker = Worker(address, processes=1, pause_after_failures=1, failure_pause=HOUR)
    worker.handler("q")(process_handlers.outcome)
    await client.push("q", "error")
    async with working(worker):
        await until(lambda: worker.stats.paused)


async def test_a_pause_is_not_idle(served):
    """What fails is down for now: jobs wait for the end of the pause, which is three times as long
    as the worker may be idle.
    """
    client, address = served
    worker = Worker(address, concurrency=1, window=1, pause_after_failures=1, failure_pause=1.5)
    service = Service(failures=1)
    ids = [(await client.push("down", b"", options=FRAGILE)).id for _ in range(3)]
    async with asyncio.timeout(60):
        await calling(service, worker, "async").serve(exit_when_idle=0.5)
    assert await states_of(client, ids) == {"COMPLETED": 2, "DEAD": 1}
    assert (worker.stats.done, worker.stats.failed) == (2, 1)
