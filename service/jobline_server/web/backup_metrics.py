"""Metrics of backups; only a server that has a destination for them has these."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Protocol

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector


class BackupCounts(Protocol):
    """What is known of backups."""

    failures: int
    last_success_ms: int | None
    last_seconds: float


class BackupCollector(Collector):
    """The counts of backups."""

    def __init__(self, backups: BackupCounts) -> None:
        self._backups = backups

    def describe(self) -> Iterable[Metric]:
        """Returns nothing, as other collectors here."""
        return ()

    def collect(self) -> Iterator[Metric]:
        """Yields the metrics."""
        backups = self._backups
        if backups.last_success_ms is not None:
            yield GaugeMetricFamily(
                "jobline_backup_last_success_timestamp_seconds",
                "The moment whose state the newest whole backup has; 0 without one.",
                backups.last_success_ms / 1_000,
            )
        yield GaugeMetricFamily(
            "jobline_backup_last_duration_seconds",
            "How long the last whole backup took; 0 before the first since the start.",
            backups.last_seconds,
        )
        yield CounterMetricFamily(
            "jobline_backup_failures", "Backups that failed since the start.", backups.failures
        )
