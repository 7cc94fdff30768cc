"""A lot: jobs pushed together with the same options but for headers and keys, kept as one thing.

    first_id   cursor          length
       |--------|----------------|
        handed    waits            payloads[i] belongs to id first_id + i
        out

Left of the cursor, open run leases tell what is not settled yet; what no lease covers has ended or
has become a `Job` of its own. Right of the cursor jobs wait, but for those in `holes`. A lot goes
when nothing of it is left.
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
# Most lots never have a hole, and an empty set is larger than a small lot.
_NONE: frozenset[int] = frozenset()


class RunLease:
    """A lease on neighbours of one lot: indexes `start … start + count − 1`. `settled[i]` is 1
    where index `start + i` is settled; it is None while none is. `later` holds the ends of jobs
    that were extended beyond `deadline_ms`, by index.
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
        "remaining",
        "settled",
        "start",
    )

    def __init__(
        self, lot: Lot, start: int, count: int, *, delivery: int, holder: Holder, lease_ms: int
    ) -> None:
        self.lot = lot
        self.start = start
        self.count = count
        self.delivery = delivery
        self.holder = holder
        self.lease_ms = lease_ms
        self.leased_ms = self.deadline_ms = 0
        self.later: dict[int, int] = {}
        self.settled: bytearray | None = None
        self.remaining = count

    def is_open(self, index: int) -> bool:
        """Whether the job at this index of the lot is still leased."""
        return self.settled is None or not self.settled[index - self.start]

    def open_run(self, index: int, most: int) -> int:
        """How many neighbours from `index` on are still leased, at most `most`."""
        most = min(most, self.start + self.count - index)
        if self.settled is None:
            return most
        at = self.settled.find(1, index - self.start, index - self.start + most)
        return most if at < 0 else at - (index - self.start)

    def settle(self, index: int, count: int) -> None:
        """Marks neighbours as settled; the caller has seen that they are open."""
        self.remaining -= count
        if not self.remaining:
            return
        if self.settled is None:
            self.settled = bytearray(self.count)
        at = index - self.start
        self.settled[at : at + count] = b"\x01" * count

    def settle_runs(self, starts: list[int], counts: list[int]) -> int:
        """Marks runs of ids within this lease as settled, and says how many jobs that are; raises
        `IllegalMove`, with nothing changed, if one of them was settled before."""
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
        """When the lease on the job at this index ends."""
        return self.later.get(index, self.deadline_ms)

    def extend(self, index: int, until_ms: int) -> None:
        """The lease on the job at this index does not end before `until_ms`."""
        if until_ms > self.ends_ms(index):
            self.later[index] = until_ms
        if len(self.later) >= self.remaining:
            self.fold()

    def fold(self) -> None:
        """Forgets the ends of what is settled, and those that all open jobs have reached."""
        later = {index: self.ends_ms(index) for index in self.open_indexes()}
        self.deadline_ms = min(later.values())
        self.later = {index: ms for index, ms in later.items() if ms > self.deadline_ms}

    def renew(self, mono_ms: int) -> None:
        """Every job has its full time again."""
        self.deadline_ms = mono_ms + self.lease_ms
        self.later = {}

    def unfinished(self) -> tuple[int, int]:
        """Jobs and payload bytes that are still leased."""
        payloads = self.lot.payloads
        if (each := payloads.bytes_each) >= 0:
            return self.remaining, self.remaining * each
        return self.remaining, sum([payloads.bytes_of(index, 1) for index in self.open_indexes()])

    def open_ids(self) -> list[int]:
        """Ids that are still leased."""
        return [self.lot.first_id + index for index in self.open_indexes()]

    def open_indexes(self) -> list[int]:
        """Indexes of the lot that are still leased."""
        if self.settled is None:
            return list(range(self.start, self.start + self.count))
        return [self.start + i for i, done in enumerate(self.settled) if not done]


class Lot:
    """Jobs `first_id … first_id + len(payloads) − 1`."""

    __slots__ = (
        # what is kept on disk
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
        # bookkeeping
        "state",
        "offset",
        "ready_ms",
        "remaining",
        "volatile",
        "stored",
        "apart",
    )

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
        self.queue = queue
        self.options = options
        self.payloads = payloads
        self.pushed_ms = pushed_ms
        self.run_at_ms = run_at_ms
        self.order = self.cursor = 0
        self.holes: set[int] | frozenset[int] = _NONE
        self.leases: list[RunLease] = []
        # Of those of its jobs that wait.
        self.state = JobState.SCHEDULED if run_at_ms else JobState.READY
        self.offset = 0
        # When its time had come; 0 if it never waited for one, or did before a restart.
        self.ready_ms = 0
        self.remaining = len(payloads)
        self.volatile = self.stored = False
        # The first index in the item that a checkpoint keeps its payloads in, if there is one.
        self.apart: int | None = None

    def bytes_of_runs(self, starts: list[int], counts: list[int]) -> int:
        """Payload bytes of runs of ids."""
        payloads, first_id = self.payloads, self.first_id
        if (each := payloads.bytes_each) >= 0:
            return sum(counts) * each
        runs = zip(starts, counts, strict=True)
        return sum([payloads.bytes_of(start - first_id, count) for start, count in runs])

    def bytes_left(self) -> int:
        """Payload bytes of the members that are still part of it."""
        payloads, cursor = self.payloads, self.cursor
        waiting = payloads.bytes_of(cursor, len(payloads) - cursor)
        holes = sum([payloads.bytes_of(index, 1) for index in self.holes])
        return waiting - holes + sum([lease.unfinished()[1] for lease in self.leases])

    def end_id(self) -> int:
        """One past the last id."""
        return self.first_id + len(self.payloads)

    def waiting(self) -> int:
        """How many jobs have not been handed out."""
        return len(self.payloads) - self.cursor - len(self.holes)

    def is_ready(self) -> bool:
        """Whether any of its jobs waits to be handed out; asked only of lots in a lane."""
        return self.waiting() > 0

    def remove(self, index: int, count: int = 1) -> None:
        """Takes neighbours that wait out of the lot."""
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
        """Where it stands among all that are ready; behind those that were taken off its head."""
        return self.order, self.first_id + self.cursor

    def payload_bytes_max(self) -> int:
        """Bytes of its largest payload."""
        return self.payloads.bytes_max

    def waiting_run_from(self, index: int, most: int) -> tuple[int, int]:
        """The first neighbours that wait at or after `index`, which is not before the cursor: their
        index and how many they are, at most `most`, 0 if none wait."""
        end, holes = len(self.payloads), self.holes
        if not holes:
            return index, min(most, end - index)
        while index in holes:
            index += 1
        stop, end = index, min(index + most, end)
        while stop < end and stop not in holes:
            stop += 1
        return index, stop - index

    def waiting_runs(self) -> list[tuple[int, int]]:
        """What waits, as runs of ids: first id and number of each."""
        runs: list[tuple[int, int]] = []
        index, count = self.waiting_run_from(self.cursor, len(self.payloads))
        while count:
            runs.append((self.first_id + index, count))
            index, count = self.waiting_run_from(index + count, len(self.payloads))
        return runs

    def live_runs(self) -> list[tuple[int, int]]:
        """All that has not ended, as runs of ids."""
        leased = [(job_id, 1) for lease in self.leases for job_id in lease.open_ids()]
        return leased + self.waiting_runs()

    def lease_at(self, index: int) -> RunLease | None:
        """The lease that covers this index, settled or not, if it is not settled as a whole."""
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
        """Forgets a lease that is settled as a whole."""
        at = bisect_right(self.leases, lease.start, key=_start_of) - 1
        del self.leases[at]

    def is_waiting(self, index: int) -> bool:
        """Whether the job at this index waits in the lot."""
        return index >= self.cursor and index not in self.holes
