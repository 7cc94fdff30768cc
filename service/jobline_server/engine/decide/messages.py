"""Messages between shards: sends them, and removes them once acknowledged; `receive` applies each
once at the receiver.
"""

from __future__ import annotations

from collections.abc import Sequence

from jobline_server.engine.limits import DELIVERY_BYTES_MAX, DELIVERY_MESSAGES_MAX
from jobline_server.engine.message_entries import (
    MessagesAcknowledged,
    MessagesSent,
)
from jobline_server.engine.shard_messages import MessageBatch, ShardMessage
from jobline_server.engine.values import Now
from jobline_server.engine.view import ShardView


def decide_send(
    shard: ShardView, now: Now, to_shard: int, messages: Sequence[ShardMessage]
) -> None:
    """Sends messages to a shard, possibly this one, atomically with the other facts of the command.
    They are delivered after the commit.
    """
    if messages:
        number = shard.messages.next_number(to_shard, shard.epoch)
        shard.emit(MessagesSent(now.wall_ms, to_shard, number, list(messages)))


def next_batch(shard: ShardView, to_shard: int) -> MessageBatch | None:
    """Returns the first committed messages in the outbox for a shard; None if there are none. A
    batch ends at its limits, and before a gap in the numbers.
    """
    batch: list[ShardMessage] = []
    first = size = 0
    for sent in shard.messages.outbox(to_shard):
        first = first or sent.number
        size += sent.message.payload_bytes()
        if (
            sent.offset > shard.committed
            or sent.number != first + len(batch)
            or len(batch) == DELIVERY_MESSAGES_MAX
            or (batch and size > DELIVERY_BYTES_MAX)
        ):
            break
        batch.append(sent.message)
    return MessageBatch(shard.number, to_shard, first, first, tuple(batch)) if batch else None


def decide_acknowledge(shard: ShardView, now: Now, to_shard: int, up_to: int) -> None:
    """Removes messages that their receiver has applied and committed from the outbox."""
    first = next(iter(shard.messages.outbox(to_shard)), None)
    if first is not None and first.number <= up_to:
        shard.emit(MessagesAcknowledged(now.wall_ms, to_shard, up_to))
