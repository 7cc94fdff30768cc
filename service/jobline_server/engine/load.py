"""Load: what all shards of a server hold together, and how much they may."""

from __future__ import annotations

from dataclasses import dataclass, field

from jobline_server.engine import limits
from jobline_server.engine.batch_table import BatchTable
from jobline_server.engine.limiters import Limiters
from jobline_server.engine.queue import Queue
from jobline_server.engine.values import JobState
from jobline_server.engine.wanted import Wanted


@dataclass(slots=True)
class Load:
    """Totals of all shards of a server, and their limits. `limiters` are those of all shards;
    `batches` are those of each, by its number (None: it is lost), for a push to one shard looks at
    a batch of another.
    """

    waiting_max: int = limits.SERVER_WAITING_MAX
    waiting_bytes_max: int = limits.SERVER_WAITING_BYTES_MAX
    keys_max: int = limits.KEYS_MAX
    requests_max: int = limits.REQUEST_IDS_MAX
    calls_max: int = limits.CALLS_MAX
    groups_max: int = limits.GROUPS_MAX
    dependencies_max: int = limits.DEPENDENCIES_MAX
    batch_kept_ms: int = limits.BATCH_KEPT_MS_DEFAULT
    worker_limit_ms_max: int = limits.WORKER_LIMIT_MS_DEFAULT
    live_jobs: int = 0
    active_jobs: int = 0
    payload_bytes: int = 0
    keys: int = 0
    requests: int = 0
    calls: int = 0
    groups: int = 0
    group_buckets: int = 0
    throttles: int = 0
    dependencies: int = 0
    outgoing_jobs: int = 0
    outgoing_bytes: int = 0
    report_bytes: int = 0
    gone_pushed_total: int = field(default=0, compare=False)
    gone_completed_total: int = field(default=0, compare=False)
    gone_failed_total: int = field(default=0, compare=False)
    """What queues had counted that were deleted since the start, or whose shard was lost: totals of
    the server never fall while it runs. They begin with the process, as those of queues do.
    """
    tells_webhooks: bool = field(default=False, compare=False)
    """There is, or was since the start, a webhook that is told of events, or a job with one."""
    keeps_history: bool = field(default=False, compare=False)
    """Whether `apply` notes jobs for the history (`snapshots`); fixed before a shard is loaded."""
    limiters: Limiters = field(default_factory=Limiters, compare=False)
    batches: dict[int, BatchTable | None] = field(default_factory=dict, compare=False)
    wanted: Wanted = field(default_factory=Wanted, compare=False)
    """The jobs whose results live jobs of any shard may read."""

    def let_go(self, queue: Queue) -> None:
        """Subtracts the jobs of a queue whose shard is not served any more; keeps its totals."""
        self.limiters.leave(queue)
        self.keep_totals(queue)
        self.live_jobs -= queue.live()
        self.active_jobs -= queue.counts[JobState.ACTIVE]
        self.payload_bytes -= queue.payload_bytes
        self.groups -= len(queue.groups)

    def keep_totals(self, queue: Queue) -> None:
        """Adds what a queue had counted that is gone."""
        self.gone_pushed_total += queue.pushed_total
        self.gone_completed_total += queue.completed_total
        self.gone_failed_total += queue.failed_total

    def held_bytes(self) -> int:
        """Returns the bytes that count towards `waiting_bytes_max`: of payloads, of messages to
        other shards, of what workers reported on live jobs, and of callbacks of batches.
        """
        return self.payload_bytes + self.outgoing_bytes + self.report_bytes
