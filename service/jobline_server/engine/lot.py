"""A lot: jobs pushed together with the same options except headers and keys, kept as one object.

    first_id   cursor          length
       |--------|----------------|
        leased    waiting          payloads[i] belongs to id first_id + i

Left of the cursor, jobs are active if a run lease covers them and has not settled them; all others
have ended or are single jobs now. Right of the cursor, jobs wait, except those in `holes`. A lot
without jobs is removed.
"""

from __future__ import annotations

from bisect import bisect_right
from operator import attrgetter

from jobline_server.engine.holder import Holder
from jobline_server.engine.payloads import Payloads
from jobline_server.engine.queue import Queue
from jobline_server.engine.states import IllegalMove
from jobline_server.engine.values import JobOptions, JobState

_start_of = attrgetter("start")
_NONE: frozenset[int] = frozenset()  # most lots have no hole, and a set is larger than a small lot


class RunLease:
    """A lease on a run of one lot: indexes `start … start + count − 1`. `settled` (None: none is)
    has a 1 at i if index `start + i` is settled. `later`: ends after `deadline_ms`, by index.
    """

    __slots__ = (
        "count",
        "deadline_ms",
        "delivery",
        "holder",
        "later",
        "lease_ms",
        "leased_ms",
        "lot",
        "queue",
        "remaining",
        "settled",
        "slots",
        "start",
        "times_out_ms",
    )

    def __init__(
        self, lot: Lot, start: int, count: int, *, delivery: int, holder: Holder, lease_ms: int
    ) -> None:
        self.lot, self.queue = lot, lot.queue
        self.start, self.count = start, count
        self.delivery, self.holder = delivery, holder
        self.lease_ms, self.slots = lease_ms, lot.options.rules.slots or 1
        self.leased_ms = self.deadline_ms = self.times_out_ms = 0
        self.later: dict[int, int] = {}
        self.settled: bytearray | None = None
        self.remaining = count

    def is_open(self, index: int) -> bool:
        """Returns whether the job at this index of the lot is still leased."""
        return self.settled is None or not self.settled[index - self.start]

    def open_run(self, index: int, limit: int) -> int:
        """Returns how many neighbours from `index` on are still leased, up to `limit`."""
        limit = min(limit, self.start + self.count - index)
        if self.settled is None:
            return limit
        at = self.settled.find(1, index - self.start, index - self.start + limit)
        return limit if at < 0 else at - (index - self.start)

    def settle(self, index: int, count: int) -> None:
        """Marks neighbours as settled; the caller has checked that they are open."""
        self.remaining -= count
        if not self.remaining:
            return
        if self.settled is None:
            self.settled = bytearray(self.count)
        at = index - self.start
        self.settled[at : at + count] = b"\x01" * count

    def settle_runs(self, starts: list[int], counts: list[int]) -> int:
        """Settles open jobs and returns their number; raises `IllegalMove` if any is not open."""
        base = self.lot.first_id + self.start
        if len(starts) == 1:
            index, count = starts[0] - self.lot.first_id, counts[0]
            if self.open_run(index, count) < count:
                raise IllegalMove(f"jobs from {starts[0]} on are not leased")
            self.settle(index, count)
            return count
        settled = bytearray(self.count) if self.settled is None else self.settled[:]
        before = self.count - self.remaining
        total = sum(counts)
        if total == len(starts):
            for first_id in starts:
                settled[first_id - base] = 1
        else:
            for first_id, count in zip(starts, counts, strict=True):
                settled[first_id - base : first_id - base + count] = b"\x01" * count
        if settled.count(1) != before + total:
            raise IllegalMove(f"jobs from {starts[0]} on are not leased")
        self.settled = settled
        self.remaining -= total
        return total

    def ends_ms(self, index: int) -> int:
        """Returns when the lease on the job at this index ends."""
        return self.later.get(index, self.deadline_ms)

    def extend(self, index: int, until_ms: int) -> None:
        """Extends the lease on the job at this index to `until_ms`; never shortens it."""
        if until_ms > self.ends_ms(index):
            self.later[index] = until_ms
        if len(self.later) >= self.remaining:
            self.fold()

    def fold(self) -> None:
        """Raises `deadline_ms` to the earliest end of the open jobs, and prunes `later`."""
        later = {index: self.ends_ms(index) for index in self.open_indexes()}
        self.deadline_ms = min(later.values())
        self.later = {index: ms for index, ms in later.items() if ms > self.deadline_ms}

    def renew(self, mono_ms: int) -> None:
        """Gives every job its full time again."""
        self.deadline_ms = mono_ms + self.lease_ms
        self.later = {}

    def open_totals(self) -> tuple[int, int]:
        """Returns the number of jobs that are still leased, and their payload bytes."""
        payloads = self.lot.payloads
        if (each := payloads.bytes_each) >= 0:
            return self.remaining, self.remaining * each
        return self.remaining, sum([payloads.bytes_of(index, 1) for index in self.open_indexes()])

    def open_ids(self) -> list[int]:
        """Returns the ids that are still leased."""
        return [self.lot.first_id + index for index in self.open_indexes()]

    def open_indexes(self) -> list[int]:
        """Returns the indexes of the lot that are still leased."""
        if self.settled is None:
            return list(range(self.start, self.start + self.count))
        return [self.start + i for i, is_settled in enumerate(self.settled) if not is_settled]


class Lot:
    """Jobs `first_id … first_id + len(payloads) − 1`."""

    __slots__ = (
        # durable
        "first_id",
        "queue",
        "options",
        "payloads",
        "pushed_ms",
        "run_at_ms",
        "order",
        "cursor",
        "holes",
        "leases",
        "ready_ms",
        # bookkeeping
        "state",
        "offset",
        "remaining",
        "volatile",
        "stored",
        "apart",
    )
    reserved_for = tenant = ""  # no session (`sticky`), and no group

    def __init__(
        self,
        first_id: int,
        queue: Queue,
        options: JobOptions,
        payloads: Payloads,
        *,
        pushed_ms: int,
        run_at_ms: int,
    ) -> None:
        self.first_id = first_id
        self.queue, self.options = queue, options
        self.payloads = payloads
        self.pushed_ms, self.run_at_ms = pushed_ms, run_at_ms
        self.order = self.cursor = 0
        self.holes: set[int] | frozenset[int] = _NONE
        self.leases: list[RunLease] = []
        # The state of its waiting jobs.
        self.state = JobState.SCHEDULED if run_at_ms else JobState.READY
        self.offset = 0
        # When it became READY at its time; 0 if that was its push.
        self.ready_ms = 0
        self.remaining = len(payloads)
        self.volatile = self.stored = False
        # The first index in the item of its payloads in the checkpoint; None if it has none.
        self.apart: int | None = None

    def bytes_of_runs(self, starts: list[int], counts: list[int]) -> int:
        """Returns the payload bytes of runs of ids."""
        payloads, first_id = self.payloads, self.first_id
        if (each := payloads.bytes_each) >= 0:
            return sum(counts) * each
        runs = zip(starts, counts, strict=True)
        return sum([payloads.bytes_of(start - first_id, count) for start, count in runs])

    def bytes_left(self) -> int:
        """Returns the payload bytes of the members that are waiting or leased."""
        payloads, cursor = self.payloads, self.cursor
        waiting = payloads.bytes_of(cursor, len(payloads) - cursor)
        holes = sum([payloads.bytes_of(index, 1) for index in self.holes])
        return waiting - holes + sum([lease.open_totals()[1] for lease in self.leases])

    def end_id(self) -> int:
        """Returns the id after the last one."""
        return self.first_id + len(self.payloads)

    def waiting(self) -> int:
        """Returns the number of waiting jobs."""
        return len(self.payloads) - self.cursor - len(self.holes)

    def is_ready(self) -> bool:
        """Returns whether any of its jobs waits; call it only for lots in a lane."""
        return self.waiting() > 0

    def remove(self, index: int, count: int = 1) -> None:
        """Removes waiting neighbours from the lot."""
        self.holes = {*self.holes} if isinstance(self.holes, frozenset) else self.holes
        self.holes.update(range(index, index + count))

    def reach_ready(self) -> bool:
        """Moves the cursor past holes; returns whether a job waits there."""
        holes = self.holes
        if holes:
            while self.cursor in holes:
                holes -= {self.cursor}
                self.cursor += 1
            self.holes = holes or _NONE
        return self.cursor < len(self.payloads)

    def place(self) -> tuple[int, int]:
        """Returns its sort key among all READY items, after single jobs split off its head."""
        return self.order, self.first_id + self.cursor

    def waits_from_ms(self) -> int:
        """Returns since when its waiting jobs are READY."""
        return self.ready_ms or self.pushed_ms

    def payload_bytes_max(self) -> int:
        """Returns the bytes of its largest payload."""
        return self.payloads.bytes_max

    def waiting_run_from(self, index: int, limit: int) -> tuple[int, int]:
        """Returns index and number of jobs, up to `limit`, of the first waiting run from `index`
        on, which is not before the cursor; 0 jobs if none wait.
        """
        end, holes = len(self.payloads), self.holes
        if not holes:
            return index, min(limit, end - index)
        while index in holes:
            index += 1
        stop, end = index, min(index + limit, end)
        while stop < end and stop not in holes:
            stop += 1
        return index, stop - index

    def waiting_runs(self) -> list[tuple[int, int]]:
        """Returns the waiting jobs as runs of ids: first id and number of jobs."""
        runs: list[tuple[int, int]] = []
        index, count = self.waiting_run_from(self.cursor, len(self.payloads))
        while count:
            runs.append((self.first_id + index, count))
            index, count = self.waiting_run_from(index + count, len(self.payloads))
        return runs

    def live_runs(self) -> list[tuple[int, int]]:
        """Returns the waiting and leased jobs as runs of ids."""
        leased = [(job_id, 1) for lease in self.leases for job_id in lease.open_ids()]
        return leased + self.waiting_runs()

    def lease_at(self, index: int) -> RunLease | None:
        """Returns the lease that covers this index, which may be settled there; None without."""
        leases = self.leases
        if len(leases) == 1:
            lease = leases[0]
        else:
            at = bisect_right(leases, index, key=_start_of)
            if not at:
                return None
            lease = leases[at - 1]
        return lease if lease.start <= index < lease.start + lease.count else None

    def drop_lease(self, lease: RunLease) -> None:
        """Removes a lease that is completely settled."""
        del self.leases[bisect_right(self.leases, lease.start, key=_start_of) - 1]

    def is_waiting(self, index: int) -> bool:
        """Returns whether the job at this index waits in the lot."""
        return index >= self.cursor and index not in self.holes
