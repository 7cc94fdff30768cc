"""Facts of messages: what they change, and which ones do not fit."""

from __future__ import annotations

import pytest

from jobline_server.engine.message_entries import (
    MessagesAcknowledged,
    MessagesReceived,
    MessagesSent,
)
from jobline_server.engine.payloads import Payloads
from jobline_server.engine.shard_messages import PushJobs
from jobline_server.engine.states import IllegalMove
from jobline_server.engine.values import DEFAULT_OPTIONS

ONE = PushJobs("q", DEFAULT_OPTIONS, Payloads.of([b"1"]))


def test_a_number_is_sent_once(world):
    world.shard.emit(MessagesSent(0, 2, 5, [ONE, ONE]))
    with pytest.raises(IllegalMove, match="message 6 to shard 2 was sent before"):
        world.shard.emit(MessagesSent(0, 2, 6, [ONE]))
    world.check()


def test_a_number_is_applied_once(world):
    world.shard.emit(MessagesReceived(0, 2, 5))
    with pytest.raises(IllegalMove, match="message 5 of shard 2 was applied before"):
        world.shard.emit(MessagesReceived(0, 2, 5))
    assert world.shard.messages.received == {2: 5}


def test_destinations_and_sources_are_apart(world):
    world.shard.emit(MessagesSent(0, 2, 5, [ONE]))
    world.shard.emit(MessagesSent(0, 3, 1, [ONE]))
    world.shard.emit(MessagesReceived(0, 3, 9))
    world.shard.emit(MessagesAcknowledged(0, 2, 9))
    assert [sent.number for sent in world.shard.messages.outbox(3)] == [1]
    assert list(world.shard.messages.outbox(2)) == []
    world.check()


def test_a_checkpoint_writes_what_waits_and_deletes_what_it_has_written(world):
    shard = world.shard
    changes = shard.changes
    shard.emit(MessagesSent(0, 2, 5, [ONE, ONE, ONE]))
    shard.emit(MessagesReceived(0, 2, 1))
    assert (set(changes.messages.to_write), changes.inboxes.to_write) == ({1, 2, 3}, {2})
    next(iter(shard.messages.outbox(2))).stored = True
    shard.emit(MessagesAcknowledged(0, 2, 6))
    assert (set(changes.messages.to_write), changes.messages.to_delete) == ({3}, [shard.id_of(1)])
