"""Two shards with batches at home in either, and what is known of each batch."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine

from jobline_server.engine.batches import END_OF_STATE, Batch, Callback, MemberEnd
from jobline_server.engine.decide.batches import (
    decide_joined,
    settle_batches,
)
from jobline_server.engine.decide.messages import decide_acknowledge, next_batch
from jobline_server.engine.decide.receive import decide_receive
from jobline_server.engine.values import (
    DEFAULT_OPTIONS,
    JobState,
    shard_of,
)
from tests.shard_image import image_of
from tests.storage.recovery_world import SHARD, World

OTHER = 5
SHARDS = (SHARD, OTHER)
QUEUE = "q"
CALLS = ("success", "complete", "death")

shards = st.sampled_from(SHARDS)
numbers = st.integers(0, 30)


@dataclass
class Told:
    """What is known of one batch: its members that were committed, and how those ended."""

    ends: dict[int, MemberEnd | None] = field(default_factory=dict)
    children: list[int] = field(default_factory=list)
    has_died: bool = False
    closed: bool = False


def callback(name: str, shard: int) -> Callback:
    return Callback(name, shard, DEFAULT_OPTIONS, name.encode())


class BatchWorlds(RuleBasedStateMachine):
    """Two shards that are written in one transaction."""

    def __init__(self) -> None:
        super().__init__()
        self.worlds = {number: World(number) for number in SHARDS}
        self.told: dict[int, Told] = {}
        self._meet()

    def _meet(self) -> None:
        """Shards of one process see the batches of each other."""
        for world in self.worlds.values():
            for other in self.worlds.values():
                world.shard.load.batches[other.number] = other.shard.batches

    def settle(self) -> None:
        """What follows every decision, in the same commit."""
        for world in self.worlds.values():
            for batch_id, count in world.shard.batches.take_joining().items():
                home = self.worlds[shard_of(batch_id)]
                decide_joined(home.shard, home.now, {batch_id: count})
        for world in self.worlds.values():
            settle_batches(world.shard, world.now, 100)

    def commit(self) -> None:
        self.settle()
        for world in self.worlds.values():
            world.commit()

    def crash(self) -> None:
        for world in self.worlds.values():
            before = world.image
            world.crash(ops_kept=0)
            image = image_of(world.shard)
            for kind in ("batches", "members", "unsent", "outboxes", "inboxes", "jobs", "lots"):
                assert image[kind] == before[kind], kind
        self._meet()

    def picked(self, number: int) -> Batch | None:
        """One of the batches."""
        known = [*self.told]
        if not known:
            return None
        batch_id = known[number % len(known)]
        return self.worlds[shard_of(batch_id)].shard.batches.records[batch_id]

    def outcome(self, job_id: int) -> JobState:
        """How a member ended; of callbacks nobody asks."""
        for told in self.told.values():
            if (end := told.ends.get(job_id)) is not None:
                return {value: state for state, value in END_OF_STATE.items()}[end]
        return JobState.COMPLETED

    def note(self, *, deleted: bool = False) -> None:
        """Members that are live no more have ended as the world says, or were deleted."""
        for told in self.told.values():
            for one, end in told.ends.items():
                world = self.worlds[shard_of(one)]
                if end is None and world.shard.state_of(one) is None:
                    now = MemberEnd.DELETED
                    if not deleted:
                        now = END_OF_STATE[world.ended[one][0]]
                    told.ends[one] = now
                    told.has_died |= now is MemberEnd.DEAD

    def _deliver(self, sender: int, receiver: int, until: str = "done") -> bool:
        one, other = self.worlds[sender], self.worlds[receiver]
        batch = next_batch(one.shard, receiver)
        if batch is None:
            return False
        up_to = decide_receive(other.shard, other.now, batch)
        self.settle()
        if until == "decided":
            return True
        self.commit()
        if until == "applied":
            return True
        decide_acknowledge(one.shard, one.now, receiver, up_to)
        self.settle()
        if until != "acknowledged":
            self.commit()
        return True

    def _compare(self, batch_id: int, told: Told) -> None:
        """Compares the counts of a batch with a plain recount."""
        records = self.worlds[shard_of(batch_id)].shard.batches.records
        batch = records[batch_id]
        inner = [records[one] for one in told.children]
        found = Counter(end for end in told.ends.values() if end is not None)
        found.update(one.outcome for one in inner if one.completed_ms)
        assert batch.total == len(told.ends) + len(inner)
        assert batch.ends.by_end == [found[end] for end in MemberEnd]
        pending = batch.total - sum(found.values())
        assert bool(batch.completed_ms) == (told.closed and not pending)

    def _calls(self) -> Counter[tuple[int, str]]:
        """Counts the callbacks that were ever pushed: those that wait, and those that ended."""
        calls: Counter[tuple[int, str]] = Counter()
        for world in self.worlds.values():
            for lot in world.shard.lots.lots.values():
                if lot.queue.name in CALLS:
                    calls[int(dict(lot.options.headers)["jobline-batch"]), lot.queue.name] += 1
        return calls
