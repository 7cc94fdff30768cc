"""What groups must do, said as plainly as can be; a part of the reference model.

A group is a line of ids and the ids that it has let in. Where a step frees several groups at once,
the order in which their next jobs come to the tails is the engine's, which is free: `place_freed`
is told of it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from jobline_server.engine.group_settings import GroupSettings, OnDeadHead
from jobline_server.engine.values import EndReason, JobState, QueueSettings
from tests.unit.engine.reference_group_rates import ModelGroupRates
from tests.unit.engine.reference_jobs import ModelJob, first, is_kept
from tests.unit.engine.reference_sticky import ModelSticky

Key = tuple[str, str]
NEVER_RAN = {EndReason.EXPIRED, EndReason.DEPENDENCY_FAILED}


@dataclass
class ModelGroup:
    """A group's settings, its line and what it has let in."""

    settings: GroupSettings = field(default_factory=GroupSettings)
    paused: bool = False
    limited_until_ms: int | None = None
    """Until when, as somebody said; by the wall clock."""
    opens_ms: int | None = None
    """When it has tokens again, if it has used up its rate."""
    dead: set[int] = field(default_factory=set)
    line: list[int] = field(default_factory=list)
    admitted: list[int] = field(default_factory=list)

    def is_stopped(self) -> bool:
        return self.paused or self.limited_until_ms is not None or self.opens_ms is not None


class ModelGroups:
    """The groups of all queues. `settings` returns those of a queue."""

    def __init__(self, settings: Callable[[str], QueueSettings]) -> None:
        self._settings = settings
        self.groups: dict[Key, ModelGroup] = {}
        self.freed: list[int] = []
        self.rates = ModelGroupRates()

    def of(self, job: ModelJob) -> ModelGroup:
        return self.groups.setdefault((job.queue, job.group), ModelGroup())

    def is_dead_head(self, job: ModelJob) -> bool:
        """Whether it was dead and held its group, which is a tenant."""
        fair = self._settings(job.queue).fair
        return fair and bool(job.group) and job.id in self.of(job).dead

    def lets_run(self, job: ModelJob) -> bool:
        """Whether a READY job may be handed out, as far as its group goes. What was let in by this
        very step is not on disk.
        """
        if not job.group or self._settings(job.queue).fair:
            return True
        return job.id in self.of(job).admitted and job.id not in self.freed

    def enter(self, job: ModelJob) -> None:
        """A job became READY that is not let in yet: at the end, or at the head that it held."""
        group = self.of(job)
        if job.id in group.dead:
            group.dead.remove(job.id)
            group.line.insert(0, job.id)
        else:
            group.line.append(job.id)
        self.go_on(job.queue, job.group)

    def come_back(self, job: ModelJob) -> None:
        """A job that was let in is READY again; in a paused group it waits first in line."""
        group = self.of(job)
        if group.is_stopped():
            group.admitted.remove(job.id)
            group.line.insert(0, job.id)

    def go_on(self, queue: str, name: str) -> None:
        """Lets in what there is room for, unless the queue is fair."""
        if self._settings(queue).fair:
            return
        group = self.groups.setdefault((queue, name), ModelGroup())
        most = first(group.settings.concurrency, self._settings(queue).group.concurrency, 1)
        while (
            group.line and not group.is_stopped() and not group.dead and len(group.admitted) < most
        ):
            job_id = group.line.pop(0)
            group.admitted.append(job_id)
            self.freed.append(job_id)

    def is_held_by(self, job: ModelJob) -> bool:
        """Whether a job that ran and is dead holds its group."""
        if not is_kept(job, self._settings(job.queue)):
            return False
        own = job.options.rules.on_dead_head or self.of(job).settings.on_dead_head
        return (own or self._settings(job.queue).group.on_dead_head) is OnDeadHead.HOLD

    def end(self, job: ModelJob) -> None:
        """A job is no longer live."""
        group = self.of(job)
        if job.id in group.line:
            group.line.remove(job.id)
        ran_and_died = job.state is JobState.DEAD and job.reason not in NEVER_RAN
        if self._settings(job.queue).fair:
            if ran_and_died and self.is_held_by(job):
                group.dead.add(job.id)
        elif job.id in group.admitted:
            group.admitted.remove(job.id)
            if ran_and_died and self.is_held_by(job):
                group.dead.add(job.id)
            self.go_on(job.queue, job.group)

    def postpone(self, job: ModelJob) -> None:
        """A READY job is delayed: it gives up its place."""
        group = self.of(job)
        if job.id in group.line:
            group.line.remove(job.id)
        else:
            group.admitted.remove(job.id)
            self.go_on(job.queue, job.group)

    def pause(self, queue: str, name: str, ready: list[int]) -> None:
        """What is let in and READY goes back to the head of the line."""
        self.groups.setdefault((queue, name), ModelGroup()).paused = True
        self.hold_back(queue, name, ready)

    def hold_back(self, queue: str, name: str, ready: list[int]) -> None:
        if self._settings(queue).fair:
            return
        group = self.groups[queue, name]
        back = [job_id for job_id in group.admitted if job_id in ready]
        group.admitted = [job_id for job_id in group.admitted if job_id not in ready]
        group.line = back + group.line

    def is_full(self, queue: str, name: str, waiting: int, count: int) -> bool:
        """Whether so many more jobs are too many."""
        group = self.groups.get((queue, name), ModelGroup())
        if self._settings(queue).fair:
            own = group.settings.max_waiting or self._settings(queue).group.max_waiting
            return own is not None and waiting + count > own
        most = first(group.settings.max_waiting, self._settings(queue).group.max_waiting, 100_000)
        return waiting + count > most

    def become_tenants(self, queue: str, ready: list[ModelJob]) -> list[ModelJob]:
        """The queue is fair now: returns the READY jobs of its groups, each group's in order."""
        found: list[ModelJob] = []
        jobs = {job.id: job for job in ready}
        for (of, _), group in self.groups.items():
            if of == queue:
                back = [jobs[job_id] for job_id in group.admitted if job_id in jobs]
                found += sorted(back, key=lambda job: job.place)
                found += [jobs[job_id] for job_id in group.line]
                group.admitted, group.line = [], []
        return found

    def become_serial(self, queue: str, ready: list[ModelJob], active: list[ModelJob]) -> None:
        """The queue is not fair any more: what runs was let in, what waits stands in line."""
        for job in active:
            if job.queue == queue and job.group:
                self.of(job).admitted.append(job.id)
                job.group_place = job.place
        for job in sorted(ready, key=lambda job: job.place):
            if job.queue == queue and job.group:
                self.of(job).line.append(job.id)
        for of, name in list(self.groups):
            if of == queue:
                self.go_on(queue, name)

    def delete_queue(self, queue: str) -> None:
        self.groups = {key: group for key, group in self.groups.items() if key[0] != queue}
        self.rates.delete_queue(queue)


class GroupsOfModel:
    """What the reference model does with the jobs of groups."""

    jobs: dict[int, ModelJob]
    groups: ModelGroups
    sticky: ModelSticky
    offset: int
    _tail: int

    def ready_in_group(self, job: ModelJob, *, again: bool) -> None:
        """One that was let in is again where it stood."""
        if job.id in self.groups.of(job).admitted:
            job.place = job.group_place
            if not again:
                self.sticky.let_in(job)
            self.groups.come_back(job)
        else:
            self.groups.enter(job)
            self.place_freed(self.groups.freed[:])

    def place_freed(self, order: list[int]) -> None:
        """What groups have let in comes to the tails, in the order in which these ids stand."""
        jobs = [self.jobs[job_id] for job_id in self.groups.freed if job_id in self.jobs]
        # One may have been cancelled by the same call that let it in.
        freed = [job.id for job in jobs if job.state is JobState.READY]
        for job_id in sorted(freed, key=order.index):
            self._tail += 1
            job = self.jobs[job_id]
            job.place = job.group_place = self._tail
            job.offset = self.offset
            self.sticky.let_in(job)
        self.groups.freed.clear()
