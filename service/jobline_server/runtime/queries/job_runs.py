"""Runs of jobs: neighbours of a lot, or of a row of the ended store, that are shown as one.

A list of a million plain jobs makes a view for each run of them, not for each job: their payloads
stay the block of bytes that they were pushed as.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from jobline_server.engine.lot import Lot, RunLease
from jobline_server.engine.payloads import Payloads
from jobline_server.runtime.clock import Clock
from jobline_server.runtime.ended.ended_jobs import kept_of, view_of
from jobline_server.runtime.job_views import in_lot
from jobline_server.runtime.queries.paging import FIXED_BYTES, ID_BYTES, shown_bytes
from jobline_server.runtime.views import JobFilter, JobView
from jobline_server.storage.codec import run_of
from jobline_server.storage.ended_store import EndedPart


@dataclass(frozen=True, slots=True)
class JobRun:
    """Jobs `first_id … first_id + count - 1`; what each has of its own begins at index `start` of
    `payloads`. `shared` is the view of any of them, without that. `ended_ms` and `lease_until_ms`
    are of each job, or empty where `shared` says it for all.
    """

    shared: JobView
    first_id: int
    count: int
    payloads: Payloads
    start: int
    ended_ms: Sequence[int] = ()
    lease_until_ms: Sequence[int] = ()

    @property
    def end_id(self) -> int:
        """Returns the id after the last one."""
        return self.first_id + self.count

    def part(self, first_id: int, count: int) -> JobRun:
        """Returns some of the jobs."""
        if count == self.count:
            return self
        at = first_id - self.first_id
        return replace(
            self,
            first_id=first_id,
            count=count,
            start=self.start + at,
            ended_ms=self.ended_ms[at : at + count],
            lease_until_ms=self.lease_until_ms[at : at + count],
        )

    def shown_bytes(self, count: int, *, with_payloads: bool) -> int:
        """Returns about how many bytes the first `count` jobs take in a message."""
        size = FIXED_BYTES + shown_bytes(self.shared)
        payloads = self.payloads
        if with_payloads:
            size += payloads.block_bytes_of(self.start, count)
        elif not payloads.is_even:
            size += count * ID_BYTES
        if payloads.columns is not None:
            size += payloads.columns.bytes_of(self.start, count)
        return size + count * ID_BYTES * (bool(self.ended_ms) + bool(self.lease_until_ms))

    def fitting(self, room_bytes: int, *, with_payloads: bool) -> int:
        """Returns how many of the first jobs fit into `room_bytes`."""

        def size(count: int) -> int:
            return self.shown_bytes(count, with_payloads=with_payloads)

        if size(self.count) <= room_bytes:
            return self.count
        return max(bisect_right(range(self.count + 1), room_bytes, key=size) - 1, 0)


def runs_in_lot(lot: Lot, members: range, clock: Clock) -> Iterator[JobRun]:
    """Yields the live jobs among some members of a lot, in order."""
    for lease in lot.leases:
        for index, count in _open_runs(lease, members):
            yield _leased(lot, lease, index, count, clock)
    index = max(members.start, lot.cursor)
    while index < members.stop:
        index, count = lot.waiting_run_from(index, members.stop - index)
        if not count:
            return
        shared = _shared(lot, index, clock)
        yield JobRun(shared, lot.first_id + index, count, lot.payloads, index)
        index += count


def is_run_decided(payloads: Payloads, wanted: JobFilter) -> bool:
    """Returns whether a filter wants all jobs with these payloads, or none: not if it asks for
    headers that each has of its own.
    """
    columns = payloads.columns
    return columns is None or not any(name in columns.header_keys for name, _ in wanted.headers)


def ended_run(part: EndedPart) -> JobRun:
    """Returns the jobs of a part whose row has several."""
    row = part.row
    record, payloads, ended_ms = run_of(row)
    shared = view_of(kept_of(row, record))
    shared.payload_bytes = payloads.bytes_max if payloads.is_even else 0
    run = JobRun(shared, row.first_id, row.count, payloads, 0, ended_ms)
    return run.part(part.first_id, part.count)


def _open_runs(lease: RunLease, members: range) -> Iterator[tuple[int, int]]:
    """Yields index and number of those among some members that are leased and not settled."""
    index = max(lease.start, members.start)
    stop = min(lease.start + lease.count, members.stop)
    while index < stop:
        count = lease.open_run(index, stop - index)
        if count:
            yield index, count
            index += count
        if lease.settled is None or index >= stop:
            return
        at = lease.settled.find(0, index - lease.start, stop - lease.start)
        if at < 0:
            return
        index = lease.start + at


def _leased(lot: Lot, lease: RunLease, index: int, count: int, clock: Clock) -> JobRun:
    until_ms: list[int] = []
    if lease.later:
        holder = lease.holder
        until_ms = [
            clock.wall_at(holder.ends_ms(lease, lease.ends_ms(at)))
            for at in range(index, index + count)
        ]
    shared = _shared(lot, index, clock)
    return JobRun(shared, lot.first_id + index, count, lot.payloads, index, (), until_ms)


def _shared(lot: Lot, index: int, clock: Clock) -> JobView:
    """Returns the view of a live member without what it has of its own."""
    view = in_lot(lot, index, clock)
    if view is None:
        raise AssertionError(f"member {index} of the lot {lot.first_id} is not live")
    view.options, view.payload, view.job_key = lot.options, b"", ""
    view.payload_bytes = lot.payloads.bytes_max if lot.payloads.is_even else 0
    return view
