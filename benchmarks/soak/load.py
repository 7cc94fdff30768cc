"""The load: actors that each do one thing to the server, over and over, at a pace of their own.

What a server refuses is counted by reason, and no actor minds it; an answer that no actor expects
ends the soak.
"""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import aclosing, suppress
from dataclasses import dataclass, field

from jobline import AsyncClient, Dead, InvalidArgument, JoblineError, Retention, Worker
from jobline.errors import JobNotDone, JobNotFound, ResourceExhausted, WaitTimeout

LOTS, SINGLES, KEYED, FULL, HAND, ASKED = "lots", "singles", "keyed", "full", "hand", "asked"
PAYLOAD = b"x" * 100
# Keys come again, so that the table of keys is full of known ones and does not grow.
KEYS = 20_000
FULL_AT = 100
WATCHERS = 5
EXPECTED = (ResourceExhausted, InvalidArgument, JobNotFound, JobNotDone, WaitTimeout)


@dataclass
class Load:
    """All actors, on one server. `counts` says what was done, `refused` why something was not."""

    address: str
    chance: random.Random
    counts: Counter[str] = field(default_factory=Counter)
    refused: Counter[str] = field(default_factory=Counter)

    async def run(self) -> None:
        """Does all of it until cancelled. Raises what no actor expects."""
        async with AsyncClient(self.address) as client:
            await self._set_up(client)
            async with asyncio.TaskGroup() as actors:
                for actor, number, pause in self._actors():
                    for _ in range(number):
                        actors.create_task(self._repeat(actor, client, pause))
                for _ in range(WATCHERS):
                    actors.create_task(self._watch(client))

    async def _set_up(self, client: AsyncClient) -> None:
        for queue in (LOTS, SINGLES, KEYED, HAND):
            await client.queues.update(queue, retention=Retention(remove_on_complete=True))
        await client.queues.update(FULL, max_waiting=FULL_AT)

    def _actors(self) -> list[tuple[Callable[[AsyncClient], Awaitable[None]], int, float]]:
        """What is done, by how many, and seconds between two times."""
        return [
            (self._push_lot, 2, 0.1),
            (self._push_one, 16, 0.01),
            (self._push_keyed, 2, 0.02),
            (self._push_too_many, 2, 0.005),
            (self._push_wrong, 1, 0.02),
            (self._work_by_hand, 2, 0.05),
            (self._ask, 4, 0.05),
            (self._operate, 1, 1.0),
            (self._work, 2, 0.5),
            (self._come_and_go, 1, 0.2),
            (self._break_off, 1, 0.1),
        ]

    async def _repeat(
        self, actor: Callable[[AsyncClient], Awaitable[None]], client: AsyncClient, pause: float
    ) -> None:
        while True:
            try:
                await actor(client)
            except EXPECTED as error:
                self.refused[error.reason or type(error).__name__] += 1
            await asyncio.sleep(pause * self.chance.uniform(0.5, 1.5))

    # ------------------------------------------------------------------ producers

    async def _push_lot(self, client: AsyncClient) -> None:
        self.counts["pushed"] += (await client.push_payloads(LOTS, [PAYLOAD] * 500)).count

    async def _push_one(self, client: AsyncClient) -> None:
        delay = self.chance.choice([None, None, None, 0.5])
        await client.push(SINGLES, PAYLOAD, delay=delay)
        self.counts["pushed"] += 1

    async def _push_keyed(self, client: AsyncClient) -> None:
        await client.push(KEYED, PAYLOAD, job_key=f"key-{self.chance.randrange(KEYS)}")
        self.counts["pushed"] += 1

    async def _push_too_many(self, client: AsyncClient) -> None:
        """The queue is full, and stays so."""
        await client.push_payloads(FULL, [PAYLOAD * 100] * (FULL_AT + 1))

    async def _push_wrong(self, client: AsyncClient) -> None:
        await client.push("_system", PAYLOAD)

    async def _ask(self, client: AsyncClient) -> None:
        await client.push_and_wait(ASKED, PAYLOAD, timeout=20)
        self.counts["asked"] += 1

    # ------------------------------------------------------------------ workers

    async def _work(self, _client: AsyncClient) -> None:
        """A worker for a few seconds; then another one."""
        worker = Worker(self.address, concurrency=64, soft_stop=2)
        for queue in (LOTS, SINGLES, KEYED, ASKED):
            worker.handler(queue, payload=bytes)(self._handle)
        serving = asyncio.create_task(worker.serve())
        try:
            await asyncio.sleep(self.chance.uniform(3, 10))
        finally:
            worker.stop()
            await serving
        self.counts["workers"] += 1

    async def _handle(self, _payload: bytes) -> None:
        self.counts["handled"] += 1
        chance = self.chance.random()
        if chance < 0.002:
            raise Dead("by chance")
        if chance < 0.01:
            raise RuntimeError("by chance")

    async def _work_by_hand(self, client: AsyncClient) -> None:
        """Pulls, and acks most of it; the rest is lost with its lease."""
        await client.push_payloads(HAND, [PAYLOAD] * 20)
        jobs = await client.pull(HAND, max_jobs=20, wait=0.2, lease=1)
        if jobs and self.chance.random() < 0.9:
            await client.ack(*jobs)
        self.counts["handled"] += len(jobs)

    # ------------------------------------------------------------------ others

    async def _watch(self, client: AsyncClient) -> None:
        """Watches everything, each time for a while, and goes on from its token."""
        token = ""
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(self.chance.uniform(2, 20)):
                    async with aclosing(client.watch(resume_token=token)) as events:
                        async for event in events:
                            token = event.resume_token or token
                            self.counts["events"] += 1

    async def _operate(self, client: AsyncClient) -> None:
        await client.admin.stats()
        async for _ in client.jobs.list(page_size=100):
            break
        await client.jobs.retry(state="dead")

    async def _come_and_go(self, _client: AsyncClient) -> None:
        """A client that makes one push and is closed."""
        async with AsyncClient(self.address) as passing:
            await passing.push(SINGLES, PAYLOAD)
        self.counts["connections"] += 1

    async def _break_off(self, client: AsyncClient) -> None:
        """A long poll that is given up, and a connection that says nothing a server understands."""
        with suppress(TimeoutError):
            async with asyncio.timeout(0.05):
                await client.pull(FULL + "-empty", wait=20)
        host, _, port = self.address.rpartition(":")
        _, writer = await asyncio.open_connection(host, int(port))
        writer.write(self.chance.randbytes(64))
        writer.close()
        with suppress(OSError):
            await writer.wait_closed()
        self.counts["broken"] += 1


def unexpected(group: BaseExceptionGroup[BaseException]) -> str:
    """What ended the actors, in a line each."""
    return "\n".join(
        f"{type(error).__name__}: {error.message if isinstance(error, JoblineError) else error}"
        for error in group.exceptions
    )
