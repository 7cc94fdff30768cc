"""What jobs that depend on others must do, said plainly; a part of the reference model."""

from __future__ import annotations

from collections.abc import Iterable

from jobline_server.engine.dependencies import END_OF_STATE, ParentEnd
from jobline_server.engine.rules import DependencyPolicy
from jobline_server.engine.ties import Ties
from jobline_server.engine.values import EndReason, JobState, LeaseReason, SettleOutcome
from tests.unit.engine.reference_jobs import ModelJob, first
from tests.unit.engine.reference_model import ReferenceModel

Policy = DependencyPolicy
STATE_OF_END = {end: state for state, end in END_OF_STATE.items()}
LIVE = (JobState.SCHEDULED, JobState.BLOCKED, JobState.READY, JobState.ACTIVE)


def end_of(model: ReferenceModel, job_id: int) -> ParentEnd | None:
    """What became of a job; None while it lives."""
    job = model.jobs.get(job_id)
    if job is not None and job.state in LIVE:
        return None
    return model.ends.get(job_id, ParentEnd.DELETED)


def looked_up(model: ReferenceModel, ids: Iterable[int]) -> dict[int, JobState | None]:
    """What the ended store says of jobs; of those that are STALE, how they ended."""
    return {one: _outcome(model, one) for one in ids}


def _outcome(model: ReferenceModel, job_id: int) -> JobState | None:
    job = model.jobs.get(job_id)
    if job is None or job.state is not JobState.STALE:
        return None if job is None else job.state
    return STATE_OF_END[model.ends[job_id]]


def policies_of(ties: Ties) -> dict[int, DependencyPolicy]:
    pairs = zip(ties.parents, ties.on_failure, strict=False)
    return {parent: Policy(number) for parent, number in pairs if number}


def policy_about(model: ReferenceModel, job: ModelJob, parent: int) -> DependencyPolicy:
    return job.policies.get(parent) or policy_of(model, job)


def policy_of(model: ReferenceModel, job: ModelJob) -> DependencyPolicy:
    own = job.options.rules.on_dependency_failure
    return own or model.settings(job.queue).on_dependency_failure or Policy.FAIL


def push_behind(model: ReferenceModel, job: ModelJob, parents: list[int], run_at_ms: int) -> bool:
    """Says whether a new job is BLOCKED, or ended, because of its parents or its unique key."""
    job.due, job.wants = (run_at_ms, job.id), list(parents)
    for parent in parents:
        end, policy = end_of(model, parent), policy_about(model, job, parent)
        if end in (None, ParentEnd.COMPLETED) or policy is Policy.IGNORE:
            continue
        if policy is Policy.CONTINUE:
            parents = []
            break
        if policy is not Policy.WAIT:
            model.failing.append((job, policy))
            job.state = JobState.BLOCKED
            return True
    wait_on = [one for one in parents if waits_on(model, one, policy_about(model, job, one))]
    if wait_on:
        timeout_ms = first(
            job.options.rules.block_timeout_ms, model.settings(job.queue).block_timeout_ms, 0
        )
        job.blocked_until_ms = model.wall_ms + timeout_ms if timeout_ms else 0
        job.parents_left = wait_on
    if wait_on or job.parked:
        job.state = JobState.BLOCKED
        return True
    job.due = (0, 0)
    return False


def waits_on(model: ReferenceModel, parent: int, policy: DependencyPolicy) -> bool:
    end = end_of(model, parent)
    return end is None or (policy is Policy.WAIT and end is not ParentEnd.COMPLETED)


def fail_new(model: ReferenceModel) -> None:
    """Jobs whose parents had failed before their push end at once, and alike ones together."""
    failing = [one for one in model.failing if one[0].state is JobState.BLOCKED]
    model.failing = []
    for cancelled in dict.fromkeys(policy is Policy.CANCEL for _, policy in failing):
        these = [job for job, policy in failing if (policy is Policy.CANCEL) == cancelled]
        end_for_it(model, these, cancelled=cancelled)


def tell(model: ReferenceModel, parents: Iterable[int]) -> None:
    """All that wait for these are told, one after the other, what became of them."""
    free: dict[int, ModelJob] = {}
    continued: dict[int, ModelJob] = {}
    failed: dict[int, tuple[ModelJob, DependencyPolicy, int]] = {}
    for parent in parents:
        end = end_of(model, parent)
        for job in model.live(JobState.BLOCKED):
            # To one that failed, another end changes nothing.
            if parent not in job.parents_left or job.id in failed:
                continue
            policy = policy_about(model, job, parent)
            if end is ParentEnd.COMPLETED or policy is Policy.IGNORE:
                job.parents_left = [one for one in job.parents_left if one != parent]
                if not job.parents_left:
                    free[job.id] = job
            elif policy is Policy.CONTINUE:
                job.parents_left = []
                continued[job.id] = job
            elif policy is not Policy.WAIT or end is ParentEnd.DELETED:
                failed.setdefault(job.id, (job, policy, parent))
    unblock(model, [*free.values(), *continued.values()])
    alike: dict[tuple[int, bool], list[ModelJob]] = {}
    for job, policy, parent in failed.values():
        alike.setdefault((parent, policy is Policy.CANCEL), []).append(job)
    for (_, cancelled), jobs in alike.items():
        end_for_it(model, jobs, cancelled=cancelled)


def set_aside(model: ReferenceModel, job_id: int, delivery: int) -> str:
    """A worker ends the lease of its job, which will wait for children; says why it may not."""
    job = model.active(job_id, delivery)
    if isinstance(job, SettleOutcome):
        return "LEASE_LOST"
    if job.cancel_requested or job.volatile:
        return "WRONG_STATE"
    model.leave_worker(job)
    job.state, job.holder, job.due = JobState.BLOCKED, None, (0, 0)
    job.why = LeaseReason.CHILDREN_ENDED
    if job.group and not model.fairness.is_fair(job.queue):
        model.groups.postpone(job)
    return ""


def add_children(model: ReferenceModel, job_id: int, children: list[int]) -> None:
    """A job that was set aside waits for these, which were pushed just now."""
    job = model.jobs[job_id]
    timeout_ms = first(
        job.options.rules.block_timeout_ms, model.settings(job.queue).block_timeout_ms, 0
    )
    job.parents_left, job.wants = children, [*job.wants, *children]
    job.blocked_until_ms = model.wall_ms + timeout_ms if timeout_ms else 0


def time_out(model: ReferenceModel) -> None:
    """Those that were BLOCKED for too long, the earliest first."""
    due = [
        job
        for job in model.live(JobState.BLOCKED)
        if job.blocked_until_ms and job.blocked_until_ms <= model.wall_ms
    ]
    due.sort(key=lambda job: (job.blocked_until_ms, job.id))
    go_on = [job for job in due if policy_of(model, job) in (Policy.IGNORE, Policy.CONTINUE)]
    unblock(model, go_on)
    rest = [job for job in due if job not in go_on]
    for cancelled in dict.fromkeys(policy_of(model, job) is Policy.CANCEL for job in rest):
        these = [job for job in rest if (policy_of(model, job) is Policy.CANCEL) == cancelled]
        end_for_it(model, these, cancelled=cancelled)


def unblock(model: ReferenceModel, jobs: list[ModelJob]) -> None:
    """They wait for no other job; those that wait for their unique keys still do."""
    for job in jobs:
        job.parents_left, job.blocked_until_ms = [], 0
        if job.due[0] > model.wall_ms and not job.parked:
            model.wait_until(job, job.due[0], job.id)
    free = [job for job in jobs if job.state is JobState.BLOCKED and not job.parked]
    for queue in dict.fromkeys(job.queue for job in free):
        model.ready_together([job for job in free if job.queue == queue])


def end_for_it(model: ReferenceModel, jobs: Iterable[ModelJob], *, cancelled: bool) -> None:
    """All of these in one fact; who waits behind them goes on."""
    for job in jobs:
        state = JobState.CANCELLED if cancelled else JobState.DEAD
        model.end(job, state, EndReason.DEPENDENCY_FAILED)
    model.hand_over()
