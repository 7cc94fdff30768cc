"""Messages between the shard of the machine and another one, as rules of the state machine.

Either may crash at any point of a delivery; the receiver's checkpoints and commits go on meanwhile.
Jobs of messages go to queues that no other rule touches, so at the end each must be there: once,
and in the order in which it was sent.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count, product

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule

from jobline_server.engine import invariants
from jobline_server.engine.decide.messages import (
    decide_acknowledge,
    decide_send,
    next_batch,
)
from jobline_server.engine.decide.receive import decide_receive
from jobline_server.engine.payloads import Payloads
from jobline_server.engine.shard_messages import PushJobs
from jobline_server.engine.values import DEFAULT_OPTIONS
from tests.shard_image import image_of
from tests.storage.recovery_world import SHARD, World

OTHER = 5

shards = st.sampled_from([SHARD, OTHER])


class MessageRules(RuleBasedStateMachine):
    """Two shards that send messages to each other, and to themselves."""

    world: World

    def __init__(self) -> None:
        super().__init__()
        self.other = World(OTHER)
        self.letters = count()

    def _world(self, shard: int) -> World:
        return self.world if shard == SHARD else self.other

    @rule(from_shard=shards, to_shard=shards, letters=st.integers(1, 3), commits=st.booleans())
    def send(self, from_shard, to_shard, letters, commits):
        world = self._world(from_shard)
        payloads = [b"%d" % next(self.letters) for _ in range(letters)]
        queue = f"from {from_shard}"
        messages = [PushJobs(queue, DEFAULT_OPTIONS, Payloads.of([one])) for one in payloads]
        world.sent += [(world.shard.next_offset, to_shard, one) for one in payloads]
        decide_send(world.shard, world.now, to_shard, messages)
        if commits:
            world.commit()

    @rule(
        from_shard=shards,
        to_shard=shards,
        until=st.sampled_from(["decided", "applied", "acknowledged", "done", "done"]),
        crash=st.sampled_from(["", "", "sender", "receiver", "both"]),
    )
    def deliver(self, from_shard, to_shard, until, crash):
        """One delivery, up to some point; it is not under way any more if one of them crashes."""
        self._deliver(from_shard, to_shard, until)
        if crash in {"sender", "both"}:
            self._crash(from_shard)
        if crash in {"receiver", "both"}:
            self._crash(to_shard)

    def _deliver(self, from_shard: int, to_shard: int, until: str = "done") -> bool:
        """Does one delivery; says whether there was anything to deliver."""
        sender, receiver = self._world(from_shard), self._world(to_shard)
        batch = next_batch(sender.shard, to_shard)
        if batch is None:
            return False
        up_to = decide_receive(receiver.shard, receiver.now, batch)
        if until == "decided":
            return True
        receiver.commit()
        if until == "applied":
            return True
        decide_acknowledge(sender.shard, sender.now, to_shard, up_to)
        if until == "done":
            sender.commit()
        return True

    def _crash(self, shard: int, ops_kept: int = 0) -> None:
        world = self._world(shard)
        before = world.image
        world.crash(ops_kept=ops_kept)
        image = image_of(world.shard)
        for kind in ("outboxes", "inboxes", "awaited", "jobs"):
            assert image[kind] == before[kind]
        invariants.check(world.shard)

    @rule(what=st.sampled_from(["commit", "cut", "stage", "finish", "truncate", "abandon"]))
    def other_shard(self, what):
        """Storage of the other shard; that of the first has rules of its own."""
        if what == "commit":
            self.other.commit()
        elif what == "cut":
            self.other.cut()
            self._crash(OTHER)
        elif what == "stage":
            self.other.stage(2)
        elif what == "abandon":
            self.other.abandon_checkpoint()
        else:
            self.other.finish_checkpoint(truncate=what == "truncate")

    def check_messages(self) -> None:
        """After one more crash of each shard all that was sent has arrived, once and in order."""
        for shard in (SHARD, OTHER):
            self._world(shard).commit()
            self._crash(shard)
        # Answers are messages, too.
        pairs = [*product((SHARD, OTHER), repeat=2)]
        self.tell()
        while sum(self._deliver(from_shard, to_shard) for from_shard, to_shard in pairs):
            self.tell()
        for from_shard, to_shard in product((SHARD, OTHER), repeat=2):
            sender = self._world(from_shard)
            sent = [payload for _, to, payload in sender.sent if to == to_shard]
            assert list(self._arrived(from_shard, to_shard)) == sent
            assert not sender.shard.messages.outboxes

    def tell(self) -> None:
        """Decides what follows from ends of jobs; see `DependencyRules`."""

    def _arrived(self, from_shard: int, to_shard: int) -> Iterator[bytes]:
        for _, lot in sorted(self._world(to_shard).shard.lots.lots.items()):
            if lot.queue.name == f"from {from_shard}":
                yield from lot.payloads
