"""Messages between shards ↔ the items of a checkpoint: each that waits to be acknowledged, and the
last number that was applied of each sender.
"""

from __future__ import annotations

from collections.abc import Iterator

from jobline.v1 import store_pb2
from jobline_server.engine.shard import Shard
from jobline_server.engine.shard_messages import SentMessage
from jobline_server.engine.values import sequence_of
from jobline_server.storage.codec.messages import fill_message, read_message
from jobline_server.storage.kinds.by_id import by_id
from jobline_server.storage.kinds.loading import Loading
from jobline_server.storage.kinds.table import DurableKind
from jobline_server.storage.store import ItemKind, ItemRow


def encode_message(sent: SentMessage) -> bytes:
    """Returns the blob of a message that waits."""
    message = store_pb2.StoredMessage()
    message.to_shard = sent.to_shard
    message.number = sent.number
    fill_message(message.message, sent.message)
    return message.SerializeToString()


def decode_message(key: int, blob: bytes) -> SentMessage:
    """Returns the message in a blob."""
    message = store_pb2.StoredMessage.FromString(blob)
    value = read_message(message.message)
    sent = SentMessage(key, message.to_shard, message.number, value)
    sent.stored = True
    return sent


def load_messages(loading: Loading, rows: Iterator[ItemRow]) -> None:
    """Loads a page of messages. Those to one shard come in the order of their numbers, as keys are
    given in that order."""
    shard = loading.shard
    for row in rows:
        sent = decode_message(sequence_of(row.key), row.blob)
        shard.messages.add(sent)
        shard.load.outgoing_jobs += sent.message.jobs()
        shard.load.outgoing_bytes += sent.message.payload_bytes()


def _note_damaged(loading: Loading, item_key: int) -> None:
    loading.shard.messages.use_key(sequence_of(item_key))


def _save_message(shard: Shard, _key: int, sent: SentMessage) -> tuple[int, bytes]:
    sent.stored = True
    return shard.id_of(sent.key), encode_message(sent)


MESSAGES = DurableKind(
    ItemKind.MESSAGE,
    load=load_messages,
    slices=by_id(
        ItemKind.MESSAGE,
        owner=lambda shard: shard.messages.waiting,
        changes=lambda shard: shard.changes.messages,
        save=_save_message,
    ),
    note_damaged=_note_damaged,
)


def encode_inbox(from_shard: int, received: int) -> bytes:
    """Returns the blob of what was applied of a shard."""
    return store_pb2.StoredInbox(from_shard=from_shard, received=received).SerializeToString()


def load_inboxes(loading: Loading, rows: Iterator[ItemRow]) -> None:
    """Loads a page of inboxes. Of a damaged one the sender delivers again what it still holds."""
    for row in rows:
        message = store_pb2.StoredInbox.FromString(row.blob)
        loading.shard.messages.received[message.from_shard] = message.received


def _save_inbox(shard: Shard, from_shard: int, received: int) -> tuple[int, bytes]:
    return shard.id_of(from_shard), encode_inbox(from_shard, received)


INBOXES = DurableKind(
    ItemKind.INBOX,
    load=load_inboxes,
    slices=by_id(
        ItemKind.INBOX,
        owner=lambda shard: shard.messages.received,
        changes=lambda shard: shard.changes.inboxes,
        save=_save_inbox,
    ),
)
