"""A job as an object of its own: one that something happened to alone, or that was pushed with
something of its own. All others live in lots and have no object.
"""

from __future__ import annotations

from jobline_server.engine.changes import Bundle
from jobline_server.engine.holder import Holder
from jobline_server.engine.queue import Queue
from jobline_server.engine.records import JobRecord
from jobline_server.engine.values import Attempt, JobOptions, JobState, LeaseReason


class Details:
    """What few jobs have; most hold none, so that a plain one stays small."""

    __slots__ = ("worker_checkpoint", "history", "progress", "progress_message")

    def __init__(self) -> None:
        self.history: tuple[Attempt, ...] = ()
        self.worker_checkpoint = b""
        self.progress = 0.0
        self.progress_message = ""


NO_DETAILS = Details()

# Looking a member up on its enum costs more than setting ten fields (before Python 3.12).
_READY = JobState.READY
_FIRST = LeaseReason.FIRST


class Job:
    """One job that has not ended."""

    __slots__ = (
        # what is kept on disk
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
        "order",
        "lease_ms",
        "leased_ms",
        "lease_reason",
        "cancel_requested",
        "details",
        # bookkeeping
        "holder",
        "deadline_ms",
        "offset",
        "ready_ms",
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
        self.order = 0
        self.lease_ms = 0
        self.leased_ms = 0
        self.lease_reason = _FIRST
        self.cancel_requested = False
        self.details = NO_DETAILS
        self.holder: Holder | None = None
        self.deadline_ms = 0
        self.offset = 0
        # When it became READY again; 0 if it has been since its push, or did before a restart.
        self.ready_ms = 0
        self.volatile = False
        # Whether it is in a checkpoint: as an item of its own, or as one of a bundle.
        self.stored: bool | Bundle = False

    def is_ready(self) -> bool:
        """Whether it may be handed out."""
        return self.state is _READY

    def reach_ready(self) -> bool:
        """Whether it may be handed out."""
        return self.state is _READY

    def place(self) -> tuple[int, int]:
        """Where it stands among all that are ready."""
        return self.order, self.id

    def payload_bytes_max(self) -> int:
        """Bytes of its payload."""
        return len(self.payload)

    def renew(self, mono_ms: int) -> None:
        """Gives its lease the full time again."""
        self.deadline_ms = mono_ms + self.lease_ms

    def unfinished(self) -> tuple[int, int]:
        """Itself and its payload bytes, as a lease of one."""
        return 1, len(self.payload)

    def open_ids(self) -> list[int]:
        """Its id, as a lease of one."""
        return [self.id]

    def own_details(self) -> Details:
        """Details that may be written to."""
        if self.details is NO_DETAILS:
            self.details = Details()
        return self.details

    def record(self) -> JobRecord:
        """The job as it is written down whole."""
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
            worker=self.holder.worker if self.holder else "",
            lease_reason=self.lease_reason,
        )
