"""Converts jobs for operators, and the ends of jobs for waiters, into messages."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from google.protobuf.timestamp_pb2 import Timestamp

from jobline.v1 import (
    dead_letter_service_pb2,
    job_admin_service_pb2,
    job_pb2,
    job_service_pb2,
    test_service_pb2,
)
from jobline_server.engine.endings import Ended
from jobline_server.engine.ties import NO_TIES
from jobline_server.engine.values import KEPT_STATES
from jobline_server.rpc.convert.phases import fill_phases
from jobline_server.rpc.convert.ties import fill_ties
from jobline_server.runtime.obstacles import Obstacle
from jobline_server.runtime.views import DeadCount, JobView
from jobline_server.runtime.watch.partials import Piece
from jobline_server.wire.errors import fill_attempt, fill_error
from jobline_server.wire.options import shared_message
from jobline_server.wire.times import fill_time

# Jobs that are converted in one step of the loop, each in some 20 µs.
STEP_JOBS = 100


def fill_moment(message: Timestamp, milliseconds: int) -> None:
    """Fills a timestamp; 0 stays unset."""
    if milliseconds:
        fill_time(message, milliseconds)


def fill_job(message: job_pb2.Job, view: JobView, *, with_payload: bool) -> None:
    """Fills a Job message; lists leave out payload, checkpoint and result."""
    message.id = view.id
    message.queue = view.queue
    message.state = job_pb2.JobState.ValueType(view.state)
    message.options.CopyFrom(shared_message(view.options))
    if view.ties is not NO_TIES:
        fill_ties(message.options, view.ties)
        claim = view.ties.claim
        if claim.throttles or view.state not in KEPT_STATES:
            fill_moment(message.unique_until, claim.until_ms)
    message.payload_bytes = view.payload_bytes or len(view.payload)
    message.job_key = view.job_key
    message.depends_on_left = view.depends_on_left
    _fill_moments(message, view)
    message.attempts = view.attempts
    message.stalls = view.stalls
    message.releases = view.releases
    message.delivery = view.delivery
    message.worker = view.worker
    message.progress = view.progress
    message.progress_message = view.progress_message
    message.reason = job_pb2.EndReason.ValueType(view.reason)
    message.cancel_requested = view.cancel_requested
    message.auto_retries = view.auto_retries
    if view.error is not None:
        fill_error(message.error, view.error)
    if view.stale_from is not None:
        message.stale_from = job_pb2.JobState.ValueType(view.stale_from)
    if view.options.rules.phases:
        fill_phases(message, view, with_results=with_payload)
    if view.log is not None:
        message.log_lines = len(view.log.lines)
    for attempt in view.history:
        fill_attempt(message.history.add(), attempt)
    if with_payload:
        message.payload = view.payload
        message.checkpoint = view.worker_checkpoint
        message.result = view.result


def _fill_moments(message: job_pb2.Job, view: JobView) -> None:
    fill_moment(message.pushed_at, view.pushed_ms)
    if view.run_at_ms:
        fill_moment(message.run_at, view.run_at_ms)
    if view.ttl_ends_ms:
        fill_moment(message.ttl_ends_at, view.ttl_ends_ms)
    if view.blocked_until_ms:
        fill_moment(message.blocked_until, view.blocked_until_ms)
    if view.ended_ms:
        fill_moment(message.ended_at, view.ended_ms)
    if view.lease_until_ms:
        fill_moment(message.lease_until, view.lease_until_ms)
    if view.retry_ms:
        fill_moment(message.retry_at, view.retry_ms)
    if view.expires_ms:
        fill_moment(message.expires_at, view.expires_ms)
    if view.times_out_ms:
        fill_moment(message.times_out_at, view.times_out_ms)


async def fill_page(
    response: job_admin_service_pb2.ListJobsResponse
    | dead_letter_service_pb2.ListDeadJobsResponse
    | test_service_pb2.WaitForResponse,
    views: Iterable[JobView],
    *,
    with_payload: bool,
) -> None:
    """Adds a page of jobs to a response, some in one step of the loop."""
    for number, view in enumerate(views, 1):
        fill_job(response.jobs.add(), view, with_payload=with_payload)
        if number % STEP_JOBS == 0:
            await asyncio.sleep(0)  # noqa: TID251  # it does not wait


def wait_response(job_id: int, ended: Ended | None) -> job_service_pb2.WaitResponse:
    """Returns the response for a job that ended or was deleted; None: there is no such job."""
    response = job_service_pb2.WaitResponse(id=job_id)
    if ended is None:
        response.not_found = True
        return response
    if ended.state is None:
        response.not_found = True
    else:
        response.state = job_pb2.JobState.ValueType(ended.state)
    response.result = ended.result
    response.reason = job_pb2.EndReason.ValueType(ended.reason)
    fill_moment(response.ended_at, ended.ended_ms)
    if ended.error is not None:
        fill_error(response.error, ended.error)
    return response


def partial_response(piece: Piece) -> job_service_pb2.WaitResponse:
    """Returns the response for a piece of a job's result."""
    return job_service_pb2.WaitResponse(
        id=piece.job_id,
        partial=piece.data,
        partial_number=piece.number,
        partial_delivery=piece.delivery,
    )


def fill_obstacle(message: job_admin_service_pb2.Obstacle, obstacle: Obstacle) -> None:
    """Fills the message of one reason why a job is not running."""
    message.kind = job_admin_service_pb2.ObstacleKind.ValueType(obstacle.kind)
    message.message = obstacle.message
    message.count = obstacle.count
    if obstacle.until_ms:
        fill_moment(message.until, obstacle.until_ms)


def fill_dead_count(message: dead_letter_service_pb2.DeadCount, count: DeadCount) -> None:
    """Fills the message of one count of dead jobs."""
    message.queue = count.queue
    message.name = count.name
    message.reason = job_pb2.EndReason.ValueType(count.reason)
    message.error_type = count.error_type
    message.count = count.count
    fill_moment(message.oldest_at, count.oldest_ms)
    fill_moment(message.newest_at, count.newest_ms)
