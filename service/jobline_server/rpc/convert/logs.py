"""Converts the lines of job logs: those that workers write, and those that operators read."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice

from jobline.v1 import job_admin_service_pb2, job_pb2, job_service_pb2
from jobline_server.engine import limits
from jobline_server.engine.commands import ExtendItem, Refused
from jobline_server.engine.job_log import NewLine
from jobline_server.engine.values import LogLevel
from jobline_server.rpc import limits as rpc_limits
from jobline_server.rpc.validate import fields
from jobline_server.rpc.validate.mistyped import check_own_fields
from jobline_server.runtime.views import JobView
from jobline_server.wire.times import fill_time

_MOMENT_MS_MAX = fields.MOMENT_SECONDS_MAX * 1_000
Sent = job_pb2.LogLines | job_service_pb2.StreamLog


def check_line_count(
    extends: Sequence[job_service_pb2.ExtendItem],
    logs: Sequence[job_service_pb2.StreamLog],
    field: str,
) -> None:
    """Refuses more lines than one call or frame may have, before any is converted."""
    count = sum([len(log.lines) for log in logs])
    count += sum([len(item.logs.lines) for item in extends if item.HasField("logs")])
    if count > rpc_limits.LOG_LINES_MAX:
        raise fields.too_large(field, f"at most {rpc_limits.LOG_LINES_MAX} log lines at a time")


def stream_logs(logs: Sequence[job_service_pb2.StreamLog]) -> list[ExtendItem]:
    """Returns the logs of a frame as extends of the leases, which every frame extends anyway."""
    found = []
    for index, log in enumerate(logs):
        try:
            found.append(ExtendItem(log.id, log.delivery, lines=new_lines(log)))
        except Refused as refused:
            raise fields.within(f"logs[{index}]", refused) from None
    return found


def new_lines(message: Sent) -> list[NewLine]:
    """Returns the lines that a worker wrote. Long ones are cut."""
    check_own_fields(message)
    texts, levels, moments = message.lines, message.levels, message.at_ms
    for column, field in ((texts, "lines"), (levels, "levels"), (moments, "at_ms")):
        fields.at_most(column, field, limits.LOG_LINES_MAX)
    fields.non_empty(texts, "lines")
    for column, field in ((levels, "levels"), (moments, "at_ms")):
        if column and len(column) != len(texts):
            raise fields.invalid(field, "must be as many as the lines, or none")
    for index, moment in enumerate(moments):
        fields.integer(moment, f"at_ms[{index}]", 0, _MOMENT_MS_MAX)
    return [
        NewLine(
            fields.cut_text(text, limits.LOG_LINE_BYTES_MAX),
            _level(levels[index], f"levels[{index}]") if levels else LogLevel.INFO,
            moments[index] if moments else 0,
        )
        for index, text in enumerate(texts)
    ]


def _level(value: int, field: str) -> LogLevel:
    return fields.enum_member(value, field, LogLevel) or LogLevel.INFO


def log_response(
    view: JobView, request: job_admin_service_pb2.GetJobLogsRequest
) -> job_admin_service_pb2.GetJobLogsResponse:
    """Returns the lines of a job's log that are asked for."""
    response = job_admin_service_pb2.GetJobLogsResponse()
    response.state = job_pb2.JobState.ValueType(view.state)
    min_level = _level(request.min_level, "min_level") if request.min_level else LogLevel.DEBUG
    log = view.log
    if log is None:
        return response
    response.dropped = log.dropped
    seen = min(max(request.after - log.dropped, 0), len(log.lines))
    for number, line in enumerate(islice(log.lines, seen, None), log.dropped + seen + 1):
        if line.level >= min_level:
            shown = response.lines.add(number=number, text=line.text, attempt=line.attempt)
            shown.level = job_pb2.LogLevel.ValueType(line.level)
            shown.at.SetInParent()
            fill_time(shown.at, line.written_ms)
    return response
