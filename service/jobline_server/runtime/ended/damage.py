"""Damage: ended jobs that are kept and cannot be read.

A call that needs such a job is refused with DATA_LOSS. Lists and filters leave it out, so that the
jobs around it can be reached. Each damaged job is logged and counted once, here.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain, groupby

from jobline_server.engine.commands import RefusalKind, Refused
from jobline_server.telemetry.log import logger

LOG = logger("runtime")

# Damaged jobs that are remembered, at 50 bytes of memory each. Those beyond are neither counted nor
# logged.
DAMAGED_MAX = 10_000


class Damage:
    """Damaged jobs that were found since the start."""

    def __init__(self) -> None:
        self._ids: set[int] = set()

    def count(self) -> int:
        """Returns how many."""
        return len(self._ids)

    def found(self, runs: Iterable[tuple[int, int]]) -> None:
        """Counts and logs damaged jobs, given as first ids and counts, that are not known yet."""
        ids = chain.from_iterable(range(first_id, first_id + count) for first_id, count in runs)
        new = [job_id for job_id in ids if job_id not in self._ids]
        new = new[: DAMAGED_MAX - len(self._ids)]
        self._ids.update(new)
        # A line per run: id minus index is the same within a run of consecutive ids.
        for _, run in groupby(enumerate(new), lambda at: at[1] - at[0]):
            together = [job_id for _, job_id in run]
            LOG.error("ended jobs are damaged", first_id=together[0], count=len(together))


def damaged(job_id: int) -> Refused:
    """Returns the refusal of a call that needs a damaged job."""
    return Refused(RefusalKind.DATA_LOSS, f"what is kept of ended job {job_id} is damaged")
