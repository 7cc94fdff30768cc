"""What operators do to the jobs and queues of the reference model."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from jobline_server.engine.decide.update import JobChange
from jobline_server.engine.dependencies import ParentEnd
from jobline_server.engine.values import EndReason, JobState, LeaseReason, QueueSettings
from tests.unit.engine.reference_group_limits import GroupLimits
from tests.unit.engine.reference_jobs import ModelJob
from tests.unit.engine.reference_limits import ModelQueue
from tests.unit.engine.reference_state import WAITING
from tests.unit.engine.reference_unique import Holder, held_by

S = JobState


class Operators(GroupLimits):
    """Jobs are cancelled, promoted, deleted and retried; queues change and go."""

    def cancel(self, ids: Iterable[int]) -> list[int]:
        """Cancels what waits and asks for the rest; returns ids that are not live."""
        skipped = []
        for job_id in ids:
            job = self.jobs.get(job_id)
            if job is not None and job.state in WAITING:
                self.end(job, S.CANCELLED, EndReason.CANCELLED)
            elif job is not None and job.state is S.ACTIVE:
                job.cancel_requested = True
            else:
                skipped.append(job_id)
        return skipped

    def promote(self, ids: Iterable[int]) -> list[int]:
        """Makes delayed jobs ready, in this order; returns the ids that are not delayed."""
        skipped = []
        chosen: list[ModelJob] = []
        for job_id in ids:
            job = self.jobs.get(job_id)
            if job is None or job.state is not S.SCHEDULED:
                skipped.append(job_id)
            elif not any(job is other for other in chosen):
                chosen.append(job)
        for job in chosen:
            self.ready(job)
        return skipped

    def update(self, job_id: int, change: JobChange, *, was_in_lot: bool) -> bool:
        """Changes what waits; returns whether it does. With another priority, or if it was in a
        lot, it goes to the tail."""
        job = self.jobs.get(job_id)
        if job is None or job.state not in WAITING:
            return False
        is_serial = bool(job.group) and not self.fairness.is_fair(job.queue)
        if is_serial and change.priority is not None:
            return False
        priority = job.options.priority if change.priority is None else change.priority
        moves = priority != job.options.priority
        job.options = replace(job.options, priority=priority)
        job.payload = job.payload if change.payload is None else change.payload
        if job.state is S.BLOCKED:
            if change.delay_ms is not None:
                job.due = self.wall_ms + change.delay_ms if change.delay_ms else 0, job.id
            return True
        if is_serial and job.state is S.READY:
            job.offset = self.offset
            if not change.delay_ms:
                return True
            self.groups.postpone(job)
        if change.delay_ms:
            self.wait_until(job, self.wall_ms + change.delay_ms, job.id)
        elif job.state is S.SCHEDULED and change.delay_ms == 0:
            self.ready(job)
        elif job.state is S.SCHEDULED:
            job.due = job.due[0], job.id
        else:
            stays = not moves and not was_in_lot
            # What leaves its lane is not READY for a moment.
            job.state = S.READY if stays else S.SCHEDULED
            since_ms = job.waits_from_ms
            self.ready(job, again=stays)
            job.waits_from_ms = since_ms
        return True

    def forget_unique_key(self, queue: str, key: str) -> int:
        """Whoever holds the key goes on without, and what waits for it goes on; returns who held
        it, 0 for nobody.
        """
        name, keys = (queue, key), self.unique
        by_id = held_by(keys, name, self.wall_ms)
        if not by_id:
            return 0
        keys.throttled.pop(name, None)
        keys.holders.pop(name, None)
        if name in keys.parked:
            self.freed.append((False, keys.parked[name].id))
        return by_id

    def delete(self, ids: Iterable[int]) -> list[int]:
        """Deletes what waits; returns the ids that do not."""
        gone = [i for i in ids if i in self.jobs and self.jobs[i].state in WAITING]
        skipped = [i for i in ids if i not in gone]
        for job_id in gone:
            job = self.jobs.pop(job_id)
            if job.group:
                self.groups.end(job)
            self.free(job)
            self.ends[job_id] = ParentEnd.DELETED
        return skipped

    def retry(self, ids: Iterable[int], *, automatic: bool = False) -> list[int]:
        """Ended jobs come back; returns the ids of live ones, which are left alone, and of those
        whose unique key another job holds.
        """
        jobs = [self.jobs[job_id] for job_id in ids]
        again: list[ModelJob] = []
        for job in jobs:
            by_id = held_by(self.unique, (job.queue, job.unique_key), self.wall_ms)
            if job.state not in (*WAITING, S.ACTIVE) and by_id in (0, job.id):
                again.append(job)
                if job.unique_key:
                    self.unique.holders[job.queue, job.unique_key] = Holder(job.id, job.pushed_ms)
        for job in again:
            self._start_over(job, automatic=automatic)
        for queue in dict.fromkeys(job.queue for job in again):
            self.ready_together([job for job in again if job.queue == queue])
        return [job.id for job in jobs if job not in again]

    def _start_over(self, job: ModelJob, *, automatic: bool) -> None:
        """With a clean slate; its counter and its checkpoint stay. Automatic retries are counted
        until one by hand."""
        job.attempts = job.stalls = job.releases = 0
        job.cancel_requested, job.retry_ms = False, 0
        job.auto_retries = job.auto_retries + 1 if automatic else 0
        if job.options.rules.ttl_ms:
            job.expires_ms = self.wall_ms + job.options.rules.ttl_ms
        if len(job.phases) == len(job.options.rules.phases):
            job.phases = []
        job.result, job.reason, job.why = b"", EndReason.NONE, LeaseReason.RETRY
        self.queues.setdefault(job.queue, ModelQueue())
        del self.ends[job.id]

    def delete_queue(self, name: str) -> None:
        """A queue goes with its jobs, live and ended; keys stay for their window."""
        del self.queues[name]
        self.groups.delete_queue(name)
        for keys in (self.unique.holders, self.unique.parked):
            for key in [key for key in keys if key[0] == name]:
                del keys[key]
        for job in self.jobs.values():
            if job.queue == name:
                self.ends[job.id] = ParentEnd.DELETED
        self.fairness.shares.pop(name, None)
        self.jobs = {i: job for i, job in self.jobs.items() if job.queue != name}

    def set_settings(self, name: str, settings: QueueSettings) -> None:
        was_fair, before = self.settings(name).fair, self.settings(name).group.rate
        ready = [job for job in self.live(S.READY) if job.queue == name]
        self.queues.setdefault(name, ModelQueue()).change(settings, self.mono_ms)
        if settings.fair and not was_fair:
            behind: dict[str, float] = {}
            # They stand where they stood when they came, those that were let in before the others.
            for job in reversed(self.groups.become_tenants(name, ready)):
                job.place = min(job.place, behind.get(job.group, job.place + 1) - 0.5)
                behind[job.group] = job.place
                self.sticky.reserved.pop(job.id, None)
        elif was_fair and not settings.fair:
            self.groups.become_serial(name, ready, self.live(S.ACTIVE))
        self.fairness.change(name, was_fair=was_fair, mono_ms=self.mono_ms)
        if settings.group.rate != before:
            self.ask_groups(name)
