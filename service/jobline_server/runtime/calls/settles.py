"""Settles over all shards: ack, fail, release and extend, with each outcome at its index.

A job that the engine does not know may have ended under the lease that is settled again. Only the
ended store can say so, with ALREADY_DONE.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple, TypeVar

from jobline_server.engine.commands import (
    ExtendItem,
    FailItem,
    FailResult,
    NotDone,
    ReleaseItem,
)
from jobline_server.engine.decide.ack import are_in_order, decide_ack
from jobline_server.engine.decide.limiters import decide_worker_limit
from jobline_server.engine.decide.once import decide_abandon, not_once
from jobline_server.engine.decide.phases import Progress, check_phases
from jobline_server.engine.decide.settle import decide_extend, decide_fail, decide_release, held
from jobline_server.engine.lot import RunLease
from jobline_server.engine.shard import Shard
from jobline_server.engine.values import AttemptOutcome, JobState, Now, SettleOutcome
from jobline_server.runtime.core import Core
from jobline_server.runtime.ended.ended_jobs import EndedJobs, Kept
from jobline_server.runtime.slots import Owners

NOT_FOUND = SettleOutcome.NOT_FOUND

# Deliveries are greater.
_NO_DELIVERY = 0


class Repeated(NamedTuple):
    """How a job stands after a settle: its state, and how its last hand-out did not end."""

    states: frozenset[JobState]
    not_after: frozenset[AttemptOutcome]


_NOT_SETTLED = frozenset({AttemptOutcome.STALLED, AttemptOutcome.RELEASED})
ACKED = Repeated(
    frozenset({JobState.COMPLETED, JobState.CANCELLED}), _NOT_SETTLED | {AttemptOutcome.FAILED}
)
FAILED = Repeated(frozenset({JobState.DEAD, JobState.CANCELLED}), _NOT_SETTLED)
NEVER = Repeated(frozenset(), frozenset())

Item = TypeVar("Item", ReleaseItem, ExtendItem)

# Acks that are decided at a time: ten milliseconds or so, for those of single jobs and small lots;
# in order on one lease they cost next to nothing.
ACKS_AT_ONCE = 1_000
# Fails, releases and extends that are: a fail that kills its job takes 25 microseconds.
ITEMS_AT_ONCE = 250
# Leases that more acks may be on which are decided at a time.
LEASES_TOGETHER = 32


class Settles:
    """Decides settles; waiting for the commit is left to the caller."""

    def __init__(self, core: Core, ended: EndedJobs) -> None:
        self._core = core
        self._ended = ended
        self.take_partials: Callable[[Sequence[ExtendItem], NotDone], None] = _nobody
        """Takes the pieces of results among extends; set by the runtime."""

    def ack(
        self,
        ids: list[int],
        deliveries: list[int],
        results: dict[int, bytes],
        *,
        in_order: bool = False,
    ) -> NotDone:
        """Settles jobs as done. `in_order`: the caller knows that they `are_in_order`."""
        core = self._core
        only = core.slots.single_owner((ids[0], ids[-1]) if in_order else ids)
        if only is not None:
            exceptions = decide_ack(
                only.shard, core.now(), ids, deliveries, results, in_order=in_order
            )
            core.after_decision(only)
            return exceptions
        owners = core.slots.owners_of(ids)
        exceptions = _not_here(owners)
        for slot, indexes in owners.here.items():
            part = decide_ack(
                slot.shard,
                core.now(),
                [ids[index] for index in indexes],
                [deliveries[index] for index in indexes],
                results,
            )
            exceptions.extend((indexes[at], outcome) for at, outcome in part)
            core.after_decision(slot)
        return sorted(exceptions)

    def cost_little(self, ids: list[int], deliveries: list[int]) -> bool:
        """Returns whether acks `are_in_order` and on few leases, so that they are decided as
        runs.
        """
        slot = self._core.slots.single_owner((ids[0], ids[-1]))
        if slot is None or ids[-1] - ids[0] != len(ids) - 1:
            return False
        next_id = ids[0]
        for _ in range(LEASES_TOGETHER):
            lease, _ = slot.shard.find_lease(next_id)
            if not isinstance(lease, RunLease):
                return False
            next_id = lease.lot.first_id + lease.start + lease.count
            if next_id > ids[-1]:
                return are_in_order(ids, deliveries)
        return False

    def fail(self, items: Sequence[FailItem]) -> list[FailResult]:
        """Settles jobs as failed."""
        core = self._core
        owners = core.slots.owners_of(item.id for item in items)
        results = [FailResult(NOT_FOUND)] * len(items)
        for index, outcome in _not_here(owners):
            results[index] = FailResult(outcome)
        for slot, indexes in owners.here.items():
            part = decide_fail(slot.shard, core.now(), [items[index] for index in indexes])
            for index, result in zip(indexes, part, strict=True):
                results[index] = result
            core.after_decision(slot)
        return results

    def release(self, items: Sequence[ReleaseItem]) -> NotDone:
        """Releases jobs, and has the limiters that they name let nothing out for a time."""
        limited = [index for index, item in enumerate(items) if item.limiter]
        workers = [self._worker_of(items[index]) for index in limited]
        exceptions = self._settle(items, decide_release)
        if limited:
            not_done = {index for index, _ in exceptions}
            self._limit(
                (items[index], worker)
                for index, worker in zip(limited, workers, strict=True)
                if index not in not_done
            )
        return exceptions

    def _worker_of(self, item: ReleaseItem) -> str:
        """Returns the worker that holds a job; "" if this lease is not held."""
        slot = self._core.slots.find_by_id(item.id)
        lease = None if slot is None else held(slot.shard, item.id, item.delivery)
        if lease is None or isinstance(lease, SettleOutcome) or lease.holder is None:
            return ""
        return lease.holder.worker

    def _limit(self, told: Iterable[tuple[ReleaseItem, str]]) -> None:
        """Has limiters let nothing out for a time, as workers told with released jobs."""
        core = self._core
        latest: dict[str, tuple[int, str]] = {}
        for item, worker in told:
            one = item.until_ms, worker
            latest[item.limiter] = max(latest.get(item.limiter, one), one)
        for name, (until_ms, worker) in latest.items():
            slot = core.slots.find_by_queue(name)
            if slot is not None:
                decide_worker_limit(slot.shard, core.now(), name, until_ms, worker)
                core.after_decision(slot)

    def abandon(self, items: Sequence[ReleaseItem]) -> None:
        """Takes back jobs of a worker that is gone for good."""
        self._settle(items, decide_abandon)

    def not_once(self, items: Sequence[ReleaseItem]) -> list[ReleaseItem]:
        """Returns the items of jobs that may be handed out again."""
        found: list[ReleaseItem] = []
        for slot, indexes in self._core.slots.owners_of(item.id for item in items).here.items():
            found += not_once(slot.shard, [items[index] for index in indexes])
        return found

    def extend(self, items: Sequence[ExtendItem]) -> NotDone:
        """Extends leases and takes reports."""
        not_done = self._settle(items, decide_extend)
        if any(item.partial for item in items):
            self.take_partials(items, not_done)
        return not_done

    def extend_checked(self, items: Sequence[ExtendItem]) -> NotDone:
        """Does the same for a stream, after `check_phases`; raises `Refused` as that does."""
        self.check_phases(items, {}, "extends")
        return self.extend(items)

    def check_phases(
        self, items: Sequence[ExtendItem], progress: Progress, place: str, start: int = 0
    ) -> None:
        """Raises `Refused` if an item ends what is not the next phase of its job. The first item is
        number `start` of the list `place` of the request.
        """
        ending = [
            (f"{place}[{index}]", item) for index, item in enumerate(items, start) if item.phase
        ]
        if ending:
            owners = self._core.slots.owners_of(item.id for _, item in ending)
            for slot, indexes in owners.here.items():
                check_phases(slot.shard, [ending[index] for index in indexes], progress)

    def _settle(
        self, items: Sequence[Item], decide: Callable[[Shard, Now, list[Item]], NotDone]
    ) -> NotDone:
        core = self._core
        owners = core.slots.owners_of(item.id for item in items)
        exceptions = _not_here(owners)
        for slot, indexes in owners.here.items():
            part = decide(slot.shard, core.now(), [items[index] for index in indexes])
            exceptions.extend((indexes[at], outcome) for at, outcome in part)
            core.after_decision(slot)
        return sorted(exceptions)

    def with_lost(self, ids: Iterable[int], exceptions: NotDone) -> NotDone:
        """Returns outcomes as they stand after the commit: LEASE_LOST for jobs whose shard is not
        here, which may have been lost together with what was decided there.
        """
        lost = self._core.slots.owners_of(ids).elsewhere
        if not lost:
            return exceptions
        others = [one for one in exceptions if one[0] not in set(lost)]
        return sorted([*others, *((index, SettleOutcome.LEASE_LOST) for index in lost)])

    async def explain_missing(
        self,
        leases: Sequence[tuple[int, int]],
        exceptions: NotDone,
        *,
        repeated: Repeated,
    ) -> NotDone:
        """Replaces NOT_FOUND where the ended store knows the job: ended by such a settle under
        this very lease is ALREADY_DONE, anything else is LEASE_LOST. `leases` are (id, delivery)
        by index.
        """
        missing = {leases[index][0] for index, outcome in exceptions if outcome is NOT_FOUND}
        if not missing:
            return exceptions
        # Under which delivery a job was settled like this.
        ended: dict[int, int] = {}
        async for look in self._ended.look_up(sorted(missing)):
            # Of a job that cannot be read only this is known: its lease is over.
            ended.update(dict.fromkeys(look.damaged, _NO_DELIVERY))
            for job_id, kept in look.kept.items():
                ended[job_id] = _settled_by(kept, repeated)
        return [
            (index, _explained(ended, *leases[index]) if outcome is NOT_FOUND else outcome)
            for index, outcome in exceptions
        ]


def _nobody(_items: Sequence[ExtendItem], _not_done: NotDone) -> None:
    """Stands in until somebody takes pieces of results."""


def _not_here(owners: Owners) -> NotDone:
    """Outcomes of what no shard decides that is here: leases of a shard elsewhere are lost."""
    lost = [(index, SettleOutcome.LEASE_LOST) for index in owners.elsewhere]
    return [*lost, *((index, NOT_FOUND) for index in owners.nowhere)]


def _settled_by(kept: Kept, repeated: Repeated) -> int:
    """Returns the delivery whose settle of this kind ended a job; `_NO_DELIVERY` if something else
    did: its last lease may have been lost or released, and the job cancelled since.
    """
    record = kept.record
    last = record.history[-1] if record.history else None
    if kept.outcome not in repeated.states:
        return _NO_DELIVERY
    if last is not None and last.delivery == record.delivery and last.outcome in repeated.not_after:
        return _NO_DELIVERY
    return record.delivery


def _explained(ended: Mapping[int, int], job_id: int, delivery: int) -> SettleOutcome:
    if job_id not in ended:
        return NOT_FOUND
    is_repeated = ended[job_id] == delivery
    return SettleOutcome.ALREADY_DONE if is_repeated else SettleOutcome.LEASE_LOST
