"""What a schedule must do, said as plainly as can be; a part of the reference model.

A schedule here runs every five seconds. What its last job does is asked of the jobs.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from jobline_server.engine.commands import Push
from jobline_server.engine.schedule import Missed, Overlap, SkipReason
from jobline_server.engine.values import AckLevel, JobOptions, JobState
from tests.pushed_rows import NewJob, rows_of
from tests.unit.engine import reference_push
from tests.unit.engine.reference_model import ReferenceModel

EVERY_MS = 5_000
LIVE = (JobState.SCHEDULED, JobState.BLOCKED, JobState.READY, JobState.ACTIVE)


@dataclass
class ModelSchedule:
    """A schedule, and what became of its runs. `asked`: a job that was told to stop."""

    name: str
    queue: str
    options: JobOptions
    overlap: Overlap
    missed: Missed
    limit: int
    next_ms: int
    waiting_ms: int = 0
    paused: bool = False
    fired: list[int] = field(default_factory=list)
    ids: list[int] = field(default_factory=list)
    skips: list[tuple[int, SkipReason]] = field(default_factory=list)
    left_out: int = 0
    cancelled: list[int] = field(default_factory=list)

    def is_due(self, now_ms: int, model: ReferenceModel) -> bool:
        """Whether it has anything to do."""
        waits = self.waiting_ms and self._last_state(model) is None
        return not self.paused and bool(waits or (self.next_ms and self.next_ms <= now_ms))

    def tick(self, model: ReferenceModel, now_ms: int, next_id: int) -> None:
        """Does what is due."""
        self.next_id = next_id
        if self.waiting_ms and self._last_state(model) is None:
            waiting_ms, self.waiting_ms = self.waiting_ms, 0
            self._push(model, waiting_ms)
        due = []
        while self.next_ms and self.next_ms <= now_ms:
            due.append(self.next_ms)
            self.next_ms += EVERY_MS
        if due:
            late = now_ms - due[-1] > 60_000
            chosen = due[-1:]
            if self.missed is Missed.ALL:
                chosen = due[-100 if late else -101 :]
            elif self.missed is Missed.SKIP and late:
                chosen = []
            self.left_out += len(due) - len(chosen)
            for run_ms in chosen:
                self._run(model, run_ms)
        if self.limit and len(self.ids) >= self.limit:
            self.next_ms = 0

    def _run(self, model: ReferenceModel, run_ms: int) -> None:
        if self.limit and len(self.ids) + bool(self.waiting_ms) >= self.limit:
            return
        state = self._last_state(model)
        if state is None or self.overlap is Overlap.ALLOW:
            self._push(model, run_ms)
        elif self.overlap is Overlap.SKIP or (
            self.overlap is Overlap.BUFFER_ONE and self.waiting_ms
        ):
            self.skips.append((run_ms, SkipReason.OVERLAP))
        elif self.overlap is Overlap.BUFFER_ONE:
            self.waiting_ms = run_ms
        elif state is not JobState.ACTIVE:
            before = self.ids[-1]
            if self._push(model, run_ms):
                model.cancel([before])
        else:
            if self.waiting_ms:
                self.skips.append((self.waiting_ms, SkipReason.REPLACED))
            else:
                model.cancel([self.ids[-1]])
                self.cancelled.append(self.ids[-1])
            self.waiting_ms = run_ms

    def _last_state(self, model: ReferenceModel) -> JobState | None:
        job = model.jobs.get(self.ids[-1]) if self.ids else None
        return job.state if job is not None and job.state in LIVE else None

    def _push(self, model: ReferenceModel, run_ms: int) -> bool:
        try:
            outcomes = reference_push.push(model, self.command(run_ms), self.next_id)
        except reference_push.Refusal:
            self.skips.append((run_ms, SkipReason.REFUSED))
            return False
        ((_, job_id),) = outcomes
        self.next_id = job_id + 1
        self.fired.append(run_ms)
        self.ids.append(job_id)
        return True

    def command(self, run_ms: int) -> Push:
        """The push of a run, with what its worker is told."""
        seconds, milliseconds = divmod(run_ms, 1_000)
        # START is 2027-01-15T08:00:00Z, and histories are some days long.
        days, rest = divmod(seconds - 1_799_971_200, 86_400)
        hours, minutes = divmod(rest // 60, 60)
        day = f"2027-01-{15 + days}" if days < 17 else f"2027-02-{days - 16:02}"
        at = f"{day}T{hours:02}:{minutes:02}:{rest % 60:02}.{milliseconds:03}Z"
        own = {"jobline-schedule": self.name, "jobline-scheduled-at": at}
        headers = tuple(sorted((dict(self.options.headers) | own).items()))
        options = JobOptions(
            **{
                name: getattr(self.options, name)
                for name in JobOptions.__slots__
                if name != "headers"
            },
            headers=headers,
        )
        rows = rows_of([NewJob(b"s", options)])
        return Push(self.queue, options, rows, level=AckLevel.FSYNCED)
