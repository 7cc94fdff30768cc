"""Held back: jobs that may be handed out only once, on their way to a consumer.

Other jobs go out at once, and their lease is written later: if a crash loses it, they go out again.
These wait until their lease is on disk. A consumer that goes away before that never had them, and
releases them; so does nobody after that.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from jobline_server.dispatch.consumer import Consumer
from jobline_server.engine.commands import Leased
from jobline_server.engine.decide.once import begin_leases, hold_leases
from jobline_server.runtime.commits.batches import CommittedBatch
from jobline_server.runtime.core import Core
from jobline_server.runtime.slots import ShardSlot


@dataclass(slots=True, eq=False)
class HandOut:
    """Jobs that a consumer gets when the journal is on disk up to `offset`."""

    slot: ShardSlot
    offset: int
    consumer: Consumer
    leased: Leased


class HeldBack:
    """The hand-outs that wait for a commit, in order; each slot has its own."""

    def __init__(self, core: Core) -> None:
        self._core = core

    def hold(self, slot: ShardSlot, consumer: Consumer, leased: Leased) -> None:
        """Delivers leased jobs after their commit; at once if none of them is ever written."""
        shard = slot.shard
        if not shard.entries:
            consumer.take(leased)
            return
        hold_leases(shard, leased)
        hand_out = HandOut(slot, shard.next_offset, consumer, leased)
        slot.held_back.append(hand_out)
        consumer.held_back.append(hand_out)

    def on_committed(self, batches: Sequence[CommittedBatch]) -> None:
        """Delivers what is on disk now."""
        for batch in batches:
            if batch.slot.held_back:
                self.deliver(batch.slot)

    def deliver(self, slot: ShardSlot) -> None:
        """Delivers what is on disk of a slot, unless its consumer went away meanwhile."""
        waiting, shard = slot.held_back, slot.shard
        while waiting and waiting[0].offset <= shard.committed:
            hand_out = waiting.popleft()
            consumer = hand_out.consumer
            if hand_out not in consumer.held_back:
                continue
            consumer.held_back.remove(hand_out)
            holder = consumer.holder_on(shard)
            leased = begin_leases(shard, self._core.now(), holder, hand_out.leased)
            if leased.jobs or leased.runs:
                consumer.take(leased)

    def on_closed(self, slot: ShardSlot) -> None:
        """A shard was lost, and what was decided last with it: nobody gets these jobs here."""
        for hand_out in slot.held_back:
            if hand_out in hand_out.consumer.held_back:
                hand_out.consumer.held_back.remove(hand_out)
        slot.held_back.clear()


def parts_of(held_back: Iterable[HandOut]) -> list[Leased]:
    """Returns what was leased in these hand-outs."""
    return [hand_out.leased for hand_out in held_back]
