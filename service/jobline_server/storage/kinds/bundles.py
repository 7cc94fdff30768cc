"""Bundles of single jobs ↔ the items of a checkpoint.

A job is bundled with its neighbours when it is first written, if nothing has happened to it yet and
it is small (`kinds/jobs.py`). A bundle is about a page of SQLite, which writes whole pages: writing
it again, because jobs have left it, costs about as much as writing one of them.

A start loads a million jobs this way, so loops go over columns and make no call per job but for the
job itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate, pairwise
from typing import TypeVar

from jobline.v1 import store_pb2
from jobline_server.engine.apply.bookkeeping import add_jobs
from jobline_server.engine.changes import Bundle
from jobline_server.engine.job import NO_DETAILS, Job
from jobline_server.engine.queue import Queue
from jobline_server.engine.shard import Shard
from jobline_server.engine.ties import NO_TIES
from jobline_server.engine.values import JobState, LeaseReason
from jobline_server.storage.codec.shared import interned_options
from jobline_server.storage.kinds.by_id import by_id
from jobline_server.storage.kinds.loading import Loading, QueueOf
from jobline_server.storage.kinds.table import BUNDLED_AN_ITEM, PAYLOADS_AN_ITEM, DurableKind
from jobline_server.storage.store import ItemKind, ItemRow
from jobline_server.wire.options import serialized_options

V = TypeVar("V")

# Jobs of one bundle have ids that differ in these last bits alone.
NEIGHBOUR_BITS = 6
# About a page of SQLite with payloads of 100 bytes. A job that is larger than a small part of one
# has an item of its own: it would be written again with each neighbour that leaves.
BUNDLE_BYTES_MAX = 16_384
JOB_BYTES_MAX = 1_024

# Enum attribute access is slow before Python 3.12.
_READY, _SCHEDULED = JobState.READY, JobState.SCHEDULED
_FIRST = LeaseReason.FIRST


def is_untouched(job: Job) -> bool:
    """Returns whether nothing has happened to a job since its push except that its time came, and
    the columns of a bundle can hold all its fields.
    """
    return (
        not job.delivery
        and job.lease_reason is _FIRST
        and job.details is NO_DETAILS
        and job.ties is NO_TIES
    )


def in_bundles(jobs: Iterable[Job]) -> Iterator[list[Job]]:
    """Yields jobs, which are untouched, in groups that fit into a bundle; a job that is too large
    for one is a group of its own.
    """
    group: list[Job] = []
    size = 0
    for job in jobs:
        job_bytes = len(job.payload)
        if job.options.headers:
            job_bytes += sum([len(name) + len(value) for name, value in job.options.headers])
        if job_bytes > JOB_BYTES_MAX:
            yield [job]
            continue
        if size + job_bytes > BUNDLE_BYTES_MAX:
            yield group
            group, size = [], 0
        group.append(job)
        size += job_bytes
    if group:
        yield group


def new_bundle(shard: Shard, jobs: Sequence[Job]) -> Bundle:
    """Makes jobs, which are in no checkpoint, a bundle."""
    bundle = Bundle(jobs[0].id, jobs[-1].id + 1, len(jobs))
    shard.bundles[bundle.first_id] = bundle
    for job in jobs:
        job.stored = bundle
    return bundle


def jobs_of(shard: Shard, bundle: Bundle) -> list[Job]:
    """Returns the jobs of a bundle in the order of their ids."""
    found = shard.jobs.find_between(range(bundle.first_id, bundle.end_id))
    return [job for job in found if job is not None and job.stored is bundle]


def encode_bundle(jobs: Sequence[Job]) -> bytes:
    """Returns the blob of the jobs of a bundle."""
    message = store_pb2.StoredBundle()
    message.id_steps.extend([job_id - last for last, job_id in pairwise([0, *_ids_of(jobs)])])
    queues, queue_indexes = _indexed([job.queue.name for job in jobs])
    message.queues.extend(queues)
    message.queue_indexes.extend(queue_indexes)
    options, options_indexes = _indexed([serialized_options(job.options) for job in jobs])
    message.options.extend(options)
    message.options_indexes.extend(options_indexes)
    message.payloads.extend([job.payload for job in jobs])
    pushed_ms = [job.pushed_ms for job in jobs]
    message.pushed_ms.extend(pushed_ms[:1] if len(set(pushed_ms)) == 1 else pushed_ms)
    orders = [job.order for job in jobs]
    follow = orders == list(range(orders[0], orders[0] + len(orders)))
    message.orders.extend(orders[:1] if follow else orders)
    message.run_at_ms.extend(_unless_empty([job.run_at_ms for job in jobs]))
    message.job_keys.extend(_unless_empty([job.job_key for job in jobs]))
    message.waits_from_ms.extend(_unless_empty([job.ready_ms for job in jobs]))
    return message.SerializeToString()


def _ids_of(jobs: Sequence[Job]) -> list[int]:
    return [job.id for job in jobs]


def _indexed(values: Sequence[V]) -> tuple[list[V], list[int]]:
    """Returns values without duplicates, and where each is among them; nowhere if all are alike."""
    index_of: dict[V, int] = {}
    indexes = [index_of.setdefault(value, len(index_of)) for value in values]
    return list(index_of), indexes if len(index_of) > 1 else []


def _unless_empty(values: list[V]) -> list[V]:
    return values if any(values) else []


def decode_bundle(first_id: int, blob: bytes, queue_of: QueueOf) -> tuple[Bundle, list[Job]]:
    """Returns the bundle with this first id and its jobs."""
    message = store_pb2.StoredBundle.FromString(blob)
    ids = list(accumulate(message.id_steps))
    number = len(ids)
    queues = _spread([queue_of(name) for name in message.queues], message.queue_indexes, number)
    known = [interned_options(serialized) for serialized in message.options]
    options = _spread(known, message.options_indexes, number)
    pushed_ms = _spread(message.pushed_ms, (), number)
    columns = zip(ids, queues, options, message.payloads, pushed_ms, strict=True)
    jobs = [Job(one, queue, own, payload, ms) for one, queue, own, payload, ms in columns]
    bundle = Bundle(first_id, ids[-1] + 1, number)
    orders: Iterable[int] = message.orders
    if len(message.orders) == 1:
        orders = range(message.orders[0], message.orders[0] + number)
    for job, order in zip(jobs, orders, strict=True):
        job.order = order
        job.stored = bundle
    for job, run_at_ms in zip(jobs, message.run_at_ms, strict=bool(message.run_at_ms)):
        if run_at_ms:
            job.state = _SCHEDULED
            job.run_at_ms = run_at_ms
    for job, key in zip(jobs, message.job_keys, strict=bool(message.job_keys)):
        job.job_key = key
    for job, since_ms in zip(jobs, message.waits_from_ms, strict=bool(message.waits_from_ms)):
        job.ready_ms = since_ms
    return bundle, jobs


def _spread(values: Sequence[V], indexes: Sequence[int], number: int) -> Sequence[V]:
    """Returns the value of each job: that of its index, or the one that all have."""
    if indexes:
        return [values[index] for index in indexes]
    return [values[0]] * number if len(values) == 1 else values


def load_bundles(loading: Loading, rows: Iterator[ItemRow]) -> None:
    """Loads a page of bundles."""
    shard = loading.shard
    for row in rows:
        bundle, jobs = decode_bundle(row.key, row.blob, loading.queue_of)
        shard.bundles[bundle.first_id] = bundle
        for queue, of_queue in _by_queue(jobs):
            add_jobs(shard, queue, of_queue)
            ready = [job for job in of_queue if job.state is _READY]
            if ready:
                loading.ready[queue] += ready
            if len(ready) < len(of_queue):
                _load_scheduled(shard, queue, of_queue)


def _by_queue(jobs: list[Job]) -> Iterable[tuple[Queue, list[Job]]]:
    queues = {job.queue for job in jobs}
    if len(queues) == 1:
        return [(queues.pop(), jobs)]
    return [(queue, [job for job in jobs if job.queue is queue]) for queue in queues]


def _load_scheduled(shard: Shard, queue: Queue, jobs: list[Job]) -> None:
    for job in jobs:
        if job.state is _SCHEDULED:
            queue.counts[_SCHEDULED] += 1
            shard.schedule(job.run_at_ms, job.id)


def _save(shard: Shard, first_id: int, bundle: Bundle) -> tuple[int, bytes]:
    return first_id, encode_bundle(jobs_of(shard, bundle))


def _weigh(bundle: Bundle) -> tuple[int, int]:
    return bundle.jobs * PAYLOADS_AN_ITEM // BUNDLED_AN_ITEM, 0


BUNDLES = DurableKind(
    ItemKind.BUNDLE,
    load=load_bundles,
    slices=by_id(
        ItemKind.BUNDLE,
        owner=lambda shard: shard.bundles,
        changes=lambda shard: shard.changes.bundles,
        save=_save,
        weigh=_weigh,
    ),
)
