"""Metrics of queues: counts, and how long their jobs waited and ran."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)

from jobline_server.runtime.durations import SHOWN_BOUNDS, Durations
from jobline_server.runtime.views import QueueView
from jobline_server.telemetry.calls import Histogram

# States whose count is shown while it is 0, too.
ALWAYS_SHOWN = frozenset({"SCHEDULED", "READY", "ACTIVE"})


def queue_metrics(views: list[QueueView], wall_ms: int) -> Iterator[Metric]:
    """Yields the counts of these queues."""
    jobs = GaugeMetricFamily("jobline_queue_jobs", "Jobs of a queue.", labels=["queue", "state"])
    unhandled = GaugeMetricFamily(
        "jobline_queue_unhandled", "READY jobs that no connected worker handles.", labels=["queue"]
    )
    oldest = GaugeMetricFamily(
        "jobline_queue_oldest_ready_seconds",
        "For how long the oldest READY job has been READY.",
        labels=["queue"],
    )
    paused = GaugeMetricFamily("jobline_queue_paused", "1 while paused.", labels=["queue"])
    pushed = CounterMetricFamily("jobline_queue_jobs_pushed", "Jobs pushed.", labels=["queue"])
    needed = GaugeMetricFamily(
        "jobline_queue_workers_needed",
        "Workers that the objective of a queue needs.",
        labels=["queue"],
    )
    completed = CounterMetricFamily(
        "jobline_queue_jobs_completed", "Jobs completed.", labels=["queue"]
    )
    failed = CounterMetricFamily(
        "jobline_queue_attempts_failed", "Attempts failed.", labels=["queue"]
    )
    for view in views:
        for state, count in view.counts.items():
            if count or state.name in ALWAYS_SHOWN:
                jobs.add_metric([view.name, state.name.lower()], count)
        unhandled.add_metric([view.name], view.unhandled)
        age_ms = wall_ms - view.oldest_ready_ms if view.oldest_ready_ms else 0
        oldest.add_metric([view.name], max(age_ms, 0) / 1_000)
        paused.add_metric([view.name], int(view.paused))
        if view.workers_needed is not None:
            needed.add_metric([view.name], view.workers_needed.workers)
        pushed.add_metric([view.name], view.pushed_total)
        completed.add_metric([view.name], view.completed_total)
        failed.add_metric([view.name], view.failed_total)
    yield from (jobs, unhandled, oldest, paused, needed, pushed, completed, failed)


def duration_metrics(durations: Durations) -> Iterator[Metric]:
    """Yields how long jobs waited and ran, by queue; each is made when its turn comes."""
    queues = durations.by_queue
    yield _histograms(
        "jobline_wait_seconds",
        "How long jobs were READY before they were handed out.",
        {name: queue.waiting for name, queue in queues.items()},
    )
    yield _histograms(
        "jobline_run_seconds",
        "How long jobs that completed took, from their last hand-out on.",
        {name: queue.running for name, queue in queues.items()},
    )


def _histograms(name: str, about: str, by_queue: Mapping[str, Histogram]) -> Metric:
    metric = HistogramMetricFamily(name, about, labels=["queue"])
    for queue, histogram in by_queue.items():
        shown = list(histogram.cumulative(SHOWN_BOUNDS))
        metric.add_metric([queue], shown, histogram.seconds)
    return metric
