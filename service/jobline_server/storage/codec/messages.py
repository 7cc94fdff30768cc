"""Messages between shards, and the facts of them, between value and message.

`MESSAGES` has a row per type of message: its field of `ShardMessage`, and both directions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from jobline.v1 import entry_pb2, store_pb2
from jobline_server.engine.batches import BatchCounts
from jobline_server.engine.dependencies import ParentEnd
from jobline_server.engine.dependency_messages import (
    AwaitJobs,
    EndsOfJobs,
    ForgetJobs,
    JobsNotLive,
)
from jobline_server.engine.message_entries import (
    MessagesAcknowledged,
    MessagesReceived,
    MessagesSent,
)
from jobline_server.engine.shard_messages import PushJobs, ShardMessage
from jobline_server.engine.ties import NO_TIES, Ties
from jobline_server.storage.codec.batches import batch_counts, fill_batch_counts
from jobline_server.storage.codec.shared import fill_payloads, interned_options, payloads_of
from jobline_server.storage.codec.table import FactRow, FactTable, whole
from jobline_server.wire.options import serialized_options


class MessageRow(NamedTuple):
    """How one type of message is written and read. Each function takes the very message that it is
    registered for, which no type of a table can say.
    """

    name: str
    fill: Callable[[store_pb2.ShardMessage, Any], None]
    read: Callable[[Any], ShardMessage]


def fill_push_jobs(message: store_pb2.ShardMessage, value: PushJobs) -> None:
    """Writes it into a message."""
    push = message.push_jobs
    push.SetInParent()
    push.queue = value.queue
    push.options = serialized_options(value.options)
    fill_payloads(push, value.payloads)
    push.count = len(value.payloads)
    push.group, push.unique_key = value.ties.group, value.ties.unique_key
    push.delay_ms = value.delay_ms


def push_jobs(message: store_pb2.PushJobs) -> PushJobs:
    """Reads it."""
    return PushJobs(
        message.queue,
        interned_options(message.options),
        payloads_of(message, message.count),
        Ties(message.group, message.unique_key) if message.group or message.unique_key else NO_TIES,
        message.delay_ms,
    )


def fill_await_jobs(message: store_pb2.ShardMessage, value: AwaitJobs) -> None:
    """Writes it into a message."""
    message.await_jobs.by_shard = value.by_shard
    message.await_jobs.ids.extend(value.ids)


def fill_jobs_not_live(message: store_pb2.ShardMessage, value: JobsNotLive) -> None:
    """Writes it into a message."""
    message.jobs_not_live.SetInParent()
    message.jobs_not_live.ids.extend(value.ids)


def fill_ends_of_jobs(message: store_pb2.ShardMessage, value: EndsOfJobs) -> None:
    """Writes it into a message."""
    message.ends_of_jobs.SetInParent()
    message.ends_of_jobs.ids.extend(value.ids)
    message.ends_of_jobs.ends.extend(value.ends)


def ends_of_jobs(message: store_pb2.EndsOfJobs) -> EndsOfJobs:
    """Reads it."""
    return EndsOfJobs(tuple(message.ids), tuple(map(ParentEnd, message.ends)))


def fill_forget_jobs(message: store_pb2.ShardMessage, value: ForgetJobs) -> None:
    """Writes it into a message."""
    message.forget_jobs.by_shard = value.by_shard
    message.forget_jobs.ids.extend(value.ids)


MESSAGES: dict[type, MessageRow] = {
    PushJobs: MessageRow("push_jobs", fill_push_jobs, push_jobs),
    AwaitJobs: MessageRow(
        "await_jobs", fill_await_jobs, lambda one: AwaitJobs(tuple(one.ids), one.by_shard)
    ),
    JobsNotLive: MessageRow(
        "jobs_not_live", fill_jobs_not_live, lambda one: JobsNotLive(tuple(one.ids))
    ),
    EndsOfJobs: MessageRow("ends_of_jobs", fill_ends_of_jobs, ends_of_jobs),
    ForgetJobs: MessageRow(
        "forget_jobs", fill_forget_jobs, lambda one: ForgetJobs(tuple(one.ids), one.by_shard)
    ),
    BatchCounts: MessageRow("batch_counts", fill_batch_counts, batch_counts),
}
_ROWS = {row.name: row for row in MESSAGES.values()}


def fill_message(message: store_pb2.ShardMessage, value: ShardMessage) -> None:
    """Writes any message."""
    MESSAGES[type(value)].fill(message, value)


def read_message(message: store_pb2.ShardMessage) -> ShardMessage:
    """Reads any message. Raises LookupError for one of a type that only a newer version knows."""
    name = message.WhichOneof("message")
    if name is None:
        raise LookupError("a message between shards is of a newer version of jobline-server")
    return _ROWS[name].read(getattr(message, name))


def fill_messages_sent(entry: entry_pb2.Entry, fact: MessagesSent) -> None:
    """Writes it into an entry."""
    message = entry.messages_sent
    message.to_shard = fact.to_shard
    message.first_number = fact.first_number
    for value in fact.messages:
        fill_message(message.messages.add(), value)


def messages_sent(at_ms: int, message: entry_pb2.MessagesSent) -> MessagesSent:
    """Reads it."""
    return MessagesSent(
        at_ms=at_ms,
        to_shard=message.to_shard,
        first_number=message.first_number,
        messages=list(map(read_message, message.messages)),
    )


def single_messages(fact: MessagesSent) -> Iterator[MessagesSent]:
    """Yields the fact as facts of one message each."""
    for number, value in enumerate(fact.messages, fact.first_number):
        yield MessagesSent(fact.at_ms, fact.to_shard, number, [value])


def fill_messages_received(entry: entry_pb2.Entry, fact: MessagesReceived) -> None:
    """Writes it into an entry."""
    message = entry.messages_received
    message.from_shard = fact.from_shard
    message.up_to = fact.up_to


def messages_received(at_ms: int, message: entry_pb2.MessagesReceived) -> MessagesReceived:
    """Reads it."""
    return MessagesReceived(at_ms=at_ms, from_shard=message.from_shard, up_to=message.up_to)


def fill_messages_acknowledged(entry: entry_pb2.Entry, fact: MessagesAcknowledged) -> None:
    """Writes it into an entry."""
    message = entry.messages_acknowledged
    message.to_shard = fact.to_shard
    message.up_to = fact.up_to


def messages_acknowledged(
    at_ms: int, message: entry_pb2.MessagesAcknowledged
) -> MessagesAcknowledged:
    """Reads it."""
    return MessagesAcknowledged(at_ms=at_ms, to_shard=message.to_shard, up_to=message.up_to)


FACTS: FactTable = {
    MessagesSent: FactRow("messages_sent", fill_messages_sent, messages_sent, single_messages),
    MessagesReceived: FactRow(
        "messages_received", fill_messages_received, messages_received, whole
    ),
    MessagesAcknowledged: FactRow(
        "messages_acknowledged", fill_messages_acknowledged, messages_acknowledged, whole
    ),
}
