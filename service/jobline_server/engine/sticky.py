"""Sticky jobs: the next job of a group prefers the session that had the group's last one.

Such a job is *reserved* for that session: it is in a lane of the session's own, whose gate is
closed to all others (`gates`). A pull of the session reads its own lanes beside the open ones, any
other pull never examines them. After `limits.STICKY_MS`, or at once when the session takes no jobs
of the queue any more, the job is given away: it moves to the lane of its kind, at its place.

None of this is a fact, and nobody knows of it after a restart: jobs are in their common lanes then,
and no session is known to have had a group's last job.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from itertools import islice

from jobline_server.engine import limits
from jobline_server.engine.job import NOT_RESERVED, Job, Reserved
from jobline_server.engine.lane import Lane, lane_key
from jobline_server.engine.lookups import Jobs
from jobline_server.engine.queue import Queue
from jobline_server.engine.ranks import Names
from jobline_server.engine.versions import is_new_enough


class LastSessions:
    """Which session had the last job of a group, for the groups of sticky jobs; groups that are
    idle, too. Of two generations the older one is dropped when the newer one is full.
    """

    __slots__ = ("_new", "_old")

    def __init__(self) -> None:
        self._new: dict[tuple[str, str], str] = {}
        self._old: dict[tuple[str, str], str] = {}

    def __bool__(self) -> bool:
        return bool(self._new or self._old)

    def find(self, queue: str, group: str) -> str:
        """Returns the session; "" if none is known."""
        key = queue, group
        return self._new.get(key) or self._old.get(key, "")

    def note(self, queue: str, group: str, session: str) -> None:
        """Records that a session ("": a pull) has a job of a group now."""
        key = queue, group
        if not session:
            self._new.pop(key, None)
            self._old.pop(key, None)
            return
        if len(self._new) >= limits.STICKY_GROUPS_MAX // 2 and key not in self._new:
            self._old, self._new = self._new, {}
        self._new[key] = session


class StickyJobs:
    """The reserved jobs of a shard, by the time at which they are given away."""

    __slots__ = ("_due", "_fresh", "_left", "_number", "last")

    def __init__(self) -> None:
        self.last = LastSessions()
        self._number = 0
        # Jobs, as id and number of the reservation, that were reserved since the timers looked
        # last; and, behind each time, those that are given away then. An entry is obsolete once its
        # job was leased or moved.
        self._fresh: list[tuple[int, int]] = []
        self._due: deque[tuple[int, deque[tuple[int, int]]]] = deque()
        # Sessions that take no more jobs of a queue.
        self._left: deque[tuple[Queue, str]] = deque()

    # Reserving. Facts call these.

    def reserve(self, job: Job, offset: int) -> None:
        """Reserves a job that is about to be put into its lane, if its group has had a session. Its
        time runs from the next look of the timers.
        """
        queue = job.queue
        session = self.last.find(queue.name, job.ties.group)
        unreserve(job)
        if not session:
            return
        self._number += 1
        job.writable_details().reserved = Reserved(session, self._number)
        key = lane_key(job)
        lane = queue.find_lane(key)
        if lane is None or not lane.opens_ms:
            queue.close_gate(key)
        queue.gates.woken[session] = offset
        self._fresh.append((job.id, self._number))

    # Giving away. Timers call these: only time has passed, or a worker has left.

    def leave(self, queue: Queue, session: str) -> None:
        """Has the reserved jobs of a session given away soon."""
        if session in queue.gates.own:
            self._left.append((queue, session))

    def first_ms(self, mono_ms: int) -> int | None:
        """Returns when to call `give_due`; None if nothing is reserved."""
        if self._fresh or self._left:
            return mono_ms
        return self._due[0][0] if self._due else None

    def give_due(self, mono_ms: int, jobs: Jobs[Job], limit: int) -> list[Queue]:
        """Gives up to about `limit` jobs away that are due; returns the queues that may have jobs
        to dispatch.
        """
        queues: dict[Queue, None] = {}
        if self._fresh:
            self._due.append((mono_ms + limits.STICKY_MS, deque(self._fresh)))
            self._fresh = []
        while self._left and limit > 0:
            queue, session = self._left[0]
            found = reserved_for(queue, session, limit)
            limit -= len(found)
            if limit > 0:
                self._left.popleft()
            if found:
                give_away(queue, found)
                queues[queue] = None
        while self._due and limit > 0 and self._due[0][0] <= mono_ms:
            limit -= self._take_due(self._due[0][1], jobs, limit, queues)
        return list(queues)

    def _take_due(
        self,
        entries: deque[tuple[int, int]],
        jobs: Jobs[Job],
        limit: int,
        queues: dict[Queue, None],
    ) -> int:
        """Gives the jobs of up to `limit` entries away that are due together; returns how many
        entries were taken.
        """
        found: dict[Queue, list[Job]] = {}
        count = min(limit, len(entries))
        for _ in range(count):
            job_id, number = entries.popleft()
            job = jobs.find(job_id)
            if job is not None and job.details.reserved.number == number:
                found.setdefault(job.queue, []).append(job)
        if not entries:
            self._due.popleft()
        for queue, of_queue in found.items():
            give_away(queue, of_queue)
            queues[queue] = None
        return count


def give_all_away(queues: Iterable[Queue]) -> None:
    """Gives all reserved jobs away, after recovery: of the last hand-outs nobody knows."""
    for queue in queues:
        for session in list(queue.gates.own):
            give_away(queue, reserved_for(queue, session, queue.gates.shut))


def take_woken(queue: Queue, committed: int) -> list[str]:
    """Removes and returns the sessions that were not offered yet what is reserved for them in a
    queue and on disk.
    """
    woken = queue.gates.woken
    found = [session for session, offset in woken.items() if offset <= committed]
    for session in found:
        del woken[session]
    return found


def own_fronts(
    queue: Queue, session: str, names: Names, size: int | None, version: str
) -> dict[int, list[Lane]]:
    """Returns the lanes of a session, as `Queue.fronts` chooses among the others, by negated
    priority.
    """
    found: dict[int, list[Lane]] = {}
    for lane in queue.gates.own.get(session, {}).values():
        minimum = "" if lane.needs is None else lane.needs.min_worker_version
        is_named = names is None or lane.name in names
        if is_named and (size is None or lane.size <= size) and is_new_enough(version, minimum):
            found.setdefault(-lane.priority, []).append(lane)
    return found


def has_own(queue: Queue, session: str) -> bool:
    """Returns whether jobs of a queue are reserved for a session."""
    return session in queue.gates.own


def own_names(queue: Queue, session: str) -> frozenset[str]:
    """Returns the names of the jobs of a queue that are reserved for a session."""
    return frozenset(lane.name for lane in queue.gates.own.get(session, {}).values())


def unreserve(job: Job) -> None:
    """Ends the reservation of a job that is in no lane, or about to leave it."""
    if job.details.reserved is not NOT_RESERVED:
        job.details.reserved = NOT_RESERVED


def give_away(queue: Queue, jobs: Sequence[Job]) -> None:
    """Moves reserved jobs of a queue to the lanes of their kind, each at its place."""
    before: dict[Lane, int] = {}
    for job in jobs:
        lane = queue.lane_of(job)
        before.setdefault(lane, lane.ready)
        lane.take_out(job)
        unreserve(job)
    queue.count_ready(before)
    queue.put_back(jobs)


def reserved_for(queue: Queue, session: str, limit: int) -> list[Job]:
    """Returns up to `limit` jobs of a queue that are reserved for a session."""
    lanes = queue.gates.own.get(session, {}).values()
    items = (item for lane in lanes for item in lane if isinstance(item, Job) and item.is_ready())
    return list(islice(items, limit))
