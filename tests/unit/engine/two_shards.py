"""Two shards, which tell each other of jobs that depend on jobs of the other one."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from jobline_server.engine.decide.dependencies import release_dependents
from jobline_server.engine.decide.messages import decide_acknowledge, next_batch
from jobline_server.engine.decide.receive import decide_receive
from jobline_server.engine.load import Load
from jobline_server.engine.rules import DependencyPolicy, JobRules
from jobline_server.engine.shard import Shard
from jobline_server.engine.ties import Ties
from jobline_server.engine.values import DEFAULT_OPTIONS, FailAction, JobState
from tests.pushed_rows import NewJob
from tests.unit.engine.world import EPOCH, World

HERE, THERE = 1, 2
READY = JobState.READY


class Two(NamedTuple):
    """A shard with jobs that wait, and the one of their parents."""

    here: World
    there: World

    def deliver(self) -> int:
        """Delivers all messages until there are no more, and decides what follows; says how many
        there were.
        """
        count = 0
        while True:
            self.tell()
            moved = self._deliver(self.here, self.there) + self._deliver(self.there, self.here)
            if not moved:
                return count
            count += moved

    def tell(self) -> None:
        for world in self:
            while release_dependents(world.shard, world.now, 100):
                pass
            world.commit()
            world.check()

    def _deliver(self, sender: World, receiver: World) -> int:
        batch = next_batch(sender.shard, receiver.shard.number)
        if batch is None:
            return 0
        up_to = decide_receive(receiver.shard, receiver.now, batch)
        receiver.commit()
        decide_acknowledge(sender.shard, sender.now, receiver.shard.number, up_to)
        sender.commit()
        return len(batch.messages)

    def child(self, parent: int, policy: DependencyPolicy | None = None, state=READY) -> int:
        """A job here of a parent there, which was in this state when it was looked up."""
        options = replace(DEFAULT_OPTIONS, rules=JobRules(on_dependency_failure=policy))
        job = NewJob(b"c", options, ties=Ties(parents=(parent,)))
        return self.here.push(jobs=[job], outcomes={parent: state}).first_id

    def end(self, how: str) -> None:
        """The only job there ends."""
        lease = self.there.one()
        if how == "ack":
            self.there.ack([(lease.id, lease.delivery)])
        else:
            self.there.fail(lease.id, lease.delivery, then=FailAction.DEAD)

    def is_free(self) -> bool:
        """Nobody waits for anything."""
        held = [world.shard.dependencies for world in self]
        return not any(one.awaited or one.unawaited or one.has_any for one in held)


def two_shards() -> Two:
    """Both are empty."""
    there = World()
    there.shard = Shard(THERE, epoch=EPOCH, load=Load())
    return Two(World(), there)
