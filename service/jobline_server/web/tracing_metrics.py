"""Metrics of tracing; only a server that traces has them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Protocol

from prometheus_client.core import CounterMetricFamily, Metric
from prometheus_client.registry import Collector


class Spans(Protocol):
    """What is known of spans since the start."""

    @property
    def ended(self) -> int:
        """Returns how many there were that are sampled."""

    @property
    def sent(self) -> int:
        """Returns how many were sent."""

    @property
    def failed(self) -> int:
        """Returns how many could not be sent."""


class TracingCollector(Collector):
    """The counts of spans."""

    def __init__(self, spans: Spans) -> None:
        self._spans = spans

    def describe(self) -> Iterable[Metric]:
        """Returns nothing, as other collectors here."""
        return ()

    def collect(self) -> Iterator[Metric]:
        """Yields the metrics."""
        yield CounterMetricFamily("jobline_spans", "Spans of calls.", self._spans.ended)
        yield CounterMetricFamily("jobline_spans_sent", "Spans sent.", self._spans.sent)
        yield CounterMetricFamily(
            "jobline_spans_failed", "Spans that could not be sent.", self._spans.failed
        )
