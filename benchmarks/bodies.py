"""Prepared bytes: the messages that loads send, made once before anything is measured."""

from __future__ import annotations

from collections.abc import Iterable
from struct import pack

from jobline.v1 import job_service_pb2 as jobs

PAYLOAD_BYTES = 100
PAYLOAD = bytes(range(PAYLOAD_BYTES))
PUSH = "/jobline.v1.JobService/Push"
PULL = "/jobline.v1.JobService/Pull"
ACK = "/jobline.v1.JobService/Ack"
STREAM = "/jobline.v1.JobService/Stream"
WATCH = "/jobline.v1.JobService/Watch"
QUEUE = "bench"
NAMES = 20


def plain(count: int, queue: str = QUEUE, payload: bytes = PAYLOAD) -> bytes:
    """A push of plain jobs: they share all options, so the server keeps them as one lot."""
    return jobs.PushRequest(queue=queue, payloads=[payload] * count).SerializeToString()


def rows(count: int, queue: str = QUEUE) -> bytes:
    """A push of jobs that each bring a name, a priority and a number of attempts."""
    request = jobs.PushRequest(queue=queue)
    for index in range(count):
        row = request.jobs.add(data=PAYLOAD)
        row.options.name = f"kind-{index % NAMES}"
        row.options.priority = index % 3
        row.options.max_attempts = 5
    return request.SerializeToString()


def traced_rows(count: int, first: int, queue: str = QUEUE) -> bytes:
    """A push of jobs that each carry a trace of their own, so that no two have the same options."""
    request = jobs.PushRequest(queue=queue)
    for index in range(first, first + count):
        row = request.jobs.add(data=PAYLOAD)
        row.options.name = f"kind-{index % NAMES}"
        row.options.headers["traceparent"] = _trace_of(index)
    return request.SerializeToString()


def traced_columns(count: int, first: int, queue: str = QUEUE) -> bytes:
    """The same traces beside plain payloads, as a column."""
    request = jobs.PushRequest(queue=queue, payloads=[PAYLOAD] * count)
    column = request.header_columns.add(key="traceparent")
    column.values.extend(_trace_of(index) for index in range(first, first + count))
    return request.SerializeToString()


def _trace_of(index: int) -> str:
    return f"00-{index:032x}-{index:016x}-01"


def pull(count: int, *, runs: bool, queue: str = QUEUE) -> bytes:
    """A pull that does not wait."""
    request = jobs.PullRequest(max_jobs=count, accepts_runs=runs)
    request.queues.add(queue=queue)
    return request.SerializeToString()


def opening(window: int, *, runs: bool, queue: str = QUEUE) -> bytes:
    """The first frame of a worker's stream."""
    request = jobs.StreamRequest()
    request.open.worker.id = "bench"
    request.open.queues.add(queue=queue)
    request.open.accepts_runs = runs
    request.window.max_in_flight = window
    return request.SerializeToString()


def heartbeat() -> bytes:
    """An empty frame."""
    return jobs.StreamRequest().SerializeToString()


def acks(ids: Iterable[int], deliveries: Iterable[int]) -> bytes:
    """An ack of jobs without results, as columns."""
    return jobs.AckRequest(ids=ids, deliveries=deliveries).SerializeToString()


def settle(seq: int, ids: Iterable[int], deliveries: Iterable[int]) -> bytes:
    """The same as a frame of a stream, to be confirmed under a number."""
    request = jobs.StreamRequest()
    request.settles.add(seq=seq, ack_ids=ids, ack_deliveries=deliveries)
    return request.SerializeToString()


def pulled(count: int, *, runs: bool) -> bytes:
    """The reply to a pull of plain jobs, for an empty handler."""
    reply = jobs.PullResponse()
    _hand_out(reply, count, runs)
    return reply.SerializeToString()


def delivered(count: int, *, runs: bool) -> bytes:
    """A frame that brings plain jobs, for an empty handler."""
    frame = jobs.StreamResponse()
    _hand_out(frame, count, runs)
    return frame.SerializeToString()


def _hand_out(message: jobs.PullResponse | jobs.StreamResponse, count: int, runs: bool) -> None:
    if runs:
        message.runs.add(
            first_id=1, delivery=1, queue=QUEUE, payloads=[PAYLOAD] * count, lease_ms=30_000
        )
        return
    for number in range(1, count + 1):
        message.jobs.add(
            id=number, delivery=1, queue=QUEUE, payload=PAYLOAD, attempt=1, lease_ms=30_000
        )


def confirm(seq: int) -> bytes:
    """What confirms a settle: a frame, or the end of one."""
    frame = jobs.StreamResponse()
    frame.confirms.add(seq=seq)
    return frame.SerializeToString()


def framed(message: bytes) -> bytes:
    """A message as it stands in the body of a gRPC call: not compressed, its length, itself."""
    return pack(">BI", 0, len(message)) + message
