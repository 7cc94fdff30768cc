"""Gold `queue_minutes`: what each queue did in each minute, with sketches of its times."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import Window
from pyspark.sql import functions as F

from jobline_pipeline.schemas import ENDINGS, FAILURES, OPENINGS
from jobline_pipeline.tables.table import (
    BINARY,
    DOUBLE,
    LONG,
    STRING,
    TIME,
    Column,
    Table,
    milliseconds,
    minute_of,
)

if TYPE_CHECKING:
    from pyspark.sql import Column as SparkColumn
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


def make(events: DataFrame) -> DataFrame:
    """Takes `events` of whole minutes; returns a row per queue and minute."""
    event = F.col("event")
    is_ending = event.isin(*ENDINGS) & F.col("leased_at").isNotNull()
    counted = events.where(event.isin(*OPENINGS, *ENDINGS) & F.col("queue").isNotNull()).select(
        minute_of("at").alias("minute"),
        "queue",
        "event",
        "final",
        "payload_bytes",
        # A job may die without an attempt: because one that it waited for has failed.
        F.col("leased_at").isNotNull().alias("was_handed_out"),
        F.when(is_ending, milliseconds("ready_at", "leased_at")).cast("float").alias("wait"),
        F.when(is_ending, milliseconds("leased_at", "at")).cast("float").alias("run"),
        F.when(F.col("final"), milliseconds("pushed_at", "at")).cast("float").alias("total"),
    )
    sums = counted.groupBy("minute", "queue").agg(
        F.count_if(event.isin(*OPENINGS)).alias("opened"),
        F.count_if(F.col("final")).alias("ended"),
        F.count_if(event == "completed").alias("completed"),
        F.count_if(event.isin(*FAILURES) & F.col("was_handed_out")).alias("failed"),
        F.count_if(event == "dead").alias("dead"),
        F.count_if(event.isin("cancelled", "expired")).alias("cancelled"),
        F.sum(F.when(event == "pushed", F.col("payload_bytes"))).alias("payload_bytes"),
        *(F.kll_sketch_agg_float(time).alias(f"{time}_sketch") for time in TIMES),
    )
    return TABLE.conform(sums.select("*", *_quantiles()))


def by_hour(queue_minutes: DataFrame) -> DataFrame:
    """Takes `queue_minutes`; returns one row per queue and hour: sketches merge, counts add up."""
    counts = [c.name for c in TABLE.columns if c.type == LONG]
    merged = queue_minutes.groupBy(F.date_trunc("hour", "minute").alias("minute"), "queue").agg(
        *(F.sum(name).alias(name) for name in counts),
        *(F.kll_merge_agg_float(f"{time}_sketch").alias(f"{time}_sketch") for time in TIMES),
    )
    return TABLE.conform(merged.select("*", *_quantiles())).withColumnRenamed("minute", "hour")


def with_backlog(queue_minutes: DataFrame) -> DataFrame:
    """Takes all `queue_minutes`; adds `backlog`, the jobs that were open at the end of each minute.

    It counts from the first exported event: jobs that were open before are not known.
    """
    so_far = Window.partitionBy("queue").orderBy("minute")
    return queue_minutes.select(
        "*", F.sum(F.col("opened") - F.col("ended")).over(so_far).alias("backlog")
    )


def _quantiles() -> list[SparkColumn]:
    """The quantiles of each sketch; NULL where nothing was measured."""
    shown = []
    for time in TIMES:
        sketch = F.col(f"{time}_sketch")
        for name, rank in _QUANTILES.items():
            quantile = F.kll_sketch_get_quantile_float(sketch, F.lit(rank))
            known = F.when(F.kll_sketch_get_n_float(sketch) > 0, quantile)
            shown.append(known.cast("double").alias(f"{time}_{name}_ms"))
    return shown
