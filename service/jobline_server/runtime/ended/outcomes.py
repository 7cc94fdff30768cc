"""Outcomes: what became of jobs, looked up before something is decided that depends on them.

A call that depends on other jobs uses `decide`. A push whose jobs have parents, for example:

    await outcomes.decide(lambda known: push(command, known))

where `push` decides and calls `after_decision`, as `PushBatcher` does, and `decide_push` asks
`states_of(shard, parents, known)`. Parents that are live cost nothing more. If one is neither live
nor known, `OutcomesNeeded` comes before any fact, the ended store is read while the loop goes on,
and the push is decided again, in the same step in which the last look was found to be right.

A look is right if no commit changed its jobs while the file was read: jobs that ended, were retried
or deleted meanwhile are looked up again, and only those. What is not committed yet has not
happened, except that a job which is live again counts as live.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import TypeVar

from jobline_server.engine.commands import RefusalKind, Refused
from jobline_server.engine.decide.outcomes import Outcomes, OutcomesNeeded
from jobline_server.engine.endings import EndedChange, Ending, JobsEnded, QueueGone, RunsEnded
from jobline_server.engine.values import JobState
from jobline_server.runtime.commits.batches import CommittedBatch
from jobline_server.runtime.core import Core
from jobline_server.runtime.ended.damage import damaged
from jobline_server.runtime.ended.ended_jobs import EndedJobs

# Ids that one call may ask for: those that the jobs of a push name, and those that its keys stand
# for. The ended store is asked for a part of them at a time.
OUTCOME_IDS_MAX = 2_000
# A look is repeated for jobs that changed meanwhile, and a decision for jobs that it did not ask
# for before. Each time needs somebody who changes the same jobs again; this often is on purpose.
LOOKS_MAX = 16
RETRY_AFTER_MS = 100

T = TypeVar("T")


class OutcomeLookup:
    """Looks up outcomes."""

    def __init__(self, core: Core, ended: EndedJobs) -> None:
        self._core = core
        self._ended = ended
        self._looks: list[_Look] = []

    def on_committed(self, batches: Sequence[CommittedBatch]) -> None:
        """Notes which jobs changed that are being looked up."""
        for look in self._looks:
            for batch in batches:
                for ending in batch.endings:
                    look.note(ending)

    async def decide(self, decide: Callable[[Outcomes], T]) -> T:
        """Returns what `decide` returns, called with all outcomes that it asks for by
        `OutcomesNeeded`: all of them were right at the moment of the call. Raises what it raises,
        and `Refused` as `outcomes_of`.
        """
        asked: dict[int, None] = {}
        known: Outcomes = {}
        for _ in range(LOOKS_MAX):
            try:
                return decide(known)
            except OutcomesNeeded as needed:
                asked.update(dict.fromkeys(needed.ids))
            # Those asked for before are looked up again: they may have changed meanwhile.
            known = await self.outcomes_of(asked)
        raise _too_busy()

    async def outcomes_of(self, ids: Collection[int]) -> dict[int, JobState | None]:
        """Returns the states of jobs at this moment: of live jobs where they are, of ended ones how
        they ended, also if they are STALE by now; None for those that are not kept or were never
        pushed. Takes up to `OUTCOME_IDS_MAX` ids.

        Raises `Refused` with SHARD_UNAVAILABLE, or DATA_LOSS if an ended job cannot be read, or
        SERVER_FULL if jobs change faster than they can be read.
        """
        if len(ids) > OUTCOME_IDS_MAX:
            raise ValueError(f"{len(ids)} ids, more than {OUTCOME_IDS_MAX}")
        look = _Look(ids)
        self._looks.append(look)
        try:
            for _ in range(LOOKS_MAX):
                # A shard may have been lost meanwhile: what was read of its jobs says nothing.
                self._core.slots.check_here(look.ids)
                live = self._live(look.ids)
                unknown = look.unknown(live)
                if not unknown:
                    return {**look.found, **live}
                await self._read(look, unknown)
        finally:
            self._looks.remove(look)
        raise _too_busy()

    def _live(self, ids: Iterable[int]) -> dict[int, JobState]:
        live: dict[int, JobState] = {}
        for job_id in ids:
            slot = self._core.slots.find_by_id(job_id)
            state = None if slot is None else slot.shard.state_of(job_id)
            if state is not None:
                live[job_id] = state
        return live

    async def _read(self, look: _Look, ids: Sequence[int]) -> None:
        """Reads what is kept of jobs that are not live."""
        # A job that ended just now is in no file, nor on its way to it, before the commit.
        await self._core.commits.wait()
        look.begin(ids)
        async for result in self._ended.look_up(ids):
            for job_id in result.damaged:
                raise damaged(job_id)
            for job_id in result.ids:
                kept = result.kept.get(job_id)
                look.found[job_id] = None if kept is None else kept.outcome


class _Look:
    """One call: its ids, what was found of them, and which of them changed since they were read."""

    def __init__(self, ids: Collection[int]) -> None:
        self.ids = sorted(set(ids))
        self.found: dict[int, JobState | None] = {}
        self._changed: set[int] = set()

    def begin(self, ids: Sequence[int]) -> None:
        """These are read from now on: all earlier changes will be seen."""
        self._changed.difference_update(ids)

    def unknown(self, live: Collection[int]) -> list[int]:
        """Returns the ids that have to be read, or read again: they are not live."""
        for job_id in self._changed:
            self.found.pop(job_id, None)
        self._changed.clear()
        return [job_id for job_id in self.ids if job_id not in live and job_id not in self.found]

    def note(self, ending: Ending) -> None:
        """Notes changes of ended jobs, and jobs that ended."""
        if isinstance(ending, JobsEnded):
            for job in ending.jobs:
                self._note_run(job.id, 1)
        elif isinstance(ending, RunsEnded | EndedChange):
            for start, count in zip(ending.starts, ending.counts, strict=True):
                self._note_run(start, count)
        elif isinstance(ending, QueueGone):
            # A queue is gone, whose ended jobs nobody lists.
            self._changed.update(self.ids)

    def _note_run(self, start: int, count: int) -> None:
        ids = self.ids
        self._changed.update(ids[bisect_left(ids, start) : bisect_left(ids, start + count)])


def _too_busy() -> Refused:
    return Refused(
        RefusalKind.SERVER_FULL,
        "jobs that this call depends on change faster than they can be looked up",
        retry_after_ms=RETRY_AFTER_MS,
    )
