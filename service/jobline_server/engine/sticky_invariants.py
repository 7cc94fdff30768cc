"""Invariants of jobs that are reserved for sessions: see `invariants`, which lists them."""

from __future__ import annotations

from jobline_server.engine.shard import Shard
from jobline_server.engine.values import JobState


def reservations_add_up(shard: Shard) -> str:
    """G12: jobs behind closed gates are counted, and lanes are kept for sessions that have jobs."""
    for name, queue in shard.queues.items():
        gates = queue.gates
        shut = sum(lane.ready for lane in gates.closed.values())
        if shut != gates.shut:
            return f"queue {name} counts {gates.shut} jobs behind gates, and has {shut}"
        for session, lanes in gates.own.items():
            for key, lane in lanes.items():
                needs = lane.needs
                if needs is None or needs.session != session or gates.closed.get(key) is not lane:
                    return f"lane {key} of queue {name} is not closed for {session}"
                if not lane.ready:
                    return f"lane {key} of queue {name} is kept for {session} and empty"
    for job in shard.jobs.values():
        if job.reserved_for and job.state is JobState.ACTIVE:
            return f"job {job.id} is leased and reserved for {job.reserved_for}"
    return ""
