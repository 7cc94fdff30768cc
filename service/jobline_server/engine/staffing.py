"""Staffing: how many jobs must run at a time, and so how many workers, to keep an objective.

A queue is taken for a waiting line with random arrivals, any spread of run times, and many servers
(M/G/c). Erlang's C formula is the share of jobs that wait at all. How long those wait falls off
exponentially, faster the more servers are idle on average; what run times spread makes it slower,
by the factor of Allen and Cunneen. Beside that, what waits already must start in the time that its
oldest job has left. The larger of both counts is needed.

It is an estimate: arrivals in bursts wait longer than random ones. All is plain arithmetic on what
was measured elsewhere; its cost grows with the square root of the load.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, exp, floor, sqrt

from jobline_server.engine.objective import Objective

# What cannot be paid for anyway; it bounds the steps of the search.
SLOTS_MAX = 100_000
# Of the objective's time, the share in which a backlog is to start that has used up more of it.
LEFT_SHARE_MIN = 0.25
# Erlang's recursion forgets where it began: from so many deviations below the load it is exact.
DEVIATIONS = 10.0


@dataclass(frozen=True, slots=True)
class Demand:
    """What a queue has to do: jobs that wait, for how long the oldest has, how many come a second,
    how long they run on average, and the square of the deviation of that divided by its mean.
    """

    backlog: int
    oldest_seconds: float
    arrivals: float
    run_seconds: float
    run_spread: float = 1.0


def slots_needed(demand: Demand, objective: Objective) -> int:
    """Returns how many jobs must be able to run at a time. It never falls as the backlog, the
    arrivals or the run time grow.
    """
    seconds = objective.start_within_ms / 1_000
    draining = slots_to_drain(demand, seconds)
    late = max(1 - objective.percent / 100, 1e-6)
    load = demand.arrivals * demand.run_seconds
    if not load:
        return draining
    if load >= SLOTS_MAX:
        return SLOTS_MAX
    slots = max(floor(load) + 1, 1)
    share = _erlang_b(slots, load)
    while slots < SLOTS_MAX and _late_share(slots, share, demand, seconds) > late:
        slots += 1
        share = _next_b(share, slots, load)
    return max(slots, draining)


def slots_to_drain(demand: Demand, seconds: float) -> int:
    """Returns how many jobs must run at a time for all that wait to start within what is left of
    these seconds, or a quarter of them.
    """
    left = max(seconds - demand.oldest_seconds, seconds * LEFT_SHARE_MIN)
    # All of them start at once at most; one slot is needed where nobody knows how long a job runs.
    share = min(demand.run_seconds / left, 1.0)
    return min(max(ceil(demand.backlog * share), demand.backlog > 0), SLOTS_MAX)


def workers_for(slots: int, slots_per_worker: float, concurrency: int | None) -> int:
    """Returns how many workers have so many slots. More than `concurrency`, the limit of a queue,
    would idle.
    """
    if concurrency is not None:
        slots = min(slots, concurrency)
    return ceil(slots / max(slots_per_worker, 1.0))


def _late_share(slots: int, blocking: float, demand: Demand, seconds: float) -> float:
    """Returns the share of jobs that wait for longer, by the share of the formula B."""
    use = demand.arrivals * demand.run_seconds / slots
    waits = blocking / (1 - use * (1 - blocking))
    idle_rate = slots * (1 - use) / demand.run_seconds
    return waits * exp(-2 * idle_rate * seconds / (1 + demand.run_spread))


def _erlang_b(slots: int, load: float) -> float:
    """Returns Erlang's B: the share of jobs that would find all slots taken and go away."""
    first = max(floor(load - DEVIATIONS * sqrt(load)), 0)
    share = 1.0
    for number in range(first + 1, slots + 1):
        share = _next_b(share, number, load)
    return share


def _next_b(share: float, slots: int, load: float) -> float:
    """Returns the B of one slot more."""
    return load * share / (slots + load * share)
