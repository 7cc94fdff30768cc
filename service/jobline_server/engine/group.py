"""Groups: jobs of one entity, which run one at a time and in order.

Only the jobs that a group has *admitted*, up to its concurrency, are in lanes, leased, or wait for
a retry. The others are READY too, but in no lane: a pull never examines them, however many they
are. When an admitted job leaves the group, the next one is admitted by the same fact.

    waiting:  14  13  12  11  ──▶  admitted: 10 (ACTIVE)        concurrency 1

A job keeps its place while it is admitted: a retry, a release or a lost lease lets no other job in.
A group exists while it has live jobs, settings, a pause, a limit for a time, or a dead job that
holds it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterator, Sequence
from typing import Protocol

from jobline_server.engine import limits
from jobline_server.engine.allowance import TimeLimit
from jobline_server.engine.group_settings import NO_GROUP_SETTINGS, GroupSettings
from jobline_server.engine.lane import LaneItem
from jobline_server.engine.name_table import NameTable
from jobline_server.engine.rates import RateLimit, TokenBucket
from jobline_server.engine.ties import NO_CLAIM, Ties
from jobline_server.engine.values import JobState

# Enum attribute access is slow before Python 3.12.
_READY, _ACTIVE = JobState.READY, JobState.ACTIVE
# Jobs that are no longer waiting and not swept yet, beyond as many as wait.
GONE_SPARE = 64


class Member(LaneItem, Protocol):
    """A job of a group."""

    id: int


class Group:
    """A group of one queue. `number` is the key of its record in a checkpoint, 0 without one;
    `dead_heads` are dead jobs that hold it. While it is `limited` it lets nothing out: until a time
    that somebody set, or, if `is_used_up`, until the next token of its rate.
    """

    __slots__ = (
        # durable
        "queue",
        "name",
        "number",
        "settings",
        "paused",
        "paused_by",
        "pause_reason",
        "dead_heads",
        "limited",
        "is_used_up",
        "_only",
        "_several",
        # bookkeeping
        "bucket",
        "live",
        "ready",
        "_waiting",
        "stored",
        "_ties",
    )

    def __init__(self, queue: str, name: str) -> None:
        self.queue = queue
        self.name = name
        self.number = 0
        self.settings = NO_GROUP_SETTINGS
        self.paused = False
        self.paused_by = self.pause_reason = ""
        self.dead_heads: tuple[int, ...] = ()
        self.limited: TimeLimit | None = None
        self.is_used_up = False
        # The admitted jobs: most groups have one at a time, without a table that is larger than it;
        # others have a table by id, as they may have a thousand.
        self._only: Member | None = None
        self._several: dict[int, Member] | None = None
        # Its tokens, once it has used any.
        self.bucket: TokenBucket | None = None
        # How many live jobs it has, and how many of them are READY and not admitted.
        self.live = self.ready = 0
        # Most groups never have a job that waits, and an empty deque is larger than all the rest.
        self._waiting: deque[Member] | None = None
        self.stored = False
        self._ties: Ties | None = None

    def waiting(self) -> Iterator[Member]:
        """Yields the READY jobs that are not admitted, in order."""
        for job in self._waiting or ():
            if job.state is _READY:
                yield job

    @property
    def admitted(self) -> Collection[Member]:
        """The jobs that it has admitted, in this order."""
        if self._several is not None:
            return self._several.values()
        return () if self._only is None else (self._only,)

    def active(self) -> int:
        """Returns how many of its jobs are ACTIVE."""
        return sum([job.state is _ACTIVE for job in self.admitted])

    def has_admitted(self, job: Member) -> bool:
        """Returns whether a job is admitted."""
        if self._several is None:
            return self._only is job
        return self._several.get(job.id) is job

    def admit(self, job: Member) -> None:
        """Counts a job among the admitted ones; the caller puts it into its lane."""
        if self._several is None:
            if self._only is None:
                self._only = job
                return
            self._several, self._only = {self._only.id: self._only}, None
        self._several[job.id] = job

    def replace(self, changed: Member) -> None:
        """Has a changed copy of an admitted job take its place among the admitted ones."""
        if self._several is None:
            self._only = changed
        else:
            self._several[changed.id] = changed

    def dismiss(self, job: Member) -> bool:
        """Takes a job out of the admitted ones; returns whether it was one of them."""
        if not self.has_admitted(job):
            return False
        self._only = None
        if self._several is not None:
            del self._several[job.id]
            if not self._several:
                self._several = None
        return True

    def dismiss_all(self) -> list[Member]:
        """Takes all jobs out of the admitted ones; returns them."""
        admitted = list(self.admitted)
        self._only = self._several = None
        return admitted

    def has_room(self, defaults: GroupSettings) -> bool:
        """Returns whether it may admit a job, if its queue has these settings for groups."""
        if self.is_stopped() or self.dead_heads:
            return False
        return len(self.admitted) < concurrency(self.settings, defaults)

    def is_stopped(self) -> bool:
        """Returns whether none of its READY jobs may be in lanes."""
        return self.paused or self.limited is not None

    def put_last(self, job: Member) -> None:
        """Has a READY job wait behind all others."""
        if self._waiting is None:
            self._waiting = deque()
        self._waiting.append(job)
        self.ready += 1

    def put_first(self, job: Member) -> None:
        """Has a READY job wait before all others. Its order becomes lower than theirs."""
        first = self.first()
        if first is not None:
            job.order = min(job.order, first.order - 1)
        if self._waiting is None:
            self._waiting = deque()
        self._waiting.appendleft(job)
        self.ready += 1

    def first(self) -> Member | None:
        """Returns the job that is admitted next, None if none waits; drops jobs that wait no longer
        from the front.
        """
        waiting = self._waiting
        while waiting:
            if waiting[0].state is _READY:
                return waiting[0]
            waiting.popleft()
        self._waiting = None
        return None

    def take_first(self) -> Member | None:
        """Removes and returns the job that is admitted next; None if none waits."""
        job = self.first()
        if self._waiting and job is not None:
            self._waiting.popleft()
            self.ready -= 1
            if not self._waiting:
                self._waiting = None
        return job

    def put_all(self, jobs: Sequence[Member]) -> None:
        """Has READY jobs wait, in this order, in a group in which none waits."""
        self._waiting = deque(jobs) if jobs else None
        self.ready = len(jobs)

    def take_all(self) -> list[Member]:
        """Removes and returns the jobs that wait, in order."""
        waiting = list(self.waiting())
        self._waiting, self.ready = None, 0
        return waiting

    def leave(self) -> None:
        """Counts out a job that waits no longer; the caller gives it another state."""
        self.ready -= 1

    def sweep(self) -> None:
        """Drops the jobs that wait no longer, once they are more than those that do: it takes some
        milliseconds for the longest group. Fewer are skipped when they come up.
        """
        waiting = self._waiting
        if waiting is not None and len(waiting) > 2 * self.ready + GONE_SPARE:
            left = [job for job in waiting if job.state is _READY]
            self._waiting = deque(left) if left else None

    def share(self, ties: Ties) -> Ties:
        """Returns ties of one of its jobs: the same object for all jobs that are tied to nothing
        else.
        """
        if ties.unique_key or ties.parents or ties.claim is not NO_CLAIM:
            return ties
        if self._ties is None:
            self._ties = ties
        return self._ties

    def has_record(self) -> bool:
        """Returns whether it has anything that its jobs do not say."""
        has_some = self.is_stopped() or bool(self.dead_heads)
        return has_some or self.settings != NO_GROUP_SETTINGS


class GroupTable(NameTable[Group]):
    """The groups of a queue by name. `held` is how many READY jobs of the queue are in no lane.
    They `have_rates` if one has, or had, a rate of its own.
    """

    __slots__ = ("dead_heads", "have_rates", "held")

    def __init__(self) -> None:
        super().__init__()
        self.held = 0
        self.have_rates = False
        self.dead_heads: dict[int, Group] = {}


def concurrency(settings: GroupSettings, defaults: GroupSettings) -> int:
    """Returns how many jobs of a group may be admitted at a time."""
    return settings.concurrency or defaults.concurrency or limits.GROUP_CONCURRENCY_DEFAULT


def max_waiting(settings: GroupSettings, defaults: GroupSettings) -> int | None:
    """Returns how many jobs of a group may wait, if it or its queue says so."""
    return settings.max_waiting or defaults.max_waiting


def rate_of(settings: GroupSettings, defaults: GroupSettings) -> RateLimit | None:
    """Returns how many jobs of a group may start in a time; None without a limit."""
    return settings.rate or defaults.rate
