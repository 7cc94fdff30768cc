"""Metrics of what happened to jobs since the start, all queues together."""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client.core import CounterMetricFamily, Metric

from jobline_server.runtime.durations import Durations
from jobline_server.runtime.totals import Totals


def total_metrics(totals: Totals, durations: Durations) -> Iterator[Metric]:
    """Yields how often jobs were handed out, and what became of that."""
    yield CounterMetricFamily(
        "jobline_deliveries", "Jobs handed out, each time counted.", durations.handed_out()
    )
    ended = CounterMetricFamily("jobline_jobs_ended", "Jobs ended.", labels=["state"])
    for state, count in totals.ended.items():
        ended.add_metric([state.name.lower()], count)
    yield ended
    lost = CounterMetricFamily(
        "jobline_leases_lost",
        "Leases that ended without a word of their worker.",
        labels=["reason"],
    )
    for reason, count in totals.leases_lost.items():
        lost.add_metric([reason.name.lower()], count)
    yield lost
    yield CounterMetricFamily(
        "jobline_jobs_released", "Jobs that workers gave back unfinished.", totals.released
    )
