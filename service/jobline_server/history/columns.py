"""Gathers a column of some rows: its distinct values, and runs of them in the order of the rows.

One value that all jobs of a `Rows` share stays one run. Only what differs from job to job is
visited job by job, mostly in C.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from jobline_server.history.rows import Later, Rows, Sizes

_MADE = frozenset({Sizes, Later})


class Column(NamedTuple):
    """`counts[i]` rows have the value with the index `indexes[i]` of `distinct`, for each i; which
    of the rows have one is in `is_there`, as runs of `all_counts`. None: all of them.
    """

    distinct: Any
    indexes: Any
    counts: Any
    is_there: Any = None
    all_counts: Any = None


class Nested(NamedTuple):
    """A column of lists or maps: levels as of Dremel, in runs, and what the lists hold, in order.
    `keys` are None but in maps. `definitions`: 0 NULL, 1 empty, 2 an element.
    """

    repetitions: Any
    definitions: Any
    counts: Any
    keys: list[Any] | None
    values: list[Any]


def names_in(rows: Sequence[Rows]) -> set[str]:
    """Returns the names of the columns that any of the rows has."""
    return set().union(*[each.columns for each in rows])


def column_of(name: str, rows: Sequence[Rows], totals: Any, kind: pa.DataType) -> Column:
    """Returns a column with one value a row."""
    values, counts = _values_in(name, rows, totals)
    return column(values, counts, kind)


def column(values: list[Any], counts: Any, kind: pa.DataType) -> Column:
    """Returns a column of values, each of which stands for so many rows."""
    array = pa.array(values, kind)
    is_there = all_counts = None
    if array.null_count:
        is_there, all_counts = array.is_valid().to_numpy(zero_copy_only=False), counts
        array, counts = array.drop_null(), counts[is_there]
    encoded = array.dictionary_encode()
    indexes = encoded.indices.to_numpy(zero_copy_only=False)
    return Column(encoded.dictionary, indexes, counts, is_there, all_counts)


def _values_in(name: str, rows: Sequence[Rows], totals: Any) -> tuple[list[Any], Any]:
    own: list[Any] = [each.columns.get(name) for each in rows]
    kinds = set(map(type, own))
    if list not in kinds and kinds.isdisjoint(_MADE):
        return own, totals
    values: list[Any] = []
    counts: list[int] = []
    for value, total in zip(own, totals.tolist(), strict=True):
        kind = type(value)
        if kind is list or kind in _MADE:
            values += value if kind is list else value.each()
            counts += [1] * total
        else:
            values.append(value)
            counts.append(total)
    return values, np.array(counts, np.int64)


def ids_of(rows: Sequence[Rows]) -> tuple[Any, Any]:
    """Returns the ids of the jobs as runs: where each begins, and how many it has."""
    runs = sum([len(each.starts) for each in rows])
    each_start = chain.from_iterable([each.starts for each in rows])
    starts = np.fromiter(each_start, np.int64, runs)
    if runs == sum([each.total for each in rows if each.starts]):
        return starts, np.ones(runs, np.int64)
    counts: list[int] = []
    for each in rows:
        counts += [1] * len(each.starts) if each.counts is None else each.counts
    return starts, np.array(counts, np.int64)


def nested_of(name: str, rows: Sequence[Rows]) -> Nested:
    """Returns a column of lists, or of pairs if it holds maps."""
    repetitions: list[Any] = []
    definitions: list[Any] = []
    counts: list[Any] = []
    held: list[Any] = []
    for each in rows:
        own: Any = each.columns.get(name)
        if type(own) is Later:
            own = own.each()
        is_shared = type(own) is not list
        for value in [own] if is_shared else own:
            times = each.total if is_shared else 1
            if not value:
                repetitions.append([0])
                definitions.append([0 if value is None else 1])
                counts.append([times])
                continue
            size = len(value)
            repetitions.append(np.tile(np.arange(size) > 0, times))
            definitions.append(np.full(size * times, 2))
            counts.append(np.ones(size * times, np.int64))
            held += list(value) * times
    is_map = name == "headers"
    keys = [key for key, _ in held] if is_map else None
    return Nested(
        np.concatenate(repetitions).astype(np.int64),
        np.concatenate(definitions).astype(np.int64),
        np.concatenate(counts).astype(np.int64),
        keys,
        [value for _, value in held] if is_map else held,
    )
