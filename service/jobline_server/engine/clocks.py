"""Lease clocks: the holders of a shard and the ends of their leases.

None of this is a fact, as every lease gets its full time again after a restart: verbs change it
directly, and only by the methods of `LeaseClocks`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from jobline_server.engine import limits
from jobline_server.engine.delayed import Delayed
from jobline_server.engine.holder import NO_GRACES, Holder, LeaseWheel
from jobline_server.engine.job import Job
from jobline_server.engine.lease_lookup import LeaseLookup
from jobline_server.engine.lot import RunLease
from jobline_server.engine.values import Now


class LeaseClocks:
    """The holders of sessions, by session id, and the timers of all holders. Leases that `apply`
    adds start at `mono_ms`, in monotonic milliseconds.
    """

    __slots__ = ("_lookup", "_wheel", "holders", "mono_ms", "timeouts")

    def __init__(self) -> None:
        self.holders: dict[str, Holder] = {}
        self.mono_ms = 0
        self.timeouts = Delayed()
        """Leases that may take only so long, by the time at which they end (`timeouts`)."""
        self._wheel = LeaseWheel()
        self._lookup: LeaseLookup | None = None
        """The incomplete lookup that the next slice continues."""

    # Holders.

    def holder_of(self, session: str, worker: str, version: str = "") -> Holder:
        """Returns the holder of a session, created if it does not exist."""
        holder = self.holders.get(session)
        if holder is None:
            holder = self.holders[session] = Holder(worker, session, version)
            holder.last_seen_ms = self.mono_ms
        return holder

    def forget(self, holder: Holder) -> None:
        """Removes the holder of a session that is gone, unless the session has a new one."""
        if self.holders.get(holder.session_id) is holder:
            del self.holders[holder.session_id]

    def advance(self, now: Now) -> None:
        """Has the next leases start now."""
        self.mono_ms = now.mono_ms

    def disconnect(
        self,
        now: Now,
        holder: Holder,
        *,
        grace_ms: int,
        graces: Mapping[str, int] = NO_GRACES,
    ) -> None:
        """Records that a worker's stream broke: its leases end after `grace_ms` at the latest, or
        after the time of their queue in `graces`.
        """
        holder.disconnected_ms = now.mono_ms
        holder.grace_ms, holder.graces = grace_ms, graces
        check_ms = holder.next_check()
        if check_ms is None:
            self.forget(holder)
        else:
            self._wheel.arm(holder, check_ms)

    def resume(self, now: Now, holder: Holder) -> None:
        """Records that the worker of a broken stream has returned: it keeps its leases."""
        holder.disconnected_ms = None
        holder.last_seen_ms = now.mono_ms
        check_ms = holder.next_check()
        if check_ms is not None:
            self._wheel.arm(holder, check_ms)

    # Leases.

    def arm(self, holder: Holder) -> None:
        """Schedules a check of a holder with new leases. Older leases of a pull are not examined
        again: it may take jobs from many queues.
        """
        if holder.session_id or holder.armed is None:
            check_ms = holder.next_check()
        else:
            check_ms = self.mono_ms + holder.lease_ms_min
        if check_ms is not None:
            self._wheel.arm(holder, check_ms)

    def extend(self, lease: Job | RunLease, job_id: int, until_ms: int) -> None:
        """Extends the lease on a job to `until_ms` at least."""
        if isinstance(lease, Job):
            lease.deadline_ms = max(lease.deadline_ms, until_ms)
        else:
            lease.extend(job_id - lease.lot.first_id, until_ms)

    def hold(self, lease: Job | RunLease) -> None:
        """Keeps a lease that nobody has yet from ending before `begin`."""
        lease.deadline_ms = self.mono_ms + limits.LEASE_MS_MAX

    def begin(self, lease: Job | RunLease) -> None:
        """Has a lease that was held begin now; call `arm` with its holder afterwards."""
        lease.renew(self.mono_ms)

    def restart(self, now: Now, leases: Iterable[Job | RunLease]) -> None:
        """Gives every lease its full time again, after recovery."""
        self.advance(now)
        holders: dict[int, Holder] = {}
        for lease in leases:
            lease.renew(now.mono_ms)
            if lease.holder is not None:  # pragma: no branch: each of them has one
                holders[id(lease.holder)] = lease.holder
        self.timeouts = Delayed()
        self._wheel = LeaseWheel()
        for holder in holders.values():
            holder.last_seen_ms, holder.armed = now.mono_ms, None
            if holder.session_id:
                # No worker is connected yet: each lease has its own length from now.
                holder.disconnected_ms = now.mono_ms
                holder.grace_ms, holder.graces = limits.LEASE_MS_MAX, NO_GRACES
            check_ms = holder.next_check()
            if check_ms is not None:  # pragma: no branch: each of them has a lease
                self._wheel.arm(holder, check_ms)

    # Expiry.

    def next_deadline(self) -> int | None:
        """Returns when a lease may end next, in monotonic milliseconds; None without leases."""
        return self.mono_ms if self._lookup is not None else self._wheel.next_deadline()

    def next_lookup(self, now: Now) -> LeaseLookup | None:
        """Returns the incomplete lookup of the last slice, or one for the next due holder; skips
        sessions seen so recently that no lease can have expired. Return it with `leave`, `finish`
        or `repeat`.
        """
        lookup, self._lookup = self._lookup, None
        if lookup is not None:
            return lookup
        while (holder := self._wheel.pop_due(now.mono_ms)) is not None:
            check_ms = holder.next_check() if holder.session_id else None
            if check_ms is None or check_ms <= now.mono_ms:
                return LeaseLookup(holder)
            self._wheel.arm(holder, check_ms)
        return None

    def leave(self, lookup: LeaseLookup) -> None:
        """Has the next slice continue this lookup."""
        self._lookup = lookup

    def finish(self, now: Now, lookup: LeaseLookup) -> None:
        """Schedules the next check of the holder of a complete lookup, or forgets a disconnected
        holder without leases.
        """
        holder = lookup.holder
        check_ms = lookup.earliest_ms if lookup.earliest_ms is not None else holder.next_check()
        if holder.leases and check_ms is not None:
            self._wheel.arm(holder, max(check_ms, now.mono_ms))
        elif holder.disconnected_ms is not None:
            self.forget(holder)

    def repeat(self, now: Now, lookups: Iterable[LeaseLookup]) -> None:
        """Makes the holders of these lookups due again, after their slice failed."""
        self._lookup = None
        for lookup in lookups:
            self._wheel.arm_now(lookup.holder, now.mono_ms)
