"""Columns of simulated events, and of the jobs that they happen to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from jobline_pipeline.schemas import ENDINGS

Rows = dict[str, NDArray[Any]]
Index = NDArray[np.int64]

EVENT_NAMES = ("pushed", "leased", *ENDINGS)
EVENT = {name: code for code, name in enumerate(EVENT_NAMES)}
REASONS = ("draining", "lease lost", "by an operator", "ttl")

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


def block(jobs: Jobs, index: Index, event: str, at: Index, **columns: NDArray[Any]) -> Rows:
    """Rows of one kind of event, for the jobs at `index`."""
    rows = {column: jobs.fixed[column][index] for column in _OF_JOB}
    return {**rows, "at": at, "event": np.full(len(index), EVENT[event], np.int8), **columns}
