"""Cuts rows into lots: what one call pushes. Pure.

Rows that have nothing of their own beside payload, group and unique key are plain payloads, the
fastest form; others are jobs with options each. Rows of different queues are in different lots.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.types import StructType

from jobline import NewJob
from jobline_pipeline.problems import PipelineError
from jobline_pipeline.source.conversions import moments_of, payloads_of, texts_of, values_of
from jobline_pipeline.source.options import LOT_ROWS, Writing

# A call takes 16 MiB in all; the rest is for keys and headers.
LOT_BYTES = 8 << 20
# Rows of a call where they have keys, groups or options of their own.
MIXED_ROWS = 1_000
_PLAIN = {"queue", "payload", "group", "unique_key"}
_TEXTS = {"group", "unique_key", "job_key", "name"}
JSON = "application/json"


@dataclass(frozen=True, slots=True)
class Rows:
    """What of a row is the payload: a column, or (None) the columns `others` as JSON."""

    payload: str | None
    others: tuple[str, ...]

    @classmethod
    def of(cls, schema: StructType, how: Writing) -> Self:
        """Returns what of a frame's rows is the payload: the column of the option `payloadColumn`,
        else `payload`, else all that no option names. Raises PipelineError for a missing column.
        """
        names = schema.fieldNames()
        for job, column in how.columns.items():
            if column not in names:
                there = ", ".join(names)
                raise PipelineError(f"{job}: the frame has no column {column}; it has {there}")
        payload = how.columns.get("payload") or ("payload" if "payload" in names else None)
        used = set(how.columns.values())
        others = () if payload else tuple(name for name in names if name not in used)
        return cls(payload, others)


@dataclass(frozen=True, slots=True)
class Lot:
    """What one call pushes: `payloads` with what each has of its own, or `jobs`."""

    queue: str
    payloads: Sequence[bytes] = ()
    columns: Mapping[str, Sequence[str | None]] = field(default_factory=dict)
    jobs: Sequence[NewJob] = ()

    def __len__(self) -> int:
        return len(self.payloads) or len(self.jobs)


def lots_of(
    batch: pa.RecordBatch, how: Writing, rows: Rows, key_of: Callable[[int], str] | None
) -> Iterator[Lot]:
    """Yields the rows of a batch as lots. `key_of` returns the key of a row by its index in the
    batch. Raises PipelineError for values that no job can have.
    """
    payloads = payloads_of(batch, rows.payload, rows.others)
    own = _own_columns(batch, how)
    if key_of is not None:
        own["job_key"] = [key_of(index) for index in range(batch.num_rows)]
    for queue, indexes in _by_queue(batch, how):
        is_plain = set(own) <= _PLAIN
        for part in _cut(payloads, indexes, LOT_ROWS if is_plain and not own else MIXED_ROWS):
            if is_plain:
                columns = {name: [values[i] for i in part] for name, values in own.items()}
                yield Lot(queue, [payloads[i] for i in part], columns)
            else:
                yield Lot(queue, jobs=[_job(payloads[i], own, i) for i in part])


def _own_columns(batch: pa.RecordBatch, how: Writing) -> dict[str, list[Any]]:
    own: dict[str, list[Any]] = {}
    for job, column in how.columns.items():
        if job in {"queue", "payload"}:
            continue
        if job == "run_at":
            own[job] = moments_of(batch, column)
        elif job in _TEXTS:
            own[job] = texts_of(batch, column, is_key=job == "job_key")
        else:
            own[job] = values_of(batch, column)
    return own


def _job(payload: bytes, own: Mapping[str, Sequence[Any]], index: int) -> NewJob:
    found = {name: values[index] for name, values in own.items()}
    return NewJob(payload, **{name: value for name, value in found.items() if value is not None})


def _by_queue(batch: pa.RecordBatch, how: Writing) -> Iterator[tuple[str, Sequence[int]]]:
    if how.queue:
        yield how.queue, range(batch.num_rows)
        return
    column = batch.column(how.columns["queue"]).cast(pa.string())
    if column.null_count:
        raise PipelineError(f"column {how.columns['queue']} has rows without a queue")
    for queue in pc.unique(column).to_pylist():
        yield queue, pc.indices_nonzero(pc.equal(column, queue)).to_pylist()


def _cut(payloads: Sequence[bytes], indexes: Sequence[int], rows: int) -> Iterator[Sequence[int]]:
    """Yields the indexes in parts that fit a call, in order; each has one at least."""
    begun = size = 0
    for at, index in enumerate(indexes):
        length = len(payloads[index])
        if at > begun and (at - begun == rows or size + length > LOT_BYTES):
            yield indexes[begun:at]
            begun, size = at, 0
        size += length
    if begun < len(indexes):
        yield indexes[begun:]
