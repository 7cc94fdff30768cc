"""What stickiness must do, said as plainly as can be; a part of the reference model.

A job that is let in is reserved for the worker that had the last job of its group, until the timers
have looked twice: at the first look its time begins, at the second it may be over.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from jobline_server.engine import limits
from tests.unit.engine.reference_jobs import Consumer, ModelJob


@dataclass
class Reservation:
    """Whose a job is, and until when: None before the first look of the timers."""

    worker: str
    until_ms: int | None = None


@dataclass
class ModelSticky:
    """Who had the last job of each group, and the reservations of jobs by id."""

    last: dict[tuple[str, str], str] = field(default_factory=dict)
    reserved: dict[int, Reservation] = field(default_factory=dict)

    def let_in(self, job: ModelJob) -> None:
        """A job of a group may run now."""
        self.reserved.pop(job.id, None)
        worker = self.last.get((job.queue, job.group), "")
        if job.options.rules.sticky and worker:
            self.reserved[job.id] = Reservation(worker)

    def owner(self, job: ModelJob) -> str:
        """Whose it is; "" for everybody's."""
        reservation = self.reserved.get(job.id)
        return "" if reservation is None else reservation.worker

    def may_have(self, consumer: Consumer, job: ModelJob) -> bool:
        owner = self.owner(job)
        return not owner or (consumer.session and consumer.worker == owner)

    def had_last(self, consumer: Consumer, job: ModelJob) -> bool:
        """Whether the consumer had the last job of its group, too."""
        return consumer.session and self.last.get((job.queue, job.group), "") == consumer.worker

    def lease(self, consumer: Consumer, job: ModelJob) -> None:
        """The consumer has the last job of its group."""
        self.reserved.pop(job.id, None)
        key = job.queue, job.group
        before, mine = self.last.get(key, ""), consumer.worker if consumer.session else ""
        if job.options.rules.sticky or before != mine:
            self.last[key] = mine if job.options.rules.sticky else ""

    def look(self, mono_ms: int) -> None:
        """The timers look."""
        for job_id, reservation in list(self.reserved.items()):
            if reservation.until_ms is None:
                reservation.until_ms = mono_ms + limits.STICKY_MS
            elif reservation.until_ms <= mono_ms:
                del self.reserved[job_id]

    def leave(self, worker: str) -> None:
        """A worker takes no more jobs."""
        mine = [i for i, reservation in self.reserved.items() if reservation.worker == worker]
        for job_id in mine:
            del self.reserved[job_id]
