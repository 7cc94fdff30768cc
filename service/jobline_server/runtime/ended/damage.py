"""Damage: ended jobs that are kept and cannot be read.

A call that needs one such job says DATA_LOSS. A list and a filter go on without it, so that its
neighbours can be reached; that it was left out is said here, once a job, in the log, and as a
number in the metrics.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain, groupby

from jobline_server.engine.commands import RefusalKind, Refused
from jobline_server.telemetry.log import logger

LOG = logger("runtime")

# Damaged jobs that are told apart, of 50 bytes of memory each. After so many the disk has had its
# say: those beyond are neither counted nor named.
DAMAGED_MAX = 10_000


class Damage:
    """Damaged jobs that were come across since the start."""

    def __init__(self) -> None:
        self._ids: set[int] = set()

    def count(self) -> int:
        """How many."""
        return len(self._ids)

    def found(self, runs: Iterable[tuple[int, int]]) -> None:
        """Somebody came across these: first ids and counts."""
        ids = chain.from_iterable(range(first_id, first_id + count) for first_id, count in runs)
        new = [job_id for job_id in ids if job_id not in self._ids]
        new = new[: DAMAGED_MAX - len(self._ids)]
        self._ids.update(new)
        # A line a run: numbers that follow on each other keep their distance to their place.
        for _, run in groupby(enumerate(new), lambda at: at[1] - at[0]):
            together = [job_id for _, job_id in run]
            LOG.error("ended jobs are damaged", first_id=together[0], count=len(together))


def damaged(job_id: int) -> Refused:
    """What a call is told that needs what is kept of a job, and cannot be read."""
    return Refused(RefusalKind.DATA_LOSS, f"what is kept of ended job {job_id} is damaged")
