"""A store of ended jobs in memory: the least that `EndedJobStore` asks of a second store."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from jobline_server.storage.blob_parts import has_parts
from jobline_server.storage.ended_store import (
    READ_BATCH_BYTES,
    DeadGroup,
    EndedLookup,
    EndedOp,
    EndedPage,
    EndedPart,
    EndedQuery,
    EndedRow,
    EndedScan,
    EndedSpan,
    EndedTotals,
    OwnCount,
    ScanOrder,
)
from tests.storage.ended_reference import DEAD, STALE, Reference

# Ids that a look-up, and parts that a page, reads at most.
READ_MAX = 2_000


class MemoryEndedStore:
    """Implements `EndedJobStore` over a dictionary from id to row."""

    def __init__(self) -> None:
        self._kept = Reference()

    async def open(self) -> None: ...

    async def close(self) -> None: ...

    async def sync(self) -> None: ...

    async def growth(self, size_bytes: int) -> int:
        return size_bytes

    async def write(self, ops: Sequence[EndedOp]) -> None:
        self._kept.write(ops)

    async def get_many(self, job_ids: Sequence[int]) -> EndedLookup:
        rows: dict[int, EndedRow] = {}
        size = 0
        for looked, job_id in enumerate(job_ids):
            if looked == READ_MAX or size >= READ_BATCH_BYTES:
                return EndedLookup(rows, [], looked)
            if (row := self._kept.jobs.get(job_id)) is not None:
                rows[job_id], size = row, size + len(row.blob)
        return EndedLookup(rows, [], len(job_ids))

    async def list(self, query: EndedQuery) -> EndedPage:
        found: list[EndedPart] = []
        room, size, end_id = query.limit, 0, query.after_id + 1
        for passed, part in enumerate(self._parts(end_id)):
            if not room or size >= READ_BATCH_BYTES or passed == READ_MAX:
                break
            count = part.count
            if _matches(part.row, query):
                count = min(count, room)
                found.append(EndedPart(part.first_id, count, part.row))
                room, size = room - count, size + len(part.row.blob)
            end_id = part.first_id + count
        else:
            return EndedPage(found, [], None if room else end_id - 1)
        return EndedPage(found, [], end_id - 1)

    async def scan(self, scan: EndedScan) -> Sequence[EndedSpan]:
        spans = []
        for part in self._parts():
            row, at_ms = part.row, _time_of(part.row, scan)
            if at_ms is not None and scan.after < (at_ms, part.first_id) <= scan.until:
                span = EndedSpan(row.queue, row.state, part.first_id, part.count, at_ms)
                spans.append(span._replace(bytes=len(row.blob) * part.count // row.count))
        return sorted(spans, key=EndedSpan.key)[: scan.limit]

    async def count(self, scan: EndedScan) -> int:
        return sum(span.count for span in await self.scan(scan))

    async def next_own_count(self, before: OwnCount | None) -> OwnCount | None:
        counts = {
            (row.queue, row.state, row.keep_count)
            for row in self._kept.jobs.values()
            if row.keep_count is not None and row.state != STALE
        }
        if before is not None:
            counts = {one for one in counts if one < (before.queue, before.state, before.count)}
        return OwnCount(*max(counts)) if counts else None

    async def totals(self, queue: str, state: int) -> EndedTotals:
        scan = EndedScan(ScanOrder.ENDED, queue, state, limit=1 << 62)
        size = sum(span.bytes for span in await self.scan(scan))
        by_queue_age = await self.count(replace(scan, by_queue_age=True))
        return EndedTotals(await self.count(scan), size, by_queue_age)

    async def counts(self) -> dict[tuple[str, int], int]:
        return dict(Counter((row.queue, row.state) for row in self._kept.jobs.values()))

    async def dead_statistics(self, queue: str = "") -> Sequence[DeadGroup]:
        groups: dict[tuple[str, str, int, str], list[int]] = {}
        for row in self._kept.jobs.values():
            if row.state == DEAD and queue in ("", row.queue):
                alike = row.queue, row.name, row.reason, row.error_type
                groups.setdefault(alike, []).append(row.ended_ms)
        in_order = sorted(groups.items(), key=lambda group: (-len(group[1]), group[0]))
        return [DeadGroup(*alike, len(ms), min(ms), max(ms)) for alike, ms in in_order]

    def _parts(self, first_id: int = 0) -> Sequence[EndedPart]:
        parts: list[EndedPart] = []
        for job_id, row in sorted(self._kept.jobs.items()):
            last = parts[-1] if parts else None
            if last and last.row == row and last.first_id + last.count == job_id:
                parts[-1] = EndedPart(last.first_id, last.count + 1, row)
            elif job_id >= first_id:
                parts.append(EndedPart(job_id, 1, row))
        return parts


def _time_of(row: EndedRow, scan: EndedScan) -> int | None:
    """Returns the time that a scan goes by; None for a row that it leaves out."""
    if scan.order is ScanOrder.STALE:
        return row.delete_ms if row.state == STALE else None
    if scan.order is ScanOrder.DUE:
        return row.due_ms if row.state != STALE else None
    if scan.order is ScanOrder.RETRY:
        return row.retry_ms if (row.queue, row.state) == (scan.queue, DEAD) else None
    if (row.queue, row.state) != (scan.queue, scan.state):
        return None
    if scan.by_queue_age and row.due_ms is not None:
        return None
    if scan.keep_count is not None and (row.keep_count != scan.keep_count or row.state == STALE):
        return None
    return row.ended_ms


def _matches(row: EndedRow, query: EndedQuery) -> bool:
    after_ms, before_ms = query.ended_after_ms, query.ended_before_ms
    return (
        query.queue in ("", row.queue)
        and (not query.states or row.state in query.states)
        and (not query.reasons or row.reason in query.reasons)
        and query.name in (None, row.name)
        and query.error_type in ("", row.error_type)
        and query.error_contains in row.error_message
        and (after_ms is None or row.ended_ms >= after_ms)
        and (before_ms is None or row.ended_ms < before_ms)
        and has_parts(row.blob, query.blob_parts)
    )
