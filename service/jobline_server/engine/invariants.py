"""Invariants: checks that hold for a shard between any two commands.

Each check has the number of the promise in `docs/guarantees.md` that it helps to keep; a test
compares the numbers. They walk over the whole state, so only tests and `verify` call them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from jobline_server.engine import group_invariants as of_groups
from jobline_server.engine.batch_invariants import BATCHES
from jobline_server.engine.blocks import BLOCK_IDS
from jobline_server.engine.dependency_invariants import DEPENDENCIES
from jobline_server.engine.fair_invariants import open_lanes, tenants_add_up
from jobline_server.engine.invariants_of_time import waiting_jobs_have_expiries
from jobline_server.engine.items import Item
from jobline_server.engine.lane import lane_key
from jobline_server.engine.limit_invariants import (
    allowances_fit_settings,
    closed_lanes_are_in_line,
    limiters_count_what_is_active,
)
from jobline_server.engine.limits import HANDOUT_BITS
from jobline_server.engine.lot import Lot
from jobline_server.engine.message_invariants import outboxes_add_up
from jobline_server.engine.schedule_invariants import schedules_add_up
from jobline_server.engine.shard import Shard
from jobline_server.engine.sticky_invariants import reservations_add_up
from jobline_server.engine.unique_invariants import UNIQUE_KEYS
from jobline_server.engine.values import JobState, sequence_of
from jobline_server.engine.webhook_invariants import WEBHOOKS

LIVE_STATES = (JobState.SCHEDULED, JobState.BLOCKED, JobState.READY, JobState.ACTIVE)


class Violation(AssertionError):
    """Raised if an invariant does not hold; the message starts with its number."""


def check(shard: Shard) -> None:
    """Raises `Violation` for the first invariant that does not hold."""
    for number, checks in INVARIANTS.items():
        for check_one in checks:
            if problem := check_one(shard):
                raise Violation(f"{number}: {problem}")


def one_state_each(shard: Shard) -> str:
    """G19: every live id is either a single job or one member of one lot."""
    for lot in shard.lots.lots.values():
        waiting = sum(1 for i in range(len(lot.payloads)) if lot.is_waiting(i))
        leased = sum(len(lease.open_indexes()) for lease in lot.leases)
        if waiting != lot.waiting() or waiting + leased != lot.remaining or not lot.remaining:
            return f"lot {lot.first_id}: {waiting} wait, {leased} leased, {lot.remaining} remain"
        for i in range(len(lot.payloads)):
            lease = lot.lease_at(i)
            in_lot = lot.is_waiting(i) or (lease is not None and lease.is_open(i))
            if in_lot and lot.first_id + i in shard.jobs:
                return f"job {lot.first_id + i} is in its lot and beside it"
    for job in shard.jobs.values():
        if job.state not in LIVE_STATES:
            return f"job {job.id} is {job.state.name} and still live"
    return ""


def counters_add_up(shard: Shard) -> str:
    """G19: the counts of every queue match its jobs."""
    found: Counter[tuple[str, JobState]] = Counter()
    for job in shard.jobs.values():
        found[job.queue.name, job.state] += 1
    for lot in shard.lots.lots.values():
        found[lot.queue.name, lot.state] += lot.waiting()
        found[lot.queue.name, JobState.ACTIVE] += lot.remaining - lot.waiting()
    for name, queue in shard.queues.items():
        counts = {state.name: queue.counts[state] for state in LIVE_STATES}
        expected = {state.name: found[name, state] for state in LIVE_STATES}
        if counts != expected:
            return f"queue {name} counts {counts}, holds {expected}"
        if any(count < 0 for count in queue.counts):
            return f"queue {name} counts {queue.counts} jobs by state"
        if sum(lane.ready for lane in queue.lanes()) + queue.groups.held != counts["READY"]:
            return f"queue {name}: lanes do not hold {counts['READY']} ready jobs"
    if found.total() != shard.load.live_jobs:
        return f"load says {shard.load.live_jobs} live jobs"
    if (
        sum(queue.counts[JobState.ACTIVE] for queue in shard.queues.values())
        != shard.load.active_jobs
    ):
        return f"load says {shard.load.active_jobs} active jobs"
    return ""


def lanes_add_up(shard: Shard) -> str:
    """G19: the counts by priority and name match the lanes, and ranks hold the open lanes."""
    for name, queue in shard.queues.items():
        by_priority: Counter[int] = Counter()
        by_name: Counter[str] = Counter()
        for lane in queue.lanes():
            by_priority[lane.priority] += lane.ready
            by_name[lane.name] += lane.ready
        of_groups.count_held(queue, by_priority, by_name)
        if +by_priority != dict(queue.ready.priorities()) or +by_name != dict(queue.ready.names()):
            return f"queue {name}: its lanes hold {by_priority} and {by_name} ready jobs"
        found = {lane.key for lane in open_lanes(queue)}
        if found != {lane.key for lane in queue.lanes() if not lane.opens_ms}:
            return f"queue {name}: its ranks hold the lanes {found}"
    return ""


def blocks_add_up(shard: Shard) -> str:
    """G19: the blocks of each queue count all its single jobs and lots."""
    found: dict[str, list[int]] = {name: [] for name in shard.queues}
    for item in _items(shard):
        found[item.queue.name].append(item.first_id if isinstance(item, Lot) else item.id)
    for name, queue in shard.queues.items():
        expected = Counter(item_id // BLOCK_IDS for item_id in found[name])
        if queue.blocks.counts() != expected:
            return f"queue {name} counts {queue.blocks.counts()} in blocks, holds {expected}"
    return ""


def bytes_add_up(shard: Shard) -> str:
    """G19: the payload bytes of every queue, and the bytes of reports, match its jobs."""
    found: Counter[str] = Counter()
    for job in shard.jobs.values():
        found[job.queue.name] += len(job.payload)
    for lot in shard.lots.lots.values():
        found[lot.queue.name] += lot.bytes_left()
    for name, queue in shard.queues.items():
        if queue.payload_bytes != found[name]:
            return f"queue {name} counts {queue.payload_bytes} bytes, holds {found[name]}"
    if found.total() != shard.load.payload_bytes:
        return f"load says {shard.load.payload_bytes} bytes of {found.total()}"
    reported = sum(job.details.report_bytes() for job in shard.jobs.values())
    reported += sum(batch.spec.held_bytes() for batch in shard.batches.records.values())
    if not reported == shard.report_bytes == shard.load.report_bytes:
        return f"{shard.report_bytes} bytes of reports are counted, {reported} held"
    return ""


def _items(shard: Shard) -> list[Item]:
    return [*shard.jobs.values(), *shard.lots.lots.values()]


def ready_jobs_stand_in_their_lane(shard: Shard) -> str:
    """G12: every READY item is in the lane of its priority and name, in the order in which it
    became READY.
    """
    in_lanes: set[int] = set()
    for queue in shard.queues.values():
        for lane in queue.lanes():
            live = [item for item in lane if item.is_ready()]
            orders = [item.order for item in live]
            if orders != sorted(orders):
                return f"queue {queue.name}: a lane is out of order"
            for item in live:
                if lane is not queue.find_lane(lane_key(item)):
                    return f"queue {queue.name}: an item is in the wrong lane"
                in_lanes.add(id(item))
        in_lanes.update(map(id, of_groups.held_jobs(queue)))
    for item in _items(shard):
        ready = item.is_ready() and not (isinstance(item, Lot) and item.run_at_ms)
        if ready and id(item) not in in_lanes:
            return "a ready job is in no lane"
    return ""


def one_lease_each(shard: Shard) -> str:
    """G8: a leased job has one holder, which lists it; its delivery is of no later epoch."""
    for job in shard.jobs.values():
        active = job.state is JobState.ACTIVE
        if active != (job.holder is not None):
            return f"job {job.id} is {job.state.name} and its holder {job.holder}"
        if job.holder is not None and job.holder.leases.get(job.id) is not job:
            return f"the holder of job {job.id} does not list it"
        if job.delivery >> HANDOUT_BITS > shard.epoch:
            return f"job {job.id} has a delivery of a later epoch"
    for lot in shard.lots.lots.values():
        end = 0
        for lease in lot.leases:
            if lease.start < end or lease.start + lease.count > lot.cursor:
                return f"leases of lot {lot.first_id} overlap or run past its cursor"
            end = lease.start + lease.count
            if lease.remaining != len(lease.open_indexes()) or not lease.remaining:
                return f"a lease of lot {lot.first_id} miscounts"
            if lease.holder.leases.get(-(lot.first_id + lease.start)) is not lease:
                return f"the holder of a run of lot {lot.first_id} does not list it"
    return ""


def sessions_are_known(shard: Shard) -> str:
    """G8: every session that holds leases is listed in the clocks, where it is found on return."""
    holders = [job.holder for job in shard.jobs.values() if job.holder is not None]
    holders += [lease.holder for lot in shard.lots.lots.values() for lease in lot.leases]
    for holder in holders:
        if holder.session_id and shard.clocks.holders.get(holder.session_id) is not holder:
            return f"session {holder.session_id} holds leases and is forgotten"
    return ""


def in_flight_covers_leases(shard: Shard) -> str:
    """G8: a holder's `in_flight`, which may cover several shards, includes its leases here."""
    for holder in shard.clocks.holders.values():
        held = [lease.open_totals() for lease in holder.leases.values()]
        jobs, payload_bytes = sum(count for count, _ in held), sum(size for _, size in held)
        slots = sum(lease.open_totals()[0] * (lease.slots - 1) for lease in holder.leases.values())
        if slots > holder.in_flight.extra_slots:
            return f"session {holder.session_id} does not count {slots} slots that it holds"
        if jobs > holder.in_flight.jobs:
            return (
                f"session {holder.session_id} holds {jobs} jobs and counts {holder.in_flight.jobs}"
            )
        if payload_bytes > holder.in_flight.payload_bytes:
            return f"session {holder.session_id} does not count {payload_bytes} bytes that it holds"
    return ""


def nothing_early(shard: Shard) -> str:
    """G3: an item's offset is at most the next one, so it waits for an existing commit; a volatile
    item has none.
    """
    for item in _items(shard):
        if item.offset > shard.next_offset:
            return "an item carries an offset that does not exist yet"
        if item.volatile and item.offset:
            return "a volatile item waits for a commit"
    return ""


def ids_are_new(shard: Shard) -> str:
    """G10: all ids are below the next one, so no id is used twice."""
    highest = max(
        list(shard.jobs) + [lot.end_id() - 1 for lot in shard.lots.lots.values()],
        default=shard.id_of(0),
    )
    if sequence_of(highest) >= shard.next_sequence:
        return f"id {highest} is not below {shard.next_id()}"
    return ""


def delayed_jobs_have_entries(shard: Shard) -> str:
    """G7: every SCHEDULED job or lot has an entry at its time."""
    known = set(shard.delayed)
    for job in shard.jobs.values():
        if job.state is JobState.SCHEDULED and (job.run_at_ms, job.id) not in known:
            return f"job {job.id} is delayed and has no entry"
    for lot in shard.lots.lots.values():
        if lot.run_at_ms and (lot.run_at_ms, lot.first_id) not in known:
            return f"lot {lot.first_id} is delayed and has no entry"
    return ""


def keys_point_to_given_ids(shard: Shard) -> str:
    """G6: every key points to ids that exist or existed."""
    for record in [*shard.keys.records.values(), *shard.requests.records.values()]:
        if record.first_id + record.count > shard.next_id():
            return f"a key points to {record.first_id}, which was never used"
    return ""


def calls_add_up(shard: Shard) -> str:
    """G6: calls of producers point to ids that exist or existed, and are counted."""
    found = 0
    for table in (shard.producers, shard.volatile_producers):
        for record in table.records.values():
            found += 1 + len(record.calls)
            if any(call.first_id + call.jobs > shard.next_id() for call in record.calls.values()):
                return "a call of a producer points to ids that were never used"
    return "" if found == shard.load.calls else f"load says {shard.load.calls} calls of {found}"


INVARIANTS: dict[str, list[Callable[[Shard], str]]] = {
    "G3": [nothing_early],
    "G6": [keys_point_to_given_ids, calls_add_up, *UNIQUE_KEYS],
    "G7": [delayed_jobs_have_entries, waiting_jobs_have_expiries],
    "G8": [one_lease_each, sessions_are_known, in_flight_covers_leases],
    "G10": [ids_are_new],
    "G11": [of_groups.groups_add_up, of_groups.groups_run_in_order],
    "G12": [ready_jobs_stand_in_their_lane, reservations_add_up],
    "G14": [allowances_fit_settings, limiters_count_what_is_active, closed_lanes_are_in_line],
    "G13": DEPENDENCIES,
    "G23": [tenants_add_up],
    "G24": [schedules_add_up],
    "G19": [
        one_state_each,
        counters_add_up,
        lanes_add_up,
        blocks_add_up,
        bytes_add_up,
        outboxes_add_up,
    ],
    "G20": BATCHES,
    "G27": WEBHOOKS,
}
