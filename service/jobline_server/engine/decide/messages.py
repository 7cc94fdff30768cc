"""Messages between shards: sent, applied once by their receiver, forgotten by their sender."""

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
    """A batch came without the one before it, which its sender still holds. Nothing was applied."""


def decide_send(
    shard: ShardView, now: Now, to_shard: int, messages: Sequence[ShardMessage]
) -> None:
    """Sends messages to a shard, which is this one perhaps: with the facts beside it or not at
    all. They are delivered after the commit.
    """
    if messages:
        number = shard.messages.next_number(to_shard, shard.epoch)
        shard.emit(MessagesSent(now.wall_ms, to_shard, number, list(messages)))


def next_batch(shard: ShardView, to_shard: int) -> MessageBatch | None:
    """Returns the first messages that wait for a shard and are on disk; None if there are none.
    A batch ends at its limits, and before a number that is missing.
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
    """Applies those messages of a batch that were not applied before; returns the number up to
    which all are. To be acknowledged after the commit, and not before.

    Raises `MessageGap`. A message that fails for another reason is not applied, and none behind it.
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
    """Forgets messages that their receiver has applied and committed."""
    first = next(iter(shard.messages.outbox(to_shard)), None)
    if first is not None and first.number <= up_to:
        shard.emit(MessagesAcknowledged(now.wall_ms, to_shard, up_to))


def _push_jobs(shard: ShardView, now: Now, message: PushJobs) -> None:
    push = Push(
        message.queue,
        message.options,
        payloads=message.payloads,
        level=AckLevel.FSYNCED,
        # A key that is known with another payload leaves out its job: nobody is there to be told.
        atomic=False,
        has_room=True,
    )
    decide_push(shard, now, push)


# How the receiver decides a message. Each function takes the very message that it is registered
# for, which no type of a table can say.
RECEIVE: dict[type, Callable[[ShardView, Now, Any], None]] = {
    PushJobs: _push_jobs,
}
