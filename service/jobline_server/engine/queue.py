"""A queue: its settings, its lanes and its counts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from jobline_server.engine.allowance import Allowance, TimeLimit
from jobline_server.engine.blocks import IdBlocks
from jobline_server.engine.fair import Clock, FairShare
from jobline_server.engine.gates import UNTIL_NOTICE, Gates
from jobline_server.engine.group import GroupTable
from jobline_server.engine.lane import SMALL_BYTES, Lane, LaneItem, LaneKey, lane_key, place_of
from jobline_server.engine.lane_table import LaneTable
from jobline_server.engine.open_lanes import OpenLanes
from jobline_server.engine.ready import ReadyCounts
from jobline_server.engine.values import (
    DEFAULT_SETTINGS,
    KEPT_STATES,
    JobState,
    QueueSettings,
)

# Enum attribute access is slow before Python 3.12.
_SCHEDULED, _BLOCKED, _READY = JobState.SCHEDULED, JobState.BLOCKED, JobState.READY


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
        "fair",
        "open",
        "ready",
        "_lanes",
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
        self._lanes = LaneTable()
        # Those with both, of jobs that have no tenant.
        self.open = OpenLanes()
        self.fair: FairShare | None = None
        # By the number of the state.
        self.counts = [0] * (max(JobState) + 1)
        self.payload_bytes = self.pushed_total = self.completed_total = self.failed_total = 0
        self.stored = False

    def lane_of(self, item: LaneItem) -> Lane:
        """Returns the lane of an item, created if it does not exist."""
        key = lane_key(item)
        return self._lanes.find(key) or self._new_lane(key)

    def _new_lane(self, key: LaneKey) -> Lane:
        lane = self._lanes.add(key)
        if self.fair is not None:
            self.fair.own(lane)
        return lane

    def _drop_lane(self, lane: Lane) -> None:
        self._lanes.remove(lane)
        if self.fair is not None:
            self.fair.disown(lane)

    def find_lane(self, key: LaneKey) -> Lane | None:
        """Returns the lane with this key; None if it has no READY jobs and its gate is open."""
        return self._lanes.find(key)

    def put(self, item: LaneItem, jobs: int) -> None:
        """Appends an item with this number of READY jobs to its lane."""
        lane = self.lane_of(item)
        lane.put(item, jobs)
        if jobs:
            self.count_lane(lane, jobs)

    def put_all(self, items: Sequence[LaneItem], jobs: Iterable[int]) -> None:
        """Appends items, with their numbers of READY jobs, to their lanes in this order."""
        has_large = max([item.payload_bytes_max() for item in items], default=0) > SMALL_BYTES
        is_fair = self.fair is not None
        # Many items share few options, in any order.
        lanes: dict[tuple[int, str], Lane] = {}
        before: dict[Lane, int] = {}
        for item, count in zip(items, jobs, strict=True):
            key = id(item.options), item.tenant if is_fair else ""
            lane = lanes.get(key)
            if lane is None or has_large:
                lane = lanes[key] = self.lane_of(item)
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
                self._open_lanes_of(lane).note_head(lane)
        self.count_ready(before)

    def leave(self, item: LaneItem, jobs: int) -> None:
        """Counts `jobs` of an item out that are no longer READY."""
        lane = self.lane_of(item)
        lane.leave(jobs)
        self.count_lane(lane, -jobs)

    def empty_lane(self, lane: Lane) -> None:
        """Takes all jobs out of a lane; it is forgotten, unless its gate is closed."""
        jobs, lane.ready = lane.ready, 0
        lane.clear()
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
            if lane.owner is not None:
                lane.owner.ready += lane.ready - ready_before
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
        if lane.owner is not None:
            lane.owner.ready += jobs
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
            self._open(lane)
        else:
            self._close(lane)
            self._drop_lane(lane)

    def close_gate(self, key: LaneKey, opens_ms: int = UNTIL_NOTICE) -> None:
        """Closes the gate of a lane until a time in monotonic milliseconds."""
        lane = self._lanes.find(key)
        if lane is None:
            lane = self._new_lane(key)
        elif not lane.opens_ms:
            self._close(lane)
        self.gates.close(lane, opens_ms)

    def open_gate(self, key: LaneKey) -> None:
        """Opens the gate of a lane, if it is closed."""
        lane = self.gates.closed.get(key)
        if lane is None:
            return
        self.gates.open(lane)
        if lane.ready:
            self._open(lane)
        else:
            self._drop_lane(lane)

    def _open(self, lane: Lane) -> None:
        """Lets leases find a lane."""
        if self.fair is None:
            self.open.join(lane)
        else:
            self.fair.join(lane)
        self.needing += lane.needs is not None

    def _close(self, lane: Lane) -> None:
        """Hides a lane from leases."""
        if self.fair is None:
            self.open.leave(lane)
        else:
            self.fair.leave(lane)
        self.needing -= lane.needs is not None

    def _open_lanes_of(self, lane: Lane) -> OpenLanes:
        """Returns the open lanes among which a lane is."""
        if self.fair is None or not lane.tenant:
            return self.open
        return self.fair.known(lane.tenant).open

    def be_fair(self, clocks: Clock, resting: list[FairShare]) -> FairShare:
        """Makes a queue fair, as it is set to be, whose groups have no jobs in lanes; returns what
        it has of a fair queue. `clocks` and `resting` are those of its shard.
        """
        groups, defaults = self.groups, self.settings.group
        self.fair = fair = FairShare(groups, defaults, self.open, clocks, resting)
        for lane in self._lanes:
            fair.own(lane)
            if not lane.opens_ms:
                fair.adopt(lane)
        return fair

    def be_plain(self) -> None:
        """Makes a fair queue one that is not; its groups have no jobs in lanes."""
        self.fair = None
        for lane in self._lanes:
            lane.owner = None

    def lanes(self) -> Iterator[Lane]:
        """Yields all lanes, including those with closed gates, unordered."""
        yield from self._lanes

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
