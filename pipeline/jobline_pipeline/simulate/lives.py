"""Lives of simulated jobs, in columns: when they are pushed, handed out, retried, and how they end.

`Slice` is one stretch of time of one shard. Its jobs are arrays that have one row per job; each
step (a push, a hand-out, an ending) adds a block of rows of events. Jobs that wait for others live
in later waves: children first, then the job that depends on two of them, then their parent.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from jobline_pipeline.schemas import ENDINGS
from jobline_pipeline.simulate import load as model
from jobline_pipeline.simulate.load import HOUR_US, QUEUES, Load

Rows = dict[str, NDArray[Any]]
Index = NDArray[np.int64]

EVENT_NAMES = ("pushed", "leased", *ENDINGS)
EVENT = {name: code for code, name in enumerate(EVENT_NAMES)}
REASONS = ("draining", "lease lost", "by an operator", "ttl")
# One job in 80 is the parent of the three after it; the third of these depends on the other two.
FLOW_EVERY, CHILDREN = 80, 3
# One run of 400 jobs in 20,000 is a batch.
BATCH_EVERY, BATCH_JOBS = 20_000, 400
HANDOUTS_MAX = 8

# Columns of an event, their type, and what they have where nothing is known.
COLUMNS: dict[str, tuple[type[np.generic], int]] = {
    "at": (np.int64, 0),
    "event": (np.int8, 0),
    "queue": (np.int8, 0),
    "name": (np.int16, 0),
    "job_id": (np.int64, 0),
    "group": (np.int32, -1),
    "priority": (np.int8, 0),
    "delivery": (np.int64, 0),
    "attempt": (np.int16, 0),
    "worker": (np.int32, -1),
    "worker_version": (np.int8, -1),
    "pushed_at": (np.int64, 0),
    "ready_at": (np.int64, 0),
    "leased_at": (np.int64, 0),
    "first_leased_at": (np.int64, 0),
    "run_at": (np.int64, 0),
    "lease_until": (np.int64, 0),
    "next_run_at": (np.int64, 0),
    "attempts": (np.int16, -1),
    "stalls": (np.int16, -1),
    "releases": (np.int16, -1),
    "final": (np.int8, -1),
    "reason": (np.int8, -1),
    "error": (np.int32, -1),
    "parent_id": (np.int64, 0),
    "batch_id": (np.int64, 0),
    "depends_first": (np.int64, 0),
    "principal": (np.int8, -1),
    "operation_id": (np.int64, 0),
    "payload_bytes": (np.int64, -1),
    "result_bytes": (np.int64, -1),
}
# What every event of a job repeats.
_OF_JOB = ("queue", "name", "job_id", "group", "priority", "parent_id", "batch_id", "payload_bytes")


@dataclass(slots=True)
class Jobs:
    """The jobs of a slice, one row each, with what changes in their lives."""

    fixed: Rows
    pushed: Index
    run_at: Index
    ready: Index
    ended: Index
    first_leased: Index
    counts: Rows


def rows_of_slice(load: Load, shard: int, begin_us: int, end_us: int, first_seq: int) -> Rows:
    """Returns all events of the jobs that one shard is given in `[begin_us, end_us)`, not in order.

    Ids count up from `first_seq`. Events may lie after `end_us`.
    """
    chance = np.random.default_rng([load.seed, shard, begin_us // 1_000_000])
    jobs = _push(load, shard, begin_us, end_us, first_seq, chance)
    blocks = [_pushed(jobs)]
    position = np.arange(len(jobs.pushed)) % FLOW_EVERY
    whole = np.arange(len(jobs.pushed)) // FLOW_EVERY * FLOW_EVERY + CHILDREN < len(jobs.pushed)
    waves = (~whole | ((position != 0) & (position != CHILDREN)), whole & (position == CHILDREN))
    for wave in (*waves, whole & (position == 0)):
        index = np.flatnonzero(wave)
        _await_others(jobs, index, position[index])
        live, gone = _leave_early(jobs, index, chance)
        blocks += gone
        blocks += _hand_out(load, jobs, live, chance)
    return {
        column: np.concatenate([_column(block, column) for block in blocks]) for column in COLUMNS
    }


def _column(block: Rows, column: str) -> NDArray[Any]:
    kind, default = COLUMNS[column]
    if column in block:
        return block[column].astype(kind, copy=False)
    return np.full(len(block["at"]), default, kind)


def _push(
    load: Load, shard: int, begin_us: int, end_us: int, first_seq: int, chance: np.random.Generator
) -> Jobs:
    """Draws the jobs of a slice: queues by their share, at any moment of the slice."""
    hour = (begin_us - load.start_us) // HOUR_US
    share = (begin_us % HOUR_US) / HOUR_US, (end_us - 1) % HOUR_US / HOUR_US + 1 / HOUR_US
    codes = []
    for number, queue in enumerate(QUEUES):
        if queue.shard == shard:
            jobs = int(load.arrivals(number)[hour])
            count = round(jobs * share[1]) - round(jobs * share[0])
            codes.append(np.full(count, number, np.int8))
    queue_codes = np.concatenate([*codes, np.empty(0, np.int8)])
    size = len(queue_codes)
    at = begin_us + (chance.random(size) * (end_us - begin_us)).astype(np.int64)
    order = np.argsort(at)
    pushed, queue_codes = at[order], queue_codes[order]
    delayed = chance.random(size) < 0.03
    run_at = np.where(delayed, pushed + (chance.random(size) * HOUR_US / 2).astype(np.int64), 0)
    ids = (shard << 43) + first_seq + np.arange(size, dtype=np.int64)
    return Jobs(
        fixed=_fixed(queue_codes, ids, chance),
        pushed=pushed,
        run_at=run_at,
        ready=np.maximum(pushed, run_at),
        ended=np.zeros(size, np.int64),
        first_leased=np.zeros(size, np.int64),
        counts={name: np.zeros(size, np.int16) for name in ("attempts", "stalls", "releases")},
    )


def _fixed(queue: NDArray[np.int8], ids: Index, chance: np.random.Generator) -> Rows:
    """What never changes in a job."""
    size = len(ids)
    place = np.arange(size)
    groups = np.array([load.groups for load in QUEUES])[queue]
    # Few groups have most of the jobs.
    drawn = (chance.random(size) ** 3 * groups).astype(np.int32)
    flow = place % FLOW_EVERY
    whole = place - flow + CHILDREN < size
    is_child = whole & (flow >= 1) & (flow <= CHILDREN)
    in_batch = place % BATCH_EVERY < BATCH_JOBS
    batch = (
        (ids[0] >> 43 << 43 if size else 0) + (1 << 42) + (ids - place % BATCH_EVERY) % (1 << 42)
    )
    return {
        "queue": queue,
        "name": (queue.astype(np.int16) * 3 + (chance.random(size) ** 2 * 3).astype(np.int16)),
        "job_id": ids,
        "group": np.where(groups > 0, drawn, -1).astype(np.int32),
        "priority": np.where(chance.random(size) < 0.1, 5, 0).astype(np.int8),
        "parent_id": np.where(is_child, ids - flow, 0),
        "batch_id": np.where(in_batch, batch, 0),
        "depends_first": np.where(whole & (flow == CHILDREN), ids - 2, 0),
        "payload_bytes": (200 + chance.gamma(2.0, 400.0, size)).astype(np.int64),
    }


def _block(jobs: Jobs, index: Index, event: str, at: Index, **columns: NDArray[Any]) -> Rows:
    """Rows of one kind of event, for the jobs at `index`."""
    rows = {column: jobs.fixed[column][index] for column in _OF_JOB}
    return {**rows, "at": at, "event": np.full(len(index), EVENT[event], np.int8), **columns}


def _pushed(jobs: Jobs) -> Rows:
    index = np.arange(len(jobs.pushed))
    return _block(
        jobs,
        index,
        "pushed",
        jobs.pushed,
        run_at=jobs.run_at,
        depends_first=jobs.fixed["depends_first"],
        principal=jobs.fixed["queue"] % 3,
    )


def _await_others(jobs: Jobs, index: Index, position: Index) -> None:
    """Jobs of a later wave are ready when those that they wait for have ended."""
    for distance in (1, 2, 3):
        parents = index[position == 0]
        if len(parents) and parents[-1] + distance < len(jobs.ended):
            jobs.ready[parents] = np.maximum(jobs.ready[parents], jobs.ended[parents + distance])
    for distance in (1, 2):
        third = index[position == CHILDREN]
        if len(third):
            jobs.ready[third] = np.maximum(jobs.ready[third], jobs.ended[third - distance])


def _leave_early(jobs: Jobs, index: Index, chance: np.random.Generator) -> tuple[Index, list[Rows]]:
    """Some jobs are cancelled, or expire, while they wait; the others go on."""
    drawn = chance.random(len(index))
    cancelled = index[drawn < model.CANCEL_SHARE]
    expired = index[
        (drawn >= model.CANCEL_SHARE) & (drawn < model.CANCEL_SHARE + model.EXPIRE_SHARE)
    ]
    blocks = []
    for gone, event, reason in ((cancelled, "cancelled", 2), (expired, "expired", 3)):
        at = jobs.ready[gone] + (chance.random(len(gone)) * 60e6).astype(np.int64)
        jobs.ended[gone] = at
        by_hand = np.full(len(gone), 3 if event == "cancelled" else -1, np.int8)
        blocks.append(
            _block(
                jobs,
                gone,
                event,
                at,
                pushed_at=jobs.pushed[gone],
                ready_at=jobs.ready[gone],
                attempts=np.zeros(len(gone), np.int16),
                stalls=np.zeros(len(gone), np.int16),
                releases=np.zeros(len(gone), np.int16),
                final=np.ones(len(gone), np.int8),
                reason=np.full(len(gone), reason, np.int8),
                principal=by_hand,
                operation_id=np.where(by_hand >= 0, at // 600_000_000, 0),
            )
        )
    return index[drawn >= model.CANCEL_SHARE + model.EXPIRE_SHARE], blocks


def _hand_out(load: Load, jobs: Jobs, index: Index, chance: np.random.Generator) -> list[Rows]:
    """Hands jobs out until all have ended: each round is one hand-out of each job that lives."""
    blocks = []
    for handout in range(1, HANDOUTS_MAX + 1):
        if not len(index):
            break
        index, made = _one_hand_out(load, jobs, index, handout, chance)
        blocks += made
    return blocks


def _one_hand_out(
    load: Load, jobs: Jobs, index: Index, handout: int, chance: np.random.Generator
) -> tuple[Index, list[Rows]]:
    size, queue = len(index), jobs.fixed["queue"][index]
    leased = jobs.ready[index] + _waits(load, queue, jobs.ready[index], chance)
    version = (leased >= load.deployed_us).astype(np.int8)
    run = _service_us(queue, version, chance)
    drawn = chance.random(size)
    may_stall = handout < HANDOUTS_MAX - model.MAX_ATTEMPTS
    stalled = may_stall & (drawn < model.STALL_SHARE)
    released = may_stall & (drawn >= 1.0 - model.RELEASE_SHARE)
    fails = chance.random(size) < load.failure_of(queue, leased, version)
    failed = fails & ~stalled & ~released
    ended = leased + np.where(stalled, model.LEASE_US, np.where(released, run // 3, run))
    for name, counted in (("stalls", stalled), ("releases", released)):
        jobs.counts[name][index] += counted
    jobs.counts["attempts"][index] += ~stalled & ~released
    jobs.first_leased[index] = np.where(handout == 1, leased, jobs.first_leased[index])
    attempts = jobs.counts["attempts"][index]
    dead = failed & (attempts >= model.MAX_ATTEMPTS)
    retrying = failed & ~dead
    completed = ~failed & ~stalled & ~released
    workers = np.array([load.workers(number) for number in range(len(QUEUES))])
    error = (chance.integers(0, 400, size) * 5 + jobs.fixed["name"][index] % 5).astype(np.int32)
    next_run = np.where(retrying, ended + (1 << attempts.astype(np.int64)) * 1_000_000, 0)
    hand_out = {
        "delivery": np.full(size, (1 << 20) + handout, np.int64),
        "attempt": (attempts + (stalled | released)).astype(np.int16),
        "worker": (
            queue.astype(np.int32) * 1000 + (chance.random(size) * workers[queue]).astype(np.int32)
        ),
        "worker_version": version,
    }
    facts = {
        **hand_out,
        "pushed_at": jobs.pushed[index],
        "ready_at": jobs.ready[index],
        "leased_at": leased,
        "first_leased_at": np.where(completed | dead, jobs.first_leased[index], 0),
        "run_at": jobs.run_at[index],
        "next_run_at": next_run,
        **{name: jobs.counts[name][index] for name in jobs.counts},
        "final": (completed | dead).astype(np.int8),
        "reason": np.where(released, 0, np.where(stalled, 1, -1)).astype(np.int8),
        "error": np.where(failed, error, -1).astype(np.int32),
        "result_bytes": np.where(completed, 64 + error % 500, -1).astype(np.int64),
    }
    leased_rows = _block(
        jobs, index, "leased", leased, lease_until=leased + model.LEASE_US, **hand_out
    )
    blocks = [leased_rows]
    for event, which in (
        ("completed", completed),
        ("retrying", retrying),
        ("dead", dead),
        ("stalled", stalled),
        ("released", released),
    ):
        here = np.flatnonzero(which)
        if len(here):
            taken = {name: column[here] for name, column in facts.items()}
            blocks.append(_block(jobs, index[here], event, ended[here], **taken))
    jobs.ended[index] = ended
    jobs.ready[index] = np.where(retrying, next_run, ended)
    return index[~(completed | dead)], blocks


def _waits(load: Load, queue: NDArray[np.int8], at: Index, chance: np.random.Generator) -> Index:
    """Draws how long jobs wait, as in a queue with many servers: most not at all, some long."""
    hours = np.clip((at - load.start_us) // HOUR_US, 0, load.hours - 1)
    waits_share, mean_us = model.waiting(load)
    drawn = chance.random(len(at))
    share = waits_share[queue, hours]
    waiting = -np.log1p(-np.minimum(drawn / np.maximum(share, 1e-9), 0.999999))
    # A hand-out takes a millisecond or two also where a worker is free.
    quick = 500 + drawn * 2000
    return (quick + np.where(drawn < share, waiting * mean_us[queue, hours], 0)).astype(np.int64)


def _service_us(
    queue: NDArray[np.int8], version: NDArray[np.int8], chance: np.random.Generator
) -> Index:
    """Draws run times: log-normal, so that one in a thousand takes twenty times as long."""
    mean = np.array([one.service_ms * 1000.0 for one in QUEUES])[queue]
    mean = np.where((version == 1) & (queue == 2), mean * 1.6, mean)
    drawn = np.exp(chance.standard_normal(len(queue)) * 1.0 - 0.5) * mean
    run: Index = np.minimum(drawn, 1.2e9).astype(np.int64) + 100
    return run
