"""What workers report beside progress, between value and message: log lines and the end of a
phase as facts, and what they leave as fields of the job.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

from jobline.v1 import entry_pb2, job_pb2, store_pb2
from jobline_server.engine.job_log import JobLog, LogLine, size_of
from jobline_server.engine.phases import FinishedPhase
from jobline_server.engine.report_entries import JobLogged, PhaseCompleted
from jobline_server.engine.values import LogLevel
from jobline_server.storage.codec.table import FactRow, FactTable, whole

_LEVELS = {int(level): level for level in LogLevel}


def fill_job_logged(entry: entry_pb2.Entry, fact: JobLogged) -> None:
    """Writes it into an entry."""
    message = entry.job_logged
    message.queue = fact.queue
    message.id = fact.id
    message.bytes_max = fact.bytes_max
    for line in fact.lines:
        message.texts.append(line.text)
        message.levels.append(job_pb2.LogLevel.ValueType(line.level))
        message.written_ms.append(line.written_ms)
        message.attempt = line.attempt


def job_logged(at_ms: int, message: entry_pb2.JobLogged) -> JobLogged:
    """Reads it."""
    columns = zip(message.written_ms, message.levels, message.texts, strict=True)
    return JobLogged(
        at_ms=at_ms,
        queue=message.queue,
        id=message.id,
        lines=[
            LogLine(written_ms, _LEVELS[level], text, message.attempt)
            for written_ms, level, text in columns
        ],
        bytes_max=message.bytes_max,
    )


def fill_phase_completed(entry: entry_pb2.Entry, fact: PhaseCompleted) -> None:
    """Writes it into an entry."""
    message = entry.phase_completed
    message.queue = fact.queue
    message.id = fact.id
    message.phase = fact.phase
    message.result = fact.result
    message.progress = fact.progress


def phase_completed(at_ms: int, message: entry_pb2.PhaseCompleted) -> PhaseCompleted:
    """Reads it."""
    return PhaseCompleted(
        at_ms, message.queue, message.id, message.phase, message.result, message.progress
    )


def fill_phases(message: store_pb2.StoredJob, phases: Sequence[FinishedPhase]) -> None:
    """Writes the finished phases of a job."""
    for phase in phases:
        message.phases.add(
            started_ms=phase.started_ms,
            ended_ms=phase.ended_ms,
            attempt=phase.attempt,
            result=phase.result,
        )


def phases_of(message: store_pb2.StoredJob) -> tuple[FinishedPhase, ...]:
    """Returns the finished phases in a message."""
    return tuple(
        FinishedPhase(phase.started_ms, phase.ended_ms, phase.attempt, phase.result)
        for phase in message.phases
    )


def fill_log(message: store_pb2.StoredJob, log: JobLog | None) -> None:
    """Writes the log of a job, if it has one."""
    if log is None:
        return
    stored = message.log
    stored.dropped = log.dropped
    for line in log.lines:
        stored.texts.append(line.text)
        stored.levels.append(job_pb2.LogLevel.ValueType(line.level))
        stored.written_ms.append(line.written_ms)
        stored.attempts.append(line.attempt)


def log_of(message: store_pb2.StoredJob) -> JobLog | None:
    """Returns the log in a message; None if there is none."""
    if not message.HasField("log"):
        return None
    stored = message.log
    columns = zip(stored.written_ms, stored.levels, stored.texts, stored.attempts, strict=True)
    lines = deque(
        LogLine(written_ms, _LEVELS[level], text, attempt)
        for written_ms, level, text, attempt in columns
    )
    return JobLog(lines, stored.dropped, sum(map(size_of, lines)))


FACTS: FactTable = {
    JobLogged: FactRow("job_logged", fill_job_logged, job_logged, whole),
    PhaseCompleted: FactRow("phase_completed", fill_phase_completed, phase_completed, whole),
}
