"""Producers: what makes a push call that comes again the first one again, at a few entries each.

A producer numbers its calls, and says with each of them below which number all have been answered
or given up: those never come again, so nothing is kept of them. What is kept is what may still be
repeated, however many calls there were.

A producer that was not heard for `PRODUCER_WINDOW_MS` is not known any more.
"""

from __future__ import annotations

from typing import NamedTuple

from jobline_server.engine import limits
from jobline_server.engine.changes import KindChanges
from jobline_server.engine.split import SplitSet
from jobline_server.engine.windows import WindowTable, file_under


class Call(NamedTuple):
    """A push call of a producer, whose id has 16 bytes. Calls below `answered_below` never come
    again; `digest` tells a repeat from a mistake.
    """

    producer: bytes
    sequence: int
    answered_below: int
    digest: int


class CallRecord(NamedTuple):
    """Ids `first_id … first_id + jobs − 1`, which a call was answered with."""

    first_id: int
    jobs: int
    digest: int


class Producer:
    """What is known of one producer: its calls by sequence, in the order in which they came.

    `item_key` is where a checkpoint keeps it; 0 for nowhere yet.
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
        """When it is not known any more."""
        return self.last_seen_ms + limits.PRODUCER_WINDOW_MS

    def drops_below(self, answered_below: int) -> bool:
        """Whether such a call would let go of an older one."""
        return next(iter(self.calls), answered_below) < answered_below


class ProducerTable(WindowTable[Producer]):
    """All producers of a shard, each filed once, by the minute in which it ends unless it is heard
    again. `changes` is None for a table that is never written.
    """

    __slots__ = ("_changes", "last_number")

    def __init__(self, changes: KindChanges[SplitSet] | None) -> None:
        super().__init__()
        self._changes = changes
        self.last_number = 0

    def new_number(self) -> int:
        """A number for the item key of a producer that has none."""
        self.last_number += 1
        return self.last_number

    def find(self, producer: bytes, aged_ms: int) -> Producer | None:
        """A producer that is known."""
        found = self.records.parts[producer[0]].get(producer)
        return found if found is not None and found.expires_ms > aged_ms else None

    def add(self, producer: bytes, record: Producer) -> int:
        """Takes in a producer, and returns how many entries it counts for: itself and its calls."""
        self.records[producer] = record
        self._file(producer, record)
        return 1 + len(record.calls)

    def remember(self, call: Call, first_id: int, jobs: int, aged_ms: int) -> int:
        """Remembers a call that was carried out, and lets go of those that are over; returns by how
        many entries there are more.
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
            calls[call.sequence] = CallRecord(first_id, jobs, call.digest)
            grown += 1
        else:
            # A push of rows and plain payloads is two facts, and the second one comes here.
            calls[call.sequence] = CallRecord(known.first_id, known.jobs + jobs, call.digest)
        if self._changes is not None:
            self._changes.to_write.add(call.producer)
        return grown

    def forget(self, aged_ms: int, limit: int) -> int:
        """Sweeps producers that were not heard for so long, about `limit` entries of them, and
        returns how many entries went.
        """
        gone = looked = 0
        while looked + gone < limit and (due := self._take_due(aged_ms, 1)):
            producer = due[0]
            looked += 1
            record = self.records[producer]
            if record.expires_ms > aged_ms:
                self._file(producer, record)
                continue
            gone += 1 + len(record.calls)
            del self.records[producer]
            if self._changes is not None:
                self._changes.to_write.discard(producer)
                if record.item_key:
                    self._changes.to_delete.append(record.item_key)
        return gone

    def _file(self, producer: bytes, record: Producer) -> None:
        file_under(self._minutes, record.expires_ms // limits.MINUTE_MS, producer)
