"""Gold `error_groups`: errors whose messages are nearly the same, found by MinHash.

Each message is a set of neighbouring pairs of words. Of such a set, each hash function keeps its
smallest value; two sets with the Jaccard similarity `s` agree in it with probability `s`. Values
are compared in bands of ROWS: messages that agree in a whole band are near-duplicates. With 12
bands of 3 that is likely (> 90 %) from s = 0.6 and unlikely (< 10 %) below s = 0.2.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import Window
from pyspark.sql import functions as F

from jobline_pipeline.tables.table import DOUBLE, INT, LONG, STRING, TIME, Column, Table

if TYPE_CHECKING:
    from pyspark.sql import Column as SparkColumn
    from pyspark.sql import DataFrame

BANDS, ROWS = 12, 3
# Messages beyond the most frequent ones are groups of their own.
MESSAGES_MAX = 5000
# A chain of near-duplicates longer than this stays in two groups.
_ROUNDS = 2

TABLE = Table(
    name="error_groups",
    layer="gold",
    what="One row per group of nearly equal errors, over the whole history.",
    columns=(
        Column("group_id", LONG, "Identifies the group: the smallest hash of its messages."),
        Column("message", STRING, "Its most frequent message."),
        Column("error_types", STRING, "Its classes, sorted, with commas between."),
        Column("queues", STRING, "Its queues, sorted, with commas between."),
        Column("messages", INT, "How many different messages it has."),
        Column("failures", LONG, "How many attempts failed so."),
        Column("dead", LONG, "How many jobs died of it."),
        Column("share", DOUBLE, "Its share of all failures."),
        Column("first_at", TIME, "The first of them."),
        Column("last_at", TIME, "The last of them."),
        Column("example", STRING, "The last message, as it was."),
    ),
    key=("group_id",),
)


def make(errors: DataFrame) -> DataFrame:
    """Takes all `errors`; returns the groups."""
    messages = errors.groupBy("message").agg(
        F.sum("failures").alias("failures"),
        F.sum("dead").alias("dead"),
        F.min("first_at").alias("first_at"),
        F.max("last_at").alias("last_at"),
        F.max_by("example", "last_at").alias("example"),
        F.collect_set("error_type").alias("types"),
        F.collect_set("queue").alias("queues"),
    )
    # Some thousand rows: in one partition, joins and windows need no exchange, so this is one task.
    messages = messages.coalesce(1)
    labelled = messages.join(_labels(messages), on="message", how="left")
    group_id = F.coalesce("label", F.xxhash64("message"))
    groups = labelled.groupBy(group_id.alias("group_id")).agg(
        F.max_by("message", F.struct("failures", "message")).alias("message"),
        _words("types").alias("error_types"),
        _words("queues").alias("queues"),
        F.count("*").alias("messages"),
        F.sum("failures").alias("failures"),
        F.sum("dead").alias("dead"),
        F.min("first_at").alias("first_at"),
        F.max("last_at").alias("last_at"),
        F.max_by("example", "last_at").alias("example"),
    )
    every = F.sum("failures").over(Window.partitionBy(F.lit(0)))
    return TABLE.conform(groups.withColumn("share", F.col("failures") / every))


def _labels(messages: DataFrame) -> DataFrame:
    """Returns (message, label): messages with the same label are near-duplicates of each other."""
    frequent = messages.orderBy(F.desc("failures"), "message").limit(MESSAGES_MAX)
    banded = frequent.select(
        "message",
        F.xxhash64("message").alias("label"),
        F.explode(_bands(F.col("message"))).alias("band"),
    )
    in_band, of_message = Window.partitionBy("band"), Window.partitionBy("message")
    for _ in range(_ROUNDS):
        lowest = banded.select("message", "band", F.min("label").over(in_band).alias("label"))
        banded = lowest.select("message", "band", F.min("label").over(of_message).alias("label"))
    return banded.groupBy("message").agg(F.min("label").alias("label"))


def _bands(message: SparkColumn) -> SparkColumn:
    """Returns one hash per band: of the least hashes of the message's pairs of words."""
    words = F.split(F.lower(message), r"[^\w<>]+")
    padded = F.concat(F.array(F.lit("^")), words, F.array(F.lit("$")))
    pairs = F.zip_with(padded, F.slice(padded, 2, 10_000), lambda a, b: F.concat_ws(" ", a, b))
    hashed = F.array_distinct(F.transform(pairs, lambda pair: F.xxhash64(pair)))  # noqa: PLW0108 - Spark counts its parameters
    least = [
        F.array_min(F.transform(hashed, _hash_function(number))) for number in range(BANDS * ROWS)
    ]
    bands = [
        F.xxhash64(F.lit(band), *least[band * ROWS : (band + 1) * ROWS]) for band in range(BANDS)
    ]
    return F.array(*bands)


def _hash_function(number: int):  # type: ignore[no-untyped-def]  # Spark inspects its parameters
    return lambda value: F.xxhash64(value, F.lit(number))


def _words(sets: str) -> SparkColumn:
    return F.array_join(F.array_sort(F.array_distinct(F.flatten(F.collect_list(sets)))), ", ")
