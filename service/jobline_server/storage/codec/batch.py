"""Facts ↔ the bytes of one journal row.

`FACTS` has a row for each fact, which stands at the end of the file with its functions; a test
compares it with `entries.Fact`.
"""

from __future__ import annotations

from collections.abc import Sequence

from jobline.v1 import entry_pb2
from jobline_server.engine.entries import Fact, LotPushed
from jobline_server.storage.codec import (
    batches,
    blocked,
    ends,
    groups,
    leases,
    limiters,
    messages,
    operations,
    pushes,
    queues,
    reports,
    schedules,
    server_notes,
    unique,
    updates,
    webhooks,
)
from jobline_server.storage.codec.table import FactTable


class UnknownFact(Exception):
    """The journal has a fact that only a newer version knows."""


FACTS: FactTable = {
    **pushes.FACTS,
    **blocked.FACTS,
    **updates.FACTS,
    **leases.FACTS,
    **reports.FACTS,
    **ends.FACTS,
    **queues.FACTS,
    **groups.FACTS,
    **limiters.FACTS,
    **schedules.FACTS,
    **messages.FACTS,
    **unique.FACTS,
    **batches.FACTS,
    **operations.FACTS,
    **webhooks.FACTS,
    **server_notes.FACTS,
}

# Looked up once a fact, so each is a table of its own.
_FILL = {fact: row.fill for fact, row in FACTS.items()}
_READ = {row.name: row.read for row in FACTS.values()}
# Facts that earlier versions wrote in another form.
READ_EARLIER = {**unique.READ_EARLIER}
_READ |= READ_EARLIER

# Larger blocks of payloads are not copied into a message.
COPIED_BYTES_MAX = 4_096
# Earlier versions wrote that keys had passed their window; now each key knows that by itself.
NO_FACTS = frozenset({"keys_expired"})


def encode_batch(facts: Sequence[Fact]) -> bytes:
    """Returns facts of one shard as the blob of a journal row. None of them is volatile."""
    return b"".join(batch_parts(facts))


def batch_parts(facts: Sequence[Fact]) -> list[bytes]:
    """Returns the blob in parts: a batch is its entries, one after the other. The payloads of a
    large lot are a part as they are.
    """
    parts: list[bytes] = []
    batch = entry_pb2.JournalBatch()
    for fact in facts:
        if isinstance(fact, LotPushed) and len(fact.payloads.block) > COPIED_BYTES_MAX:
            parts.append(batch.SerializeToString())
            parts += pushes.lot_pushed_parts(fact)
            batch.Clear()
        else:
            entry = batch.entries.add()
            entry.at_ms = fact.at_ms
            _FILL[type(fact)](entry, fact)
    parts.append(batch.SerializeToString())
    return parts


def decode_batch(blob: bytes) -> list[Fact]:
    """Returns the facts of a journal row, in order."""
    facts: list[Fact] = []
    for entry in entry_pb2.JournalBatch.FromString(blob).entries:
        name = entry.WhichOneof("fact")
        if name is None:
            raise UnknownFact("the journal holds a fact of a newer version of jobline-server")
        if name not in NO_FACTS:
            facts.append(_READ[name](entry.at_ms, getattr(entry, name)))
    return facts
