"""Receives messages of other shards: applies each once. What they mean for dependencies is in
`awaiting`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from jobline_server.engine.batches import BatchCounts
from jobline_server.engine.decide.awaiting import (
    decide_await,
    decide_ends,
    decide_forget,
    decide_not_live,
)
from jobline_server.engine.decide.batches import decide_counted
from jobline_server.engine.decide.caused import push_caused
from jobline_server.engine.dependency_messages import (
    AwaitJobs,
    EndsOfJobs,
    ForgetJobs,
    JobsNotLive,
)
from jobline_server.engine.message_entries import MessagesReceived
from jobline_server.engine.shard_messages import MessageBatch, PushJobs
from jobline_server.engine.values import Now
from jobline_server.engine.view import ShardView


class MessageGap(Exception):
    """Raised for a batch that skips messages which its sender still holds. Nothing was applied."""


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


# The function that decides each message at the receiver. Each takes the message type that it is
# registered for, which the type of a table cannot express.
RECEIVE: dict[type, Callable[[ShardView, Now, Any], object]] = {
    PushJobs: push_caused,
    AwaitJobs: decide_await,
    JobsNotLive: decide_not_live,
    EndsOfJobs: decide_ends,
    ForgetJobs: decide_forget,
    BatchCounts: decide_counted,
}
