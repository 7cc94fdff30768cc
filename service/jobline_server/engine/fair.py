"""Fair share: the tenants of a fair queue, and which of them is served next.

    consumer ──▶ heaps of the kinds that it may have ──▶ tenant with the lowest key ──▶ its lanes

A tenant's lanes are its own, with priorities and the front as in any queue; a pull never looks at
those of a tenant whose turn has not come. A hand-out costs as much as its jobs and the logarithm of
the number of tenants.

The *present* is the virtual time of the tenant that was served last, if that is later than it was
before. A tenant whose first job comes goes on from the present at least, as it has saved nothing up
while it was away. One that has no jobs left and is ahead of the present is remembered until the
present has caught up: to go away for a moment is no way to the front.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from heapq import heappop, heappush
from typing import Protocol

from jobline_server.engine import limits
from jobline_server.engine.group import GroupTable, Member
from jobline_server.engine.group_settings import GroupSettings
from jobline_server.engine.lane import Lane
from jobline_server.engine.name_table import NameTable
from jobline_server.engine.open_lanes import OpenLanes
from jobline_server.engine.tenant import HANDOUT_MS, AttemptTimes, Tenant
from jobline_server.engine.tenant_heaps import TenantHeaps, kind_of

# What the first jobs of a queue are expected to need.
EXPECTED_MS = 100
UNLIMITED = 1 << 40
"""More than any hand-out takes."""


class Clock(Protocol):
    """The monotonic time of a shard."""

    mono_ms: int


class FairShare:
    """The tenants of one queue. `groups` and `defaults` are its groups and their settings, `rest`
    its open lanes for jobs without a group. `clocks` has the time up to which it charges; `busy`
    is the number of tenants that have lanes or ACTIVE jobs. While it is on the list `resting`, call
    `forget_idle` at the end of the fact.
    """

    def __init__(
        self,
        groups: GroupTable,
        defaults: GroupSettings,
        rest: OpenLanes,
        clocks: Clock,
        resting: list[FairShare],
    ) -> None:
        self.groups = groups
        self.defaults = defaults
        self.used_ms = self.present_ns = self.busy = 0
        # Counts changes of the weight for all tenants.
        self.weighed = 0
        self.times = AttemptTimes(EXPECTED_MS)
        self.tenants: NameTable[Tenant] = NameTable()
        self._rest = rest
        self._clocks = clocks
        self._all_resting = resting
        self._resting: list[Tenant] = []
        self.heaps = TenantHeaps()
        # Tenants whose turn came while they had as many ACTIVE jobs as they may, and those of them
        # that may have more since: consumers do not find them.
        self._full: dict[str, Tenant] = {}
        self.reopening: dict[str, Tenant] = {}
        # Tenants that are idle and ahead of the present, by their virtual time.
        self._ahead: list[tuple[int, int, Tenant]] = []
        self._number = 0

    # Lanes.

    def known(self, name: str) -> Tenant:
        """Returns the tenant of a group, or of the jobs without one, created if it is not there."""
        tenant = self.tenants.find(name)
        if tenant is None:
            tenant = Tenant(
                name, OpenLanes() if name else self._rest, expected_ms=self.times.mean_ms
            )
            self._weigh(tenant)
            self.tenants.add(tenant)
        return tenant

    def own(self, lane: Lane) -> None:
        """Gives a new lane to its tenant."""
        lane.owner = tenant = self.known(lane.tenant)
        self.busy += not tenant.is_busy()
        tenant.lanes += 1
        tenant.ready += lane.ready

    def disown(self, lane: Lane) -> None:
        """Takes a lane that is no more from its tenant."""
        tenant = self.known(lane.tenant)
        tenant.lanes -= 1
        self._note_idle(tenant)

    def join(self, lane: Lane) -> None:
        """Has consumers find a lane that has READY jobs and an open gate."""
        self.known(lane.tenant).open.join(lane)
        self.adopt(lane)

    def adopt(self, lane: Lane) -> None:
        """Does the same for a lane that is among the open ones of its tenant."""
        tenant = self.known(lane.tenant)
        if not tenant.kinds:
            self.charge(tenant)
            tenant.catch_up(self.present_ns)
        self.heaps.join(tenant, kind_of(lane))

    def leave(self, lane: Lane) -> None:
        """Hides a lane from consumers: it is empty, or its gate was closed."""
        tenant = self.known(lane.tenant)
        tenant.open.leave(lane)
        self.heaps.leave(tenant, kind_of(lane))

    # Settings.

    def weight_of(self, name: str) -> int:
        """Returns the weight of a tenant."""
        group = self.groups.find(name)
        own = None if group is None else group.settings.weight
        return own or self.defaults.weight or limits.WEIGHT_DEFAULT

    def _weigh(self, tenant: Tenant) -> None:
        tenant.weight, tenant.weighed = self.weight_of(tenant.name), self.weighed

    def set_defaults(self, defaults: GroupSettings) -> None:
        """Puts settings for all tenants in force: each heeds its weight at its next charge, and
        those that were full are looked at again in the next hand-outs.
        """
        if defaults.concurrency != self.defaults.concurrency:
            self.reopening = {**self.reopening, **self._full} if self.reopening else self._full
            self._full = {}
        self.defaults = defaults
        self.weighed += 1

    def room_of(self, tenant: Tenant) -> int:
        """Returns how many more jobs of a tenant may be ACTIVE."""
        group = self.groups.find(tenant.name)
        if group is None:
            return UNLIMITED
        if group.is_stopped() or group.dead_heads:
            return 0
        most = group.settings.concurrency or self.defaults.concurrency
        return UNLIMITED if most is None else max(most - tenant.active, 0)

    def note_full(self, tenant: Tenant) -> None:
        """Notes that a tenant has no room. One without ACTIVE jobs is closed for another reason."""
        if tenant.active:
            self._full[tenant.name] = tenant

    def reopen_some(self) -> None:
        """Has consumers find some of those tenants again that may not be full any more."""
        for _ in range(min(len(self.reopening), limits.TENANTS_EXAMINED_MAX)):
            _, tenant = self.reopening.popitem()
            self.heaps.note(tenant)

    def reopen(self, name: str) -> None:
        """Has a group served again that may be closed no more, or has another weight."""
        tenant = self.tenants.find(name)
        if tenant is None:
            return
        self.charge(tenant)
        self._weigh(tenant)
        if tenant.kinds:
            tenant.catch_up(self.present_ns)
            self.heaps.note(tenant)

    # Worker time.

    def charge(self, tenant: Tenant) -> None:
        """Charges what the ACTIVE jobs of a tenant have used until now."""
        self.used_ms += tenant.advance(self._clocks.mono_ms)
        if tenant.weighed != self.weighed:
            self._weigh(tenant)

    def hand_out(self, name: str, jobs: Collection[Member], members: int = 0) -> None:
        """Counts jobs of one tenant that become ACTIVE, or members of its lots."""
        tenant = self.known(name)
        self.charge(tenant)
        count = len(jobs) + members
        members += 0 if name else len(jobs)
        self.busy += not tenant.is_busy()
        if name:
            tenant.running.update([(job.id, job) for job in jobs])
        tenant.members += members
        self.used_ms += count * HANDOUT_MS
        tenant.charge(count * HANDOUT_MS)
        if tenant.virtual_ns > self.present_ns:
            self.present_ns = tenant.virtual_ns
            self._forget_caught_up()

    def settle(self, name: str, jobs: Collection[Member], took_ms: int, members: int = 0) -> bool:
        """Counts jobs that are ACTIVE no more, and took this long in all. Returns whether others of
        the tenant may start now that could not before.
        """
        tenant = self.known(name)
        self.charge(tenant)
        was_closed = not self.room_of(tenant)
        count = len(jobs) + members
        if name:
            for job in jobs:
                del tenant.running[job.id]
        tenant.members -= members if name else count
        tenant.times.add(count, took_ms)
        self.times.add(count, took_ms)
        self.heaps.note(tenant)
        self._full.pop(name, None)
        self.reopening.pop(name, None)
        self._note_idle(tenant)
        return was_closed and bool(tenant.kinds)

    def restart(self, mono_ms: int) -> None:
        """Makes all tenants equal, at a start of the server."""
        self.used_ms = self.present_ns = 0
        self.times = AttemptTimes(EXPECTED_MS)
        self._ahead.clear()
        self._resting.clear()
        self._full.clear()
        self.reopening.clear()
        self.heaps.clear()
        for tenant in list(self.tenants):
            tenant.restart(mono_ms, EXPECTED_MS)
            if tenant.is_busy():
                self.heaps.note(tenant)
            else:
                self.tenants.remove(tenant)

    # Turns.

    def before(self, tenant: Tenant) -> Iterator[Tenant]:
        """Yields the tenants that come before one, unordered."""
        key_ns = tenant.key_ns()
        for other in self.tenants:
            if other is not tenant and other.kinds and other.key_ns() < key_ns:
                yield other

    # Idle tenants.

    def _note_idle(self, tenant: Tenant) -> None:
        if tenant.is_busy():
            return
        self.busy -= 1
        if not self._resting:
            self._all_resting.append(self)
        self._resting.append(tenant)

    def forget_idle(self) -> None:
        """Forgets the tenants that have become idle, unless they are ahead of the present. Once all
        are idle, none is ahead of anybody.
        """
        resting, self._resting = self._resting, []
        if not self.busy:
            self.tenants = NameTable()
            self._ahead.clear()
            self.present_ns = 0
            return
        for tenant in resting:
            if tenant.is_busy() or self.tenants.find(tenant.name) is not tenant:
                continue
            if tenant.virtual_ns <= self.present_ns:
                self.tenants.remove(tenant)
                continue
            self._number += 1
            heappush(self._ahead, (tenant.virtual_ns, self._number, tenant))
            if len(self._ahead) > limits.TENANTS_AHEAD_MAX:
                self._forget_first()

    def _forget_caught_up(self) -> None:
        while self._ahead and self._ahead[0][0] <= self.present_ns:
            self._forget_first()

    def _forget_first(self) -> None:
        virtual_ns, _, tenant = heappop(self._ahead)
        # One that was busy again has another entry, or is not idle.
        is_known = self.tenants.find(tenant.name) is tenant
        if is_known and not tenant.is_busy() and tenant.virtual_ns == virtual_ns:
            self.tenants.remove(tenant)
