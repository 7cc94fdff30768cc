"""Messages between shards: sends them, applies each once at the receiver, and removes them from the
sender once acknowledged.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from jobline_server.engine.commands import Push
from jobline_server.engine.decide.push import decide_push
from jobline_server.engine.limits import DELIVERY_BYTES_MAX, DELIVERY_MESSAGES_MAX
from jobline_server.engine.message_entries import (
    MessagesAcknowledged,
    MessagesReceived,
    MessagesSent,
)
from jobline_server.engine.shard_messages import MessageBatch, PushJobs, ShardMessage
from jobline_server.engine.values import AckLevel, Now
from jobline_server.engine.view import ShardView


class MessageGap(Exception):
    """Raised for a batch that skips messages which its sender still holds. Nothing was applied."""


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


def decide_receive(shard: ShardView, now: Now, batch: MessageBatch) -> int:
    """Applies the messages of a batch that were not applied before; returns the number up to which
    all are applied. Acknowledge it after the commit, not before.

    Raises `MessageGap`. If a message fails, neither it nor those after it are applied.
    """
    before = shard.messages.received.get(batch.from_shard, 0)
    if batch.first_number > max(before + 1, batch.held_from):
        raise MessageGap(
            f"shard {shard.number} has messages of shard {batch.from_shard} up to {before}, "
            f"and was sent {batch.first_number}"
        )
    up_to = before
    try:
        for message in batch.messages[max(before + 1 - batch.first_number, 0) :]:
            RECEIVE[type(message)](shard, now, message)
            up_to = max(up_to + 1, batch.first_number)
    finally:
        if up_to > before:
            shard.emit(MessagesReceived(now.wall_ms, batch.from_shard, up_to))
    return up_to


def decide_acknowledge(shard: ShardView, now: Now, to_shard: int, up_to: int) -> None:
    """Removes messages that their receiver has applied and committed from the outbox."""
    first = next(iter(shard.messages.outbox(to_shard)), None)
    if first is not None and first.number <= up_to:
        shard.emit(MessagesAcknowledged(now.wall_ms, to_shard, up_to))


def _push_jobs(shard: ShardView, now: Now, message: PushJobs) -> None:
    push = Push(
        message.queue,
        message.options,
        payloads=message.payloads,
        level=AckLevel.FSYNCED,
        # A job whose key is known with another payload is skipped: no caller waits for the reply.
        atomic=False,
        has_room=True,
    )
    decide_push(shard, now, push)


# The function that decides each message at the receiver. Each takes the message type that it is
# registered for, which the type of a table cannot express.
RECEIVE: dict[type, Callable[[ShardView, Now, Any], None]] = {
    PushJobs: _push_jobs,
}
