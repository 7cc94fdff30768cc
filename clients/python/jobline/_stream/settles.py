"""Settles: gathered, numbered, sent, confirmed. Pure.

Acks without a result are sent as two packed columns, everything else as items. Each settle keeps
its number until the server confirms it. After a broken connection all unconfirmed settles are sent
again, which is safe because a lease is settled once: a repeat returns ALREADY_DONE, or NOT_FOUND
where the ended job is not kept. While many are unconfirmed the next ones gather, so that a fast
worker sends few, large settles.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

from jobline._enums import SettleOutcome, known
from jobline.v1 import job_service_pb2 as pb

# The protocol's limit for one settle.
ITEMS_MAX = 10_000
# Results and errors of one settle; far below what a server takes in one message, and one always
# fits.
ITEM_BYTES_MAX = 2 << 20
# Settles sent and not confirmed, above which new ones gather.
UNCONFIRMED_MAX = 16


class SettleKind(Enum):
    """The kind of a settle."""

    ACK = "ack"
    FAIL = "fail"
    RELEASE = "release"


@dataclass(frozen=True, slots=True)
class SettleReport:
    """The server's reply to one settled lease that was not simply DONE, or whose job is dead now;
    `error` is what it failed of.
    """

    id: int
    delivery: int
    kind: SettleKind
    outcome: SettleOutcome
    is_dead: bool = False
    error: str = ""


class Settles:
    """Holds the settles of one session that the server has not confirmed."""

    def __init__(self) -> None:
        self._ack_ids: list[int] = []
        self._ack_deliveries: list[int] = []
        self._items: list[pb.AckItem | pb.FailItem | pb.ReleaseItem] = []
        self._seq = 0
        self._unconfirmed: dict[int, pb.StreamSettle] = {}
        self._unconfirmed_jobs = 0
        self._fences: list[Callable[[], object]] = []
        self._fenced: dict[int, list[Callable[[], object]]] = {}

    def ack(self, id_: int, delivery: int, result: bytes | None = None) -> None:
        """Adds a job that is done, with its result if it has one."""
        if result:
            self._items.append(pb.AckItem(id=id_, delivery=delivery, result=result))
        else:
            self._ack_ids.append(id_)
            self._ack_deliveries.append(delivery)

    def add(self, item: pb.FailItem | pb.ReleaseItem) -> None:
        """Adds a job that failed or is released."""
        self._items.append(item)

    def fence(self, passed: Callable[[], object]) -> None:
        """Calls `passed` when the server has confirmed the next settle, which may be empty: it has
        handled all that was sent before.
        """
        self._fences.append(passed)

    @property
    def jobs(self) -> int:
        """Number of jobs that are settled and not confirmed, sent or not."""
        return len(self._ack_ids) + len(self._items) + self._unconfirmed_jobs

    @property
    def has_waiting(self) -> bool:
        """Whether a settle waits to be sent."""
        return bool(self._ack_ids or self._items or self._fences)

    @property
    def has_unconfirmed(self) -> bool:
        """Whether a sent settle is unconfirmed."""
        return bool(self._unconfirmed)

    def take(self) -> pb.StreamSettle | None:
        """Returns the next settle to send, None if none is due. Call until it is None."""
        if len(self._unconfirmed) >= UNCONFIRMED_MAX or not self.has_waiting:
            return None
        self._seq += 1
        settle = pb.StreamSettle(seq=self._seq)
        count = min(len(self._ack_ids), ITEMS_MAX)
        settle.ack_ids.extend(self._ack_ids[:count])
        settle.ack_deliveries.extend(self._ack_deliveries[:count])
        del self._ack_ids[:count], self._ack_deliveries[:count]
        self._take_items(settle, ITEMS_MAX - count)
        leases = _leases(settle)
        if len({id_ for id_, _ in leases}) < len(leases):
            settle = _newest(settle, dict(sorted(leases)))
        self._unconfirmed[self._seq] = settle
        self._unconfirmed_jobs += _jobs(settle)
        if self._fences:
            self._fenced[self._seq], self._fences = self._fences, []
        return settle

    def _take_items(self, settle: pb.StreamSettle, room: int) -> None:
        total = count = 0
        for item in self._items[:room]:
            total += item.ByteSize()
            if total > ITEM_BYTES_MAX and count:
                break
            count += 1
            if isinstance(item, pb.AckItem):
                settle.acks.append(item)
            elif isinstance(item, pb.FailItem):
                settle.fails.append(item)
            else:
                settle.releases.append(item)
        del self._items[:count]

    def resend(self) -> list[pb.StreamSettle]:
        """Returns all unconfirmed settles, oldest first, for a new stream."""
        return list(self._unconfirmed.values())

    def unconfirmed_leases(self) -> dict[int, int]:
        """Returns id → delivery of all leases that were settled and not confirmed, sent or not."""
        leases = dict(zip(self._ack_ids, self._ack_deliveries, strict=True))
        leases.update((item.id, item.delivery) for item in self._items)
        for settle in self._unconfirmed.values():
            leases.update(_leases(settle))
        return leases

    def handle_confirm(self, confirm: pb.StreamConfirm) -> list[SettleReport]:
        """Forgets a confirmed settle; returns a report for each lease that was not DONE or whose
        job died.
        """
        settle = self._unconfirmed.pop(confirm.seq, None)
        if settle is None:
            return []  # a settle that was sent twice may be confirmed twice
        self._unconfirmed_jobs -= _jobs(settle)
        for passed in self._fenced.pop(confirm.seq, ()):
            passed()
        # Once for each lease, however often a server says it.
        outcomes = {entry.index: entry.outcome for entry in confirm.exceptions}
        reports = [_report(settle, index, outcome) for index, outcome in outcomes.items()]
        reports += [_death(settle, index) for index in dict.fromkeys(confirm.dead)]
        return [report for report in reports if report is not None]


def _jobs(settle: pb.StreamSettle) -> int:
    items = len(settle.acks) + len(settle.fails) + len(settle.releases)
    return len(settle.ack_ids) + items


def _leases(settle: pb.StreamSettle) -> list[tuple[int, int]]:
    leases = list(zip(settle.ack_ids, settle.ack_deliveries, strict=True))
    for items in (settle.acks, settle.fails, settle.releases):
        leases.extend((item.id, item.delivery) for item in items)
    return leases


def _newest(settle: pb.StreamSettle, newest: dict[int, int]) -> pb.StreamSettle:
    """Returns the settle with only the newest lease of each job. A job that was lost, leased again
    and settled again while nothing could be sent is in it twice, which the server refuses.
    """
    kept = pb.StreamSettle(seq=settle.seq)
    for id_, delivery in zip(settle.ack_ids, settle.ack_deliveries, strict=True):
        if newest[id_] == delivery:
            kept.ack_ids.append(id_)
            kept.ack_deliveries.append(delivery)
    kept.acks.extend(item for item in settle.acks if newest[item.id] == item.delivery)
    kept.fails.extend(item for item in settle.fails if newest[item.id] == item.delivery)
    kept.releases.extend(item for item in settle.releases if newest[item.id] == item.delivery)
    return kept


def _report(settle: pb.StreamSettle, index: int, outcome: int) -> SettleReport | None:
    """Returns the report for an index into a settle: packed ids first, then each kind of item."""
    if 0 <= index < len(settle.ack_ids):
        id_, delivery = settle.ack_ids[index], settle.ack_deliveries[index]
        return SettleReport(id_, delivery, SettleKind.ACK, known(SettleOutcome, outcome))
    index -= len(settle.ack_ids)
    for kind, items in (
        (SettleKind.ACK, settle.acks),
        (SettleKind.FAIL, settle.fails),
        (SettleKind.RELEASE, settle.releases),
    ):
        if 0 <= index < len(items):
            item = items[index]
            return SettleReport(item.id, item.delivery, kind, known(SettleOutcome, outcome))
        index -= len(items)
    return None


def _death(settle: pb.StreamSettle, index: int) -> SettleReport | None:
    """Returns the report of a job that is dead now, by the index of its fail."""
    index -= len(settle.ack_ids) + len(settle.acks)
    if not 0 <= index < len(settle.fails):
        return None
    item = settle.fails[index]
    error = ": ".join(filter(None, [item.error.type, item.error.message]))
    done = SettleOutcome.DONE
    return SettleReport(item.id, item.delivery, SettleKind.FAIL, done, is_dead=True, error=error)
