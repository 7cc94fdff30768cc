"""What the tiny server keeps: jobs in dictionaries, leases by delivery, request ids and keys."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection
from dataclasses import dataclass, field

from jobline._push.calls import id_of
from jobline.v1 import job_pb2
from jobline.v1 import job_service_pb2 as pb

READY, SCHEDULED, ACTIVE = (
    job_pb2.JOB_STATE_READY,
    job_pb2.JOB_STATE_SCHEDULED,
    job_pb2.JOB_STATE_ACTIVE,
)
COMPLETED, DEAD = job_pb2.JOB_STATE_COMPLETED, job_pb2.JOB_STATE_DEAD
CANCELLED = job_pb2.JOB_STATE_CANCELLED
DONE, ALREADY_DONE = pb.SETTLE_OUTCOME_DONE, pb.SETTLE_OUTCOME_ALREADY_DONE
LEASE_LOST, NOT_FOUND = pb.SETTLE_OUTCOME_LEASE_LOST, pb.SETTLE_OUTCOME_NOT_FOUND


@dataclass
class Job:
    id: int
    queue: str
    options: job_pb2.JobOptions
    payload: bytes
    job_key: str = ""
    state: int = READY
    delivery: int = 0
    lease_ms: int = 30_000
    attempt: int = 1
    reason: int = job_pb2.LEASE_REASON_FIRST
    checkpoint: bytes = b""
    progress: float = 0.0
    result: bytes = b""
    error: job_pb2.JobError | None = None
    holder: str = ""
    cancel_requested: bool = False
    settled: str = ""
    releases: list[int] = field(default_factory=list)

    @property
    def has_ended(self) -> bool:
        return self.state in {COMPLETED, DEAD, CANCELLED}

    def leased(self) -> job_pb2.LeasedJob:
        return job_pb2.LeasedJob(
            id=self.id,
            delivery=self.delivery,
            queue=self.queue,
            options=self.options,
            payload=self.payload,
            attempt=self.attempt,
            reason=job_pb2.LeaseReason.ValueType(self.reason),
            lease_ms=self.lease_ms,
            checkpoint=self.checkpoint,
            job_key=self.job_key,
        )


def _of_columns(request: pb.PushRequest, index: int) -> job_pb2.NewJob:
    """What the columns say of one payload."""
    new = job_pb2.NewJob(job_key=request.job_keys[index] if request.job_keys else "")
    for column in request.header_columns:
        if column.values[index]:
            new.options.headers[column.key] = column.values[index]
    return new


class Store:
    """All jobs. `changed` is called after anything that somebody may wait for."""

    def __init__(self) -> None:
        self.jobs: dict[int, Job] = {}
        self.ready: dict[str, deque[int]] = {}
        self.changed: Callable[[], None] = lambda: None
        self.room = 1_000_000
        self._answers: dict[str, pb.PushResponse] = {}
        self._keys: dict[tuple[str, str], int] = {}

    def push(self, request: pb.PushRequest) -> pb.PushResponse:
        request_id = id_of(request)
        known = self._answers.get(request_id) if request_id else None
        if known is not None:
            return known
        news = [(job.data or job.text.encode(), job) for job in request.jobs]
        news += [(payload, _of_columns(request, at)) for at, payload in enumerate(request.payloads)]
        response = pb.PushResponse(ack_level=request.ack_level or job_pb2.ACK_LEVEL_FSYNCED)
        for index, (payload, new) in enumerate(news):
            options = job_pb2.JobOptions()
            options.MergeFrom(request.options)
            options.MergeFrom(new.options)
            self._push_one(
                request, response, index, Job(0, request.queue, options, payload, new.job_key)
            )
        if request_id:
            self._answers[request_id] = response
        self.changed()
        return response

    def _push_one(
        self, request: pb.PushRequest, response: pb.PushResponse, index: int, job: Job
    ) -> None:
        first = self._keys.get((job.queue, job.job_key)) if job.job_key else None
        if first is not None:
            same = self.jobs[first].payload == job.payload
            outcome = pb.PUSH_OUTCOME_DUPLICATE if same else pb.PUSH_OUTCOME_REFUSED
            reason = "" if same else "IDEMPOTENCY_MISMATCH"
            response.exceptions.add(
                index=index, outcome=outcome, id=first if same else 0, reason=reason
            )
            return
        job.id = len(self.jobs) + 1
        self.jobs[job.id] = job
        response.first_id = response.first_id or job.id
        response.count += 1
        if job.job_key:
            self._keys[job.queue, job.job_key] = job.id
        if request.HasField("delay"):
            job.state = SCHEDULED
        else:
            self.ready.setdefault(job.queue, deque()).append(job.id)

    def lease(
        self, queues: Collection[str], most: int, holder: str, names: Collection[tuple[str, str]]
    ) -> list[Job]:
        taken: list[Job] = []
        for queue in queues:
            waiting = self.ready.get(queue, deque())
            for _ in range(len(waiting)):
                if len(taken) >= most:
                    break
                job = self.jobs[waiting.popleft()]
                if names and (queue, job.options.name) not in names:
                    waiting.append(job.id)
                    continue
                job.state, job.holder, job.settled = ACTIVE, holder, ""
                job.delivery += 1
                taken.append(job)
        if taken:
            self.changed()
        return taken

    def held_by(self, holder: str) -> list[Job]:
        return [job for job in self.jobs.values() if job.state == ACTIVE and job.holder == holder]

    def _check(self, id_: int, delivery: int, verb: str) -> int:
        job = self.jobs.get(id_)
        if job is None:
            return NOT_FOUND
        if job.state == ACTIVE and job.delivery == delivery:
            return DONE
        same = job.delivery == delivery and job.settled == verb
        return ALREADY_DONE if same else LEASE_LOST

    def ack(self, id_: int, delivery: int, result: bytes = b"") -> int:
        outcome = self._check(id_, delivery, "ack")
        if outcome == DONE:
            job = self.jobs[id_]
            outcome = pb.SETTLE_OUTCOME_CANCELLED if job.cancel_requested else DONE
            self._end(job, CANCELLED if job.cancel_requested else COMPLETED, "ack")
            job.result = result
        return outcome

    def fail(self, item: pb.FailItem) -> pb.FailResult:
        outcome = self._check(item.id, item.delivery, "fail")
        if outcome == DONE:
            job = self.jobs[item.id]
            job.error = item.error
            if item.then == pb.FAIL_ACTION_DEAD or job.attempt >= (job.options.max_attempts or 3):
                self._end(job, DEAD, "fail")
            elif item.then == pb.FAIL_ACTION_CANCEL or job.cancel_requested:
                self._end(job, CANCELLED, "fail")
            else:
                job.attempt += 1
                job.reason = job_pb2.LEASE_REASON_RETRY
                self._wait(job, SCHEDULED if item.HasField("retry_after") else READY, "fail")
        state = self.jobs[item.id].state if item.id in self.jobs else 0
        return pb.FailResult(
            outcome=pb.SettleOutcome.ValueType(outcome), state=job_pb2.JobState.ValueType(state)
        )

    def release(self, item: pb.ReleaseItem) -> int:
        outcome = self._check(item.id, item.delivery, "release")
        if outcome == DONE:
            job = self.jobs[item.id]
            job.releases.append(item.why)
            job.reason = job_pb2.LEASE_REASON_RELEASED
            self._wait(job, SCHEDULED if item.HasField("delay") else READY, "release")
        return outcome

    def extend(self, item: pb.ExtendItem) -> int:
        outcome = self._check(item.id, item.delivery, "")
        if outcome == DONE:
            job = self.jobs[item.id]
            job.progress = item.progress or job.progress
            job.checkpoint = item.checkpoint or job.checkpoint
            self.changed()
            return pb.SETTLE_OUTCOME_CANCELLED if job.cancel_requested else DONE
        return outcome

    def lose(self, job: Job) -> None:
        """Its lease ends, and it is ready for somebody else."""
        job.reason = job_pb2.LEASE_REASON_STALLED
        self._wait(job, READY, "")

    def promote(self) -> None:
        for job in self.jobs.values():
            if job.state == SCHEDULED:
                self._wait(job, READY, job.settled)

    def _end(self, job: Job, state: int, verb: str) -> None:
        job.state, job.settled, job.holder = state, verb, ""
        self.changed()

    def _wait(self, job: Job, state: int, verb: str) -> None:
        job.state, job.settled, job.holder = state, verb, ""
        if state == READY:
            self.ready.setdefault(job.queue, deque()).append(job.id)
        self.changed()
