"""Hands simulated jobs out, again and again, until they have ended."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from jobline_pipeline.simulate import load as model
from jobline_pipeline.simulate.columns import Index, Jobs, Rows, block
from jobline_pipeline.simulate.load import HOUR_US, QUEUES, Load

HANDOUTS_MAX = 8
Flags = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class _Ends:
    """How the hand-outs of a round end: times, and one flag per job and outcome."""

    leased: Index
    at: Index
    version: NDArray[np.int8]
    completed: Flags
    failed: Flags
    stalled: Flags
    released: Flags


def hand_out(load: Load, jobs: Jobs, index: Index, chance: np.random.Generator) -> list[Rows]:
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
    """Hands the jobs at `index` out once; returns those that go on, and the rows of events."""
    ends = _draw(load, jobs, index, handout, chance)
    for name, counted in (("stalls", ends.stalled), ("releases", ends.released)):
        jobs.counts[name][index] += counted
    jobs.counts["attempts"][index] += ~ends.stalled & ~ends.released
    if handout == 1:
        jobs.first_leased[index] = ends.leased
    attempts = jobs.counts["attempts"][index]
    dead = ends.failed & (attempts >= model.MAX_ATTEMPTS)
    retrying = ends.failed & ~dead
    held = _held(load, jobs, index, handout, ends, chance)
    facts = {**held, **_facts(jobs, index, ends, dead, chance)}
    next_run = np.where(retrying, ends.at + (1 << attempts.astype(np.int64)) * 1_000_000, 0)
    facts["next_run_at"] = next_run
    until = ends.leased + model.LEASE_US
    blocks = [block(jobs, index, "leased", ends.leased, lease_until=until, **held)]
    for event, which in (
        ("completed", ends.completed),
        ("retrying", retrying),
        ("dead", dead),
        ("stalled", ends.stalled),
        ("released", ends.released),
    ):
        here = np.flatnonzero(which)
        if len(here):
            taken = {name: column[here] for name, column in facts.items()}
            blocks.append(block(jobs, index[here], event, ends.at[here], **taken))
    jobs.ended[index] = ends.at
    jobs.ready[index] = np.where(retrying, next_run, ends.at)
    return index[~(ends.completed | dead)], blocks


def _draw(load: Load, jobs: Jobs, index: Index, handout: int, chance: np.random.Generator) -> _Ends:
    """Draws when jobs are handed out, how long they run, and how that ends."""
    queue = jobs.fixed["queue"][index]
    leased = jobs.ready[index] + _waits(load, queue, jobs.ready[index], chance)
    version = (leased >= load.deployed_us).astype(np.int8)
    run = _service_us(queue, version, chance)
    drawn = chance.random(len(index))
    may_stall = handout < HANDOUTS_MAX - model.MAX_ATTEMPTS
    stalled = may_stall & (drawn < model.STALL_SHARE)
    released = may_stall & (drawn >= 1.0 - model.RELEASE_SHARE)
    fails = chance.random(len(index)) < load.failure_of(queue, leased, version)
    failed = fails & ~stalled & ~released
    at = leased + np.where(stalled, model.LEASE_US, np.where(released, run // 3, run))
    completed = ~failed & ~stalled & ~released
    return _Ends(leased, at, version, completed, failed, stalled, released)


def _held(
    load: Load,
    jobs: Jobs,
    index: Index,
    handout: int,
    ends: _Ends,
    chance: np.random.Generator,
) -> Rows:
    """Columns that say which hand-out it was: on `leased`, and on its end."""
    queue = jobs.fixed["queue"][index]
    workers = np.array([load.workers(number) for number in range(len(QUEUES))])
    drawn = (chance.random(len(index)) * workers[queue]).astype(np.int32)
    uncounted = ends.stalled | ends.released
    return {
        "delivery": np.full(len(index), (1 << 20) + handout, np.int64),
        "attempt": (jobs.counts["attempts"][index] + uncounted).astype(np.int16),
        "worker": queue.astype(np.int32) * 1000 + drawn,
        "worker_version": ends.version,
    }


def _facts(jobs: Jobs, index: Index, ends: _Ends, dead: Flags, chance: np.random.Generator) -> Rows:
    """Columns that say how a hand-out ended, and all that is known of the job."""
    drawn = chance.integers(0, 400, len(index))
    error = (drawn * 5 + jobs.fixed["name"][index] % 5).astype(np.int32)
    final = ends.completed | dead
    return {
        "pushed_at": jobs.pushed[index],
        "ready_at": jobs.ready[index],
        "leased_at": ends.leased,
        "first_leased_at": np.where(final, jobs.first_leased[index], 0),
        "run_at": jobs.run_at[index],
        **{name: jobs.counts[name][index] for name in jobs.counts},
        "final": final.astype(np.int8),
        "reason": np.where(ends.released, 0, np.where(ends.stalled, 1, -1)).astype(np.int8),
        "error": np.where(ends.failed, error, -1).astype(np.int32),
        "result_bytes": np.where(ends.completed, 64 + error % 500, -1).astype(np.int64),
    }


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
