"""Ticks: what a schedule does when its times come, or when the job that a run waits for has ended.

The caller computes which runs are due; here is decided which of them push a job. All facts of a
tick, the pushed jobs and `ScheduleTicked`, are emitted in one step and so are one commit: each run
pushes once, whether the server restarts or not.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

from jobline_server.engine import limits
from jobline_server.engine.commands import Push, Refused
from jobline_server.engine.decide.admin import decide_cancel
from jobline_server.engine.decide.push import decide_push
from jobline_server.engine.decide.schedules import existing_schedule
from jobline_server.engine.job_columns import JobColumns
from jobline_server.engine.schedule import NONE_DUE, DueRuns, Missed, Overlap, Schedule, SkipReason
from jobline_server.engine.schedule_entries import ScheduleTicked
from jobline_server.engine.ties import NO_TIES
from jobline_server.engine.values import AckLevel, JobOptions, JobState, Now
from jobline_server.engine.view import ShardView

# Headers that the jobs of schedules get.
SCHEDULE_HEADER = "jobline-schedule"
TIME_HEADER = "jobline-scheduled-at"
# The message of a refusal that a schedule keeps, in characters.
MESSAGE_CHARACTERS_MAX = 256


def decide_tick(
    shard: ShardView, now: Now, name: str, runs: DueRuns = NONE_DUE, *, has_worker: bool
) -> ScheduleTicked | None:
    """Pushes the jobs of runs that are due, and of one that waits if the last job has ended.
    Returns the fact; None if nothing was to be done. No refusal of a push leaves here: such a run
    is skipped.
    """
    schedule = existing_schedule(shard, name)
    tick = _Tick(shard, now, schedule, has_worker=has_worker)
    if schedule.paused:
        return None
    tick.release_waiting()
    if runs.times_ms:
        chosen = _chosen(schedule, now, runs)
        for run_ms in chosen:
            tick.run(run_ms)
        tick.move_on(runs, chosen)
    return tick.emit()


def decide_trigger(
    shard: ShardView, now: Now, name: str, *, has_worker: bool
) -> ScheduleTicked | None:
    """Runs a schedule now, whatever its times and its limit, also if it is paused. Returns the
    fact. Raises `Refused` with SCHEDULE_NOT_FOUND, or as the push was refused.
    """
    tick = _Tick(shard, now, existing_schedule(shard, name), has_worker=has_worker, by_hand=True)
    tick.run(now.wall_ms)
    return tick.emit()


def _chosen(schedule: Schedule, now: Now, runs: DueRuns) -> tuple[int, ...]:
    """Returns the runs that are to push, of those that are due. One is missed if a later one is
    due, or if it is late.
    """
    times_ms, policy = runs.times_ms, schedule.settings.missed
    is_late = now.wall_ms - schedule.starts_ms(times_ms[-1]) > limits.MISSED_AFTER_MS
    if policy is Missed.ALL:
        return times_ms[-limits.MISSED_RUNS_MAX - (not is_late) :]
    return () if is_late and policy is Missed.SKIP else times_ms[-1:]


class _Tick:
    """One tick of a schedule: `run` for each run in order, then `emit`."""

    __slots__ = (
        "_before",
        "_by_hand",
        "_has_worker",
        "_last_id",
        "_now",
        "_schedule",
        "_shard",
        "fact",
    )

    def __init__(
        self,
        shard: ShardView,
        now: Now,
        schedule: Schedule,
        *,
        has_worker: bool,
        by_hand: bool = False,
    ) -> None:
        self._shard = shard
        self._now = now
        self._schedule = schedule
        self._has_worker = has_worker
        self._by_hand = by_hand
        self._last_id = schedule.last_job_id
        self.fact = ScheduleTicked(
            now.wall_ms,
            schedule.name,
            schedule.settings.queue,
            waiting_ms=schedule.waiting_ms,
            next_ms=schedule.next_ms,
        )
        self._before = self._state()

    def release_waiting(self) -> None:
        """Pushes the job of the run that waits, if the last job has ended."""
        waiting_ms = self.fact.waiting_ms
        if waiting_ms and self._last_state() is None:
            self.fact.waiting_ms = 0
            self._push(waiting_ms)

    def run(self, run_ms: int) -> None:
        """Does what the settings say for one run."""
        settings = self._schedule.settings
        if self._is_over():
            return
        if settings.skip_if_no_worker and not self._has_worker:
            self._skip(run_ms, SkipReason.NO_WORKER)
            return
        state = None if settings.overlap is Overlap.ALLOW else self._last_state()
        if state is None:
            self._push(run_ms)
        elif settings.overlap is Overlap.REPLACE:
            self._replace(run_ms, state)
        elif settings.overlap is Overlap.BUFFER_ONE and not self.fact.waiting_ms:
            self.fact.waiting_ms = run_ms
        else:
            self._skip(run_ms, SkipReason.OVERLAP)

    def move_on(self, runs: DueRuns, chosen: tuple[int, ...]) -> None:
        """Counts the due runs that are not chosen, and moves to the next one."""
        self.fact.next_ms = runs.next_ms
        left_out = runs.times_ms[: len(runs.times_ms) - len(chosen)]
        self.fact.missed = runs.dropped + len(left_out)
        if left_out:
            self.fact.missed_ms = left_out[-1]
        elif runs.dropped:
            self.fact.missed_ms = runs.times_ms[0]

    def emit(self) -> ScheduleTicked | None:
        """Emits the fact, if anything happened; one that has pushed all it may has no next run."""
        left = self._schedule.runs_left()
        if left is not None and len(self.fact.job_ids) >= left:
            self.fact.next_ms = 0
        if self._state() == self._before:
            return None
        self._shard.emit(self.fact)
        return self.fact

    def _state(self) -> tuple[int, ...]:
        fact = self.fact
        happened = len(fact.job_ids) + len(fact.skipped_ms) + fact.missed
        return happened, fact.waiting_ms, fact.next_ms

    def _is_over(self) -> bool:
        """Returns whether it may push no more, one that waits included."""
        left = self._schedule.runs_left()
        if left is None or self._by_hand:
            return False
        return len(self.fact.job_ids) + bool(self.fact.waiting_ms) >= left

    def _last_state(self) -> JobState | None:
        """Returns the state of the last job; None if it has ended."""
        return self._shard.state_of(self._last_id) if self._last_id else None

    def _replace(self, run_ms: int, state: JobState) -> None:
        """Cancels the last job. If it is ACTIVE, the run waits until it has ended."""
        before_id, waiting_ms = self._last_id, self.fact.waiting_ms
        if state is not JobState.ACTIVE:
            # A push that is refused leaves the job that is there.
            if self._push(run_ms):
                decide_cancel(self._shard, self._now, [before_id])
            return
        if waiting_ms:
            self._skip(waiting_ms, SkipReason.REPLACED)
        else:
            decide_cancel(self._shard, self._now, [before_id])
        self.fact.waiting_ms = run_ms

    def _push(self, run_ms: int) -> bool:
        """Pushes the job of a run; returns whether it was stored."""
        try:
            pushed = decide_push(self._shard, self._now, push_of(self._schedule, run_ms))
        except Refused as refused:
            if self._by_hand:
                raise
            message = f"{refused.kind.value}: {refused.message}"
            self._skip(run_ms, SkipReason.REFUSED, message[:MESSAGE_CHARACTERS_MAX])
            return False
        if not pushed.count:
            self._skip(run_ms, SkipReason.DUPLICATE, f"job {pushed.exceptions[0][2]} is there")
            return False
        self._last_id = pushed.first_id
        self.fact.fired_ms.append(run_ms)
        self.fact.job_ids.append(pushed.first_id)
        return True

    def _skip(self, run_ms: int, reason: SkipReason, message: str = "") -> None:
        self.fact.skipped_ms.append(run_ms)
        self.fact.skip_reasons.append(reason)
        self.fact.skip_message = message


def push_of(schedule: Schedule, run_ms: int) -> Push:
    """Returns the push of a run."""
    job = schedule.settings.job
    options = _with_headers(job.options, schedule.name, run_ms)
    rows = JobColumns(
        [job.payload],
        [options],
        run_at_ms=[run_ms + job.delay_ms] if job.delay_ms else [],
        ties=[] if job.ties is NO_TIES else [job.ties],
    )
    return Push(schedule.settings.queue, options, rows=rows, level=AckLevel.FSYNCED)


def _with_headers(options: JobOptions, name: str, run_ms: int) -> JobOptions:
    """Returns the options of the job of a run: its worker sees for which time it runs."""
    at = datetime.fromtimestamp(run_ms / 1_000, tz=UTC)
    text = at.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    headers = {**dict(options.headers), SCHEDULE_HEADER: name, TIME_HEADER: text}
    return replace(options, headers=tuple(sorted(headers.items())))
