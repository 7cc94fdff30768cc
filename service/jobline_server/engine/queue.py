"""A queue: its settings, its lanes and its counts."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable, Iterator, Mapping, Sequence
from heapq import merge
from itertools import groupby

from jobline_server.engine.blocks import IdBlocks
from jobline_server.engine.heads import LaneHeads
from jobline_server.engine.lane import Lane, LaneItem, lane_key, place_of
from jobline_server.engine.values import (
    DEFAULT_SETTINGS,
    KEPT_STATES,
    WAITING_STATES,
    JobState,
    QueueSettings,
)

# Looking a member up on its enum is dear before Python 3.12.
_READY = JobState.READY
# With no more priorities than this all are walked, which takes less than to find those of a name.
RANKS_WALKED_MAX = 8
# With no more lanes of one priority than this, all are merged.
LANES_MERGED_MAX = 64
# Entries of lanes that are gone, or were noted anew, which may lie among their heads beside as many
# as there are lanes.
HEADS_SPARE = 1_024


class Queue:
    """Jobs of one kind of place. Lanes are sorted by priority, so the next job is found without a
    search.

    `counts[state]` is the number of jobs in a state, members of lots included: those that are live,
    and those that have ended and are kept. All of its jobs have ids from `born_id` on: what is kept
    below belongs to a queue of this name that was deleted. While it is `deleting`, nothing is
    handed out.
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
        "blocks",
        "born_id",
        "deleting",
        "_heads",
        "_lanes",
        "_large",
        "_ranks",
        "_ranks_of",
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
        self.paused_by = ""
        self.pause_reason = ""
        self.created_ms = created_ms
        self.blocks = IdBlocks()
        self.born_id = 0
        self.deleting = False
        self._lanes: dict[int, dict[str, Lane]] = {}
        # Lanes of large payloads, which few queues have: by priority, then name and size.
        self._large: dict[int, dict[tuple[str, int], Lane]] = {}
        # By priority, where so many names have lanes that they are not merged each time.
        self._heads: dict[int, LaneHeads] = {}
        # Priorities, negated, in order: all, and those where each name has lanes.
        self._ranks: list[int] = []
        self._ranks_of: dict[str, list[int]] = {}
        # By the number of the state.
        self.counts = [0] * (max(JobState) + 1)
        self.payload_bytes = 0
        self.pushed_total = 0
        self.completed_total = 0
        self.failed_total = 0
        self.touched_ms = created_ms
        self.stored = False

    def lane(self, priority: int, name: str, size: int = 0) -> Lane:
        """The lane of this priority, name and size, made if it is not there."""
        rank = self._lanes.get(priority)
        if rank is None:
            rank = self._lanes[priority] = {}
            insort(self._ranks, -priority)
        if size:
            return self._large_lane(priority, name, size)
        lane = rank.get(name)
        if lane is None:
            self._note_rank(priority, name)
            lane = rank[name] = Lane(priority, name)
            self._note_head(lane)
        return lane

    def _large_lane(self, priority: int, name: str, size: int) -> Lane:
        large = self._large.setdefault(priority, {})
        lane = large.get((name, size))
        if lane is None:
            self._note_rank(priority, name)
            lane = large[name, size] = Lane(priority, name, size)
        return lane

    def _note_rank(self, priority: int, name: str) -> None:
        if not self._has_lanes(priority, name):
            insort(self._ranks_of.setdefault(name, []), -priority)

    def _has_lanes(self, priority: int, name: str) -> bool:
        if name in self._lanes.get(priority, ()):
            return True
        return any(other == name for other, _ in self._large.get(priority, ()))

    def lane_of(self, item: LaneItem) -> Lane:
        """The lane of an item, made if it is not there."""
        return self.lane(*lane_key(item))

    def put(self, item: LaneItem, jobs: int) -> None:
        """Makes an item ready at the tail of its lane."""
        self.lane_of(item).put(item, jobs)
        self.counts[_READY] += jobs

    def put_back(self, jobs: Sequence[LaneItem]) -> None:
        """Makes jobs that were handed out ready again, each where it stood in its lane."""
        by_lane: dict[Lane, list[LaneItem]] = {}
        for job in jobs:
            by_lane.setdefault(self.lane_of(job), []).append(job)
        for lane, of_lane in by_lane.items():
            lane.put_back(sorted(of_lane, key=place_of))
            self._note_head(lane)
        self.counts[_READY] += len(jobs)

    def leave(self, item: LaneItem, jobs: int) -> None:
        """Jobs of an item are not ready any more."""
        lane = self.lane_of(item)
        lane.leave(jobs)
        self.counts[_READY] -= jobs
        self.drop_if_empty(lane)

    def drop_if_empty(self, lane: Lane) -> None:
        """Forgets a lane that has nothing ready any more, whatever still lies in it."""
        if lane.ready:
            return
        priority = lane.priority
        if lane.size:
            del self._large[priority][lane.name, lane.size]
            if not self._large[priority]:
                del self._large[priority]
        else:
            del self._lanes[priority][lane.name]
        if not self._has_lanes(priority, lane.name):
            ranks = self._ranks_of[lane.name]
            _remove(ranks, -priority)
            if not ranks:
                del self._ranks_of[lane.name]
        if not self._lanes[priority] and priority not in self._large:
            del self._lanes[priority]
            self._heads.pop(priority, None)
            _remove(self._ranks, -priority)

    def ranks(self, names: frozenset[str] | None, size: int | None = None) -> Iterator[list[Lane]]:
        """The lanes of each priority, highest first, that serve `names` and sizes up to `size`
        (None: any). Lanes of one priority have no order among themselves.
        """
        for negative in self._ranks_for(names):
            yield self._serving(-negative, names, size)

    def fronts(
        self, names: frozenset[str] | None, size: int | None
    ) -> Iterator[Sequence[Lane | LaneHeads]]:
        """The same for whoever takes what is next: a great many lanes of one priority are one, in
        which their items are in order.
        """
        for negative in self._ranks_for(names):
            priority = -negative
            rank = self._lanes[priority]
            if names is None and len(rank) > LANES_MERGED_MAX and priority not in self._large:
                if priority not in self._heads:
                    self._heads[priority] = LaneHeads(rank.values())
                yield [self._heads[priority]]
            else:
                yield self._serving(priority, names, size)

    def _serving(self, priority: int, names: frozenset[str] | None, size: int | None) -> list[Lane]:
        rank = self._lanes[priority]
        if names is None:
            lanes = list(rank.values())
        elif len(names) < len(rank):
            lanes = [rank[name] for name in names if name in rank]
        else:
            lanes = [lane for name, lane in rank.items() if name in names]
        if self._large:
            lanes += self._large_of(priority, names, size)
        return lanes

    def _note_head(self, lane: Lane) -> None:
        """A lane is new, or something was put before its head."""
        heads = self._heads.get(lane.priority) if self._heads else None
        if heads is None or lane.size:
            return
        heads.note(lane)
        if len(heads) > 2 * len(self._lanes[lane.priority]) + HEADS_SPARE:
            # They are made anew when somebody asks for them.
            del self._heads[lane.priority]

    def _ranks_for(self, names: frozenset[str] | None) -> Iterable[int]:
        """Every priority where these names have lanes, and others perhaps where there are few."""
        if names is None or len(self._ranks) <= RANKS_WALKED_MAX:
            return self._ranks
        found = [self._ranks_of[name] for name in names if name in self._ranks_of]
        return found[0] if len(found) == 1 else (rank for rank, _ in groupby(merge(*found)))

    def _large_of(
        self, priority: int, names: frozenset[str] | None, size: int | None
    ) -> Iterator[Lane]:
        for lane in self._large.get(priority, {}).values():
            if (names is None or lane.name in names) and (size is None or lane.size <= size):
                yield lane

    def lanes(self) -> list[Lane]:
        """All lanes, highest priority first."""
        return [lane for lanes in self.ranks(None) for lane in lanes]

    def live(self) -> int:
        """Jobs that have not ended."""
        return sum(self.counts[: JobState.ACTIVE + 1])

    def waiting(self) -> int:
        """Jobs that have not been handed out."""
        return sum([self.counts[state] for state in WAITING_STATES])

    def kept(self) -> dict[JobState, int]:
        """How many jobs have ended and are kept, by state; states without any are left out."""
        return {state: self.counts[state] for state in sorted(KEPT_STATES) if self.counts[state]}

    def set_kept(self, kept: Mapping[JobState, int]) -> None:
        """Sets the numbers of jobs that have ended and are kept."""
        for state in KEPT_STATES:
            self.counts[state] = kept.get(state, 0)

    def is_plain(self) -> bool:
        """Whether nothing but its name would be lost if it vanished."""
        return self.settings == DEFAULT_SETTINGS and not self.paused


def _remove(ranks: list[int], negative: int) -> None:
    del ranks[bisect_left(ranks, negative)]
