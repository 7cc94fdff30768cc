"""Gold `capacity`: how many workers each queue needed in each hour, for a short wait.

Erlang C: with `c` workers, random arrivals, `a` = arrivals × run time, the chance to wait

    B(0) = 1,   B(k) = a·B(k-1) / (k + a·B(k-1)),   C = c·B(c) / (c - a·(1 - B(c)))

and the chance to wait longer than `t` is C·exp(-(c - a)·t / run time). The least `c` that keeps it
below 1 % is the answer. Run times that vary more than exponential ones make waits longer: `replay`
hands the hour's own arrivals and run times out again and says how long they would have waited.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Sequence

from jobline_pipeline.sql import Function, Rows, dialect_of, hour_of, quantile, share
from jobline_pipeline.tables.table import DOUBLE, INT, LONG, STRING, TIME, Column, Table

# A wait counts as short if it is at most this, for this share of hand-outs.
WAIT_MS, WAIT_SHARE = 1000.0, 0.99
# An hour that would need more is given this many.
WORKERS_MAX = 5000
# Jobs that take no time at all need no less than those that take so long.
_RUN_MS_MIN = 0.001

TABLE = Table(
    name="capacity",
    layer="gold",
    what=f"One row per queue and hour. A short wait is up to {WAIT_MS:g} ms for {WAIT_SHARE:.0%}.",
    columns=(
        Column("hour", TIME, "The begin of the hour."),
        Column("queue", STRING, "The queue."),
        Column("arrivals", LONG, "Hand-outs that ended in the hour, with those that failed."),
        Column("run_mean_ms", DOUBLE, "Their mean run time."),
        Column("offered", DOUBLE, "Workers that were busy on average (Erlangs)."),
        Column("variation", DOUBLE, "Standard deviation over mean of run times; 1 is exponential."),
        Column("workers_seen", LONG, "Workers that ended something in the hour."),
        Column("workers_needed", INT, "Workers for a short wait."),
        Column("busy_share", DOUBLE, "How busy these would be."),
        Column("wait_p99_ms", DOUBLE, "The 99 % quantile of waits, as it was."),
    ),
    key=("hour", "queue"),
    window="hour",
    grain=3600,
)


def make(attempts: Rows) -> Rows:
    """Takes `attempts` of whole hours."""
    needed = dialect_of(attempts).call(WORKERS_NEEDED, "offered", "run_mean_ms")
    return TABLE.made(
        f"""
        WITH ended AS (
          SELECT *, {hour_of("ended_at")} AS hour FROM {{attempts}} AS attempts
        ),
        sums AS (
          SELECT
            hour,
            queue,
            count(*) AS arrivals,
            avg(run_ms) AS run_mean_ms,
            sum(run_ms) / 3.6e6 AS offered,
            stddev_pop(run_ms) AS deviation,
            count(DISTINCT worker) AS workers_seen,
            kll_sketch_agg_float(CAST(wait_ms AS float)) AS waits
          FROM ended
          GROUP BY hour, queue
        ),
        needs AS (SELECT *, {needed} AS workers_needed FROM sums)
        SELECT
          *,
          {share("deviation", "run_mean_ms")} AS variation,
          {share("offered", "workers_needed")} AS busy_share,
          {quantile("waits", 0.99)} AS wait_p99_ms
        FROM needs
        """,
        attempts=attempts,
    )


def workers_needed(offered: float, run_ms: float) -> int:
    """Returns the least number of workers with short waits, for a load in Erlangs."""
    run = max(run_ms, _RUN_MS_MIN)
    # Far enough: ten times the square root above the load is more than any objective here needs.
    furthest = min(math.ceil(offered + math.sqrt(offered) * 10 + 10), WORKERS_MAX)
    blocked = 1.0
    for workers in range(1, furthest + 1):
        blocked = offered * blocked / (workers + offered * blocked)
        if workers > offered:
            waits = workers * blocked / (workers - offered * (1 - blocked))
            if waits * math.exp(-(workers - offered) * WAIT_MS / run) <= 1 - WAIT_SHARE:
                return workers
    return furthest


def _needed_by_spark(offered: str, run_ms: str) -> str:
    """The same as an expression; `found` is 0 until there are enough."""
    run = f"greatest({run_ms}, {_RUN_MS_MIN:e})"
    furthest = f"CAST(least(ceil({offered} + sqrt({offered}) * 10 + 10), {WORKERS_MAX}) AS int)"
    blocked = f"({offered} * state.blocked / (workers + {offered} * state.blocked))"
    waits = f"workers * {blocked} / (workers - {offered} * (1 - {blocked}))"
    late = f"{waits} * exp(-(workers - {offered}) * {WAIT_MS:e} / {run})"
    found = (
        f"CASE WHEN state.found > 0 THEN state.found WHEN workers > {offered} "
        f"AND {late} <= {1 - WAIT_SHARE:e} THEN workers ELSE 0 END"
    )
    start = "named_struct('blocked', 1e0, 'found', 0)"
    step = f"(state, workers) -> named_struct('blocked', {blocked}, 'found', {found})"
    counted = f"aggregate(sequence(1, {furthest}), {start}, {step}).found"
    return f"CASE WHEN {counted} > 0 THEN {counted} ELSE {furthest} END"


WORKERS_NEEDED = Function(
    "workers_needed", _needed_by_spark, workers_needed, ("DOUBLE", "DOUBLE"), "INTEGER"
)


def replay(arrivals: Sequence[tuple[float, float]], workers: int) -> list[float]:
    """Hands jobs out again, first come first served, to `workers` workers; returns their waits.

    Each arrival is (when it became ready, how long it runs), in order and in the same unit.
    """
    free = [float("-inf")] * workers
    waits = []
    for ready, run in arrivals:
        begin = max(ready, heapq.heappop(free))
        heapq.heappush(free, begin + run)
        waits.append(begin - ready)
    return waits
