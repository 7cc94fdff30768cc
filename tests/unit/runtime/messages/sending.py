"""Two shards of a runtime whose commits go when a test says so, and what one sends to the other."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

from jobline_server.engine.decide.messages import decide_send
from jobline_server.engine.payloads import Payloads
from jobline_server.engine.shard_messages import MessageBatch, PushJobs
from jobline_server.engine.values import DEFAULT_OPTIONS
from jobline_server.runtime.clock import ManualClock
from jobline_server.runtime.messages.courier import Courier
from jobline_server.runtime.messages.links import Link
from jobline_server.runtime.runtime import Runtime
from tests.unit.runtime.conftest import opened

HERE, THERE = 0, 1


class WatchedLink:
    """A link that can be stopped, and refuses or fails when it is told to."""

    def __init__(self, link: Link) -> None:
        self._link = link
        self.calls: list[MessageBatch] = []
        self.fails: Exception | None = None
        self.open = asyncio.Event()
        self.open.set()

    async def deliver(self, batch: MessageBatch) -> int:
        self.calls.append(batch)
        await self.open.wait()
        if self.fails is not None:
            raise self.fails
        return await self._link.deliver(batch)


class Sending:
    """A runtime under test."""

    def __init__(self, runtime: Runtime) -> None:
        self.runtime = runtime
        self.link = WatchedLink(runtime.courier._link)
        runtime.courier._link = self.link

    @property
    def courier(self) -> Courier:
        return self.runtime.courier

    def send(self, *payloads: bytes, queue: str = "q", from_shard: int = HERE) -> None:
        """One message a payload, of which nothing is on disk yet."""
        slot = self.runtime.core.slots[from_shard]
        messages = [PushJobs(queue, DEFAULT_OPTIONS, Payloads.of([one])) for one in payloads]
        to_shard = THERE if from_shard == HERE else HERE
        decide_send(slot.shard, self.runtime.core.now(), to_shard, messages)
        self.runtime.core.after_decision(slot)

    async def commit(self, times: int = 1) -> None:
        """Commits, and lets every task run that can, before and after."""
        for _ in range(times):
            await a_moment()
            await self.runtime.core.commits.commit_once()
            await a_moment()

    def arrived(self, shard: int = THERE) -> list[bytes]:
        """The payloads of the jobs of a shard, in order."""
        lots = self.runtime.core.slots[shard].shard.lots.lots
        return [payload for _, lot in sorted(lots.items()) for payload in lot.payloads]

    def waits(self, shard: int = HERE) -> int:
        """How many messages of a shard are not acknowledged."""
        return len(self.runtime.core.slots[shard].shard.messages.waiting)


async def a_moment() -> None:
    """Lets every task run that can."""
    for _ in range(8):
        await asyncio.sleep(0)


async def until(condition: Callable[[], object]) -> None:
    """Waits for what deliveries bring about."""
    while not condition():  # noqa: ASYNC110  # what is applied is no event
        await asyncio.sleep(0)


@asynccontextmanager
async def sending(path: Path) -> AsyncIterator[Sending]:
    """Ends as a process that is killed: what is not committed is lost."""
    async with opened(path, ManualClock(), shards=2) as runtime:
        try:
            yield Sending(runtime)
        finally:
            await runtime.courier.stop()
