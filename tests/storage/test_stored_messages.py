"""Messages between shards in a checkpoint: they come back as they were, and damage is bounded."""

from __future__ import annotations

import pytest
from hypothesis import given

from jobline.v1 import store_pb2
from jobline_server.engine import invariants
from jobline_server.engine.decide.messages import (
    decide_acknowledge,
    decide_send,
    next_batch,
)
from jobline_server.engine.decide.receive import RECEIVE, decide_receive
from jobline_server.engine.payloads import Payloads
from jobline_server.engine.shard_messages import PushJobs, SentMessage, ShardMessage
from jobline_server.engine.values import DEFAULT_OPTIONS
from jobline_server.storage.codec.messages import MESSAGES, read_message
from jobline_server.storage.kinds.messages import decode_message, encode_message
from jobline_server.storage.store import ItemKind
from tests.storage import value_strategies as own
from tests.storage.recovery_world import SHARD, World

OTHER = 5


def send(world: World, *payloads: bytes) -> None:
    messages = [PushJobs("q", DEFAULT_OPTIONS, Payloads.of([one])) for one in payloads]
    decide_send(world.shard, world.now, OTHER, messages)
    world.commit()


def deliver(world: World, receiver: World) -> None:
    """All that waits, one delivery after the other."""
    while (batch := next_batch(world.shard, OTHER)) is not None:
        up_to = decide_receive(receiver.shard, receiver.now, batch)
        receiver.commit()
        decide_acknowledge(world.shard, world.now, OTHER, up_to)
        world.commit()


def arrived(receiver: World) -> list[bytes]:
    lots = receiver.shard.lots.lots
    return [payload for _, lot in sorted(lots.items()) for payload in lot.payloads]


def rot(world: World, kind: ItemKind, key: int) -> None:
    """An item's checksum is wrong from now on, and the process starts anew."""
    world.store.rotten.add((kind, key))
    world.crash(ops_kept=0)
    invariants.check(world.shard)


@given(own.shards, own.message_numbers, own.shard_messages)
def test_message_comes_back_equal(to_shard: int, number: int, message: ShardMessage) -> None:
    sent = SentMessage(9, to_shard, number, message)
    back = decode_message(9, encode_message(sent))
    assert (back.key, back.to_shard, back.number, back.message, back.stored) == (
        9,
        to_shard,
        number,
        message,
        True,
    )


def test_every_type_of_message_has_a_row_in_every_table() -> None:
    """How it is written and read, and how its receiver decides it."""
    (kinds,) = store_pb2.ShardMessage.DESCRIPTOR.oneofs
    assert set(MESSAGES) == set(RECEIVE)
    assert [row.name for row in MESSAGES.values()] == [field.name for field in kinds.fields]


def test_message_of_a_newer_version_is_refused() -> None:
    """What is not understood must not be taken for applied."""
    with pytest.raises(LookupError, match="newer version"):
        read_message(store_pb2.ShardMessage())


def test_what_waits_is_written_once_and_deleted_when_it_was_applied() -> None:
    world, receiver = World(), World(OTHER)
    send(world, b"1", b"2")
    world.finish_checkpoint(truncate=True)
    world.crash(ops_kept=0)
    deliver(world, receiver)
    world.finish_checkpoint(truncate=True)
    world.crash(ops_kept=0)
    assert next_batch(world.shard, OTHER) is None
    assert arrived(receiver) == [b"1", b"2"]


def test_a_receiver_that_was_loaded_knows_what_it_has_applied() -> None:
    world, receiver = World(), World(OTHER)
    send(world, b"1")
    batch = next_batch(world.shard, OTHER)
    assert batch is not None
    up_to = decide_receive(receiver.shard, receiver.now, batch)
    receiver.finish_checkpoint(truncate=True)
    receiver.crash(ops_kept=0)
    assert decide_receive(receiver.shard, receiver.now, batch) == up_to
    assert arrived(receiver) == [b"1"]


def test_a_damaged_message_is_lost_and_its_neighbours_arrive() -> None:
    world, receiver = World(), World(OTHER)
    send(world, b"1", b"2", b"3")
    world.finish_checkpoint(truncate=True)
    rot(world, ItemKind.MESSAGE, world.shard.id_of(2))
    assert [report.what for report in world.reports] == [f"message item {world.shard.id_of(2)}"]
    send(world, b"4")
    deliver(world, receiver)
    assert arrived(receiver) == [b"1", b"3", b"4"]


def test_the_key_of_a_damaged_message_is_not_given_again() -> None:
    world = World()
    send(world, b"1", b"2")
    world.finish_checkpoint(truncate=True)
    rot(world, ItemKind.MESSAGE, world.shard.id_of(2))
    send(world, b"3")
    assert [sent.key for sent in world.shard.messages.outbox(OTHER)] == [1, 3]


def test_journal_that_tells_of_a_damaged_message_goes_on_without_it() -> None:
    world, receiver = World(), World(OTHER)
    send(world, b"1")
    world.finish_checkpoint(truncate=True)
    send(world, b"2", b"3")
    rot(world, ItemKind.MESSAGE, world.shard.id_of(1))
    deliver(world, receiver)
    assert arrived(receiver) == [b"2", b"3"]


def test_behind_a_damaged_inbox_new_messages_arrive() -> None:
    """What its sender has forgotten is not applied again."""
    world, receiver = World(), World(OTHER)
    send(world, b"1")
    deliver(world, receiver)
    receiver.finish_checkpoint(truncate=True)
    rot(receiver, ItemKind.INBOX, receiver.shard.id_of(SHARD))
    send(world, b"2")
    deliver(world, receiver)
    assert arrived(receiver) == [b"1", b"2"]
