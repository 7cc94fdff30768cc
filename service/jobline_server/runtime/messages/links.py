"""Links: the way to another shard. The one here leads to shards of this process; one between nodes
would keep the same interface.
"""

from __future__ import annotations

import asyncio
from typing import Protocol

from jobline_server.engine.decide.receive import decide_receive
from jobline_server.engine.shard_messages import MessageBatch
from jobline_server.runtime.core import Core


class Link(Protocol):
    """The way from the shards of this process to those that receive messages."""

    async def deliver(self, batch: MessageBatch) -> int:
        """Has a batch applied by its receiver; returns, after the receiver's commit, the number up
        to which messages are applied, durably. Raises `Refused` if the receiver cannot take it
        now; after any exception it may have been applied, and is delivered again.
        """


class LocalLink:
    """The way to the shards of this process."""

    def __init__(self, core: Core) -> None:
        self._core = core
        # One batch in one iteration of the loop, however many senders and receivers there are.
        self._turn = asyncio.Lock()

    async def deliver(self, batch: MessageBatch) -> int:
        """Applies a batch, and waits for its commit. Raises `Refused` while the receiver is not
        here, the disk is full or ids are being set aside; `MessageGap` as `decide_receive` does.
        """
        core = self._core
        async with self._turn:
            slot = core.slots[batch.to_shard]
            # Each message may create a queue, which takes an id.
            core.check_accepting(slot, batch.jobs() + len(batch.messages))
            try:
                up_to = decide_receive(slot.shard, core.now(), batch)
            finally:
                core.after_decision(slot)
            await asyncio.sleep(0)
        await core.commits.wait(slot)
        return up_to
