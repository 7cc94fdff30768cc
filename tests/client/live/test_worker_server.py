"""The worker on the real server: whole runs, kills, restarts, drains."""

from __future__ import annotations

import asyncio
from collections import Counter

import pytest

from jobline import AsyncClient, JobOptions, JobState, Retry, Worker
from jobline_server.testing import ServerProcess, running_server
from tests.client.live.working import holding, working


class Runs:
    """How often each job ran; `all_done` when there were as many runs as expected."""

    def __init__(self, expected: int) -> None:
        self.times: Counter[int] = Counter()
        self.all_done = asyncio.Event()
        self._missing = expected
        self._loop = asyncio.get_running_loop()

    def count(self, id_: int) -> None:
        self.times[id_] += 1
        self._missing -= 1
        if not self._missing:
            self._loop.call_soon_threadsafe(self.all_done.set)


@pytest.mark.parametrize("transport", ["grpcio", "native"])
async def test_every_job_is_done_once(transport):
    """Lots and single jobs, async and plain handlers, results, retries: nothing lost, nothing
    twice.
    """
    async with running_server(transport=transport) as server, AsyncClient(server.address) as client:
        runs = Runs(expected=2_000 + 20 + 3)
        worker = Worker(server.address, concurrency=8, threads=4)

        @worker.handler("lots")
        async def lots(payload, context):
            runs.count(context.id)

        @worker.handler("plain", "double")
        def plain(payload, context):
            runs.count(context.id)
            return payload * 2

        @worker.handler("flaky")
        async def flaky(payload, context):
            runs.count(context.id)
            if context.attempt < 3:
                raise Retry(0)
            return context.attempt

        lot = await client.push_payloads("lots", [b"x"] * 2_000)
        ids = [(await client.push("plain", n, name="double")).id for n in range(20)]
        flaky_id = (await client.push("flaky", b"")).id
        async with working(worker):
            await runs.all_done.wait()
        ends = {end.id: end async for end in client.wait(*lot.ids, *ids, flaky_id)}
        assert len(ends) == 2_021
        assert [end for end in ends.values() if not end.ok] == []
        assert [ends[id_].value() for id_ in ids] == [n * 2 for n in range(20)]
        assert ends[flaky_id].value() == 3
        assert runs.times.pop(flaky_id) == 3
        assert set(runs.times.values()) == {1}
        assert worker.stats.done == 2_021
        counts = (await client.queues.get("lots")).counts
        assert (counts.ready, counts.active) == (0, 0)


async def test_a_killed_server_costs_no_job_and_no_second_run(tmp_path):
    """Kill -9 while handlers run: they finish, their worker comes back, and their outcomes are
    taken.
    """
    async with ServerProcess(tmp_path / "data") as server:
        runs = Runs(expected=51)
        worker = Worker(server.address, concurrency=4)
        started, go = asyncio.Event(), asyncio.Event()

        @worker.handler("q")
        async def handle(payload, context):
            runs.count(context.id)
            if len(runs.times) == 4:
                started.set()
            await go.wait()
            return b"ok"

        async with AsyncClient(server.address) as client:
            async with working(worker):
                pushed = await client.push_payloads("q", [b""] * 50, options=JobOptions(lease=60))
                await started.wait()
                # Hand-outs do not wait for the disk; a push does, and theirs are on disk with it.
                last = await client.push("q", b"")
                await server.restart()
                go.set()
                await runs.all_done.wait()
            ends = [end async for end in client.wait(*pushed.ids, last.id)]
        assert [end.state for end in ends] == [JobState.COMPLETED] * 51
        assert set(runs.times.values()) == {1}


async def test_a_server_that_drains_loses_no_outcome():
    """Workers are asked to move, settle what runs, and the jobs end as they ended."""
    async with running_server(drain_seconds=3_600) as server:
        worker = Worker(server.address, concurrency=2)
        started, go = asyncio.Event(), asyncio.Event()

        @worker.handler("q")
        async def handle(payload):
            started.set()
            await go.wait()

        async with AsyncClient(server.address) as client, working(worker):
            await client.push("q", b"")
            await started.wait()
            stopping = asyncio.create_task(server.server.stop())
            go.set()
            await stopping
            assert worker.stats.lost == 0


async def test_a_drained_worker_leaves_nothing_behind():
    """What waited goes to the next worker at once, with its attempts untouched."""
    async with running_server() as server, AsyncClient(server.address) as client:
        first = Worker(server.address, concurrency=1, window=10, soft_stop=0)
        started = holding(first, "q")
        seen = []
        second = Worker(server.address)

        @second.handler("q")
        async def handle(payload, context):
            seen.append((context.attempt, context.job.reason.name))

        lot = await client.push_payloads("q", [b""] * 10)
        async with working(first):
            await started.wait()
        assert [worker async for worker in client.admin.workers()] == []
        async with working(second):
            ends = [end async for end in client.wait(*lot.ids)]
        assert len(ends) == 10
        assert {attempt for attempt, _ in seen} == {1}


@pytest.mark.parametrize(
    "says",
    [
        False,
        True,
    ],
)
async def test_a_running_job_can_be_cancelled(says):
    """Its handler is stopped, whether it reports progress or not, and the job is CANCELLED."""
    async with running_server() as server, AsyncClient(server.address) as client:
        worker = Worker(server.address)
        started, stopped = asyncio.Event(), asyncio.Event()

        @worker.handler("q")
        async def handle(payload, context):
            started.set()
            try:
                while True:
                    if says:
                        context.progress(50, "busy")
                    await asyncio.sleep(0)
            finally:
                stopped.set()

        pushed = await client.push("q", b"")
        async with working(worker):
            await started.wait()
            assert (await client.jobs.cancel(pushed.id)).requested == 1
            await stopped.wait()
            end = await client.wait_one(pushed.id)
        assert end.state is JobState.CANCELLED
        assert worker.stats.lost == 0
