"""What workers report beside progress, between value and message: log lines as a fact, and the log
of a job as a field of the job.
"""

from __future__ import annotations

from collections import deque

from jobline.v1 import entry_pb2, job_pb2, store_pb2
from jobline_server.engine.job_log import JobLog, LogLine, size_of
from jobline_server.engine.report_entries import JobLogged
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
}
