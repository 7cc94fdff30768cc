"""Gathers a column of some rows: its distinct values, and runs of them in the order of the rows.

One value that all jobs of a `Rows` share stays one run, and `Rows` that are alike in all columns
are looked at once. Only what differs from job to job is visited job by job, mostly in C.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from jobline_server.history.rows import Later, Rows, Sizes

_MADE = frozenset({Sizes, Later})
_FIRST = np.zeros(1, np.int64)


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


class Group(NamedTuple):
    """The rows of a row group: how many each `Rows` has, and all have; their distinct columns, and
    which of these each has.
    """

    rows: Sequence[Rows]
    totals: Any
    total: int
    distinct: list[dict[str, Any]]
    which: Any


def group_of(rows: Sequence[Rows]) -> Group:
    """Returns rows as a group. Those with a value for each job are not compared with others."""
    totals = np.array([each.total for each in rows], np.int64)
    numbers: dict[Hashable, int] = {}
    distinct: list[dict[str, Any]] = []
    which: list[int] = []
    for each in rows:
        own = each.columns
        number = numbers.get(id(own), -1)
        if number < 0:
            number = len(distinct)
            with suppress(TypeError):  # a list cannot be hashed
                number = numbers.setdefault((tuple(own), tuple(own.values())), number)
            if number == len(distinct):
                distinct.append(own)
            numbers[id(own)] = number
        which.append(number)
    return Group(rows, totals, int(totals.sum()), distinct, np.array(which, np.int64))


def column_of(name: str, group: Group, kind: pa.DataType) -> Column:
    """Returns a column with one value a row."""
    own: list[Any] = [each.get(name) for each in group.distinct]
    kinds = set(map(type, own))
    if list not in kinds and kinds.isdisjoint(_MADE):
        if own.count(own[0]) == len(own):
            return column(own[:1], np.array([group.total]), kind)
        return column(own, group.totals, kind, group.which)
    values, counts = _each_value(name, group)
    return column(values, counts, kind)


def column(values: list[Any], counts: Any, kind: pa.DataType, which: Any = None) -> Column:
    """Returns a column of `values[which[i]]`, each of which stands for `counts[i]` rows; `which`
    None: of each value.
    """
    array = pa.array(values, kind)
    is_there = all_counts = None
    if array.null_count:
        is_there, all_counts = array.is_valid().to_numpy(zero_copy_only=False), counts
        # The numbers of those that are there among them.
        ranks = np.cumsum(is_there) - 1
        if which is not None:
            is_there = is_there[which]
            which = ranks[which[is_there]]
        array, counts = array.drop_null(), counts[is_there]
    if len(array) == 1 and which is None:
        return Column(array, _FIRST, counts, is_there, all_counts)
    encoded = array.dictionary_encode()
    indexes = encoded.indices.to_numpy(zero_copy_only=False)
    if which is not None:
        indexes = indexes[which]
    return Column(encoded.dictionary, indexes, counts, is_there, all_counts)


def _each_value(name: str, group: Group) -> tuple[list[Any], Any]:
    """Returns the values of a column that has some for each job, and of how many rows each is."""
    values: list[Any] = []
    counts: list[int] = []
    for each, total in zip(group.rows, group.totals.tolist(), strict=True):
        value: Any = each.columns.get(name)
        kind = type(value)
        if kind is list or kind in _MADE:
            values += value if kind is list else value.each()
            counts += [1] * total
        else:
            values.append(value)
            counts.append(total)
    return values, np.array(counts, np.int64)


def ids_of(rows: Sequence[Rows]) -> tuple[Any, Any]:
    """Returns the ids of the jobs as runs: where each begins, and how many it has; None: all have
    one.
    """
    starts = np.concatenate([each.starts for each in rows])
    if all(each.counts is None for each in rows):
        return starts, None
    counts = np.concatenate(
        [
            np.ones(len(each.starts), np.uint8) if each.counts is None else each.counts
            for each in rows
        ]
    )
    return starts, counts


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
