"""Metrics of the server's certificate."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Protocol

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector


class Certificate(Protocol):
    """The certificate that was read last."""

    @property
    def expires_s(self) -> float:
        """Returns when it ends, in seconds of wall time."""


class Files(Protocol):
    """The files of the certificate."""

    reload_failures: int

    @property
    def now(self) -> Certificate:
        """Returns what was read last."""


class TlsCollector(Collector):
    """Says when the certificate ends."""

    def __init__(self, files: Files) -> None:
        self._files = files

    def describe(self) -> Iterable[Metric]:
        """Returns nothing: the names are known only at `collect`."""
        return ()

    def collect(self) -> Iterator[Metric]:
        """Yields the metrics."""
        yield GaugeMetricFamily(
            "jobline_tls_certificate_expiry_timestamp_seconds",
            "When the first certificate of the chain in use ends.",
            self._files.now.expires_s,
        )
        yield CounterMetricFamily(
            "jobline_tls_reload_failures",
            "Changes of the certificate's files that were not used, for what is wrong with them.",
            self._files.reload_failures,
        )
