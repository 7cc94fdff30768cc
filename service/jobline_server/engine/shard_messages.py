"""Messages between shards: work that one shard decides and another one does.

A message is first a fact of the sender (`MessagesSent`) and waits in its outbox until the receiver
has applied it; then it is removed (`MessagesAcknowledged`). The receiver records up to which number
it has applied the messages of a sender (`MessagesReceived`), in the same commit as their effects.
So each is applied exactly once, whichever of the two crashes when.

Numbers rise. Within an epoch of the sender they are consecutive; the first of an epoch is above all
earlier ones. So no number is used twice even after a loss, and a sender need not keep the last
acknowledged number.

Jobs in outboxes count as waiting (`Load.outgoing_jobs`, `outgoing_bytes`): a receiver that is away
for long makes the server full, and producers wait. A message itself is never refused, as the work
that caused it was admitted.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from jobline_server.engine.batches import BatchCounts
from jobline_server.engine.dependency_messages import (
    AwaitJobs,
    EndsOfJobs,
    ForgetJobs,
    JobsNotLive,
)
from jobline_server.engine.limits import MESSAGE_NUMBER_BITS
from jobline_server.engine.payloads import Payloads
from jobline_server.engine.tables import IdTable
from jobline_server.engine.ties import NO_TIES, Ties
from jobline_server.engine.values import JobOptions


@dataclass(frozen=True, slots=True)
class PushJobs:
    """Pushes jobs to a queue of the receiving shard, even if it is full: the work that caused them
    was admitted. A job with `ties` is the only one.
    """

    queue: str
    options: JobOptions
    payloads: Payloads
    ties: Ties = NO_TIES
    delay_ms: int = 0

    def jobs(self) -> int:
        """Returns the number of its jobs."""
        return len(self.payloads)

    def payload_bytes(self) -> int:
        """Returns the payload bytes of its jobs."""
        return self.payloads.bytes_of(0, len(self.payloads))


# One row per type: `RECEIVE` in `decide/receive.py` and `MESSAGES` in `storage/codec/messages.py`.
ShardMessage = PushJobs | AwaitJobs | JobsNotLive | EndsOfJobs | ForgetJobs | BatchCounts


@dataclass(frozen=True, slots=True)
class MessageBatch:
    """Messages of one shard to another, numbered from `first_number` on. The sender holds none
    below `held_from` any more.
    """

    from_shard: int
    to_shard: int
    held_from: int
    first_number: int
    messages: tuple[ShardMessage, ...]

    def jobs(self) -> int:
        """Returns the number of jobs of all messages."""
        return sum(message.jobs() for message in self.messages)


class SentMessage:
    """A message in an outbox. Its key in the checkpoint is the sequence `key`; `offset` is that of
    its fact, 0 after a restart.
    """

    __slots__ = ("key", "message", "number", "offset", "stored", "to_shard")

    def __init__(self, key: int, to_shard: int, number: int, message: ShardMessage) -> None:
        self.key = key
        self.to_shard = to_shard
        self.number = number
        self.message = message
        # ----
        self.offset = 0
        self.stored = False


class MessageTable:
    """The messages that a shard has sent and that are not acknowledged, by destination, and the
    number up to which it has applied messages, by source. A shard may send to itself.

    `waiting` has the same messages as the outboxes, by key.
    """

    __slots__ = ("_last_key", "_last_numbers", "outboxes", "received", "waiting")

    def __init__(self) -> None:
        self.outboxes: dict[int, deque[SentMessage]] = {}
        """Messages by destination, in order of their numbers; no outbox is empty."""
        self.received: dict[int, int] = {}
        # ----
        self.waiting: IdTable[SentMessage] = IdTable()
        self._last_key = 0
        self._last_numbers: dict[int, int] = {}

    def next_number(self, to_shard: int, epoch: int) -> int:
        """Returns the number of the next message to a shard."""
        return max(self._last_numbers.get(to_shard, 0), epoch << MESSAGE_NUMBER_BITS) + 1

    def outbox(self, to_shard: int) -> Iterable[SentMessage]:
        """Returns the messages that wait for a shard, in order."""
        return self.outboxes.get(to_shard, ())

    def send(self, to_shard: int, number: int, message: ShardMessage) -> SentMessage:
        """Adds a new message to its outbox and returns it."""
        sent = SentMessage(self._last_key + 1, to_shard, number, message)
        self.add(sent)
        return sent

    def add(self, sent: SentMessage) -> None:
        """Adds a message to its outbox, whose numbers are all lower."""
        self.outboxes.setdefault(sent.to_shard, deque()).append(sent)
        self.waiting[sent.key] = sent
        self.use_key(sent.key)
        self._last_numbers[sent.to_shard] = sent.number

    def use_key(self, key: int) -> None:
        """Marks a key as used."""
        self._last_key = max(self._last_key, key)

    def take(self, to_shard: int, up_to: int) -> Iterator[SentMessage]:
        """Removes and yields the messages of an outbox up to the number `up_to`, in order."""
        outbox = self.outboxes.get(to_shard)
        while outbox and outbox[0].number <= up_to:
            sent = outbox.popleft()
            del self.waiting[sent.key]
            yield sent
        if not outbox:
            self.outboxes.pop(to_shard, None)
