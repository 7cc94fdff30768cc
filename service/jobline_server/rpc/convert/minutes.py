"""Converts the history of queues."""

from __future__ import annotations

from jobline.v1 import queue_pb2, queue_service_pb2
from jobline_server.engine.limits import HOUR_MS, MINUTE_MS
from jobline_server.rpc.validate import fields
from jobline_server.runtime.minutes import ALL_QUEUES
from jobline_server.telemetry.queue_minutes import QueueMinute
from jobline_server.wire.times import fill_time


def of_request(
    request: queue_service_pb2.GetQueueHistoryRequest, now_ms: int
) -> tuple[str, int, int]:
    """Returns the queue, and the first and last minute since 1970."""
    queue = fields.queue_name(request.queue) if request.queue else ALL_QUEUES
    end_ms = (
        fields.moment_ms(request.end_time, "end_time") if request.HasField("end_time") else now_ms
    )
    start_ms = end_ms - HOUR_MS
    if request.HasField("start_time"):
        start_ms = fields.moment_ms(request.start_time, "start_time")
        if start_ms > end_ms:
            raise fields.invalid("start_time", "not after end_time")
    return queue, start_ms // MINUTE_MS, end_ms // MINUTE_MS


def fill(message: queue_pb2.QueueMinute, minute: QueueMinute) -> None:
    """Fills a message with a minute of a queue."""
    fill_time(message.start_time, minute.minute * MINUTE_MS)
    message.pushed = minute.pushed
    message.completed = minute.completed
    message.failed = minute.failed
    message.dead = minute.dead
    if minute.waited_p50_ms is not None:
        fill_time(message.waited_p50, minute.waited_p50_ms)
    if minute.waited_p95_ms is not None:
        fill_time(message.waited_p95, minute.waited_p95_ms)
