"""How single jobs of the engine are compared with those of the reference model."""

from __future__ import annotations

from collections import Counter

from jobline_server.engine.job_log import JobLog
from jobline_server.engine.records import JobRecord
from jobline_server.engine.reported import error_bytes
from jobline_server.engine.shard import Shard
from jobline_server.engine.values import ENDED_STATES, JobState
from tests.unit.engine.reference_dependencies import LIVE
from tests.unit.engine.reference_jobs import ModelJob
from tests.unit.engine.reference_model import ReferenceModel

ENDED = (*ENDED_STATES, JobState.STALE)


def compare_ended(shard: Shard, kept: tuple[JobState, JobRecord], job: ModelJob) -> None:
    """A job that has ended is as the model has it."""
    assert shard.state_of(job.id) is None, job
    assert ending_of(kept) == (job.state, job.result, job.reason), job
    record = kept[1]
    assert (record.options, record.job_key) == (job.options, job.job_key), job
    assert log_of(record.log) == job.log, job
    retries = (record.auto_retries, record.retry_ms)
    assert retries == (job.auto_retries, job.retry_ms), job
    assert [phase[2:] for phase in record.phases] == job.phases, job


def compare_live(shard: Shard, model: ReferenceModel, job: ModelJob) -> None:
    """A live job is as the model has it."""
    assert shard.state_of(job.id) is job.state, job
    single = shard.jobs.get(job.id)
    item = single or shard.lots.find(job.id)
    assert item is not None, job
    assert job.state is not JobState.READY or item.waits_from_ms() == job.waits_from_ms, job
    if single is None:
        assert (job.attempts, job.stalls, job.releases) == (0, 0, 0), job
        return
    assert (single.options, single.job_key) == (job.options, job.job_key), job
    details = single.details
    assert sorted(details.parents_left) == sorted(job.parents_left), job
    assert details.blocked_until_ms == job.blocked_until_ms, job
    budgets = (single.attempts, single.stalls, single.releases, single.delivery)
    assert budgets == (job.attempts, job.stalls, job.releases, job.delivery), job
    assert single.details.worker_checkpoint == job.checkpoint, job
    assert log_of(single.details.log) == job.log, job
    assert single.details.auto_retries == job.auto_retries, job
    assert [phase[2:] for phase in single.details.phases] == job.phases, job
    assert single.cancel_requested == job.cancel_requested, job
    assert single.lease_reason is job.why, job
    assert single.ties.unique_key == job.unique_key, job
    assert single.ties.claim.parked == job.parked, job
    assert single.ties.group == job.group, job
    if job.group:
        group = single.queue.groups.find(job.group)
        assert group is not None, job
        assert group.has_admitted(single) == (job.id in model.groups.of(job).admitted), job


def compare_counts(shard: Shard, model: ReferenceModel) -> None:
    """Every queue counts the jobs that are kept of it, by how they ended; the server what was
    reported on live ones.
    """
    reported = sum(job.reported_bytes() for job in model.live(*LIVE))
    assert shard.load.report_bytes == reported + _errors_and_callbacks(shard)
    for name, queue in shard.queues.items():
        expected = Counter(job.state for job in model.jobs.values() if job.queue == name)
        assert {state: queue.counts[state] for state in ENDED} == {
            state: expected[state] for state in ENDED
        }, name


def _errors_and_callbacks(shard: Shard) -> int:
    """The bytes of what the model does not keep: errors of attempts, and callbacks of batches."""
    attempts = [attempt for job in shard.jobs.values() for attempt in job.details.history]
    callbacks = sum(batch.spec.held_bytes() for batch in shard.batches.records.values())
    return callbacks + sum(error_bytes(attempt.error) for attempt in attempts)


def log_of(log: JobLog | None) -> list[tuple[int, str]]:
    """The attempt and the text of each line."""
    return [] if log is None else [(line.attempt, line.text) for line in log.lines]


def ending_of(kept: tuple[JobState, JobRecord]) -> tuple[object, ...]:
    """What the ended store would say."""
    state, record = kept
    return state, record.result, record.reason
