"""A queue: its settings, its lanes and its counts."""

from __future__ import annotations

from bisect import insort
from collections.abc import Iterable, Iterator, Mapping, Sequence
from heapq import merge
from itertools import groupby

from jobline_server.engine.allowance import Allowance, TimeLimit
from jobline_server.engine.blocks import IdBlocks
from jobline_server.engine.gates import UNTIL_NOTICE, Gates
from jobline_server.engine.group import GroupTable
from jobline_server.engine.heads import LaneHeads
from jobline_server.engine.lane import SMALL_BYTES, Lane, LaneItem, LaneKey, lane_key, place_of
from jobline_server.engine.ranks import NO_LANES, Names, OwnLanes, Rank, remove_ranked
from jobline_server.engine.ready import ReadyCounts
from jobline_server.engine.values import (
    DEFAULT_SETTINGS,
    KEPT_STATES,
    JobState,
    QueueSettings,
)

# Enum attribute access is slow before Python 3.12.
_SCHEDULED, _BLOCKED, _READY = JobState.SCHEDULED, JobState.BLOCKED, JobState.READY
# Up to this number of priorities all are walked, which is faster than finding those of a name.
RANKS_WALKED_MAX = 8


class Queue:
    """A queue, with its lanes sorted by priority, so that the next job is found without a search.

    `counts[state]` is the number of jobs in a state, members of lots included: live ones, and ended
    ones that are kept. Ended jobs with ids below `born_id` belong to a deleted queue of this name.
    While it is `deleting`, its jobs are not leased.
    """

    __slots__ = (
        # durable
        "name",
        "number",
        "settings",
        "paused",
        "paused_by",
        "pause_reason",
        "created_ms",
        "limited",
        # bookkeeping
        "allowance",
        "blocks",
        "born_id",
        "deleting",
        "gates",
        "needing",
        "groups",
        "ready",
        "_lanes",
        "_order",
        "_order_of",
        "_ranks",
        "counts",
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
        self.paused_by = self.pause_reason = ""
        self.created_ms = self.touched_ms = created_ms
        self.limited: TimeLimit | None = None
        self.allowance: Allowance | None = None
        self.blocks = IdBlocks()
        self.born_id = 0
        self.deleting = False
        self.gates = Gates()
        self.needing = 0  # lanes with needs in the ranks
        self.groups = GroupTable()
        self.ready = ReadyCounts()
        # The lanes with READY jobs or a closed gate.
        self._lanes: dict[LaneKey, Lane] = {}
        # By priority: the lanes with READY jobs and an open gate.
        self._ranks: dict[int, Rank] = {}
        # Negated priorities of ranks, in order: all, and those of the lanes of each name.
        self._order: list[int] = []
        self._order_of: dict[str, list[int]] = {}
        # By the number of the state.
        self.counts = [0] * (max(JobState) + 1)
        self.payload_bytes = self.pushed_total = self.completed_total = self.failed_total = 0
        self.stored = False

    def lane_of(self, item: LaneItem) -> Lane:
        """Returns the lane of an item, created if it does not exist."""
        key = lane_key(item)
        lane = self._lanes.get(key)
        if lane is None:
            lane = self._lanes[key] = Lane(*key)
        return lane

    def find_lane(self, key: LaneKey) -> Lane | None:
        """Returns the lane with this key; None if it has no READY jobs and its gate is open."""
        return self._lanes.get(key)

    def put(self, item: LaneItem, jobs: int) -> None:
        """Appends an item with this number of READY jobs to its lane."""
        lane = self.lane_of(item)
        lane.put(item, jobs)
        if jobs:
            self.count_lane(lane, jobs)

    def put_all(self, items: Sequence[LaneItem], jobs: Iterable[int]) -> None:
        """Appends items, with their numbers of READY jobs, to their lanes in this order."""
        has_large = max([item.payload_bytes_max() for item in items], default=0) > SMALL_BYTES
        # Many items share few options, in any order.
        lanes: dict[int, Lane] = {}
        before: dict[Lane, int] = {}
        for item, count in zip(items, jobs, strict=True):
            lane = lanes.get(id(item.options))
            if lane is None or has_large:
                lane = lanes[id(item.options)] = self.lane_of(item)
                before.setdefault(lane, lane.ready)
            lane.put(item, count)
        self.count_ready(before)

    def put_back(self, jobs: Sequence[LaneItem], ready: int = 0) -> None:
        """Puts jobs, or one lot with `ready` jobs, into their lanes at their places."""
        by_lane: dict[Lane, list[LaneItem]] = {}
        for job in jobs:
            by_lane.setdefault(self.lane_of(job), []).append(job)
        before = {lane: lane.ready for lane in by_lane}
        for lane, of_lane in by_lane.items():
            lane.put_back(sorted(of_lane, key=place_of), ready)
            if before[lane] and not lane.opens_ms:
                self._ranks[lane.priority].note_head(lane)
        self.count_ready(before)

    def leave(self, item: LaneItem, jobs: int) -> None:
        """Counts `jobs` of an item out that are no longer READY."""
        lane = self.lane_of(item)
        lane.leave(jobs)
        self.count_lane(lane, -jobs)

    def count_ready(self, before: Mapping[Lane, int]) -> None:
        """Updates the counts after the `ready` of lanes changed from the value in `before`. A lane
        is in its rank while its `ready` is not 0, whatever items it still holds.
        """
        if len(before) == 1:
            [(lane, ready_before)] = before.items()
            self.count_lane(lane, lane.ready - ready_before)
            return
        self.counts[_READY] += self.ready.add_all(before)
        for lane, ready_before in before.items():
            if lane.opens_ms:
                self.gates.shut += lane.ready - ready_before
            if not ready_before or not lane.ready:
                self._join_or_forget(lane)

    def count_lane(self, lane: Lane, jobs: int) -> None:
        """Updates the counts after the `ready` of one lane changed by `jobs`."""
        if not jobs:
            return
        self.counts[_READY] += jobs
        self.ready.add(lane, jobs)
        if lane.opens_ms:
            self.gates.shut += jobs
        if lane.ready == jobs or not lane.ready:
            self._join_or_forget(lane)

    def _join_or_forget(self, lane: Lane) -> None:
        """Adds a lane that was empty to its rank, or removes one that is empty; a lane with a
        closed gate is only cleared, unless it is a session's own.
        """
        if lane.opens_ms:
            if not lane.ready:
                lane.clear()
                if lane.needs is not None and lane.needs.session:
                    self.open_gate(lane.key)
        elif lane.ready:
            self._join_rank(lane)
        else:
            del self._lanes[lane.key]
            self._leave_rank(lane)

    def close_gate(self, key: LaneKey, opens_ms: int = UNTIL_NOTICE) -> None:
        """Closes the gate of a lane until a time in monotonic milliseconds."""
        lane = self._lanes.get(key)
        if lane is None:
            lane = self._lanes[key] = Lane(*key)
        elif not lane.opens_ms:
            self._leave_rank(lane)
        self.gates.close(lane, opens_ms)

    def open_gate(self, key: LaneKey) -> None:
        """Opens the gate of a lane, if it is closed."""
        lane = self.gates.closed.get(key)
        if lane is None:
            return
        self.gates.open(lane)
        if lane.ready:
            self._join_rank(lane)
        else:
            del self._lanes[key]

    def _join_rank(self, lane: Lane) -> None:
        """Adds a lane to its rank."""
        priority, name = lane.priority, lane.name
        rank = self._ranks.get(priority)
        if rank is None:
            rank = self._ranks[priority] = Rank()
            insort(self._order, -priority)
        if name not in rank:
            insort(self._order_of.setdefault(name, []), -priority)
        rank.add(lane)
        self.needing += lane.needs is not None

    def _leave_rank(self, lane: Lane) -> None:
        """Removes a lane from its rank."""
        priority, name = lane.priority, lane.name
        rank = self._ranks[priority]
        rank.remove(lane)
        self.needing -= lane.needs is not None
        if name not in rank:
            order = self._order_of[name]
            remove_ranked(order, -priority)
            if not order:
                del self._order_of[name]
        if not rank:
            del self._ranks[priority]
            remove_ranked(self._order, -priority)

    def ranks(self, names: Names, size: int | None = None) -> Iterator[Iterator[Lane]]:
        """Yields the open lanes of `names` and of sizes up to `size` (None: all) by priority,
        highest first. Lanes of one priority are unordered.
        """
        for negative in self._order_for(names):
            yield self._ranks[-negative].lanes(names, size)

    def fronts(
        self, names: Names, size: int | None, version: str | None = None, own: OwnLanes = NO_LANES
    ) -> Iterator[Sequence[Lane | LaneHeads]]:
        """Yields the same lanes for a lease of a worker of this version (None: any), with one
        `LaneHeads` in place of many lanes of one size, and with lanes of its `own`.
        """
        order = self._order_for(names)
        for negative in sorted({*order, *own}) if own else order:
            rank, mine = self._ranks.get(-negative), own.get(negative)
            fronts = [] if rank is None else rank.fronts(names, size, version)
            yield [*fronts, *mine] if mine else fronts

    def lanes_up_to(self, item: LaneItem, names: Names) -> Iterator[Lane]:
        """Yields the open lanes of an item's priority that may have items before it."""
        rank = self._ranks.get(item.options.priority)
        return rank.lanes_up_to(item.order, names) if rank else iter(())

    def _order_for(self, names: Names) -> Iterable[int]:
        """Returns the negated priorities of the lanes of these names, highest priority first; all
        priorities if they are few.
        """
        if names is None or len(self._order) <= max(RANKS_WALKED_MAX, len(names)):
            return self._order
        found = [self._order_of[name] for name in names if name in self._order_of]
        return found[0] if len(found) == 1 else (rank for rank, _ in groupby(merge(*found)))

    def lanes(self) -> Iterator[Lane]:
        """Yields all lanes, including those with closed gates, unordered."""
        yield from self._lanes.values()

    def in_reach(self) -> int:
        """Returns the number of READY jobs in lanes whose gates are open."""
        return self.counts[_READY] - self.groups.held - self.gates.shut

    def live(self) -> int:
        """Returns the number of jobs that have not ended."""
        return sum(self.counts[: JobState.ACTIVE + 1])

    def waiting(self) -> int:
        """Returns the number of jobs that wait."""
        counts = self.counts
        return counts[_SCHEDULED] + counts[_BLOCKED] + counts[_READY]

    def kept(self) -> dict[JobState, int]:
        """Returns the numbers of ended jobs that are kept, by state, without zeros."""
        return {state: self.counts[state] for state in sorted(KEPT_STATES) if self.counts[state]}

    def set_kept(self, kept: Mapping[JobState, int]) -> None:
        """Sets the numbers of ended jobs that are kept."""
        for state in KEPT_STATES:
            self.counts[state] = kept.get(state, 0)

    def is_plain(self, wall_ms: int) -> bool:
        """Returns whether deleting it when it is empty loses only its name."""
        limited = self.limited is not None and self.limited.until_ms > wall_ms
        return self.settings == DEFAULT_SETTINGS and not (self.paused or self.groups or limited)
