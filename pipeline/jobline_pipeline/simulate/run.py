"""Simulates the shards of a server in parallel, each slice by slice."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor, as_completed
from itertools import pairwise
from multiprocessing import get_context
from pathlib import Path

import numpy as np

from jobline_pipeline.simulate.columns import COLUMNS, Rows
from jobline_pipeline.simulate.files import Shard
from jobline_pipeline.simulate.lives import rows_of_slice
from jobline_pipeline.simulate.load import HOUR_US, QUEUES, SHARDS, Load, messages

# Jobs of one slice: enough that the work is in the columns, few enough for the caches.
SLICE_JOBS = 60_000


def simulate(
    history: Path, load: Load, *, processes: int | None = None, tell: Callable[[int], None] = print
) -> int:
    """Writes a history of `load.jobs` jobs below `history`; returns the number of events.

    `tell` is called with the number of events of each shard that is done.
    """
    busiest_first = sorted(range(SHARDS), key=lambda shard: -_share(shard))
    workers = min(processes or os.cpu_count() or 1, SHARDS)
    total = 0
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        running = [pool.submit(write_shard, history, load, shard) for shard in busiest_first]
        for done in as_completed(running):
            total += done.result()
            tell(done.result())
    return total


def write_shard(history: Path, load: Load, shard: int) -> int:
    """Writes all events of one shard; returns how many."""
    files = Shard(history, shard, messages(load.seed))
    later = _nothing()
    sequence, written = 1, 0
    for begin, end in _slices(load, shard):
        rows = rows_of_slice(load, shard, begin, end, sequence)
        sequence += int((rows["event"] == 0).sum())
        rows = {name: np.concatenate([later[name], rows[name]]) for name in COLUMNS}
        due = rows["at"] < end
        later = {name: column[~due] for name, column in rows.items()}
        written += files.write({name: column[due] for name, column in rows.items()})
    return written


def _slices(load: Load, shard: int) -> list[tuple[int, int]]:
    """Cuts the hours so that no slice has many more jobs than SLICE_JOBS."""
    cut = []
    hours = sum(load.arrivals(n) for n, queue in enumerate(QUEUES) if queue.shard == shard)
    for hour, jobs in enumerate(np.atleast_1d(hours).tolist()):
        parts = max(1, -(-jobs // SLICE_JOBS))
        edges = [
            load.start_us + hour * HOUR_US + HOUR_US * part // parts for part in range(parts + 1)
        ]
        cut += list(pairwise(edges))
    return cut


def _nothing() -> Rows:
    return {name: np.empty(0, kind) for name, (kind, _) in COLUMNS.items()}


def _share(shard: int) -> float:
    return sum(queue.share for queue in QUEUES if queue.shard == shard)
