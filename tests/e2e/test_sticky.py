"""Sticky groups over a real server, real streams and a restart."""

from __future__ import annotations

import asyncio
from pathlib import Path

from jobline import AsyncClient, JobOptions, Worker
from jobline_server.runtime.clock import ManualClock
from jobline_server.testing import running_server

STICKY = JobOptions(sticky=True)


class Taker:
    """A worker that notes what it gets, and whether its memory of the group still holds."""

    def __init__(self, address: str) -> None:
        self.got: list[tuple[str, bool]] = []
        self.worker = Worker(address, concurrency=4)
        self.worker.handler("q")(self.take)

    async def take(self, payload: bytes, context) -> None:
        self.got.append((context.group, context.continues_group))


async def ask(client: AsyncClient, group: str) -> None:
    """Pushes a job, and waits until it is done."""
    await client.push_and_wait("q", b"x", group=group, options=STICKY, timeout=20)


async def test_entities_stay_with_their_worker(client: AsyncClient) -> None:
    """Each group is idle between two jobs; the first worker of a group has all of them."""
    takers = [Taker(client.target) for _ in range(3)]
    serving = [asyncio.create_task(taker.worker.serve()) for taker in takers]
    groups = [f"g{number}" for number in range(6)]
    for _ in range(5):
        await asyncio.gather(*(ask(client, group) for group in groups))
    for group in groups:
        found = [[had for name, had in taker.got if name == group] for taker in takers]
        assert sorted(found) == [[], [], [False, True, True, True, True]], group
    for taker, task in zip(takers, serving, strict=True):
        taker.worker.stop()
        await task


async def test_next_worker_is_told_that_it_is_the_first(client: AsyncClient) -> None:
    """The one that had the group is gone: nobody waits for it."""
    first, second = Taker(client.target), Taker(client.target)
    serving = asyncio.create_task(first.worker.serve())
    await ask(client, "a")
    await ask(client, "a")
    first.worker.stop()
    await serving
    serving = asyncio.create_task(second.worker.serve())
    await ask(client, "a")
    await ask(client, "a")
    assert first.got == second.got == [("a", False), ("a", True)]
    second.worker.stop()
    await serving


async def test_nobody_is_the_last_after_a_restart(tmp_path: Path) -> None:
    """The option is kept with the job, the memory of who had the last one is not."""
    clock = ManualClock()
    async with (
        running_server(tmp_path, clock=clock) as server,
        AsyncClient(server.address) as client,
    ):
        taker = Taker(server.address)
        serving = asyncio.create_task(taker.worker.serve())
        await ask(client, "a")
        taker.worker.stop()
        await serving
        waiting = await client.push("q", b"x", group="a", options=STICKY)
        assert (await client.jobs.get(waiting.id)).options == JobOptions(group="a", sticky=True)
    async with running_server(tmp_path, clock=clock) as server:
        taker = Taker(server.address)
        await taker.worker.serve(exit_when_idle=0.3)
        assert taker.got == [("a", False)]
