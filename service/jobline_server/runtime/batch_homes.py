"""Counts jobs that were pushed in one shard as members of batches that are at home in others."""

from __future__ import annotations

from collections.abc import Mapping

from jobline_server.engine.decide.batches import decide_joined
from jobline_server.engine.values import Now
from jobline_server.runtime.slots import ShardSlot, ShardSlots


def join_homes(slots: ShardSlots, joining: Mapping[int, int], now: Now) -> list[ShardSlot]:
    """Counts new members, by batch, in the same step as the push: both are in one commit, which is
    one transaction of all shards. Returns the home shards.
    """
    by_slot: dict[ShardSlot, dict[int, int]] = {}
    for batch_id, count in joining.items():
        home = slots.find_by_id(batch_id)
        if home is not None:
            by_slot.setdefault(home, {})[batch_id] = count
    for home, counts in by_slot.items():
        decide_joined(home.shard, now, counts)
    return list(by_slot)
