"""Producers: find the jobs of an earlier push call when it is repeated, with few entries each.

A producer numbers its calls and declares with each one the number below which all were answered or
given up. Those never come again, so only the calls from that number on are kept.

A producer that was not seen for `PRODUCER_WINDOW_MS` is forgotten.
"""

from __future__ import annotations

from typing import NamedTuple

from jobline_server.engine import limits
from jobline_server.engine.changes import KindChanges
from jobline_server.engine.split import SplitSet
from jobline_server.engine.windows import WindowTable, file_under


class Call(NamedTuple):
    """A push call of a producer, whose id has 16 bytes. Calls below `answered_below` never come
    again; `digest` tells a repeat from another call with its number.
    """

    producer: bytes
    sequence: int
    answered_below: int
    digest: int


class CallRecord(NamedTuple):
    """The ids `first_id … first_id + jobs − 1` that a call created. `stored_rows` are those of its
    rows that were stored, a bit each; empty for all.
    """

    first_id: int
    jobs: int
    digest: int
    stored_rows: bytes = b""


class Producer:
    """One producer: its calls by sequence, in the order in which they came.

    `item_key` is its key in the checkpoint, 0 if it has none yet.
    """

    __slots__ = ("answered_below", "calls", "last_seen_ms", "item_key")

    def __init__(self, last_seen_ms: int, answered_below: int = 0) -> None:
        self.calls: dict[int, CallRecord] = {}
        self.answered_below = answered_below
        self.last_seen_ms = last_seen_ms
        # ----
        self.item_key = 0

    @property
    def expires_ms(self) -> int:
        """When the producer is forgotten."""
        return self.last_seen_ms + limits.PRODUCER_WINDOW_MS

    def drops_below(self, answered_below: int) -> bool:
        """Returns whether a call with this `answered_below` drops its oldest call."""
        return next(iter(self.calls), answered_below) < answered_below


class ProducerTable(WindowTable[Producer]):
    """All producers of a shard, each filed once, by the minute in which it expires unless it is
    seen again. `changes` is None for a volatile table.
    """

    __slots__ = ("_changes", "last_number")

    def __init__(self, changes: KindChanges[SplitSet] | None) -> None:
        super().__init__()
        self._changes = changes
        self.last_number = 0

    def new_number(self) -> int:
        """Returns the number for the item key of a producer that has none."""
        self.last_number += 1
        return self.last_number

    def find(self, producer: bytes, aged_ms: int) -> Producer | None:
        """Returns a producer; None if it is unknown or expired."""
        found = self.records.parts[producer[0]].get(producer)
        return found if found is not None and found.expires_ms > aged_ms else None

    def add(self, producer: bytes, record: Producer) -> int:
        """Adds a producer; returns its number of entries: one for itself, and its calls."""
        self.records[producer] = record
        self._file(producer, record)
        return 1 + len(record.calls)

    def remember(
        self, call: Call, first_id: int, jobs: int, aged_ms: int, stored_rows: bytes = b""
    ) -> int:
        """Adds a call that was carried out and drops the calls that are over; returns how many
        entries the table has more, which may be negative.
        """
        record, grown = self.records.parts[call.producer[0]].get(call.producer), 0
        if record is None:
            record = Producer(aged_ms)
            grown = self.add(call.producer, record)
        elif record.expires_ms <= aged_ms:
            grown = -len(record.calls)
            record.calls, record.answered_below = {}, 0
        record.last_seen_ms = max(record.last_seen_ms, aged_ms)
        calls = record.calls
        while record.drops_below(call.answered_below):
            del calls[next(iter(calls))]
            grown -= 1
        record.answered_below = max(record.answered_below, call.answered_below)
        known = calls.get(call.sequence)
        if known is None:
            calls[call.sequence] = CallRecord(first_id, jobs, call.digest, stored_rows)
            grown += 1
        else:
            # A push of rows and plain payloads is two facts; this is the second one.
            first_id = min(known.first_id, first_id)
            calls[call.sequence] = known._replace(first_id=first_id, jobs=known.jobs + jobs)
        if self._changes is not None:
            self._changes.to_write.add(call.producer)
        return grown

    def forget(self, aged_ms: int, limit: int) -> int:
        """Sweeps about `limit` entries of expired producers; returns how many were removed."""
        removed = examined = 0
        while examined + removed < limit and (due := self._take_due(aged_ms, 1)):
            producer = due[0]
            examined += 1
            record = self.records[producer]
            if record.expires_ms > aged_ms:
                self._file(producer, record)
                continue
            removed += 1 + len(record.calls)
            del self.records[producer]
            if self._changes is not None:
                self._changes.to_write.discard(producer)
                if record.item_key:
                    self._changes.to_delete.append(record.item_key)
        return removed

    def _file(self, producer: bytes, record: Producer) -> None:
        file_under(self._minutes, record.expires_ms // limits.MINUTE_MS, producer)
