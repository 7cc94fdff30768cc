"""A single job: one that was pushed with its own options, or split off its lot by an event of its
own. All other jobs are members of lots and have no object.
"""

from __future__ import annotations

from typing import NamedTuple

from jobline_server.engine.changes import Bundle
from jobline_server.engine.holder import Holder
from jobline_server.engine.job_log import JobLog
from jobline_server.engine.parents_left import ParentsLeft
from jobline_server.engine.phases import FinishedPhase
from jobline_server.engine.queue import Queue
from jobline_server.engine.records import JobRecord
from jobline_server.engine.reported import reported_bytes
from jobline_server.engine.ties import NO_TIES
from jobline_server.engine.values import Attempt, JobOptions, JobState, LeaseReason


class Reserved(NamedTuple):
    """The session for which a READY job is reserved, and the number of the reservation."""

    session: str
    number: int


NOT_RESERVED = Reserved("", 0)


class Details:
    """Fields that few jobs use, kept apart so that the others stay small."""

    __slots__ = (
        "worker_checkpoint",
        "history",
        "log",
        "phases",
        "progress",
        "progress_message",
        "auto_retries",
        "reserved",
        "times_out",
        "ttl_from_ms",
        "waits_from_ms",
        "parents_left",
        "blocked_until_ms",
    )

    def __init__(self) -> None:
        self.history: tuple[Attempt, ...] = ()
        self.worker_checkpoint = b""
        self.progress = 0.0
        self.progress_message = ""
        # Of a BLOCKED job: the jobs that it still waits for, and when that ends (0: never).
        self.parents_left: ParentsLeft = ()
        self.blocked_until_ms = 0
        self.log: JobLog | None = None
        self.auto_retries = 0
        # Which session has the first claim to it; no fact (`sticky`).
        self.reserved = NOT_RESERVED
        # When a lease times out, in monotonic milliseconds, and its `delivery`; no fact.
        self.times_out = (0, 0)
        # Since when its TTL counts; 0: since its push.
        self.ttl_from_ms = 0
        # Since when it waits, if it came back to its place; 0: since it became READY.
        self.waits_from_ms = 0
        self.phases: tuple[FinishedPhase, ...] = ()

    def report_bytes(self) -> int:
        """Returns the bytes that count towards those of the server."""
        return reported_bytes(self.log, self.phases, self.worker_checkpoint, self.history)


NO_DETAILS = Details()

# Enum attribute access is slow before Python 3.12: it costs more than setting ten fields.
_READY = JobState.READY
_FIRST = LeaseReason.FIRST


class Job:
    """One job that has not ended."""

    __slots__ = (
        # durable
        "id",
        "queue",
        "options",
        "payload",
        "state",
        "pushed_ms",
        "run_at_ms",
        "attempts",
        "stalls",
        "releases",
        "delivery",
        "job_key",
        "ties",
        "order",
        "lease_ms",
        "leased_ms",
        "lease_reason",
        "cancel_requested",
        "details",
        "ready_ms",
        # bookkeeping
        "holder",
        "deadline_ms",
        "offset",
        "volatile",
        "stored",
    )

    def __init__(
        self,
        job_id: int,
        queue: Queue,
        options: JobOptions,
        payload: bytes,
        pushed_ms: int,
        state: JobState = _READY,
    ) -> None:
        self.id = job_id
        self.queue = queue
        self.options = options
        self.payload = payload
        self.state = state
        self.pushed_ms = pushed_ms
        self.run_at_ms = 0
        self.attempts = 0
        self.stalls = 0
        self.releases = 0
        self.delivery = 0
        self.job_key = ""
        self.ties = NO_TIES
        self.order = 0
        self.lease_ms = 0
        self.leased_ms = 0
        self.lease_reason = _FIRST
        self.cancel_requested = False
        self.details = NO_DETAILS
        self.holder: Holder | None = None
        self.deadline_ms = 0
        self.offset = 0
        # When it became READY; 0 if that was its push.
        self.ready_ms = 0
        self.volatile = False
        # Whether it is in a checkpoint: as its own item, or in a bundle.
        self.stored: bool | Bundle = False

    @property
    def reserved_for(self) -> str:
        """Returns the session for which it is reserved; "" for all."""
        return self.details.reserved.session

    @property
    def tenant(self) -> str:
        """The tenant that it belongs to, if its queue is fair."""
        return "" if self.queue.fair is None else self.ties.group

    def is_ready(self) -> bool:
        """Returns whether it is READY."""
        return self.state is _READY

    def reach_ready(self) -> bool:
        """Returns whether it is READY."""
        return self.state is _READY

    def become_stand_in(self) -> None:
        """Is from now on only what a lane keeps in place of a job that was taken out of it: not
        READY, so that the lane skips it, and no job that anybody finds.
        """
        self.state, self.payload = JobState.STALE, b""

    def place(self) -> tuple[int, int]:
        """Returns its sort key among all READY items."""
        return self.order, self.id

    def waits_from_ms(self) -> int:
        """Returns since when it waits, or waited before it was leased."""
        return self.details.waits_from_ms or self.ready_ms or self.pushed_ms

    def note_ready(self, at_ms: int) -> None:
        """Records that it becomes READY, and waits from now on."""
        self.ready_ms = at_ms
        if self.details.waits_from_ms:
            self.details.waits_from_ms = 0

    def note_back(self, at_ms: int) -> None:
        """Records that it becomes READY at its old place: it has not waited in vain."""
        self.writable_details().waits_from_ms = self.waits_from_ms()
        self.ready_ms = at_ms

    def payload_bytes_max(self) -> int:
        """Returns the bytes of its payload."""
        return len(self.payload)

    def renew(self, mono_ms: int) -> None:
        """Gives its lease the full time again."""
        self.deadline_ms = mono_ms + self.lease_ms

    def open_totals(self) -> tuple[int, int]:
        """Returns the totals of a lease of one: 1 job and its payload bytes."""
        return 1, len(self.payload)

    @property
    def slots(self) -> int:
        """Returns how many places of a window it takes."""
        return self.options.rules.slots or 1

    def open_ids(self) -> list[int]:
        """Returns the ids of a lease of one."""
        return [self.id]

    def writable_details(self) -> Details:
        """Returns its details for writing, created if it has none."""
        if self.details is NO_DETAILS:
            self.details = Details()
        return self.details

    def record(self) -> JobRecord:
        """Returns a record of the job, without the fields of its end."""
        return JobRecord(
            id=self.id,
            queue=self.queue.name,
            options=self.options,
            payload=self.payload,
            pushed_ms=self.pushed_ms,
            job_key=self.job_key,
            attempts=self.attempts,
            stalls=self.stalls,
            releases=self.releases,
            delivery=self.delivery,
            history=self.details.history,
            worker_checkpoint=self.details.worker_checkpoint,
            progress=self.details.progress,
            progress_message=self.details.progress_message,
            auto_retries=self.details.auto_retries,
            worker=self.holder.worker if self.holder else "",
            lease_reason=self.lease_reason,
            ties=self.ties,
            log=self.details.log,
            phases=self.details.phases,
        )
