"""The jobs of the reference model, and how they move from one state to another."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from jobline_server.engine.dependencies import END_OF_STATE, ParentEnd
from jobline_server.engine.rules import DependencyPolicy
from jobline_server.engine.values import EndReason, JobState, Now, QueueSettings, SettleOutcome
from tests.unit.engine.reference_ageing import by_age
from tests.unit.engine.reference_fair import ModelFairness
from tests.unit.engine.reference_groups import GroupsOfModel, ModelGroups
from tests.unit.engine.reference_jobs import (
    Consumer,
    Key,
    ModelJob,
    ModelProducer,
    Request,
    is_kept,
    may_have,
    retry_ms,
)
from tests.unit.engine.reference_limits import ModelLimiters, ModelQueue
from tests.unit.engine.reference_sticky import ModelSticky
from tests.unit.engine.reference_unique import Keys

S, Out = JobState, SettleOutcome
WAITING = (S.SCHEDULED, S.BLOCKED, S.READY)


class ReferenceState(GroupsOfModel):
    """All jobs that ever were; `wall_ms` and `mono_ms` are set by the test."""

    def __init__(self, first_delivery: int) -> None:
        self.first_delivery = first_delivery
        self.wall_ms = self.mono_ms = 0
        self.jobs: dict[int, ModelJob] = {}
        self.queues: dict[str, ModelQueue] = {}
        self.keys: dict[tuple[str, str], Key] = {}
        self.requests: dict[tuple[str, bytes], Request] = {}
        self.producers: dict[tuple[bytes, bool], ModelProducer] = {}
        self.ends: dict[int, ParentEnd] = {}
        self.failing: list[tuple[ModelJob, DependencyPolicy]] = []
        self.offset = 1
        self.committed = 0
        self._tail = self._front = 0
        self.groups = ModelGroups(self.settings)
        self.unique = Keys()
        self.freed: list[tuple[bool, int]] = []
        self.superseded: list[int] = []
        self.sticky = ModelSticky()
        self.limiters = ModelLimiters(self._passing)
        self.fairness = ModelFairness(self.settings, self.live, self.groups)

    def begin(self, now: Now, offset: int, committed: int) -> None:
        """A step begins, at this time and place in the journal."""
        self.wall_ms, self.mono_ms = now
        self.offset, self.committed = offset, committed
        self.fairness.rest()
        self.fairness.pass_time(now.mono_ms)

    # Looking.

    def live(self, *states: JobState) -> list[ModelJob]:
        """Jobs in one of these states, oldest id first."""
        return [job for _, job in sorted(self.jobs.items()) if job.state in states]

    def _passing(self, limiter: str) -> int:
        return sum(limiter in job.options.rules.limiters for job in self.live(S.ACTIVE))

    def active(self, job_id: int, delivery: int) -> ModelJob | SettleOutcome:
        """The job that this lease is on, or why there is none."""
        job = self.jobs.get(job_id)
        if job is None or job.state not in (*WAITING, S.ACTIVE):
            return Out.NOT_FOUND
        if job.state is not S.ACTIVE or job.delivery != delivery:
            return Out.LEASE_LOST
        return job

    def lane_of(self, job: ModelJob) -> object:
        tenant = job.group if self.fairness.is_fair(job.queue) else ""
        return *job.lane(), self.sticky.owner(job), tenant

    def leasable(
        self, name: str, holder: Consumer, names: frozenset[str] | None
    ) -> Iterator[ModelJob]:
        """Yields the jobs that a consumer may have, in order."""
        ready = [job for job in self.live(S.READY) if job.queue == name]
        ready = [job for job in ready if self.groups.lets_run(job) and may_have(holder, job)]
        ready = [job for job in ready if self.sticky.may_have(holder, job)]
        yield from by_age(self.settings(name), self.wall_ms, self._on_disk(ready, names))

    def _on_disk(
        self, jobs: Sequence[ModelJob], names: frozenset[str] | None
    ) -> Iterator[ModelJob]:
        """Yields jobs of these names, highest priority first, but those of a lane only up to the
        first that is not on disk.
        """
        held_up: set[object] = set()
        for job in sorted(jobs, key=lambda job: (-job.options.priority, job.place)):
            lane = self.lane_of(job)
            if (names is not None and job.options.name not in names) or lane in held_up:
                continue
            if job.offset <= self.committed:
                yield job
            elif job.place > 0:
                held_up.add(lane)

    # Moves.

    def ready(self, job: ModelJob, *, again: bool = False) -> None:
        """At the tail, or the front; or again, where it stood when it was handed out."""
        self._tail += 1
        self._front -= 1
        if not again:
            job.waits_from_ms = self.wall_ms
            to_front = job.options.rules.lifo or self.groups.is_dead_head(job)
            job.place = self._front if to_front else self._tail
        self.fairness.come(job)
        self.leave_worker(job)
        job.state = S.READY
        job.offset = 0 if job.volatile else self.offset
        job.holder, job.due = None, (0, 0)
        if job.group and self.fairness.is_fair(job.queue):
            if self.groups.is_dead_head(job):
                self.groups.of(job).dead.remove(job.id)
                self.fairness.reopen(job.queue, job.group)
        elif job.group:
            self.ready_in_group(job, again=again)

    def leave_worker(self, job: ModelJob) -> None:
        if job.state is S.ACTIVE:
            self.fairness.settle(job, self.wall_ms)

    def ready_together(self, jobs: list[ModelJob]) -> None:
        """In this order, at the front as well."""
        for job in [job for job in jobs if not job.options.rules.lifo]:
            self.ready(job)
        for job in reversed([job for job in jobs if job.options.rules.lifo]):
            self.ready(job)

    def wait_until(self, job: ModelJob, run_at_ms: int, with_id: int) -> None:
        self.leave_worker(job)
        job.state, job.holder, job.due = S.SCHEDULED, None, (run_at_ms, with_id)

    def end(self, job: ModelJob, state: JobState, reason: EndReason = EndReason.NONE) -> None:
        self.leave_worker(job)
        job.state, job.reason, job.ended_ms = state, reason, self.wall_ms
        kept = is_kept(job, self.settings(job.queue))
        is_awaited = any(job.id in other.parents_left for other in self.jobs.values())
        job.for_readers = is_awaited and state is S.COMPLETED and not (kept or job.volatile)
        kept = kept or job.for_readers
        job.retry_ms = retry_ms(job, self.settings(job.queue), self.wall_ms)
        if job.group:
            self.groups.end(job)
        self.free(job)
        job.parents_left, job.blocked_until_ms, job.parked = [], 0, False
        # What is not kept cannot be put back: who waits for that waits for nothing.
        is_proof = kept or state is JobState.COMPLETED
        self.ends[job.id] = END_OF_STATE[state] if is_proof else ParentEnd.DELETED
        if not kept:
            del self.jobs[job.id]

    def expire(self) -> None:
        """What waits when its TTL ends has ended."""
        for job in self.live(*WAITING):
            if 0 < job.expires_ms <= self.wall_ms:
                to_dead = self.settings(job.queue).expired_to_dead
                self.end(job, S.DEAD if to_dead else S.EXPIRED, EndReason.EXPIRED)
        self.hand_over()

    def try_again(self, job: ModelJob, pause_ms: int, *, again: bool) -> None:
        """Unless its retries are over by then."""
        until = job.options.rules.retry_until_ms
        if until is not None and self.wall_ms + pause_ms > until:
            self.end(job, S.DEAD, EndReason.RETRY_UNTIL_PASSED)
        else:
            self.go_on(job, pause_ms, again=again)

    def go_on(self, job: ModelJob, pause_ms: int, *, again: bool = True) -> None:
        if pause_ms:
            self.wait_until(job, self.wall_ms + pause_ms, job.id)
        else:
            self.ready(job, again=again)

    # Unique keys.

    def free(self, job: ModelJob) -> None:
        """The job holds its key no longer; the job behind it is next."""
        name, keys = (job.queue, job.unique_key), self.unique
        if name in keys.holders and keys.holders[name].id == job.id:
            del keys.holders[name]
            if name in keys.parked:
                self.freed.append((job.state is S.CANCELLED, keys.parked[name].id))
        elif name in keys.parked and keys.parked[name].id == job.id:
            del keys.parked[name]

    def hand_over(self, *, of_cancelled: bool = True) -> None:
        """Jobs whose holders have ended go on: behind cancelled ones last, otherwise by id."""
        later = [] if of_cancelled else [one for one in self.freed if one[0]]
        for _, job_id in sorted(one for one in self.freed if one not in later):
            job = self.jobs.get(job_id)
            if job is None or job.state is not S.BLOCKED:
                continue
            name = job.queue, job.unique_key
            self.unique.holders[name] = self.unique.parked.pop(name)
            job.parked = False
            if job.parents_left:
                continue
            if job.due[0] > self.wall_ms:
                self.wait_until(job, job.due[0], job.id)
            else:
                self.ready(job)
        self.freed = later

    def settings(self, name: str) -> QueueSettings:
        return self.queues[name].settings if name in self.queues else QueueSettings()
