"""Metrics of the server's certificate, and of those who do not get on with it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Protocol

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector


class Certificate(Protocol):
    """The certificate that was read last."""

    @property
    def expires_s(self) -> float:
        """Returns when it ends, in seconds of wall time."""


class Failures(Protocol):
    """Handshakes that failed."""

    @property
    def counts(self) -> Mapping[str, int]:
        """Returns how many, by reason."""


class Files(Protocol):
    """The files of the certificate."""

    reload_failures: int

    @property
    def failures(self) -> Failures:
        """Returns the handshakes that failed."""

    @property
    def now(self) -> Certificate:
        """Returns what was read last."""


class TlsCollector(Collector):
    """Says when the certificate ends, and which handshakes failed."""

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
        failed = CounterMetricFamily(
            "jobline_tls_handshakes_failed",
            "Handshakes that failed, by OpenSSL's reason; the transport grpcio counts none.",
            labels=["reason"],
        )
        for reason, count in sorted(self._files.failures.counts.items()):
            failed.add_metric([reason], count)
        yield failed
