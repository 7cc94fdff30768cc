"""A runtime over the real store, of which one shard fails and the others do not."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any, cast

import pytest

from jobline_server.engine.commands import Leased, Pull, Push, Pushed, RefusalKind, Refused
from jobline_server.engine.payloads import Payloads
from jobline_server.engine.values import DEFAULT_OPTIONS, AckLevel, JobState
from jobline_server.runtime.calls.pull_dedup import leases_of, runs_of
from jobline_server.runtime.clock import ManualClock
from jobline_server.runtime.runtime import Runtime
from jobline_server.storage.sqlite import items
from jobline_server.storage.store import CommitUnknown, Fenced, JournalRow
from tests.unit.runtime.conftest import opened

SHARDS = 3
LOST = 1
OTHER = 2


class World:
    """A runtime with its commit loop, a queue in each shard, and the faults of its store."""

    def __init__(self, runtime: Runtime) -> None:
        self.runtime = runtime
        slots = runtime.core.slots
        names = {slots.of_queue(name).number: name for name in map(str, range(100))}
        self.queues = [names[shard] for shard in range(slots.total)]
        # The store is the real one; what is replaced of it is looked up by name.
        self._store = cast(Any, runtime.core.store)
        self._commit = runtime.core.store.commit

    async def push(
        self, shard: int, *, count: int = 1, run_at_ms: int = 0, level: AckLevel | None = None
    ) -> Pushed:
        payloads = Payloads.of([b"x"] * count)
        push = Push(
            self.queues[shard], DEFAULT_OPTIONS, payloads=payloads, run_at_ms=run_at_ms, level=level
        )
        return await self.runtime.pushes.push(push)

    async def pull(self, *shards: int, wait_ms: int = 0) -> Leased:
        queues = tuple((self.queues[shard], 1) for shard in shards)
        return await self.runtime.pulls.pull(Pull(queues, max_jobs=10, wait_ms=wait_ms))

    async def a_lease(self, shard: int) -> tuple[int, int]:
        """A job of a shard, leased by a pull."""
        await self.push(shard)
        return next(iter(leases_of(runs_of(await self.pull(shard)))))

    async def fence(self, shard: int = LOST) -> None:
        """Another process takes the shard: its row is under the next epoch."""

        def take(connection: Any) -> None:
            connection.execute("UPDATE shard SET epoch = epoch + 1 WHERE shard = ?", (shard,))

        await self._store.database.write(take, 0)

    async def lose(self, shard: int = LOST) -> None:
        """The shard is fenced, and the server finds out."""
        await self.fence(shard)
        await asyncio.gather(self.push(shard), return_exceptions=True)

    def leave_unknown(self, *, stored: bool, named: bool = True) -> None:
        """The next commit of the lost shard is stored, or not, and nobody hears which."""

        async def commit(rows: Sequence[JournalRow], ceilings: Mapping[int, int]) -> None:
            concerned = [row for row in rows if row.shard == LOST]
            if not concerned:
                await self._commit(rows, ceilings)
                return
            self._store.commit = self._commit
            if stored:
                await self._commit(concerned, {})
            raise CommitUnknown("the line is dead", shards=(LOST,) if named else ())

        self._store.commit = commit

    def let_resolve(self) -> None:
        """Has the store look at the shard row for what became of a commit."""

        async def resolve(shard: int, epoch: int, offset: int, chain: int) -> bool:
            row = await self._store.database.run(partial(items.shard_row, shard=shard))
            if row.epoch != epoch:
                raise Fenced("another process has it", shards=(shard,))
            return bool((row.offset, row.chain) == (offset, chain))

        self._store.resolve = resolve

    @property
    def here(self) -> list[int]:
        """The shards that are served."""
        return [slot.number for slot in self.runtime.core.slots]


@asynccontextmanager
async def a_world(path: Path, *, shards: int = SHARDS) -> AsyncIterator[World]:
    """A runtime that commits by itself, on a clock that is moved by hand."""
    async with opened(path, ManualClock(), shards=shards) as runtime:
        committing = asyncio.create_task(runtime.core.commits.run())
        try:
            yield World(runtime)
        finally:
            runtime.core.commits.close()
            await committing


async def a_moment() -> None:
    """Lets every task run that can."""
    for _ in range(10):
        await asyncio.sleep(0)


async def refused(calls: object) -> None:
    """A call is refused because the shard is not served."""
    with pytest.raises(Refused) as refusal:
        await calls  # type: ignore[misc]  # any awaitable
    assert refusal.value.kind is RefusalKind.SHARD_UNAVAILABLE


async def goes_on(world: World, shard: int = OTHER) -> None:
    """Pushes, pulls and acks of a shard are served."""
    job_id, delivery = await world.a_lease(shard)
    assert await world.runtime.settle_calls.ack([job_id], [delivery], {}) == []
    assert (await world.runtime.jobs.get_job(job_id)).state is JobState.COMPLETED
