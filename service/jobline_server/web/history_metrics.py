"""Metrics of the export of events; only a server that exports has them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Protocol

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector


class ExportSender(Protocol):
    """What is known of the way to the destination."""

    sent: int
    failures: int


class Export(Protocol):
    """What is known of an export."""

    rows_total: int
    failures: int

    @property
    def faults(self) -> int:
        """Returns how often events could not be made."""

    @property
    def lost_entries(self) -> int:
        """Returns of how many entries of the journal events are lost."""

    @property
    def memory_bytes(self) -> int:
        """Returns about how much memory events take that are not in the spool yet."""

    @property
    def sender(self) -> ExportSender:
        """Returns what sends the files."""

    @property
    def lag_seconds(self) -> float:
        """Returns the age of the oldest event that the destination does not have."""

    @property
    def spool_bytes(self) -> int:
        """Returns the bytes of the files that it does not have."""

    @property
    def lost_files(self) -> int:
        """Returns how many files it never gets."""


class HistoryCollector(Collector):
    """The counts of an export."""

    def __init__(self, export: Export) -> None:
        self._export = export

    def describe(self) -> Iterable[Metric]:
        """Returns nothing, as other collectors here."""
        return ()

    def collect(self) -> Iterator[Metric]:
        """Yields the metrics."""
        export, sender = self._export, self._export.sender
        yield GaugeMetricFamily(
            "jobline_history_lag_seconds",
            "Age of the oldest event that the destination does not have.",
            export.lag_seconds,
        )
        yield GaugeMetricFamily(
            "jobline_history_spool_bytes",
            "Files that wait for the destination, in bytes.",
            export.spool_bytes,
        )
        yield GaugeMetricFamily(
            "jobline_history_memory_bytes",
            "Memory of events that are in no stored file yet, about, in bytes.",
            export.memory_bytes,
        )
        yield CounterMetricFamily(
            "jobline_history_lost_entries",
            "Journal entries whose events are lost, as they could not be made twice.",
            export.lost_entries,
        )
        yield CounterMetricFamily(
            "jobline_history_events", "Events stored for the history.", export.rows_total
        )
        yield CounterMetricFamily(
            "jobline_history_files", "Files that the destination got.", sender.sent
        )
        yield CounterMetricFamily(
            "jobline_history_lost_files",
            "Files given up, as they could not be stored.",
            export.lost_files,
        )
        failures = CounterMetricFamily(
            "jobline_history_failures",
            "Failures to make events, to store and to send them.",
            labels=["step"],
        )
        failures.add_metric(["make"], export.faults)
        failures.add_metric(["store"], export.failures)
        failures.add_metric(["send"], sender.failures)
        yield failures
