"""Gold `slo`: how declared objectives were kept, minute by minute.

    [[objective]]
    name = "mail starts quickly"
    queue = "mail"            # or "*": all queues together
    measure = "wait"          # wait, run or total: at most `at_most`; completed: the job completes
    at_most = 5.0             # seconds
    share = 0.99              # of the jobs

The *burn rate* is the share of bad ones over the share that may be bad: 1 uses up exactly what the
objective allows, 14.4 uses up a month's allowance in two days.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F

from jobline_pipeline.problems import PipelineError
from jobline_pipeline.tables.table import (
    DOUBLE,
    LONG,
    STRING,
    TIME,
    Column,
    Table,
    minute_of,
    share,
)

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from pyspark.sql import Column as SparkColumn
    from pyspark.sql import DataFrame

MEASURES = ("wait", "run", "total", "completed")

TABLE = Table(
    name="slo",
    layer="gold",
    what="One row per objective and minute in which it measured something.",
    columns=(
        Column("minute", TIME, "The begin of the minute."),
        Column("objective", STRING, "The name of the objective."),
        Column("queue", STRING, "Its queue."),
        Column("share", DOUBLE, "The share that shall be good."),
        Column("measured", LONG, "How many were measured."),
        Column("bad", LONG, "How many were not good."),
        Column("burn_rate", DOUBLE, "How fast the allowance is used up."),
    ),
    key=("minute", "objective"),
    window="minute",
)


@dataclass(frozen=True, slots=True)
class Objective:
    """One objective; `at_most` is in seconds."""

    name: str
    queue: str
    measure: str
    share: float
    at_most: float = 0.0


def read_objectives(path: Path) -> list[Objective]:
    """Reads a file of objectives; raises PipelineError that names what is wrong."""
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise PipelineError(f"There is no file of objectives {path}.") from None
    except tomllib.TOMLDecodeError as error:
        raise PipelineError(f"{path} is not TOML: {error}.") from None
    return [_objective(path, one) for one in document.get("objective", [])]


def _objective(path: Path, given: dict[str, Any]) -> Objective:
    try:
        made = Objective(**given)
        fits = made.measure in MEASURES and 0.0 < float(made.share) < 1.0 and made.at_most >= 0
    except TypeError:
        fits = False
    if not fits:
        raise PipelineError(
            f"{path}: an objective has name, queue, measure ({', '.join(MEASURES)}), share "
            f"(between 0 and 1) and at_most (seconds, but for `completed`); this one is {given}."
        )
    return made


def make(attempts: DataFrame, jobs: DataFrame, objectives: Sequence[Objective]) -> DataFrame:
    """Takes `attempts` and `jobs` of whole minutes, and what was declared."""
    measured = attempts.select("ended_at", "queue", "wait_ms", "run_ms").withColumns(
        {"total_ms": F.lit(None).cast("double"), "outcome": F.lit(None).cast("string")}
    )
    ended = jobs.select("ended_at", "queue", "total_ms", "outcome").withColumns(
        {"wait_ms": F.lit(None).cast("double"), "run_ms": F.lit(None).cast("double")}
    )
    rows = measured.unionByName(ended)
    checks = F.filter(F.array(*(_check(one) for one in objectives)), lambda c: c["bad"].isNotNull())
    checked = rows.select(minute_of("ended_at").alias("minute"), F.inline(checks))
    sums = checked.groupBy("minute", "objective", "queue", "share").agg(
        F.count("*").alias("measured"), F.count_if("bad").alias("bad")
    )
    burn = share(F.col("bad"), F.col("measured")) / (F.lit(1.0) - F.col("share"))
    return TABLE.conform(sums.withColumn("burn_rate", burn))


def _check(objective: Objective) -> SparkColumn:
    """What one row says of one objective: bad, good, or (NULL) nothing."""
    if objective.measure == "completed":
        # A job that somebody cancelled has not failed.
        counts = F.col("outcome").isin("completed", "dead", "expired")
        bad = F.when(counts, F.col("outcome") != "completed")
    else:
        bad = F.col(f"{objective.measure}_ms") > objective.at_most * 1000.0
    if objective.queue != "*":
        bad = F.when(F.col("queue") == objective.queue, bad)
    return F.struct(
        F.lit(objective.name).alias("objective"),
        F.lit(objective.queue).alias("queue"),
        F.lit(float(objective.share)).alias("share"),
        bad.alias("bad"),
    )
