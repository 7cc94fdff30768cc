"""Applies the facts of messages between shards. The effects of a message at its receiver are facts
of their own.
"""

from __future__ import annotations

from jobline_server.engine.apply.table import ApplyTable
from jobline_server.engine.message_entries import (
    MessagesAcknowledged,
    MessagesReceived,
    MessagesSent,
)
from jobline_server.engine.state import ShardState
from jobline_server.engine.states import IllegalMove


def apply_messages_sent(shard: ShardState, fact: MessagesSent, offset: int) -> None:
    """Adds messages to an outbox."""
    table, load = shard.messages, shard.load
    if fact.first_number < table.next_number(fact.to_shard, 0):
        raise IllegalMove(f"message {fact.first_number} to shard {fact.to_shard} was sent before")
    for number, message in enumerate(fact.messages, fact.first_number):
        sent = table.send(fact.to_shard, number, message)
        sent.offset = offset
        load.outgoing_jobs += message.jobs()
        load.outgoing_bytes += message.payload_bytes()
        shard.changes.messages.to_write.add(sent.key)


def apply_messages_received(shard: ShardState, fact: MessagesReceived, _offset: int) -> None:
    """Records up to which number the messages of a shard are applied."""
    received = shard.messages.received
    if fact.up_to <= received.get(fact.from_shard, 0):
        raise IllegalMove(f"message {fact.up_to} of shard {fact.from_shard} was applied before")
    received[fact.from_shard] = fact.up_to
    shard.changes.inboxes.to_write.add(fact.from_shard)


def apply_messages_acknowledged(
    shard: ShardState, fact: MessagesAcknowledged, _offset: int
) -> None:
    """Removes messages from their outbox."""
    changes, load = shard.changes.messages, shard.load
    for sent in shard.messages.take(fact.to_shard, fact.up_to):
        load.outgoing_jobs -= sent.message.jobs()
        load.outgoing_bytes -= sent.message.payload_bytes()
        changes.to_write.discard(sent.key)
        if sent.stored:
            changes.to_delete.append(shard.id_of(sent.key))


APPLY: ApplyTable = {
    MessagesSent: apply_messages_sent,
    MessagesReceived: apply_messages_received,
    MessagesAcknowledged: apply_messages_acknowledged,
}
