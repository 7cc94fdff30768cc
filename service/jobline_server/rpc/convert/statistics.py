"""Converts the statistics of the server, and its workers."""

from __future__ import annotations

from jobline.v1 import admin_service_pb2
from jobline_server.rpc.convert.jobs import fill_moment
from jobline_server.runtime.views import HandlerView, ServerView, WorkerView


def statistics_response(
    view: ServerView, *, version: str, transport: str
) -> admin_service_pb2.GetStatsResponse:
    """Returns the response with counts and health."""
    response = admin_service_pb2.GetStatsResponse(
        version=version,
        transport=transport,
        queues=view.queues,
        scheduled=view.scheduled,
        blocked=view.blocked,
        ready=view.ready,
        active=view.active,
        dead=view.dead,
        completed=view.completed,
        pushed_total=view.pushed_total,
        completed_total=view.completed_total,
        failed_total=view.failed_total,
        workers=view.workers,
        commits=view.commits,
        keys=view.keys,
        disk_full=view.disk_full,
        waiting_bytes=view.waiting_bytes,
    )
    fill_moment(response.started_at, view.started_ms)
    response.commit_time.FromNanoseconds(round(view.commit_ms * 1_000_000))
    response.loop_lag.FromNanoseconds(round(view.loop_lag_ms * 1_000_000))
    for shard in view.shards:
        response.shards.add(
            shard=shard.shard,
            epoch=shard.epoch,
            offset=shard.offset,
            checkpoint_offset=shard.checkpoint_offset,
            live_jobs=shard.live_jobs,
            queues=shard.queues,
            problem=shard.problem,
        )
    return response


def fill_worker(message: admin_service_pb2.Worker, view: WorkerView) -> None:
    """Fills a Worker message."""
    message.session = view.session
    description = message.description
    description.id = view.worker.id
    description.host = view.worker.host
    description.pid = view.worker.pid
    description.version = view.worker.version
    description.language = view.worker.language
    description.labels.update(view.worker.labels)
    for queue, weight in view.queues:
        message.queues.add(queue=queue, weight=weight)
    for handler in view.handlers:
        message.handlers.add(
            queue=handler.queue,
            name=handler.name,
            payload_schema=handler.payload_schema,
            result_schema=handler.result_schema,
            any_name=handler.any_name,
        )
    message.window = view.window
    message.in_flight = view.in_flight
    fill_moment(message.connected_at, view.connected_ms)
    fill_moment(message.last_heard_at, view.last_heard_ms)
    message.draining = view.draining
    message.lost = view.lost


def fill_handler(message: admin_service_pb2.HandlerSummary, view: HandlerView) -> None:
    """Fills the message of a handler."""
    message.queue = view.queue
    message.name = view.name
    message.any_name = view.any_name
    message.workers = view.workers
    message.differs.extend(view.differs)
    for variant, workers in view.variants:
        message.variants.add(
            version=variant.version,
            payload_schema=variant.payload_schema,
            result_schema=variant.result_schema,
            workers=workers,
        )
