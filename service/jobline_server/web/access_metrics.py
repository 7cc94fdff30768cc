"""Metrics of who was refused, on a server that authenticates callers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Protocol

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector


class Refusals(Protocol):
    """Counts refusals by their reasons."""

    @property
    def counts(self) -> Mapping[str, int]:
        """Returns the counts."""


class AccessFile(Protocol):
    """What was read of the file."""

    reload_failures: int
    is_wrong: bool


class Access(Protocol):
    """What authenticates callers."""

    @property
    def refusals(self) -> Refusals:
        """Returns the counts of refusals."""

    @property
    def authenticator(self) -> AccessFile:
        """Returns how reading the file went."""


class AccessCollector(Collector):
    """Counts refusals, and readings of the file that failed."""

    def __init__(self, access: Access) -> None:
        self._access = access

    def describe(self) -> Iterable[Metric]:
        """Returns nothing: the names are known only at `collect`."""
        return ()

    def collect(self) -> Iterator[Metric]:
        """Yields the metrics."""
        refused = CounterMetricFamily(
            "jobline_auth_refused", "Callers that were refused.", labels=["reason"]
        )
        for reason, count in self._access.refusals.counts.items():
            refused.add_metric([reason], count)
        yield refused
        file = self._access.authenticator
        yield CounterMetricFamily(
            "jobline_auth_reload_failures",
            "Changes of the file `auth` that were not used, for mistakes in it.",
            file.reload_failures,
        )
        yield GaugeMetricFamily(
            "jobline_auth_file_wrong",
            "1 while the file `auth` has mistakes, and the one before is in force.",
            int(file.is_wrong),
        )
