"""The courier: delivers what waits in the outboxes of this process's shards.

The way of a message, and what a crash at each point leaves:

1. the sender decides it; it is in memory: lost with all else of its commit
2. the sender's commit is on disk: it waits in the outbox, and a start delivers it
3. the receiver has applied it: the receiver forgets that with what the message caused, and it is
   delivered again
4. the receiver's commit is on disk: it is delivered again, and not applied again
5. the sender has noted that it was applied: it is delivered again if that note was not written
6. the sender's commit is on disk: it is forgotten

Each pair of shards with something to deliver has one task, which ends when nothing is left, and one
batch on its way: the next is delivered when the last was acknowledged. A delivery that fails is
tried again after a pause that grows; other pairs go on meanwhile. Without messages a commit costs
one look at its shards.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from jobline_server.engine.commands import Refused
from jobline_server.engine.decide.messages import decide_acknowledge, next_batch
from jobline_server.engine.shard_messages import MessageBatch
from jobline_server.runtime.commits.batches import CommittedBatch
from jobline_server.runtime.core import Core
from jobline_server.runtime.loops import pause_after
from jobline_server.runtime.messages.links import Link
from jobline_server.runtime.slots import ShardSlot

Pair = tuple[int, int]


class Courier:
    """The deliveries that are under way, by sender and receiver."""

    def __init__(self, core: Core, link: Link) -> None:
        self._core = core
        self._link = link
        self._record = core.loops.record("messages")
        self._deliveries: dict[Pair, asyncio.Task[None]] = {}
        self._stopped = False

    def start(self) -> None:
        """Delivers what waited when the process ended."""
        for slot in self._core.slots:
            self._serve(slot)

    async def stop(self) -> None:
        """Ends all deliveries; what is not acknowledged is delivered again by the next start."""
        self._stopped = True
        deliveries = [*self._deliveries.values()]
        for task in deliveries:
            task.cancel()
        await asyncio.gather(*deliveries, return_exceptions=True)

    def under_way(self) -> list[asyncio.Task[None]]:
        """Returns the tasks that deliver now."""
        return [*self._deliveries.values()]

    def on_committed(self, batches: Sequence[CommittedBatch]) -> None:
        """Has delivered what was sent up to this commit."""
        for batch in batches:
            if batch.shard.messages.outboxes:
                self._serve(batch.slot)

    def _serve(self, slot: ShardSlot) -> None:
        if self._stopped:
            return
        for to_shard in slot.shard.messages.outboxes:
            pair = (slot.number, to_shard)
            if pair not in self._deliveries and next_batch(slot.shard, to_shard) is not None:
                task = asyncio.get_running_loop().create_task(self._deliver_all(slot, to_shard))
                self._deliveries[pair] = task

    async def _deliver_all(self, slot: ShardSlot, to_shard: int) -> None:
        """Delivers until nothing is left that is on disk, until `stop`, or until the sender's shard
        is lost: its next owner delivers the rest.
        """
        failures = 0
        try:
            while not slot.is_closed and (batch := next_batch(slot.shard, to_shard)) is not None:
                if await self._is_delivered(slot, batch):
                    failures = 0
                    continue
                failures += 1
                await asyncio.sleep(pause_after(failures))
        finally:
            # In the same step as the last look: what is committed later starts another task.
            del self._deliveries[slot.number, to_shard]

    async def _is_delivered(self, slot: ShardSlot, batch: MessageBatch) -> bool:
        """Delivers a batch; returns whether any of it is acknowledged."""
        core = self._core
        try:
            up_to = await self._link.deliver(batch)
            decide_acknowledge(slot.shard, core.now(), batch.to_shard, up_to)
            core.after_decision(slot)
        except Refused:
            # The receiver cannot take it now: its shard is elsewhere, or the disk is full.
            return False
        except Exception as error:  # noqa: BLE001  # the next try may do better
            self._record.failed(error)
            return False
        self._record.worked()
        return up_to >= batch.first_number
