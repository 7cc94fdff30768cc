"""What goodbyes and crashes do to the jobs that workers hold; a part of the reference model."""

from __future__ import annotations

from jobline_server.engine.commands import ReleaseItem
from jobline_server.engine.values import EndReason, JobState, SettleOutcome
from tests.unit.engine.reference_jobs import ModelJob, is_once
from tests.unit.engine.reference_model import ReferenceModel


def abandon(model: ReferenceModel, items: list[ReleaseItem]) -> list[ModelJob]:
    """What may run once is dead, the rest goes on; returns the jobs that are dead by it."""
    dead: list[ModelJob] = []
    for item in items:
        job = model.active(item.id, item.delivery)
        if not isinstance(job, ModelJob):
            continue
        if job.cancel_requested or not is_once(job, model.settings(job.queue)):
            model.release([item])
            continue
        job.stalls += 1
        model.end(job, JobState.DEAD, EndReason.INTERRUPTED)
        dead.append(job)
    return dead


def crash(model: ReferenceModel, item: ReleaseItem) -> tuple[SettleOutcome, ModelJob | None]:
    """What happens to a job whose lease is lost; returns the outcome, and the job if there is."""
    job = model.active(item.id, item.delivery)
    if isinstance(job, SettleOutcome):
        return job, None
    assert job.holder is not None
    outcome = SettleOutcome.CANCELLED if job.cancel_requested else SettleOutcome.DONE
    model.stall(job, job.holder)
    model.fairness.rest()
    model.place_freed(model.groups.freed[:])
    model.hand_over()
    return outcome, job
