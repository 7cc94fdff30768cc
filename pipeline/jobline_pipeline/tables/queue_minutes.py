"""Gold `queue_minutes`: what each queue did in each minute, with sketches of its times."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import Window
from pyspark.sql import functions as F

from jobline_pipeline.schemas import ENDINGS, FAILURES, OPENINGS
from jobline_pipeline.sql import Rows, milliseconds, minute_of, one_of, quantile
from jobline_pipeline.tables.table import (
    BINARY,
    DOUBLE,
    LONG,
    STRING,
    TIME,
    Column,
    Table,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

TIMES = ("wait", "run", "total")
_QUANTILES = {"p50": 0.5, "p95": 0.95, "p99": 0.99}
_OF = {
    "wait": "from ready to handed out",
    "run": "from handed out to the end of the hand-out",
    "total": "from push to end, of jobs that ended",
}

TABLE = Table(
    name="queue_minutes",
    layer="gold",
    what="One row per queue and minute in which something happened.",
    columns=(
        Column("minute", TIME, "The begin of the minute."),
        Column("queue", STRING, "The queue."),
        Column("opened", LONG, "Jobs pushed or put back."),
        Column("ended", LONG, "Jobs that ended."),
        Column("completed", LONG, "Jobs that completed."),
        Column("failed", LONG, "Attempts that failed or were lost."),
        Column("dead", LONG, "Jobs that went to the dead letters."),
        Column("cancelled", LONG, "Jobs that were cancelled or expired."),
        Column("payload_bytes", LONG, "Bytes of the payloads that were pushed."),
        *(
            Column(f"{time}_{name}_ms", DOUBLE, f"{name} of the time {_OF[time]}.")
            for time in TIMES
            for name in _QUANTILES
        ),
        *(
            Column(
                f"{time}_sketch", BINARY, f"KLL sketch (float) of {time} times in ms, mergeable."
            )
            for time in TIMES
        ),
    ),
    key=("minute", "queue"),
    window="minute",
)


def make(events: Rows) -> Rows:
    """Takes `events` of whole minutes; returns a row per queue and minute."""
    is_ending = f"event IN {one_of(ENDINGS)} AND was_handed_out"
    sketches = ", ".join(f"kll_sketch_agg_float({time}) AS {time}_sketch" for time in TIMES)
    # A job may die without an attempt: because one that it waited for has failed.
    return TABLE.made(
        f"""
        WITH counted AS (
          SELECT *, {minute_of("`at`")} AS minute, leased_at IS NOT NULL AS was_handed_out
          FROM {{events}} AS events
          WHERE event IN {one_of((*OPENINGS, *ENDINGS))} AND queue IS NOT NULL
        ),
        measured AS (
          SELECT
            minute, queue, event, final, payload_bytes, was_handed_out,
            {_float(is_ending, milliseconds("ready_at", "leased_at"))} AS wait,
            {_float(is_ending, milliseconds("leased_at", "`at`"))} AS run,
            {_float("final", milliseconds("pushed_at", "`at`"))} AS total
          FROM counted
        ),
        sums AS (
          SELECT
            minute,
            queue,
            count_if(event IN {one_of(OPENINGS)}) AS opened,
            count_if(final) AS ended,
            count_if(event = 'completed') AS completed,
            count_if(event IN {one_of(FAILURES)} AND was_handed_out) AS failed,
            count_if(event = 'dead') AS dead,
            count_if(event IN ('cancelled', 'expired')) AS cancelled,
            sum(CASE WHEN event = 'pushed' THEN payload_bytes END) AS payload_bytes,
            {sketches}
          FROM measured
          GROUP BY minute, queue
        )
        SELECT *, {", ".join(_quantiles())} FROM sums
        """,
        events=events,
    )


def by_hour(queue_minutes: DataFrame) -> DataFrame:
    """Takes `queue_minutes`; returns one row per queue and hour: sketches merge, counts add up."""
    counts = [c.name for c in TABLE.columns if c.type == LONG]
    merged = queue_minutes.groupBy(F.date_trunc("hour", "minute").alias("minute"), "queue").agg(
        *(F.sum(name).alias(name) for name in counts),
        *(F.kll_merge_agg_float(f"{time}_sketch").alias(f"{time}_sketch") for time in TIMES),
    )
    shown = merged.selectExpr("*", *_quantiles())
    return TABLE.conform(shown).withColumnRenamed("minute", "hour")


def with_backlog(queue_minutes: DataFrame) -> DataFrame:
    """Takes all `queue_minutes`; adds `backlog`, the jobs that were open at the end of each minute.

    It counts from the first exported event: jobs that were open before are not known.
    """
    so_far = Window.partitionBy("queue").orderBy("minute")
    return queue_minutes.select(
        "*", F.sum(F.col("opened") - F.col("ended")).over(so_far).alias("backlog")
    )


def _float(condition: str, value: str) -> str:
    return f"CAST(CASE WHEN {condition} THEN {value} END AS float)"


def _quantiles() -> list[str]:
    """The quantiles of each sketch; NULL where nothing was measured."""
    return [
        f"{quantile(f'{time}_sketch', rank)} AS {time}_{name}_ms"
        for time in TIMES
        for name, rank in _QUANTILES.items()
    ]
