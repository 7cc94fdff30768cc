"""A shard with a clock that is turned by hand, and short words for what is done to it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from jobline_server.engine import invariants
from jobline_server.engine.commands import (
    ExtendItem,
    FailItem,
    FailResult,
    Leased,
    LeasedJob,
    NotDone,
    Push,
    Pushed,
    ReleaseItem,
)
from jobline_server.engine.decide import timers
from jobline_server.engine.decide.ack import decide_ack
from jobline_server.engine.decide.lease import decide_lease
from jobline_server.engine.decide.outcomes import NO_OUTCOMES, Outcomes
from jobline_server.engine.decide.push import decide_push
from jobline_server.engine.decide.queues import decide_update_queue
from jobline_server.engine.decide.settle import decide_extend, decide_fail, decide_release
from jobline_server.engine.endings import Ending, JobsEnded, RunsEnded
from jobline_server.engine.entries import Fact, JobsLeased
from jobline_server.engine.holder import Holder
from jobline_server.engine.load import Load
from jobline_server.engine.queue import Queue
from jobline_server.engine.records import JobRecord
from jobline_server.engine.shard import Shard
from jobline_server.engine.values import (
    DEFAULT_OPTIONS,
    AckLevel,
    JobError,
    JobOptions,
    JobState,
    Now,
    QueueSettings,
)
from tests.pushed_payloads import NO_HEADERS, payloads_of
from tests.pushed_rows import NewJob, rows_of
from tests.unit.engine.effects_of import take_endings

WALL_MS = 1_800_000_000_000
MONO_MS = 1_000_000
EPOCH = 7
FIRST_DELIVERY = EPOCH << 20 | 1
ERROR = JobError("ValueError", "no such file")


class World:
    """One shard, and the time."""

    def __init__(self, load: Load | None = None) -> None:
        self.shard = Shard(1, epoch=EPOCH, load=load or Load())
        self.now = Now(WALL_MS, MONO_MS)
        self.journal: list[tuple[int, Fact]] = []

    # Time and the disk.

    def advance(self, ms: int) -> None:
        """Both clocks go on."""
        self.now = Now(self.now.wall_ms + ms, self.now.mono_ms + ms)

    def tick(self, ms: int = 0) -> bool:
        """Time goes on, what is due is done; says whether more is due."""
        self.advance(ms)
        more = timers.tick(self.shard, self.now)
        self.commit()
        return more

    def commit(self) -> list[Fact]:
        """All that was decided is on disk."""
        offset = self.shard.next_offset
        facts = self.shard.take_entries()
        self.journal += [(offset, fact) for fact in facts]
        self.shard.committed = self.shard.next_offset - 1
        return facts

    def recovered(self) -> Shard:
        """Another shard, made from what was committed."""
        shard = Shard(1, epoch=EPOCH + 1, load=Load())
        for offset, fact in self.journal:
            # A fact that comes from the disk knows no holder.
            forgotten = replace(fact, holder=None) if isinstance(fact, JobsLeased) else fact
            shard.replay(forgotten, offset)
        return shard

    def check(self) -> None:
        """Every invariant holds."""
        invariants.check(self.shard)

    # Producers.

    def plain(self, *payloads: bytes, queue: str = "q", **rest: Any) -> Pushed:
        """Pushes and commits plain jobs."""
        return self.push(queue=queue, payloads=payloads, **rest)

    def row(
        self,
        payload: bytes = b"x",
        *,
        queue: str = "q",
        key: str = "",
        delay_ms: int = 0,
        level: AckLevel | None = None,
        **options: Any,
    ) -> int:
        """Pushes and commits one job with something of its own; returns its id."""
        run_at_ms = self.now.wall_ms + delay_ms if delay_ms else 0
        job = NewJob(payload, replace(DEFAULT_OPTIONS, **options), key, run_at_ms)
        return self.push(queue=queue, jobs=[job], level=level).first_id

    def push(
        self,
        *,
        queue: str = "q",
        jobs: Sequence[NewJob] = (),
        payloads: Iterable[bytes] = (),
        headers: Mapping[str, Sequence[str]] = NO_HEADERS,
        job_keys: Sequence[str] = (),
        delay_ms: int = 0,
        options: JobOptions = DEFAULT_OPTIONS,
        outcomes: Outcomes = NO_OUTCOMES,
        **rest: Any,
    ) -> Pushed:
        """Pushes and commits."""
        run_at_ms = self.now.wall_ms + delay_ms if delay_ms else 0
        block = payloads_of(list(payloads), headers, job_keys)
        command = Push(queue, options, rows_of(jobs), block, run_at_ms, **rest)
        pushed = decide_push(self.shard, self.now, command, outcomes)
        self.commit()
        return pushed

    # Consumers.

    def session(self, name: str = "w1") -> Holder:
        """The holder of a connected worker."""
        holder = self.shard.clocks.holder_of(f"session of {name}", name)
        holder.last_seen_ms = self.now.mono_ms
        return holder

    def lease(
        self,
        most: int = 100,
        *,
        holder: Holder | None = None,
        queue: str = "q",
        names: frozenset[str] | None = None,
        lease_ms: int = 0,
        max_bytes: int = 1 << 30,
    ) -> Leased:
        """Leases and commits, for a pull if no holder is given."""
        holder = holder or Holder("w1", "")
        leased = decide_lease(
            self.shard,
            self.now,
            self.shard.queues[queue],
            holder,
            max_jobs=most,
            max_bytes=max_bytes,
            names=names,
            lease_ms=lease_ms,
        )
        self.shard.clocks.arm(holder)
        self.commit()
        return leased

    def one(self, **rest: Any) -> LeasedJob:
        """Leases one job that is an object of its own."""
        return self.lease(1, **rest).jobs[0]

    def ids(self, most: int = 100, **rest: Any) -> list[int]:
        """Leases, and says which jobs came in which order."""
        return [job_id for job_id, _ in leases_of(self.lease(most, **rest))]

    def ack(
        self, leases: Iterable[tuple[int, int]], results: Mapping[int, bytes] | None = None
    ) -> NotDone:
        """Acks (id, delivery) pairs and commits."""
        pairs = list(leases)
        ids, deliveries = [job_id for job_id, _ in pairs], [delivery for _, delivery in pairs]
        exceptions = decide_ack(self.shard, self.now, ids, deliveries, results or {})
        self.commit()
        return exceptions

    def fail(self, job_id: int, delivery: int, **rest: Any) -> FailResult:
        """Fails one job and commits."""
        item = FailItem(job_id, delivery, ERROR)
        result = decide_fail(self.shard, self.now, [replace(item, **rest)])[0]
        self.commit()
        return result

    def release(self, *items: ReleaseItem) -> NotDone:
        """Gives jobs back and commits."""
        exceptions = decide_release(self.shard, self.now, list(items))
        self.commit()
        return exceptions

    def extend(self, *items: ExtendItem) -> NotDone:
        """Extends leases and commits."""
        exceptions = decide_extend(self.shard, self.now, list(items))
        self.commit()
        return exceptions

    # Looking.

    def settings(self, queue: str = "q", **settings: Any) -> None:
        """The queue has these settings and no others."""
        wanted = QueueSettings(**settings)
        decide_update_queue(self.shard, self.now, queue, wanted, None)
        self.commit()

    def queue(self, name: str = "q") -> Queue:
        return self.shard.queues[name]

    def state(self, job_id: int) -> JobState | None:
        return self.shard.state_of(job_id)

    def counts(self, queue: str = "q") -> tuple[int, int, int]:
        """Jobs of a queue that are scheduled, ready and active."""
        counts = self.shard.queues[queue].counts
        return counts[JobState.SCHEDULED], counts[JobState.READY], counts[JobState.ACTIVE]

    def ended(self) -> dict[int, tuple[JobState, JobRecord]]:
        """What ended since this was asked last, as the ended store would keep it."""
        return {
            record.id: (state, record)
            for ending in take_endings(self.shard)
            for state, record in records_of(ending)
        }


def leases_of(leased: Leased) -> list[tuple[int, int]]:
    """(id, delivery) in the order of the hand-out."""
    found: list[tuple[int, int]] = []
    for item in leased.items():
        if isinstance(item, LeasedJob):
            found.append((item.id, item.delivery))
        else:
            ids = range(item.first_id, item.first_id + len(item.payloads))
            found += [(job_id, item.delivery) for job_id in ids]
    return found


def records_of(ending: Ending) -> list[tuple[JobState, JobRecord]]:
    """The jobs that an ending tells of, whole."""
    if isinstance(ending, JobsEnded):
        return [(ending.state, ending.record(job)) for job in ending.jobs]
    if isinstance(ending, RunsEnded):
        return [(ending.state, record) for record in _records_of_runs(ending)]
    return []


def _records_of_runs(ended: RunsEnded) -> list[JobRecord]:
    lot = ended.lot
    return [
        JobRecord(
            id=first_id + index,
            queue=lot.queue.name,
            options=lot.payloads.options_of(first_id + index - lot.first_id, lot.options),
            payload=payload,
            pushed_ms=lot.pushed_ms,
            job_key=lot.payloads.job_key_of(first_id + index - lot.first_id),
            delivery=ended.delivery,
            worker=ended.worker,
            ended_ms=ended.ended_ms,
            reason=ended.reason,
        )
        for first_id, count in zip(ended.starts, ended.counts, strict=True)
        for index, payload in enumerate(ended.payloads(first_id, count))
    ]
