"""What the engine must do, said as plainly as can be: a dictionary of jobs, sorted when asked.

Nothing here is fast, shared or kept in step: every question is answered from the jobs themselves.
It knows no lots, runs, lanes, wheels or facts. `test_model.py` compares the engine with it; what a
push does stands in `reference_push.py`, what operators do in `reference_operators.py`, what limits
do in `reference_limits.py`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby

from jobline_server.engine.commands import ExtendItem, FailItem, ReleaseItem
from jobline_server.engine.dependencies import ParentEnd
from jobline_server.engine.values import (
    EndReason,
    FailAction,
    JobState,
    LeaseReason,
    ReleaseReason,
    RevokeReason,
    SettleOutcome,
)
from tests.unit.engine.reference_ageing import as_told
from tests.unit.engine.reference_jobs import (
    Consumer,
    ModelJob,
    backoff_ms,
    first,
    is_once,
)
from tests.unit.engine.reference_operators import Operators
from tests.unit.engine.reference_sticky import ModelSticky

S, Out = JobState, SettleOutcome
Revoke = tuple[Consumer, int, int, RevokeReason]


class ReferenceModel(Operators):
    """What consumers do, and what time does."""

    # Consumers.

    def lease(
        self,
        name: str,
        holder: Consumer,
        room: tuple[int, int, int],
        names: frozenset[str] | None,
        lease_ms: int,
        told: tuple[Sequence[int], dict[str, int | None]] = ((), {}),
    ) -> list[ModelJob]:
        """Jobs in the order of their hand-out: the highest priority, then what was ready first; in
        a fair queue that of each tenant. `room`: the most jobs, bytes and slots. `told`: the jobs
        that the engine has handed out, and when those groups go on that have used up their rates.
        """
        self.expire_before_lease(name)
        self.fairness.rest()
        taken: list[ModelJob] = []
        held_up: set[object] = set()
        used_up: dict[tuple[str, str], ModelJob] = {}
        is_idle = not any(job.holder is holder for job in self.live(S.ACTIVE))
        queue, (most, max_bytes, places) = self.queues[name], room
        active = sum(job.queue == name for job in self.live(S.ACTIVE))
        most = queue.room(self.wall_ms, self.mono_ms, active, most)
        for job in self._in_order(name, self.leasable(name, holder, names), told[0]):
            lane = self.lane_of(job)
            if len(taken) == most:
                break
            if lane in held_up:
                continue
            left, free = max_bytes - job.bytes(), places - (job.options.rules.slots or 1)
            if min(left, free) < 0 and (taken or not is_idle):
                break
            if not self.limiters.let_out(job.options, self.wall_ms, self.mono_ms):
                held_up.add(lane)
                continue
            if queue.bucket.price(job.options) > queue.bucket.tokens:
                break
            if not self.has_tokens(job, used_up):
                continue
            self._pay(job)
            max_bytes, places = left, free
            taken.append(job)
        self.fairness.hand_out(name, taken)
        self.mark_continued(holder, taken)
        for job in taken:
            self._start(job, holder, lease_ms)
        self.follow_closed(name, told[1], used_up)
        self.close_groups(used_up)
        return taken

    def _in_order(
        self, name: str, jobs: Iterable[ModelJob], told: Sequence[int]
    ) -> Iterable[ModelJob]:
        if self.fairness.is_fair(name):
            return self.fairness.in_turn(jobs, told)
        return jobs if self.settings(name).ageing is None else as_told(jobs, told)

    def _pay(self, job: ModelJob) -> None:
        """It takes from every limit, and counts from now on."""
        assert self.queues[job.queue].bucket.pays(job.options)
        self.take_group_tokens(job)
        self.limiters.take(job.options)
        job.state = S.ACTIVE

    def _start(self, job: ModelJob, holder: Consumer, lease_ms: int) -> None:
        job.holder, job.leased_ms = holder, self.wall_ms
        job.delivery = max(job.delivery + 1, self.first_delivery)
        own = first(job.options.lease_ms, self.settings(job.queue).lease_ms, 30_000)
        job.lease_ms = lease_ms or own
        job.deadline_ms = self.mono_ms + job.lease_ms
        self.start_timeout(job)
        if job.group:
            self.sticky.lease(holder, job)

    def ack(self, job_id: int, delivery: int, result: bytes) -> SettleOutcome:
        job = self.active(job_id, delivery)
        if isinstance(job, SettleOutcome):
            return job
        job.result = result
        if job.cancel_requested:
            self.end(job, S.CANCELLED, EndReason.CANCELLED)
            return Out.CANCELLED
        self.end(job, S.COMPLETED)
        return Out.DONE

    def fail(self, item: FailItem) -> tuple[SettleOutcome, JobState | None, int]:
        job = self.active(item.id, item.delivery)
        if isinstance(job, SettleOutcome):
            return job, None, 0
        if job.cancel_requested or item.then is FailAction.CANCEL:
            outcome = Out.CANCELLED if job.cancel_requested else Out.DONE
            self.end(job, S.CANCELLED, EndReason.CANCELLED)
            self.fairness.rest()
            self.place_freed(self.groups.freed[:])
            self.hand_over()
            return outcome, S.CANCELLED, 0
        types = self.settings(job.queue).non_retryable_error_types
        if item.then is FailAction.DEAD or item.error.type in types:
            job.attempts += 1
            job.why = LeaseReason.RETRY
            self.end(job, S.DEAD, EndReason.EXPLICIT_FAIL)
        else:
            self._use_attempt(job, EndReason.MAX_ATTEMPTS_EXCEEDED, item.retry_after_ms)
        # Each is a step of its own.
        self.fairness.rest()
        self.place_freed(self.groups.freed[:])
        self.hand_over()
        return Out.DONE, job.state, job.due[0]

    def release(self, items: list[ReleaseItem]) -> list[SettleOutcome]:
        """Those that go on at once stand where they stood."""
        outcomes: list[SettleOutcome] = []
        given_back: list[tuple[ModelJob, ReleaseItem]] = []
        for item in items:
            job = self.active(item.id, item.delivery)
            if isinstance(job, SettleOutcome):
                outcomes.append(job)
            elif job.cancel_requested:
                self.end(job, S.CANCELLED, EndReason.CANCELLED)
                self.hand_over()
                outcomes.append(Out.CANCELLED)
            elif any(job is other for other, _ in given_back):
                outcomes.append(Out.LEASE_LOST)
            else:
                given_back.append((job, item))
                self.limit_as_told(job, item)
                outcomes.append(Out.DONE)
        for job, item in given_back:
            job.releases += item.why is not ReleaseReason.UNDELIVERED
            job.why = LeaseReason.RELEASED
            self.go_on(job, item.delay_ms)
        return outcomes

    def extend(self, item: ExtendItem) -> SettleOutcome:
        job = self.active(item.id, item.delivery)
        if isinstance(job, SettleOutcome):
            return job
        ends = self.mono_ms + (item.lease_ms or job.lease_ms)
        job.deadline_ms = max(job.deadline_ms, ends)
        if item.worker_checkpoint is not None:
            job.checkpoint, job.stalls = item.worker_checkpoint, 0
        job.finish(item.phase, item.phase_result)
        job.write(item.lines)
        return Out.CANCELLED if job.cancel_requested else Out.DONE

    # Time.

    def tick(
        self, order: Iterable[Consumer], freed: list[int], died: Sequence[int] = ()
    ) -> list[Revoke]:
        """What is due goes to the tails, earliest first, after what expired jobs let in, in the
        order of `freed`; attempts that take too long have failed; then leases end: jobs die in the
        order of `died`, and what goes on stands where it stood. Returns what workers are told."""
        self.expire()
        self.fairness.rest()
        self.place_freed(freed)
        due = [job for job in self.live(S.SCHEDULED) if job.due[0] <= self.wall_ms]
        due.sort(key=lambda job: (job.due, job.id))
        for _, together in groupby(due, lambda job: job.due[0]):
            self.ready_together(list(together))
        told = self._time_out(freed)
        gone = [
            (holder, job)
            for holder in order
            for job in self.live(S.ACTIVE)
            if job.holder is holder and job.ends_ms() <= self.mono_ms
        ]
        gone.sort(key=lambda one: [*died, one[1].id].index(one[1].id))
        told += [(holder, job.id, job.delivery, RevokeReason.LEASE_LOST) for holder, job in gone]
        for holder, job in gone:
            by_cancelled, self.groups.freed = self.groups.freed, []
            self.stall(job, holder)
            # Each dead job is a fact of its own, before those that are cancelled.
            if job.state is S.DEAD:
                self.place_freed(freed)
            self.groups.freed = by_cancelled + self.groups.freed
            self.hand_over(of_cancelled=False)
        self.place_freed(freed)
        self.hand_over()
        self.fairness.rest()
        self.expire()
        self.open_groups()
        return told

    def _time_out(self, freed: list[int]) -> list[Revoke]:
        late = [job for job in self.live(S.ACTIVE) if 0 < job.times_out_ms <= self.mono_ms]
        told: list[Revoke] = []
        for job in sorted(late, key=lambda job: (job.times_out_ms, job.id)):
            if job.cancel_requested:
                self.end(job, S.CANCELLED, EndReason.CANCELLED)
                self.place_freed(freed)
                self.hand_over()
                continue
            assert job.holder is not None
            told.append((job.holder, job.id, job.delivery, RevokeReason.TIMEOUT))
            self._use_attempt(job, EndReason.TIMEOUT, None)
            self.place_freed(freed)
            self.hand_over()
            self.fairness.rest()
        return told

    def _use_attempt(self, job: ModelJob, reason: EndReason, pause_ms: int | None) -> None:
        """It is tried again after this pause, or its backoff; or that was its last attempt."""
        job.attempts += 1
        job.why = LeaseReason.RETRY
        settings = self.settings(job.queue)
        is_last = is_once(job, settings)
        most = first(job.options.max_attempts, settings.max_attempts, 1 if is_last else 3)
        if reason is EndReason.TIMEOUT and is_last:
            self.end(job, S.DEAD, EndReason.INTERRUPTED)
        elif most and job.attempts >= most:
            self.end(job, S.DEAD, reason)
        else:
            pause = first(pause_ms, backoff_ms(job.options, job.attempts))
            self.try_again(job, pause, again=False)

    def stall(self, job: ModelJob, holder: Consumer) -> None:
        lost = EndReason.STALLED if holder.disconnected_ms is None else EndReason.WORKER_LOST
        job.stalls += 1
        job.why = LeaseReason.STALLED
        most = first(job.options.max_stalls, self.settings(job.queue).max_stalls, 3)
        if job.cancel_requested:
            # It is READY for a moment.
            self.fairness.come(job)
            self.end(job, S.CANCELLED, EndReason.CANCELLED)
        elif is_once(job, self.settings(job.queue)):
            self.end(job, S.DEAD, EndReason.INTERRUPTED)
        elif job.stalls > most:
            self.end(job, S.DEAD, lost)
        else:
            pause = backoff_ms(job.options, job.stalls - 1) if job.stalls > 1 else 0
            self.try_again(job, pause, again=True)

    def restart(self, first_delivery: int) -> None:
        """What is never written is gone for ever; every lease has its full time again."""
        self.first_delivery = first_delivery
        self.sticky = ModelSticky()
        self.jobs = {i: job for i, job in self.jobs.items() if not job.volatile}
        self.ends |= dict.fromkeys(self.ends.keys() - self.jobs.keys(), ParentEnd.DELETED)
        self.keys = {k: key for k, key in self.keys.items() if not key.volatile}
        self.requests = {k: one for k, one in self.requests.items() if not one.volatile}
        self.producers = {k: one for k, one in self.producers.items() if not k[1]}
        self.restart_groups()
        for queue in self.queues.values():
            queue.bucket.restart(self.mono_ms)
        for limiter in self.limiters.by_name.values():
            limiter.bucket.restart(self.mono_ms)
        for name in self.fairness.shares:
            self.fairness.start(name, self.mono_ms)
        for job in self.live(S.ACTIVE):
            holder = job.holder
            assert holder is not None
            job.deadline_ms = self.mono_ms + job.lease_ms
            self.start_timeout(job)
            if holder.session:
                holder.last_seen_ms = holder.disconnected_ms = self.mono_ms
                holder.grace_ms, holder.graces = 12 * 3_600_000, {}
