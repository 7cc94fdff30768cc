"""How many slots an objective needs: never fewer for more work, and enough in a simulation."""

from __future__ import annotations

import heapq
from dataclasses import replace
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobline_server.engine.objective import Objective
from jobline_server.engine.staffing import (
    SLOTS_MAX,
    Demand,
    slots_needed,
    slots_to_drain,
    workers_for,
)

OBJECTIVE = Objective(99.0, 30_000)
NOTHING = Demand(0, 0, 0, 0)

positive = st.floats(0.001, 100)
demands = st.builds(
    Demand, st.integers(0, 10_000), st.floats(0, 100), positive, positive, st.floats(0, 10)
)
objectives = st.builds(Objective, st.floats(1, 99.99), st.integers(100, 600_000))


@given(demands, objectives, st.integers(0, 10_000))
def test_more_backlog_never_needs_fewer(demand: Demand, objective: Objective, more: int) -> None:
    """Whatever else is the case."""
    longer = replace(demand, backlog=demand.backlog + more)

    assert slots_needed(longer, objective) >= slots_needed(demand, objective)


@given(demands, objectives, positive)
def test_more_arrivals_never_need_fewer(demand: Demand, objective: Objective, more: float) -> None:
    """Whatever else is the case."""
    busier = replace(demand, arrivals=demand.arrivals + more)

    assert slots_needed(busier, objective) >= slots_needed(demand, objective)


@given(demands, objectives, positive)
def test_longer_runs_never_need_fewer(demand: Demand, objective: Objective, more: float) -> None:
    """Whatever else is the case."""
    slower = replace(demand, run_seconds=demand.run_seconds + more)

    assert slots_needed(slower, objective) >= slots_needed(demand, objective)


@given(demands, objectives)
def test_what_waits_is_worked_off_in_the_time_of_the_objective(
    demand: Demand, objective: Objective
) -> None:
    """And what comes is worked off faster than it comes."""
    slots, seconds = slots_needed(demand, objective), objective.start_within_ms / 1_000

    if slots < SLOTS_MAX:
        share = min(demand.run_seconds / seconds, 1)
        assert slots >= demand.backlog * share
        assert slots > demand.arrivals * demand.run_seconds


def test_the_time_that_the_oldest_job_has_left_is_what_counts() -> None:
    """Half of a backlog after half of the time needs as many as all of it at first."""
    assert slots_to_drain(Demand(1_000, 0, 0, 1), 30) == 34
    assert slots_to_drain(Demand(500, 15, 0, 1), 30) == 34
    # Late jobs are worked off in a quarter of it: no number brings them back in time.
    assert slots_to_drain(Demand(30, 999, 0, 1), 30) == 4


def test_nothing_needs_nothing_and_one_job_of_unknown_length_one_slot() -> None:
    """The first completion says more."""
    assert slots_needed(NOTHING, OBJECTIVE) == 0
    assert slots_needed(Demand(1_000, 0, 50, 0), OBJECTIVE) == 1


def test_erlangs_table() -> None:
    """At a load of 10 erlangs, 14 servers let 17.4 % wait, and 20 fewer than 0.4 %: from tables."""
    at_once = Objective(82.5, 100)
    assert slots_needed(Demand(0, 0, 10 / 1_000, 1_000), at_once) == 14
    assert slots_needed(Demand(0, 0, 10 / 1_000, 1_000), replace(at_once, percent=99.6)) == 20


def test_a_large_load_is_answered_soon_and_never_without_end() -> None:
    """The search is bounded."""
    assert 50_000 < slots_needed(Demand(0, 0, 50_000, 1), Objective(99.99, 100)) < 52_000
    assert slots_needed(Demand(0, 0, 1e9, 1e6), OBJECTIVE) == SLOTS_MAX
    assert slots_needed(Demand(10**9, 0, 0, 1e6), OBJECTIVE) == SLOTS_MAX
    almost = Demand(0, 0, SLOTS_MAX - 0.5, 1)
    assert slots_needed(almost, Objective(99.99, 100)) == SLOTS_MAX


def test_workers_have_slots() -> None:
    """Rounded up; those over the limit of the queue would be idle."""
    assert workers_for(0, 10, None) == 0
    assert workers_for(21, 10, None) == 3
    assert workers_for(21, 0, None) == 21
    assert workers_for(21, 10, 5) == 1


def in_time(slots: int, demand: Demand, objective: Objective, seed: int, jobs: int) -> float:
    """The share of jobs that start in time, first come, first served, of a simulated queue."""
    draw = Random(seed)
    free = [0.0] * slots
    at, good = 0.0, 0
    for number in range(demand.backlog + jobs):
        at += 0.0 if number < demand.backlog else draw.expovariate(demand.arrivals)
        begins = max(at, heapq.heappop(free))
        good += begins - at <= objective.start_within_ms / 1_000
        # A gamma distribution has any spread.
        shape = 1 / demand.run_spread
        heapq.heappush(free, begins + draw.gammavariate(shape, demand.run_seconds / shape))
    return good / (demand.backlog + jobs)


@pytest.mark.parametrize(
    "demand",
    [
        Demand(0, 0, 5, 2, 1),
        Demand(0, 0, 5, 2, 0.1),
        Demand(0, 0, 2, 10, 4),
        Demand(0, 0, 100, 0.5, 1),
        Demand(2_000, 0, 5, 2, 1),
        Demand(500, 0, 1, 3, 0.2),
    ],
    ids=str,
)
@pytest.mark.parametrize("objective", [Objective(99, 30_000), Objective(95, 1_000)], ids=str)
def test_the_number_keeps_the_objective_and_clearly_fewer_miss_it(
    demand: Demand, objective: Objective
) -> None:
    """In a simulation: a fifth fewer are too few for jobs that come, and half for a backlog."""
    slots = slots_needed(demand, objective)
    jobs = 0 if demand.backlog else 20_000
    too_few = slots // 2 if demand.backlog else slots * 4 // 5
    shares = [in_time(slots, demand, objective, seed, jobs) for seed in range(3)]
    fewer = [in_time(too_few, demand, objective, seed, jobs) for seed in range(3)]

    wanted = objective.percent / 100
    assert sum(shares) / 3 >= wanted - 0.003
    assert sum(fewer) / 3 < wanted
