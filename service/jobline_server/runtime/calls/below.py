"""The jobs below those that are cancelled: what they waited for, and what that waits for.

A job below is cancelled as well if it is not running and only cancelled jobs wait for it. One that
others wait for is looked at again when one of these is cancelled.
"""

from __future__ import annotations

from collections.abc import Iterable

from jobline_server.engine.children import Children
from jobline_server.engine.values import WAITING_STATES
from jobline_server.runtime.slots import ShardSlots

# Jobs that wait for one that is looked at: so many are looked up in some microseconds.
WAITING_A_JOB = 100


class Below:
    """Collects the jobs below those of one call. `note` each that is about to be cancelled, or
    would be in a dry run.
    """

    def __init__(self, slots: ShardSlots) -> None:
        self._slots = slots
        self._cancelled: set[int] = set()
        self._children: dict[int, None] = {}

    def note(self, ids: Iterable[int]) -> None:
        """Notes what these wait for."""
        for job_id in ids:
            slot = self._slots.find_by_id(job_id)
            if slot is None:
                continue
            job = slot.shard.jobs.find(job_id)
            children = job.details.parents_left if job is not None else ()
            # Those alone are asked for again, by `take`.
            if children or slot.shard.dependencies.awaited.find(job_id) is not None:
                self._cancelled.add(job_id)
                self._children.update(dict.fromkeys(children))

    def take(self, limit: int) -> list[int]:
        """Returns some that are to be cancelled, after a look at up to `limit`, fewer if many jobs
        wait for them.
        """
        found: list[int] = []
        while limit > 0 and self._children:
            child, _ = self._children.popitem()
            limit -= 1
            if child in self._cancelled:
                continue
            slot = self._slots.find_by_id(child)
            state = None if slot is None else slot.shard.state_of(child)
            if state not in WAITING_STATES:
                continue
            waiting = self._waiting_for(child)
            limit -= sum(map(len, waiting)) // WAITING_A_JOB
            if all(map(self._cancelled.issuperset, waiting)):
                found.append(child)
        return found

    def is_empty(self) -> bool:
        """Returns whether there is none left to look at."""
        return not self._children

    def _waiting_for(self, child: int) -> list[Children]:
        """Returns the jobs that wait for it, of each shard that has any."""
        records = [slot.shard.dependencies.awaited.find(child) for slot in self._slots]
        return [record.children for record in records if record is not None]
