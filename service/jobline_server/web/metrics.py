"""Metrics for Prometheus, made at each scrape from counters that the server keeps anyway.

Only the first queues by name get series of their own: ten thousand queues with a dozen series each
would be too much for a scraper. The number of queues left out is a metric too.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple, Protocol

from prometheus_client import CollectorRegistry, ProcessCollector
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    InfoMetricFamily,
    Metric,
)
from prometheus_client.registry import Collector

from jobline_server.runtime.core import Core
from jobline_server.runtime.runtime import Runtime
from jobline_server.runtime.views import QueueView, ServerView
from jobline_server.telemetry.calls import CallMeters
from jobline_server.web.access_metrics import Access, AccessCollector
from jobline_server.web.backup_metrics import BackupCollector, BackupCounts
from jobline_server.web.history_metrics import Export, HistoryCollector
from jobline_server.web.queue_metrics import duration_metrics, queue_metrics
from jobline_server.web.tls_metrics import Files, TlsCollector
from jobline_server.web.total_metrics import total_metrics
from jobline_server.web.tracing_metrics import Spans, TracingCollector

QUEUES_MAX = 100


class WorkRecord(Protocol):
    """The failures of one piece of the server's own work."""

    failures: int
    failures_in_a_row: int


class TaskRecord(Protocol):
    """The runs and failures of a periodic task."""

    runs: int

    @property
    def work(self) -> WorkRecord:
        """Returns its failures."""


class Parts(NamedTuple):
    """What a server may have, and then has metrics of: a history, authentication, a certificate,
    spans, backups.
    """

    history: Export | None = None
    access: Access | None = None
    certificate: Files | None = None
    spans: Spans | None = None
    backups: BackupCounts | None = None


def make_registry(
    server: ServerCollector,
    meters: CallMeters,
    tasks: Mapping[str, TaskRecord],
    parts: Parts,
) -> CollectorRegistry:
    """Returns a registry of this server, of its process, and of its parts."""
    registry = CollectorRegistry()
    registry.register(server)
    registry.register(CallsCollector(meters))
    registry.register(TasksCollector(tasks))
    if parts.history is not None:
        registry.register(HistoryCollector(parts.history))
    if parts.access is not None:
        registry.register(AccessCollector(parts.access))
    if parts.certificate is not None:
        registry.register(TlsCollector(parts.certificate))
    if parts.spans is not None:
        registry.register(TracingCollector(parts.spans))
    if parts.backups is not None:
        registry.register(BackupCollector(parts.backups))
    ProcessCollector(registry=registry)
    return registry


class ServerCollector(Collector):
    """Counts of the server and of its first queues. Call `refresh` before each `collect`, which
    cannot wait.
    """

    def __init__(self, runtime: Runtime, *, version: str, transport: str) -> None:
        self._runtime = runtime
        self._info = {"version": version, "transport": transport}
        self._view: ServerView | None = None
        self._queues: list[QueueView] = []

    def describe(self) -> Iterable[Metric]:
        """Returns nothing: the names are known only at `collect`."""
        return ()

    def collect(self) -> Iterator[Metric]:
        """Yields the metrics of the last `refresh`, and those that need none."""
        yield InfoMetricFamily("jobline", "The server.", value=self._info)
        view, queues = self._view, self._queues
        if view is None:
            return
        yield from _totals(view)
        yield from _health(view)
        yield from _own_work(self._runtime.core)
        yield from total_metrics(self._runtime.totals, self._runtime.core.durations)
        yield CounterMetricFamily(
            "jobline_damaged_jobs",
            "Ended jobs that were found damaged, and are left out of lists.",
            self._runtime.ended.damage.count(),
        )
        yield CounterMetricFamily(
            "jobline_dead_evicted",
            "Dead jobs that were deleted because their queue keeps no more of them.",
            self._runtime.evictions.count,
        )
        core = self._runtime.core
        yield from queue_metrics(queues, core.now().wall_ms)
        yield from duration_metrics(core.durations)
        left_out = view.queues - len(queues)
        yield GaugeMetricFamily(
            "jobline_queues_without_metrics", "Queues over the bound of this page.", left_out
        )

    async def refresh(self) -> None:
        """Counts the jobs of all queues, in slices."""
        self._queues = await self._first_queues()
        self._view = await self._runtime.statistics.of_server()

    async def _first_queues(self) -> list[QueueView]:
        """Returns the first queues by name. A page of the list may be cut short by its size."""
        found: list[QueueView] = []
        token = ""
        while len(found) < QUEUES_MAX:
            views, token = await self._runtime.queues.list_queues(
                page_size=QUEUES_MAX - len(found), page_token=token, prefix=""
            )
            found += views
            if not token:
                break
        return found


def _totals(view: ServerView) -> Iterator[Metric]:
    jobs = GaugeMetricFamily(
        "jobline_jobs", "Jobs by state; ended ones that are kept.", labels=["state"]
    )
    for state in ("scheduled", "blocked", "ready", "active", "dead", "completed"):
        jobs.add_metric([state], getattr(view, state))
    yield jobs
    yield CounterMetricFamily("jobline_jobs_pushed", "Jobs pushed.", view.pushed_total)
    yield CounterMetricFamily("jobline_jobs_completed", "Jobs completed.", view.completed_total)
    yield CounterMetricFamily("jobline_attempts_failed", "Attempts failed.", view.failed_total)
    yield GaugeMetricFamily("jobline_queues", "Queues.", view.queues)
    yield GaugeMetricFamily("jobline_workers", "Connected workers.", view.workers)
    yield GaugeMetricFamily("jobline_keys", "Idempotency keys that are kept.", view.keys)
    yield GaugeMetricFamily(
        "jobline_throttled_keys", "Unique keys held until a time.", view.throttled_keys
    )
    yield GaugeMetricFamily(
        "jobline_waiting_bytes", "Payloads and logs of live jobs in bytes.", view.waiting_bytes
    )


def _health(view: ServerView) -> Iterator[Metric]:
    yield GaugeMetricFamily(
        "jobline_start_time_seconds", "When it started.", view.started_ms / 1_000
    )
    yield CounterMetricFamily("jobline_commits", "Commits.", view.commits)
    yield GaugeMetricFamily(
        "jobline_commit_seconds",
        "Mean time of the last commits, fsync included.",
        view.commit_ms / 1_000,
    )
    yield GaugeMetricFamily(
        "jobline_loop_lag_seconds",
        "The longest that the loop was late in the last minute.",
        view.loop_lag_ms / 1_000,
    )
    yield GaugeMetricFamily(
        "jobline_disk_full", "1 while pushes are refused for a full disk.", int(view.disk_full)
    )
    journal = GaugeMetricFamily(
        "jobline_journal_commits",
        "Commits of a shard that no checkpoint holds yet.",
        labels=["shard"],
    )
    served = GaugeMetricFamily(
        "jobline_shard_served",
        "1 for a shard that is served, 0 for one that was lost.",
        labels=["shard"],
    )
    for shard in view.shards:
        journal.add_metric([str(shard.shard)], shard.offset - shard.checkpoint_offset)
        served.add_metric([str(shard.shard)], int(not shard.problem))
    yield journal
    yield served


def _own_work(core: Core) -> Iterator[Metric]:
    """Yields metrics of commits, the loop, and the server's own work."""
    commits = core.commits.meter
    yield HistogramMetricFamily(
        "jobline_commit_duration_seconds",
        "How long commits took, fsync included.",
        buckets=list(commits.seconds.cumulative()),
        sum_value=commits.seconds.seconds,
    )
    yield HistogramMetricFamily(
        "jobline_commit_bytes",
        "How many bytes commits added to the journals.",
        buckets=list(commits.bytes.cumulative()),
        sum_value=commits.bytes.seconds,
    )
    late = core.heartbeat.lag.histogram
    yield HistogramMetricFamily(
        "jobline_loop_late_seconds",
        "How late the loop was, measured twenty times a second, less often at rest.",
        buckets=list(late.cumulative()),
        sum_value=late.seconds,
    )
    labels = ["work"]
    failures = CounterMetricFamily(
        "jobline_work_failures", "Failures of work that the server does by itself.", labels=labels
    )
    in_a_row = GaugeMetricFamily(
        "jobline_work_failures_in_a_row", "Failures since it last went well.", labels=labels
    )
    for name, record in core.loops.records.items():
        failures.add_metric([name], record.failures)
        in_a_row.add_metric([name], record.failures_in_a_row)
    yield from (failures, in_a_row)


class CallsCollector(Collector):
    """Counts and times of gRPC calls by method."""

    def __init__(self, meters: CallMeters) -> None:
        self._meters = meters

    def describe(self) -> Iterable[Metric]:
        """Returns nothing: the names are known only at `collect`."""
        return ()

    def collect(self) -> Iterator[Metric]:
        """Yields the metrics of all methods that were called."""
        labels = ["service", "method"]
        ended = CounterMetricFamily(
            "jobline_calls", "Calls that ended, by status.", labels=[*labels, "code"]
        )
        in_flight = GaugeMetricFamily("jobline_calls_in_flight", "Open calls.", labels=labels)
        seconds = HistogramMetricFamily(
            "jobline_call_seconds", "How long calls took.", labels=labels
        )
        for meter in self._meters:
            if not meter.started:
                continue
            names = [meter.service, meter.method]
            in_flight.add_metric(names, meter.in_flight)
            for code, count in meter.ended.items():
                ended.add_metric([*names, code], count)
            seconds.add_metric(names, list(meter.seconds.cumulative()), meter.seconds.seconds)
        yield from (ended, in_flight, seconds)


class TasksCollector(Collector):
    """Runs and failures of periodic tasks. The metrics are named after their old word, beat."""

    def __init__(self, tasks: Mapping[str, TaskRecord]) -> None:
        self._tasks = tasks

    def describe(self) -> Iterable[Metric]:
        """Returns nothing: the names are known only at `collect`."""
        return ()

    def collect(self) -> Iterator[Metric]:
        """Yields the metrics of all tasks. Many failures in a row are worth an alarm."""
        labels = ["beat"]
        runs = CounterMetricFamily("jobline_beat_runs", "Runs of a periodic task.", labels=labels)
        failures = CounterMetricFamily("jobline_beat_failures", "Failed runs.", labels=labels)
        in_a_row = GaugeMetricFamily(
            "jobline_beat_failures_in_a_row", "Failed runs since the last good one.", labels=labels
        )
        for name, record in self._tasks.items():
            runs.add_metric([name], record.runs)
            failures.add_metric([name], record.work.failures)
            in_a_row.add_metric([name], record.work.failures_in_a_row)
        yield from (runs, failures, in_a_row)
