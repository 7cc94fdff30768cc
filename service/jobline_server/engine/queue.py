"""A queue: its settings, its lanes and its counts."""

from __future__ import annotations

from bisect import insort

from jobline_server.engine.job import Job
from jobline_server.engine.lane import Item, Lane
from jobline_server.engine.lot import Lot
from jobline_server.engine.values import DEFAULT_SETTINGS, JobState, QueueSettings


class Queue:
    """Jobs of one kind of place. Lanes are sorted by priority, so the next job is found without a
    search.

    The counts are of jobs, whole lots included: `scheduled + ready + active` are live, `ended`
    holds those that are still kept by state.
    """

    __slots__ = (
        # what is kept on disk
        "name",
        "number",
        "settings",
        "paused",
        "paused_by",
        "pause_reason",
        "created_ms",
        # bookkeeping
        "_lanes",
        "_ranks",
        "scheduled",
        "ready",
        "active",
        "ended",
        "payload_bytes",
        "pushed_total",
        "completed_total",
        "failed_total",
        "touched_ms",
        "stored",
    )

    def __init__(self, name: str, number: int, created_ms: int) -> None:
        self.name = name
        self.number = number
        self.settings: QueueSettings = DEFAULT_SETTINGS
        self.paused = False
        self.paused_by = ""
        self.pause_reason = ""
        self.created_ms = created_ms
        self._lanes: dict[int, dict[str, Lane]] = {}
        self._ranks: list[int] = []
        self.scheduled = 0
        self.ready = 0
        self.active = 0
        self.ended: dict[JobState, int] = {}
        self.payload_bytes = 0
        self.pushed_total = 0
        self.completed_total = 0
        self.failed_total = 0
        self.touched_ms = created_ms
        self.stored = False

    def lane(self, priority: int, name: str) -> Lane:
        """The lane of this priority and name, made if it is not there."""
        rank = self._lanes.get(priority)
        if rank is None:
            rank = self._lanes[priority] = {}
            insort(self._ranks, -priority)
        lane = rank.get(name)
        if lane is None:
            lane = rank[name] = Lane(priority, name)
        return lane

    def put(self, item: Item, jobs: int) -> None:
        """Makes an item ready at the tail of its lane."""
        self.lane(item.options.priority, item.options.name).put(item, jobs)
        self.ready += jobs

    def put_front(self, job: Job) -> None:
        """Makes a job ready at the front of its lane."""
        self.lane(job.options.priority, job.options.name).put_front(job)
        self.ready += 1

    def leave(self, item: Item, jobs: int) -> None:
        """Jobs of an item are not ready any more."""
        lane = self._lanes[item.options.priority][item.options.name]
        lane.leave(jobs)
        self.ready -= jobs
        self._drop_if_empty(lane)

    def take(self, lane: Lane, jobs: int) -> None:
        """Jobs at the head of a lane were handed out; a spent head is removed."""
        lane.ready -= jobs
        self.ready -= jobs
        head = lane.items[0]
        if not isinstance(head, Lot) or head.cursor >= len(head.payloads):
            lane.items.popleft()
        self._drop_if_empty(lane)

    def _drop_if_empty(self, lane: Lane) -> None:
        if lane.ready:
            return
        rank = self._lanes[lane.priority]
        del rank[lane.name]
        if not rank:
            del self._lanes[lane.priority]
            self._ranks.remove(-lane.priority)

    def next_lane(self, names: frozenset[str] | None, committed: int) -> Lane | None:
        """The lane whose head is to be handed out next to somebody who handles `names` (None:
        any): of the highest priority, and of those the one that was ready first. Heads that are
        not durable yet do not count.
        """
        for negative in self._ranks:
            best: Lane | None = None
            best_order = 0
            for name, lane in self._lanes[-negative].items():
                if names is not None and name not in names:
                    continue
                head = lane.head()
                if head is None or head.offset > committed:
                    continue
                if best is None or head.order < best_order:
                    best, best_order = lane, head.order
            if best is not None:
                return best
        return None

    def is_only_lane(self, lane: Lane, names: frozenset[str] | None) -> bool:
        """Whether no other lane of its priority could be next for somebody who handles `names`."""
        rank = self._lanes[lane.priority]
        return len(rank) == 1 or (names is not None and len(names) == 1)

    def lanes(self) -> list[Lane]:
        """All lanes, highest priority first."""
        return [lane for rank in self._ranks for lane in self._lanes[-rank].values()]

    def live(self) -> int:
        """Jobs that have not ended."""
        return self.scheduled + self.ready + self.active

    def is_plain(self) -> bool:
        """Whether nothing but its name would be lost if it vanished."""
        return self.settings == DEFAULT_SETTINGS and not self.paused
