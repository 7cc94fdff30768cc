"""Lives of simulated jobs, in columns: when they are pushed, wait for others, and end.

`rows_of_slice` makes one stretch of time of one shard. Its jobs are arrays that have one row per
job; each step (a push, a hand-out, an ending) adds a block of rows of events. Jobs that wait for
others live in later waves: children first, then the job that depends on two of them, then their
parent.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from jobline_pipeline.simulate import load as model
from jobline_pipeline.simulate.columns import COLUMNS, Index, Jobs, Rows, block
from jobline_pipeline.simulate.handouts import hand_out
from jobline_pipeline.simulate.load import HOUR_US, QUEUES, Load

# One job in 80 is the parent of the three after it; the third of these depends on the other two.
FLOW_EVERY, CHILDREN = 80, 3
# One run of 400 jobs in 20,000 is a batch.
BATCH_EVERY, BATCH_JOBS = 20_000, 400


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
        blocks += hand_out(load, jobs, live, chance)
    return {
        column: np.concatenate([_column(rows, column) for rows in blocks]) for column in COLUMNS
    }


def _column(rows: Rows, column: str) -> NDArray[Any]:
    kind, default = COLUMNS[column]
    if column in rows:
        return rows[column].astype(kind, copy=False)
    return np.full(len(rows["at"]), default, kind)


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


def _pushed(jobs: Jobs) -> Rows:
    index = np.arange(len(jobs.pushed))
    return block(
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
            block(
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
