"""The contract of the exported `events`: every column, its type and its meaning, in one place.

Files are `<history>/events/date=YYYY-MM-DD/hour=HH/<shard>-<first offset>-<last offset>.parquet`,
by the hour of `at` (UTC), written once and never changed. A row is one change of state of one job,
and `(shard, offset)` is unique; offsets grow, with gaps. Rows come at least once: a file may repeat
offsets of another one of its shard and hour, and holds all rows of that hour between its first
offset and its last.

Columns are only ever added. A file that lacks an optional column has NULL there.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql import types as t

if TYPE_CHECKING:
    import pyarrow as pa

SCHEMA_VERSION = 1

# The path of a file below `events/`, and what its name says.
FILE_NAME = re.compile(r"(?P<shard>\d+)-(?P<first>\d+)-(?P<last>\d+)\.parquet\Z")

# Events that end a hand-out of a job, each with all that is known of the attempt; and, where
# `final` is true, with all that is known of the job.
ENDINGS = (
    "completed",
    "failed",
    "retrying",
    "stalled",
    "released",
    "dead",
    "cancelled",
    "expired",
    "deleted",
)
# Of these, those that say that the handler failed or its worker was lost.
FAILURES = ("failed", "retrying", "dead", "stalled")
# Events that make a job live: a push, or an ended job put back.
OPENINGS = ("pushed", "retried", "dead_retried")


@dataclass(frozen=True, slots=True)
class Field:
    """One column: `required` columns are in each file, and never NULL."""

    name: str
    type: t.DataType
    meaning: str
    required: bool = False


_STRING, _INT, _LONG = t.StringType(), t.IntegerType(), t.LongType()
_TIME, _BOOLEAN, _BINARY = t.TimestampType(), t.BooleanType(), t.BinaryType()

EVENTS: tuple[Field, ...] = (
    Field("shard", _INT, "The shard of the queue.", required=True),
    Field("offset", _LONG, "Orders the events of a shard.", required=True),
    Field("at", _TIME, "When it was decided.", required=True),
    Field("event", _STRING, "What happened: `pushed`, `leased`, `completed` …", required=True),
    Field("queue", _STRING, "The queue of the job."),
    Field("name", _STRING, "The name of the job: which handler it is for."),
    Field("job_id", _LONG, "The job; NULL on events of queues, schedules and batches."),
    Field("group", _STRING, "The group of the job, or NULL."),
    Field("priority", _INT, "The priority of the job; higher is first."),
    Field("delivery", _LONG, "The hand-out, where one is concerned; grows with each one of a job."),
    Field("attempt", _INT, "The number of the attempt, from 1."),
    Field("worker", _STRING, "The worker that holds, or held, the job."),
    Field("worker_version", _STRING, "The version that the worker reports."),
    Field("pushed_at", _TIME, "When the job was stored; on endings."),
    Field("ready_at", _TIME, "When it became ready for this hand-out; on endings."),
    Field("leased_at", _TIME, "When it was handed out; on endings of a hand-out."),
    Field("first_leased_at", _TIME, "When it was handed out for the first time; on final events."),
    Field("run_at", _TIME, "Not before this time, where one was asked for."),
    Field("lease_until", _TIME, "When the lease ends unless it is extended."),
    Field("next_run_at", _TIME, "When the next attempt may start."),
    Field("attempts", _INT, "Attempts so far; on endings."),
    Field("stalls", _INT, "Leases lost so far; on endings."),
    Field("releases", _INT, "Hand-outs given back so far; on endings."),
    Field("final", _BOOLEAN, "Whether the job ends with this event."),
    Field("reason", _STRING, "Why: of a failure, a release, a limit."),
    Field("error_type", _STRING, "The class of the error."),
    Field("error", _STRING, "The message of the error."),
    Field("parent_id", _LONG, "The job that waits for this one as its child."),
    Field("batch_id", _LONG, "The batch that counts this job."),
    Field("depends_on", t.ArrayType(_LONG), "The jobs that this one waits for; on `pushed`."),
    Field("tags", t.ArrayType(_STRING), "On `pushed`."),
    Field("headers", t.MapType(_STRING, _STRING), "On `pushed`."),
    Field("trace_id", _STRING, "On `pushed`."),
    Field("principal", _STRING, "Who asked for it."),
    Field("operation_id", _LONG, "The operation that it belongs to: a bulk change, an undo."),
    Field("payload_bytes", _LONG, "Size of the payload."),
    Field("result_bytes", _LONG, "Size of the result."),
    Field("payload", _BINARY, "The payload, only of queues that export it."),
    Field("result", _BINARY, "The result, only of queues that export it."),
    Field("schema_version", _INT, "The version of this contract that the file was written by."),
)


def spark_schema() -> t.StructType:
    """Returns the contract as a schema of Spark; every column may be NULL."""
    return t.StructType([t.StructField(field.name, field.type) for field in EVENTS])


def arrow_schema() -> pa.Schema:
    """Returns the contract as a schema of Arrow: times in microseconds, UTC."""
    import pyarrow as pa  # noqa: PLC0415 - the server's tables are read without it

    plain = {
        _STRING: pa.string(),
        _INT: pa.int32(),
        _LONG: pa.int64(),
        _TIME: pa.timestamp("us", tz="UTC"),
        _BOOLEAN: pa.bool_(),
        _BINARY: pa.binary(),
        t.ArrayType(_LONG): pa.list_(pa.int64()),
        t.ArrayType(_STRING): pa.list_(pa.string()),
        t.MapType(_STRING, _STRING): pa.map_(pa.string(), pa.string()),
    }
    return pa.schema([(field.name, plain[field.type]) for field in EVENTS])
