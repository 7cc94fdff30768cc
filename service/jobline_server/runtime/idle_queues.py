"""Deletes queues that were empty for an hour, a slice of the queues at a time."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

from jobline_server.engine import limits
from jobline_server.engine.decide.queues import decide_delete_idle_queues
from jobline_server.engine.shard import Shard
from jobline_server.runtime.core import Core

# Queues that are looked at in one iteration of the loop. One that goes costs 20 µs, others a tenth.
SLICE_QUEUES = 500


async def delete_idle_queues(core: Core) -> int:
    """Looks at all queues of all shards; returns how many were deleted."""
    deleted = 0
    for slot in core.slots:
        for names in _slices(slot.shard):
            if slot.is_closed:
                break
            deleted += decide_delete_idle_queues(slot.shard, core.now(), names)
            core.after_decision(slot)
            await asyncio.sleep(0)
    return deleted


def next_idle_ms(core: Core) -> int | None:
    """Returns when the next queue was empty for an hour, in wall time; None if none is empty."""
    queues = (queue for slot in core.slots for queue in slot.shard.queues.values())
    idle = [queue.touched_ms for queue in queues if not any(queue.counts)]
    return min(idle) + limits.EMPTY_QUEUE_MS + 1 if idle else None


def _slices(shard: Shard) -> Iterator[list[str]]:
    names = list(shard.queues)
    for start in range(0, len(names), SLICE_QUEUES):
        yield names[start : start + SLICE_QUEUES]
