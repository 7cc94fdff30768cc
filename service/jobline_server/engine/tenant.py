"""A tenant of a fair queue: one group, or all jobs without a group, and the worker time it used.

*Worker time* is how long workers held the tenant's jobs: one that holds ten for a second uses ten
seconds. Each hand-out counts `HANDOUT_MS` more, so that jobs which take no time are shared evenly.
*Virtual time* is worker time divided by the tenant's weight. The tenant with the lowest key is
served next:

    key = virtual time so far + ACTIVE jobs × about what one takes / weight

The first part grows while jobs run. The second one holds in advance what they will need, which is
not known before they end: as much as the last ones took. Without it, one hand-out of a hundred jobs
would all go to one tenant.

Nothing of this is durable: after a start of the server all tenants are equal.
"""

from __future__ import annotations

from jobline_server.engine.group import Member
from jobline_server.engine.open_lanes import OpenLanes
from jobline_server.engine.rules import Needs

HANDOUT_MS = 1
# Virtual time is counted in nanoseconds, so that even a weight of 1,000 loses little by rounding.
NANOSECONDS = 1_000_000
# Attempts after which those before count half.
REMEMBERED = 1_024

Kind = tuple[str, int, Needs | None]
"""Name, size and needs of lanes: what decides whether a consumer may have their jobs."""


class AttemptTimes:
    """How long attempts took. `mean_ms` begins with what is expected, as if one had taken that."""

    __slots__ = ("_count", "_total_ms", "mean_ms")

    def __init__(self, expected_ms: int) -> None:
        self.mean_ms = self._total_ms = expected_ms
        self._count = 1

    def add(self, count: int, took_ms: int) -> None:
        """Adds attempts that have ended, and took this long in all."""
        self._count += count
        self._total_ms += max(took_ms, 0)
        self.mean_ms = self._total_ms // self._count
        if self._count > REMEMBERED:
            self._total_ms //= 2
            self._count //= 2


class Tenant:
    """A tenant with its open lanes. `lanes` counts all of its lanes, also those with a closed gate,
    `ready` their jobs and `kinds` the open ones of each kind. Its ACTIVE jobs are `running`, by id;
    those that have no group are only counted, as `members`.
    """

    __slots__ = (
        "_since_ms",
        "kinds",
        "lanes",
        "members",
        "name",
        "open",
        "ready",
        "running",
        "times",
        "used_ms",
        "virtual_ns",
        "weighed",
        "weight",
    )

    def __init__(self, name: str, open_lanes: OpenLanes, *, expected_ms: int) -> None:
        self.name = name
        self.open = open_lanes
        self.times = AttemptTimes(expected_ms)
        self.weight = 1
        # The change of the weight for all tenants that it has heeded.
        self.weighed = 0
        self.kinds: dict[Kind, int] = {}
        self.running: dict[int, Member] = {}
        self.members = self.lanes = self.ready = self.used_ms = self.virtual_ns = self._since_ms = 0

    @property
    def active(self) -> int:
        """How many of its jobs are ACTIVE."""
        return len(self.running) + self.members

    def is_busy(self) -> bool:
        """Returns whether it has lanes or ACTIVE jobs."""
        return bool(self.lanes or self.running or self.members)

    def advance(self, mono_ms: int) -> int:
        """Charges what its ACTIVE jobs have used until now; returns it, in milliseconds."""
        used_ms = self.active * max(mono_ms - self._since_ms, 0)
        self._since_ms = max(self._since_ms, mono_ms)
        self.charge(used_ms)
        return used_ms

    def charge(self, used_ms: int) -> None:
        """Adds worker time."""
        self.used_ms += used_ms
        self.virtual_ns += used_ms * NANOSECONDS // self.weight

    def key_ns(self) -> int:
        """Returns its place among the tenants; the lowest is served next."""
        return self.virtual_ns + self.active * self.times.mean_ms * NANOSECONDS // self.weight

    def step_ns(self) -> int:
        """Returns by how much a hand-out raises its key."""
        return (self.times.mean_ms + HANDOUT_MS) * NANOSECONDS // self.weight

    def catch_up(self, present_ns: int) -> None:
        """Goes on from the present at least: a tenant that was away has saved nothing up."""
        self.virtual_ns = max(self.virtual_ns, present_ns)

    def restart(self, mono_ms: int, expected_ms: int) -> None:
        """Forgets what it used, at a start of the server."""
        self.times, self._since_ms = AttemptTimes(expected_ms), mono_ms
        self.used_ms = self.virtual_ns = 0
