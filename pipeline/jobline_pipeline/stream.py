"""Follows the exported files: a stream whose rows are the names of new files.

Spark's file source remembers in its checkpoint which files a batch had, so a batch that was cut off
has the same files when it runs again. Only names and sizes go through the stream (the content
column of `binaryFile` is never asked for); what is in the files is read by `ingest` as a plain
batch, with all filters and columns pushed down.

Under Spark Connect a batch runs in a process beside the server, which gets a copy of the function
and cannot call back: there, what became of a batch is read from the ledger.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from pyspark.sql import functions as F
from pyspark.sql.utils import is_remote

from jobline_pipeline.ingest import Counts, Work, ingest
from jobline_pipeline.places import is_elsewhere
from jobline_pipeline.problems import PipelineError
from jobline_pipeline.store import Batch, Store
from jobline_pipeline.tables import files
from jobline_pipeline.tables.slo import Objective

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery

FILES_A_BATCH = 2000
# Under Spark Connect the ledger is asked this often for batches that have ended.
_LEDGER_SECONDS = 5
_BINARY_FILE = "path STRING, modificationTime TIMESTAMP, length BIGINT, content BINARY"


@dataclass(frozen=True, slots=True)
class Following:
    """What to follow, and how: `every` is Spark's interval (`30 seconds`), None ends when all
    files that are there were read.
    """

    history: str
    every: str | None = None
    files_a_batch: int = FILES_A_BATCH
    objectives: Sequence[Objective] = ()


def follow(
    store: Store,
    following: Following,
    *,
    tell: Callable[[str], None],
    done: Callable[[int, Counts], None],
) -> StreamingQuery:
    """Starts the stream; `tell` hears of steps, `done` of each batch; the caller waits (`wait`)."""
    events = events_of(following.history)
    new_files = (
        store.spark.readStream.format("binaryFile")
        .schema(_BINARY_FILE)
        .option("pathGlobFilter", "*.parquet")
        .option("recursiveFileLookup", "true")
        .option("maxFilesPerTrigger", following.files_a_batch)
        .load(events)
        .select("path", "length")
    )

    def take(names: DataFrame, number: int) -> None:
        done(number, _take(store, names, number, following.objectives, tell))

    writer = (
        new_files.writeStream.queryName("jobline-pipeline")
        .option("checkpointLocation", checkpoint_of(store))
        .foreachBatch(_taken_remotely(store.root, following.objectives) if is_remote() else take)
    )
    if following.every is None:
        return writer.trigger(availableNow=True).start()
    return writer.trigger(processingTime=following.every).start()


def wait(query: StreamingQuery, store: Store, done: Callable[[int, Counts], None]) -> None:
    """Waits for the end of a query. Raises StreamingQueryException if a batch failed."""
    if not is_remote():
        query.awaitTermination()
        return
    last = -1
    is_over = False
    while not is_over:
        is_over = bool(query.awaitTermination(_LEDGER_SECONDS))
        for number in sorted({progress.batchId for progress in query.recentProgress}):
            if number > last and (counts := _counts(store, query.id, number)) is not None:
                done(number, counts)
                last = number


def _take(
    store: Store,
    names: DataFrame,
    number: int,
    objectives: Sequence[Objective],
    tell: Callable[[str], None],
) -> Counts:
    found = [(row["path"], row["length"]) for row in names.collect()]
    batch = Batch(_query_id(store), number)
    return ingest(store, Work(found, batch, time.time_ns() // 1000, objectives), tell)


def _taken_remotely(root: str, objectives: Sequence[Objective]) -> Callable[[DataFrame, int], None]:
    """Returns a function of a batch that holds no session: it goes to another process."""

    def take(names: DataFrame, number: int) -> None:
        _take(Store(names.sparkSession, root), names, number, objectives, lambda _: None)

    return take


def _counts(store: Store, query_id: str, number: int) -> Counts | None:
    """Returns what the ledger says of a batch, None if it has no file of it."""
    ledger = store.read(files.TABLE).where(
        (F.col("query") == query_id) & (F.col("batch") == number)
    )
    is_read = F.col("status").isin("taken", "partly")
    row = ledger.agg(
        F.count("*"),
        F.count_if(is_read),
        F.count_if(F.col("status") == "repeated"),
        F.count_if(F.col("status") == "bad"),
        F.sum(F.when(is_read, F.col("rows"))),
        F.sum(F.when(is_read, F.col("rows_apart"))),
    ).collect()[0]
    return Counts(row[1], row[2], row[3], row[4] or 0, row[5] or 0) if row[0] else None


def checkpoint_of(store: Store) -> str:
    """Returns where the stream remembers which files it has read."""
    return f"{store.root}/_checkpoint"


def _query_id(store: Store) -> str:
    """Returns the id of the query; a new checkpoint is another query, with batches from 0."""
    rows = store.spark.read.text(f"{checkpoint_of(store)}/metadata").collect()
    return str(json.loads(rows[0]["value"])["id"])


def events_of(history: str) -> str:
    """Returns the directory of events; raises PipelineError if a local one is missing."""
    events = f"{history.rstrip('/')}/events"
    if not is_elsewhere(events) and not Path(events).is_dir():
        raise PipelineError(
            f"There is no {events}. Say the directory that the server exports to, in which "
            "`events` is; or make one up with: jobline-pipeline simulate"
        )
    return events
