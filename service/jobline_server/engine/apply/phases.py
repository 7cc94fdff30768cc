"""Applies the end of a phase, and gives a retried job its finished phases."""

from __future__ import annotations

from jobline_server.engine.apply.bookkeeping import mark_job, single
from jobline_server.engine.apply.noted import note_jobs
from jobline_server.engine.apply.table import ApplyTable
from jobline_server.engine.job import Details
from jobline_server.engine.phases import FinishedPhase, overall_progress
from jobline_server.engine.records import JobRecord
from jobline_server.engine.report_entries import PhaseCompleted
from jobline_server.engine.state import ShardState


def apply_phase_completed(shard: ShardState, fact: PhaseCompleted, _offset: int) -> None:
    """Finishes the next phase of an active job, and resets its stalls."""
    job = single(shard, fact.id)
    note_jobs(shard, [job])
    details = job.writable_details()
    before = details.phases[-1].ended_ms if details.phases else 0
    began_ms = max(job.leased_ms, before)
    finished = FinishedPhase(began_ms, fact.at_ms, job.attempts + 1, fact.result)
    details.phases = (*details.phases, finished)
    details.progress, details.progress_message = fact.progress, ""
    job.stalls = 0
    shard.count_reports(len(fact.result))
    mark_job(shard, job)


def retain_phases(details: Details, record: JobRecord) -> None:
    """Gives a retried job its finished phases. A job that had finished all of them starts over."""
    count = len(record.options.rules.phases)
    if len(record.phases) < count:
        details.phases = record.phases
        details.progress = overall_progress(len(record.phases), 0.0, count)


APPLY: ApplyTable = {PhaseCompleted: apply_phase_completed}
