"""Puts exported files into bronze `events` as they are.

An exported file is what a file of that table would be: its columns, and rows of one day. So a
whole file is copied byte for byte and entered in the table's log, with the statistics of its
footer; rows are written again only of files that are taken in part. Both are one commit, which the
table has once per batch.

Entering files needs Spark's own JVM. Without it (Spark Connect) all rows are written again.
"""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from functools import reduce
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F

from jobline_pipeline.history import Piece
from jobline_pipeline.problems import PipelineError
from jobline_pipeline.schemas import spark_schema
from jobline_pipeline.store import Batch, Store, skipping
from jobline_pipeline.tables import events

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

# Copying is waiting for disks and networks.
_COPIERS = 8


def exported(store: Store, pieces: Sequence[Piece]) -> DataFrame:
    """Returns the rows of the pieces, as exported."""
    read = store.spark.read.schema(spark_schema())
    whole = [piece.file.path for piece in pieces if piece.is_whole]
    frames = [read.parquet(*whole)] if whole else []
    for piece in pieces:
        if piece.is_whole:
            continue
        rows = read.parquet(piece.file.path)
        if piece.spans is not None:
            offset = F.col("offset")
            rows = rows.where(
                reduce(lambda a, b: a | b, (offset.between(*span) for span in piece.spans))
            )
        if piece.until_us is not None:
            rows = rows.where(F.col("at") <= F.timestamp_micros(F.lit(piece.until_us)))
        frames.append(rows)
    return reduce(lambda a, b: a.unionByName(b), frames)


def add_events(store: Store, pieces: Sequence[Piece], batch: Batch) -> None:
    """Adds the rows of the pieces to `events`, once per batch."""
    jvm = store.jvm
    if jvm is None:
        store.append(events.TABLE, events.make(exported(store, pieces)), batch)
        return
    delta = jvm.org.apache.spark.sql.delta
    log = delta.DeltaLog.forTable(store.java_session, store.path(events.TABLE))
    transaction = log.startTransaction()
    if transaction.readVersion() < 0:
        transaction.updateMetadata(delta.actions.Action.fromJson(_new_table()), False)
    elif transaction.txnVersion(batch.query) >= batch.number:
        return
    done = {"appId": batch.query, "version": batch.number, "lastUpdated": _now_ms()}
    lines = [json.dumps({"txn": done}), *_copied(store, pieces, batch)]
    actions = [delta.actions.Action.fromJson(line) for line in lines]
    others = [piece for piece in pieces if not _fits(piece)]
    if others:
        rows = events.make(exported(store, others))
        written = transaction.writeFiles(rows._jdf)  # noqa: SLF001 - as above
        actions.extend(jvm.scala.jdk.javaapi.CollectionConverters.asJava(written))
    operation = getattr(delta, "DeltaOperations$ManualUpdate$").__getattr__("MODULE$")
    transaction.commit(jvm.PythonUtils.toSeq(actions), operation)


def _new_table() -> str:
    """What the log of the table begins with."""
    table = events.TABLE
    made = {
        "id": str(uuid.uuid4()),
        "format": {"provider": "parquet", "options": {}},
        "schemaString": table.schema().json(),
        "partitionColumns": [table.partition],
        "configuration": skipping(table),
        "createdTime": _now_ms(),
    }
    return json.dumps({"metaData": made})


def _fits(piece: Piece) -> bool:
    """Whether a file can be in the table as it is: all of its rows, of one day."""
    return piece.is_whole and _day(piece.file.first_at_us) == _day(piece.file.last_at_us)


def _copied(store: Store, pieces: Sequence[Piece], batch: Batch) -> list[str]:
    """Copies the files that fit into the table; returns what to enter in its log.

    Their names tell the batch: one that was cut off finds its own, and nobody else's, to replace.
    """
    fitting = [piece for piece in pieces if _fits(piece) and piece.rows]

    def copy(numbered: tuple[int, Piece]) -> str:
        number, piece = numbered
        day = _day(piece.file.first_at_us)
        name = f"date={day}/part-{number:05}-{batch.query}-{batch.number}.parquet"
        size = _copy(store, piece.file.path, f"{store.path(events.TABLE)}/{name}")
        if size != piece.file.bytes:
            raise PipelineError(
                f"{piece.file.path} had {piece.file.bytes} bytes, and now has {size}: exported "
                "files never change. Was it written in place, or is its disk full?"
            )
        add = {
            "path": name,
            "partitionValues": {"date": str(day)},
            "size": size,
            "modificationTime": _now_ms(),
            "dataChange": True,
            "stats": json.dumps(piece.file.statistics),
        }
        return json.dumps({"add": add})

    with ThreadPoolExecutor(_COPIERS) as pool:
        return list(pool.map(copy, enumerate(fitting)))


def _copy(store: Store, source: str, target: str) -> int:
    """Copies a file between any file systems that Spark knows; returns the size of the copy."""
    jvm: Any = store.jvm
    conf = store.java_session.sessionState().newHadoopConf()
    old, new = (jvm.org.apache.hadoop.fs.Path(name) for name in (source, target))
    there = new.getFileSystem(conf)
    jvm.org.apache.hadoop.fs.FileUtil.copy(
        old.getFileSystem(conf),
        old,
        there,
        new,
        False,  # the source stays
        True,  # what a batch left that was cut off is written over
        conf,
    )
    return int(there.getFileStatus(new).getLen())


def _day(us: int | None) -> object:
    return None if us is None else datetime.fromtimestamp(us // 1_000_000, UTC).date()


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
