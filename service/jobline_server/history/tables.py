"""Makes Arrow tables of rows.

`batch_of` handles values of `Rows`, which takes the loop's time: some microseconds for each of
them, however many jobs it has. `expand` repeats these values for all jobs, in C and without the
interpreter's lock: it belongs in a thread.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from jobline_server.history import schema
from jobline_server.history.rows import Rows

HOUR_US = 3_600_000_000
_FIELDS = {name: at for at, name in enumerate(Rows._fields)}
_WORDS = frozenset(schema.WORDS)
_TIMES = frozenset(schema.TIMES)
_MADE = frozenset({schema.SHARD, schema.OFFSET, schema.JOB_ID, schema.VERSION})


@dataclass(frozen=True, slots=True)
class Batch:
    """Some rows of a shard in columns, one value for each `Rows`. `sizes` has those of
    which the jobs differ in size: at which row they begin, and the sizes.
    """

    columns: dict[str, Any]
    totals: Any
    firsts: Any
    starts: Any
    counts: Any
    has_jobs: Any
    sizes: list[tuple[int, Sequence[int]]]


def batch_of(rows: Sequence[Rows], firsts: Sequence[int]) -> Batch:
    """Returns rows in columns; `firsts` are the offsets of the first of each."""
    values = list(zip(*rows, strict=True))
    columns: dict[str, Any] = {}
    for field in schema.SCHEMA:
        if field.name in _MADE:
            continue
        column = values[_FIELDS[field.name]]
        if field.name in _TIMES:
            columns[field.name] = pa.array(column, pa.int64())
        elif field.name == "headers":
            items = [None if one is None else list(one.items()) for one in column]
            columns[field.name] = pa.array(items, field.type)
        else:
            columns[field.name] = pa.array(column, field.type)
    totals = values[_FIELDS["total"]]
    starts, counts = values[_FIELDS["starts"]], values[_FIELDS["counts"]]
    sizes: list[tuple[int, Sequence[int]]] = []
    own_sizes = values[_FIELDS["sizes"]]
    if any(own_sizes):
        at = 0
        for total, own in zip(totals, own_sizes, strict=True):
            if own:
                sizes.append((at, own))
            at += total
    return Batch(
        columns,
        np.array(totals, np.int64),
        np.array(firsts, np.int64),
        np.fromiter(chain.from_iterable(each or (0,) for each in starts), np.int64),
        np.fromiter(chain.from_iterable(each or (1,) for each in counts), np.int64),
        np.array([bool(each) for each in starts], np.bool_),
        sizes,
    )


def expand(shard: int, batch: Batch) -> pa.Table:
    """Returns the rows as a table, one row per job, in order of their offsets."""
    totals = batch.totals
    length = int(totals.sum())
    is_plain = length == len(totals)
    index = None if is_plain else pa.array(np.repeat(np.arange(len(totals)), totals))
    arrays: list[Any] = []
    for field in schema.TABLE_SCHEMA:
        if field.name == schema.SHARD:
            column = pa.array(np.full(length, shard, np.int32))
        elif field.name == schema.VERSION:
            column = pa.array(np.full(length, schema.SCHEMA_VERSION, np.int32))
        elif field.name == schema.OFFSET:
            column = pa.array(_counted(batch.firsts, totals))
        elif field.name == schema.JOB_ID:
            ids = _counted(batch.starts, batch.counts)
            column = pa.array(ids, mask=~np.repeat(batch.has_jobs, totals))
        else:
            column = _repeated(batch.columns[field.name], field, index, length)
        if field.name == "payload_bytes" and batch.sizes:
            column = _with_sizes(column, batch.sizes)
        arrays.append(column)
    return pa.table(arrays, schema=schema.TABLE_SCHEMA)


def hours_of(table: pa.Table) -> Any:
    """Returns the hour of each row, counted from 1970."""
    at = table.column("at").combine_chunks()
    return at.cast(pa.int64()).to_numpy(zero_copy_only=False) // HOUR_US


def _repeated(column: Any, field: Any, index: Any, length: int) -> Any:
    if column.null_count == len(column):
        return pa.nulls(length, field.type)
    if field.name in _WORDS:
        column = column.dictionary_encode()
    if index is not None:
        column = column.take(index)
    if field.name in _TIMES:
        column = pc.multiply(column, 1_000).cast(field.type)
    return column


def _counted(starts: Any, counts: Any) -> Any:
    """Returns `starts[i], starts[i] + 1, …`, `counts[i]` of them, for each i."""
    ends = np.cumsum(counts)
    total = int(ends[-1]) if len(ends) else 0
    return np.arange(total) + np.repeat(starts - (ends - counts), counts)


def _with_sizes(column: Any, sizes: list[tuple[int, Sequence[int]]]) -> Any:
    values = column.fill_null(0).to_numpy(zero_copy_only=False).copy()
    known = column.is_valid().to_numpy(zero_copy_only=False).copy()
    for at, own in sizes:
        values[at : at + len(own)] = own
        known[at : at + len(own)] = True
    return pa.array(values, column.type, mask=~known)
