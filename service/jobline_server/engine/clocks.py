"""Lease clocks: the holders of a shard, and until when they have their leases.

None of this is a fact, as after a restart every lease starts afresh. It is all that verbs change by
themselves, and this is the one place where they do.
"""

from __future__ import annotations

from collections.abc import Iterable

from jobline_server.engine import limits
from jobline_server.engine.holder import Holder, LeaseWheel
from jobline_server.engine.job import Job
from jobline_server.engine.lease_lookup import LeaseLookup
from jobline_server.engine.lot import RunLease
from jobline_server.engine.values import Now


class LeaseClocks:
    """`holders` are those of sessions, by session id. Leases that `apply` gives run from `mono_ms`,
    in monotonic milliseconds.
    """

    __slots__ = ("_lookup", "_wheel", "holders", "mono_ms")

    def __init__(self) -> None:
        self.holders: dict[str, Holder] = {}
        self.mono_ms = 0
        self._wheel = LeaseWheel()
        self._lookup: LeaseLookup | None = None
        """Of the holder that the next slice goes on with."""

    # Holders.

    def holder_of(self, session: str, worker: str, version: str = "") -> Holder:
        """Returns the holder of a session, made if it is not there."""
        holder = self.holders.get(session)
        if holder is None:
            holder = self.holders[session] = Holder(worker, session, version)
            holder.last_seen_ms = self.mono_ms
        return holder

    def forget(self, holder: Holder) -> None:
        """Drops the holder of a session that is gone; another one, if the session has returned
        since, stays.
        """
        if self.holders.get(holder.session_id) is holder:
            del self.holders[holder.session_id]

    def advance(self, now: Now) -> None:
        """Leases that are given next run from now."""
        self.mono_ms = now.mono_ms

    def disconnect(self, now: Now, holder: Holder, *, grace_ms: int) -> None:
        """Notes that a worker's stream broke: its leases outlive that by `grace_ms` at most."""
        holder.disconnected_ms = now.mono_ms
        holder.grace_ms = grace_ms
        check_ms = holder.next_check()
        if check_ms is None:
            self.forget(holder)
        else:
            self._wheel.arm(holder, check_ms)

    def resume(self, now: Now, holder: Holder) -> None:
        """Notes that the worker of a broken stream is back: it keeps its leases."""
        holder.disconnected_ms = None
        holder.last_seen_ms = now.mono_ms
        check_ms = holder.next_check()
        if check_ms is not None:
            self._wheel.arm(holder, check_ms)

    # Leases.

    def arm(self, holder: Holder) -> None:
        """Has a holder checked that was given leases just now. The leases that a pull had before
        are not looked at again: it may take from many queues.
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

    def restart(self, now: Now, leases: Iterable[Job | RunLease]) -> None:
        """After recovery: gives every lease its full time again."""
        self.advance(now)
        holders: dict[int, Holder] = {}
        for lease in leases:
            lease.renew(now.mono_ms)
            if lease.holder is not None:  # pragma: no branch: each of them has one
                holders[id(lease.holder)] = lease.holder
        self._wheel = LeaseWheel()
        for holder in holders.values():
            holder.last_seen_ms, holder.armed = now.mono_ms, None
            if holder.session_id:
                # Nobody is connected yet: each lease runs its own length from now.
                holder.disconnected_ms = now.mono_ms
                holder.grace_ms = limits.LEASE_MS_MAX
            check_ms = holder.next_check()
            if check_ms is not None:  # pragma: no branch: each of them has a lease
                self._wheel.arm(holder, check_ms)

    # Expiry.

    def next_deadline(self) -> int | None:
        """Returns when a lease may end next, in monotonic milliseconds; None without leases."""
        return self.mono_ms if self._lookup is not None else self._wheel.next_deadline()

    def next_lookup(self, now: Now) -> LeaseLookup | None:
        """Returns the lookup that the last slice left, or one at the next holder that is due. No
        lease of a session that was heard can have ended: those are not looked at. Hand it back by
        `leave`, `finish` or `repeat`.
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
        """The next slice goes on with this lookup."""
        self._lookup = lookup

    def finish(self, now: Now, lookup: LeaseLookup) -> None:
        """A lookup has ended: has its holder checked again when its next lease ends."""
        holder = lookup.holder
        check_ms = lookup.earliest_ms if lookup.earliest_ms is not None else holder.next_check()
        if holder.leases and check_ms is not None:
            self._wheel.arm(holder, max(check_ms, now.mono_ms))
        elif holder.disconnected_ms is not None:
            self.forget(holder)

    def repeat(self, now: Now, lookups: Iterable[LeaseLookup]) -> None:
        """The slice of these lookups failed: their holders are due again."""
        self._lookup = None
        for lookup in lookups:
            self._wheel.arm_now(lookup.holder, now.mono_ms)
