"""Image: the durable part of a shard's state as plain values, to compare two shards.

`recover(journal) == live` means that these are equal. Bookkeeping is left out: the ends of leases,
offsets, totals since the start, and everything of jobs that are never written.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple, cast

from jobline_server.engine.batches import Batch, EndCounts
from jobline_server.engine.holder import Holder
from jobline_server.engine.items import Item
from jobline_server.engine.job import Job
from jobline_server.engine.keys import KeyRecord, KeyTable
from jobline_server.engine.lane import LaneKey, place_of
from jobline_server.engine.lot import Lot
from jobline_server.engine.producers import CallRecord
from jobline_server.engine.queue import Queue
from jobline_server.engine.schedule import Schedule
from jobline_server.engine.shard import Shard
from jobline_server.engine.values import JobState
from jobline_server.engine.webhook import Webhook

# A delivery that is being sent is due again after a start.
BOOKKEEPING_OF_WEBHOOKS = {"_due", "armed", "ids"}
KEPT_OF_WEBHOOKS = [one for one in Webhook.__slots__ if one not in BOOKKEEPING_OF_WEBHOOKS]
KEPT_OF_SCHEDULES = [field for field in Schedule.__slots__ if field != "armed_ms"]


class UniqueImage(NamedTuple):
    """Who holds a unique key, and until when."""

    job_id: int
    expires_ms: float


def until_of(shard: Shard, job_id: int) -> float:
    """Until when a job holds its key."""
    return shard.jobs[job_id].ties.claim.until_ms or float("inf")


class ProducerImage(NamedTuple):
    """What is durable of a producer."""

    expires_ms: int
    answered_below: int
    calls: list[tuple[int, CallRecord]]


def image_of(shard: Shard) -> dict[str, Any]:
    """The durable state; two shards with the same image behave alike."""
    return {
        "queues": {name: _queue(queue) for name, queue in sorted(shard.queues.items())},
        "jobs": {i: _job(job) for i, job in sorted(shard.jobs.items()) if not job.volatile},
        "lots": {i: _lot(lot) for i, lot in sorted(shard.lots.lots.items()) if not lot.volatile},
        "keys": _keys(shard.keys),
        "requests": _keys(shard.requests),
        "producers": {
            producer: ProducerImage(
                record.expires_ms, record.answered_below, [*record.calls.items()]
            )
            for producer, record in sorted(shard.producers.records.items())
        },
        "outboxes": {
            to_shard: [(sent.number, sent.message) for sent in outbox]
            for to_shard, outbox in sorted(shard.messages.outboxes.items())
        },
        "awaited": {
            job_id: (record.durable_end(), record.shards)
            for job_id, record in sorted(shard.dependencies.awaited.items())
            if record.durable_end() or record.shards
        },
        "inboxes": dict(sorted(shard.messages.received.items())),
        "limiters": dict(sorted(shard.own_limiters.items())),
        "schedules": {
            name: {field: getattr(one, field) for field in KEPT_OF_SCHEDULES}
            for name, one in sorted(shard.schedules.by_name.items())
        },
        "webhooks": {name: _webhook(one) for name, one in sorted(shard.webhooks.by_name.items())},
        "batches": {i: _batch(batch) for i, batch in sorted(shard.batches.records.items())},
        "members": dict(sorted(shard.batches.live.items())),
        "unsent": {i: one.frozen() for i, one in sorted(shard.batches.unsent.items())},
        "unique": {
            "holders": {
                key_hash: UniqueImage(job_id, until_of(shard, job_id))
                for key_hash, job_id in sorted(shard.unique.holders.items())
            },
            "parked": dict(sorted(shard.unique.parked.items())),
            "throttled": {
                key_hash: UniqueImage(throttle.job_id, throttle.expires_ms)
                for key_hash, throttle in sorted(shard.unique.throttled.records.items())
            },
            "held": shard.unique.held,
        },
        "age": (shard.age.last_ms, shard.age.behind_ms),
        "groups": {name: _groups(queue) for name, queue in sorted(shard.queues.items())},
        "lanes": {name: _lanes(queue) for name, queue in sorted(shard.queues.items())},
    }


def _webhook(webhook: Webhook) -> dict[str, Any]:
    found = {field: getattr(webhook, field) for field in KEPT_OF_WEBHOOKS}
    # A copy: an image of a commit must not follow what happens after it.
    return found | {"pending": [*webhook.pending.items()]}


def _batch(batch: Batch) -> tuple[Any, ...]:
    return tuple(
        value.frozen() if isinstance(value, EndCounts) else value
        for name in Batch.__slots__
        if name != "stored"
        for value in [getattr(batch, name)]
    )


def counting_at(image: dict[str, Any], aged_ms: int) -> dict[str, Any]:
    """The image without what nobody can find any more: when that is swept is no state."""
    unique = image["unique"]
    return image | {
        **{kind: _later(image[kind], aged_ms) for kind in ("keys", "requests", "producers")},
        "unique": unique
        | {kind: _later(unique[kind], aged_ms) for kind in ("holders", "throttled")},
    }


def _later(records: dict[bytes, Any], aged_ms: int) -> dict[bytes, Any]:
    return {key: record for key, record in records.items() if record.expires_ms > aged_ms}


def _keys(table: KeyTable) -> dict[bytes, KeyRecord]:
    return {
        key_hash: record
        for key_hash, record in sorted(table.records.items())
        if key_hash not in table.volatile
    }


def _queue(queue: Queue) -> tuple[Any, ...]:
    return (
        queue.number,
        queue.settings,
        queue.paused,
        queue.limited,
        queue.paused_by,
        queue.pause_reason,
        queue.created_ms,
        queue.kept(),
    )


def _holder(holder: Holder | None) -> tuple[str, str, str] | None:
    return None if holder is None else (holder.worker, holder.session_id, holder.version)


def _job(job: Job) -> tuple[Any, ...]:
    details = job.details
    return (
        job.queue.name,
        job.options,
        job.payload,
        job.state,
        job.pushed_ms,
        job.run_at_ms,
        (job.attempts, job.stalls, job.releases, job.delivery),
        job.job_key,
        job.ties,
        (job.lease_ms, job.leased_ms) if job.holder else None,
        _holder(job.holder),
        job.lease_reason,
        job.cancel_requested,
        (details.history, details.worker_checkpoint, details.progress, details.progress_message),
        job.waits_from_ms() if job.state in (JobState.READY, JobState.ACTIVE) else 0,
        details.log,
        details.auto_retries,
        details.ttl_from_ms,
        details.phases,
        (tuple(details.parents_left), details.blocked_until_ms),
    )


def _lot(lot: Lot) -> tuple[Any, ...]:
    held = {index for lease in lot.leases for index in lease.open_indexes()}
    kept = {
        index: (
            lot.payloads[index],
            lot.payloads.options_of(index, lot.options),
            lot.payloads.job_key_of(index),
        )
        for index in range(len(lot.payloads))
        if index in held or lot.is_waiting(index)
    }
    leases = [
        (
            lease.open_indexes(),
            lease.delivery,
            lease.lease_ms,
            lease.leased_ms,
            _holder(lease.holder),
        )
        for lease in lot.leases
    ]
    # A lane moves the cursor over what is gone only when it gets there, which is no fact.
    cursor = lot.cursor
    while cursor in lot.holes:
        cursor += 1
    times = lot.pushed_ms, lot.run_at_ms, lot.waits_from_ms()
    return (lot.queue.name, lot.options, kept, times, cursor, leases)


def _lanes(queue: Queue) -> list[tuple[int, str, str, list[int]]]:
    """The jobs of each lane in order; what is reserved for a session is nobody's after a start."""
    together: dict[LaneKey, list[Item]] = {}
    for lane in queue.lanes():
        priority, name, size, needs, tenant = lane.key
        common = needs and needs._replace(session="")
        together.setdefault((priority, name, size, common, tenant), []).extend(
            cast("Iterable[Item]", lane)
        )
    lanes = []
    for (priority, name, _, _, tenant), items in together.items():
        ids = [
            item.first_id if isinstance(item, Lot) else item.id
            for item in sorted(items, key=place_of)
            if item.is_ready() and not item.volatile
        ]
        if ids:
            lanes.append((priority, name, tenant, ids))
    return sorted(lanes)


def _groups(queue: Queue) -> dict[str, tuple[Any, ...]]:
    return {
        group.name: (
            group.settings,
            (group.paused, group.paused_by, group.pause_reason),
            group.dead_heads,
            group.limited,
            group.is_used_up,
            [(job.id, job.state) for job in group.admitted],
            [job.id for job in group.waiting()],
            group.live,
        )
        for group in sorted(queue.groups, key=lambda group: group.name)
    }
