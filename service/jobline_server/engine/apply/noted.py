"""Notes jobs and runs for the history, as effects of the fact that is being applied."""

from __future__ import annotations

from collections.abc import Iterable

from jobline_server.engine.job import Job
from jobline_server.engine.lot import Lot, RunLease
from jobline_server.engine.snapshots import RunsNoted, alike, jobs_noted
from jobline_server.engine.state import ShardState
from jobline_server.engine.values import JobState


def note_jobs(shard: ShardState, jobs: Iterable[Job]) -> None:
    """Notes single jobs, if a history is kept. Volatile ones are in none."""
    if shard.load.keeps_history:
        kept = [job for job in jobs if not job.volatile]
        if kept:
            shard.effects += [jobs_noted(part) for part in alike(kept)]


def note_runs(
    shard: ShardState, lot: Lot, runs: Iterable[tuple[int, int]], lease: RunLease | None = None
) -> None:
    """Notes waiting or leased members of a lot, if a history is kept."""
    if shard.load.keeps_history and not lot.volatile:
        starts, counts = zip(*runs, strict=True) if (runs := list(runs)) else ((), ())
        state = lot.state if lease is None else JobState.ACTIVE
        shard.effects.append(RunsNoted(lot, state, starts, counts, lot.ready_ms, lease))


def note_lot(shard: ShardState, lot: Lot) -> None:
    """Notes all members of a lot that is about to be deleted, if a history is kept."""
    if shard.load.keeps_history:
        note_runs(shard, lot, lot.waiting_runs())
        for lease in lot.leases:
            note_runs(shard, lot, [(job_id, 1) for job_id in lease.open_ids()], lease)
