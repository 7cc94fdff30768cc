"""Settles on their way: gathered, numbered, sent, confirmed. Pure.

Acks without a result travel as two packed columns, everything else as rows. Each settle keeps its
number until the server confirms it; after a broken connection all that are unconfirmed are sent
again, which is safe because a lease is settled once: a repeat says ALREADY_DONE, or NOT_FOUND where
the ended job is not kept. While many are unconfirmed the next ones gather instead, so that a fast
worker sends few, large settles.
"""

from __future__ import annotations

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
    """What was said about a lease."""

    ACK = "ack"
    FAIL = "fail"
    RELEASE = "release"


@dataclass(frozen=True, slots=True)
class SettleReport:
    """The server's answer to one settled lease, where it was not simply DONE, or where the job is
    dead now; `error` is what it failed of.
    """

    id: int
    delivery: int
    kind: SettleKind
    outcome: SettleOutcome
    is_dead: bool = False
    error: str = ""


class Settles:
    """All settles of one session that the server has not confirmed."""

    def __init__(self) -> None:
        self._ack_ids: list[int] = []
        self._ack_deliveries: list[int] = []
        self._items: list[pb.AckItem | pb.FailItem | pb.ReleaseItem] = []
        self._seq = 0
        self._unconfirmed: dict[int, pb.StreamSettle] = {}

    def ack(self, id_: int, delivery: int, result: bytes | None = None) -> None:
        """Takes a finished job, with its result if it has one."""
        if result:
            self._items.append(pb.AckItem(id=id_, delivery=delivery, result=result))
        else:
            self._ack_ids.append(id_)
            self._ack_deliveries.append(delivery)

    def add(self, item: pb.FailItem | pb.ReleaseItem) -> None:
        """Takes a job that failed or is given back."""
        self._items.append(item)

    @property
    def has_waiting(self) -> bool:
        """Something has not been sent yet."""
        return bool(self._ack_ids or self._items)

    @property
    def has_unconfirmed(self) -> bool:
        """Something was sent and not confirmed yet."""
        return bool(self._unconfirmed)

    def take(self) -> pb.StreamSettle | None:
        """The next settle to send, if one is due now. Call again until it is None."""
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
        """All that is unconfirmed, oldest first, for a new stream."""
        return list(self._unconfirmed.values())

    def unconfirmed_leases(self) -> dict[int, int]:
        """Id → delivery of all that was settled here and not confirmed, sent or not."""
        leases = dict(zip(self._ack_ids, self._ack_deliveries, strict=True))
        leases.update((item.id, item.delivery) for item in self._items)
        for settle in self._unconfirmed.values():
            leases.update(_leases(settle))
        return leases

    def handle_confirm(self, confirm: pb.StreamConfirm) -> list[SettleReport]:
        """Forgets a settle that is on disk; what was not simply DONE is reported, and who died."""
        settle = self._unconfirmed.pop(confirm.seq, None)
        if settle is None:
            return []  # a settle that was sent twice may be confirmed twice
        reports = [_report(settle, entry.index, entry.outcome) for entry in confirm.exceptions]
        reports += [_death(settle, index) for index in confirm.dead]
        return [report for report in reports if report is not None]


def _leases(settle: pb.StreamSettle) -> list[tuple[int, int]]:
    leases = list(zip(settle.ack_ids, settle.ack_deliveries, strict=True))
    for items in (settle.acks, settle.fails, settle.releases):
        leases.extend((item.id, item.delivery) for item in items)
    return leases


def _newest(settle: pb.StreamSettle, newest: dict[int, int]) -> pb.StreamSettle:
    """A job that was lost, leased again and settled again while nothing could be sent stands there
    twice, which the server refuses. Only its newest lease can still count.
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
    """The item of a settle that an index means: packed ids first, then each kind of rows."""
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
    """A job that is dead now, by the index of its fail."""
    index -= len(settle.ack_ids) + len(settle.acks)
    if not 0 <= index < len(settle.fails):
        return None
    item = settle.fails[index]
    error = ": ".join(filter(None, [item.error.type, item.error.message]))
    done = SettleOutcome.DONE
    return SettleReport(item.id, item.delivery, SettleKind.FAIL, done, is_dead=True, error=error)
