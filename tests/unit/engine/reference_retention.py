"""How long ended jobs are kept, said plainly; a part of the reference model."""

from __future__ import annotations

from collections.abc import Iterable

from jobline_server.engine import limits
from jobline_server.engine.dependencies import ParentEnd
from jobline_server.engine.values import ENDED_STATES, JobState, QueueSettings
from tests.unit.engine.reference_jobs import ModelJob
from tests.unit.engine.reference_model import ReferenceModel
from tests.unit.engine.reference_state import WAITING

S = JobState


def retain(model: ReferenceModel) -> dict[str, int]:
    """What was STALE for long is deleted, what is old becomes STALE, and what is too many goes;
    returns how many of each.
    """
    wanted = {one for job in model.live(*WAITING, S.ACTIVE) for one in job.wants}
    stale = [job for job in model.live(S.STALE) if job.delete_ms < model.wall_ms]
    deleted = [job for job in stale if job.id not in wanted]
    delete(model, deleted)
    staled = evicted = 0
    for name in list(model.queues):
        for state in ENDED_STATES:
            old = _past_age(model, name, state)
            for job in old:
                after_ms = _delete_after_ms(job, model.settings(name))
                job.state, job.delete_ms = S.STALE, model.wall_ms + after_ms
            staled += len(old)
    for name in list(model.queues):
        for state in ENDED_STATES:
            for find in (_too_many, _beyond_own_count):
                too_many = find(model, name, state)
                held = [job for job in too_many if state is S.COMPLETED and job.id in wanted]
                for job in held:
                    job.state, job.delete_ms = S.STALE, model.wall_ms
                delete(model, [job for job in too_many if job not in held])
                evicted += len(too_many)
    return {"staled": staled, "deleted": len(deleted), "evicted": evicted}


def delete(model: ReferenceModel, jobs: Iterable[ModelJob]) -> None:
    """Ended jobs are gone; a group that one of them held goes on."""
    for job in jobs:
        del model.jobs[job.id]
        model.ends[job.id] = ParentEnd.DELETED
        if job.group and job.id in model.groups.of(job).dead:
            model.groups.of(job).dead.remove(job.id)
            model.groups.go_on(job.queue, job.group)
            if model.fairness.is_fair(job.queue):
                model.fairness.reopen(job.queue, job.group)


def _kept(model: ReferenceModel, name: str, state: JobState) -> list[ModelJob]:
    """Those that ended first come first."""
    jobs = [job for job in model.live(state) if job.queue == name]
    return sorted(jobs, key=lambda job: (job.ended_ms, job.id))


def _past_age(model: ReferenceModel, name: str, state: JobState) -> list[ModelJob]:
    """Those with an age of their own, and the others of the queue."""
    jobs = _kept(model, name, state)
    own = [job for job in jobs if job.for_readers or job.options.retention.age_ms is not None]
    others = [job for job in jobs if job not in own]
    settings = model.settings(name)
    if state is S.COMPLETED and settings.retention.age_ms is None:
        others = others[: -limits.KEEP_NEWEST]
    age_ms = _age_ms(settings, state)
    return [
        *(
            job
            for job in own
            if job.for_readers
            or job.ended_ms + (job.options.retention.age_ms or 0) <= model.wall_ms
        ),
        *(job for job in others if age_ms is not None and job.ended_ms + age_ms < model.wall_ms),
    ]


def _age_ms(settings: QueueSettings, state: JobState) -> int | None:
    if state is not S.DEAD:
        age_ms = settings.retention.age_ms
        return limits.STALE_AFTER_MS_DEFAULT if age_ms is None else age_ms
    if settings.dead_letters.keep_forever:
        return None
    for age_ms in (settings.dead_letters.expire_after_ms, settings.retention.age_ms):
        if age_ms is not None:
            return age_ms
    return limits.STALE_AFTER_DEAD_MS_DEFAULT


def _delete_after_ms(job: ModelJob, settings: QueueSettings) -> int:
    if job.for_readers:
        return 0
    of_queue = settings.retention.delete_after_ms
    most = limits.DELETE_AFTER_MS_DEFAULT if of_queue is None else of_queue
    own = job.options.retention.delete_after_ms
    return most if own is None else min(own, most)


def _too_many(model: ReferenceModel, name: str, state: JobState) -> list[ModelJob]:
    jobs, count = _kept(model, name, state), model.settings(name).retention.count
    return [] if count is None else jobs[: max(len(jobs) - count, 0)]


def _beyond_own_count(model: ReferenceModel, name: str, state: JobState) -> list[ModelJob]:
    """So many jobs as each says itself ended after it."""
    jobs = _kept(model, name, state)
    later = range(len(jobs) - 1, -1, -1)
    return [
        job
        for job, ended_later in zip(jobs, later, strict=True)
        if not job.for_readers
        and job.options.retention.count is not None
        and ended_later >= job.options.retention.count
    ]
