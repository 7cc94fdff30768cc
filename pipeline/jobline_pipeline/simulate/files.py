"""Writes rows of simulated events as files of the contract: one per shard and stretch of time."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from jobline_pipeline.schemas import EVENTS, SCHEMA_VERSION, arrow_schema
from jobline_pipeline.simulate.columns import EVENT_NAMES, REASONS, Rows
from jobline_pipeline.simulate.load import ERROR_TYPES, NAMES, PRINCIPALS, QUEUES, VERSIONS

_TIMES = (
    "pushed_at",
    "ready_at",
    "leased_at",
    "first_leased_at",
    "run_at",
    "lease_until",
    "next_run_at",
)
_DELTA = ("offset", "at", "job_id", *_TIMES)
_DICTIONARY = [
    "event", "queue", "name", "group", "worker", "worker_version", "reason", "error_type", "error",
    "principal",
]  # fmt: skip
_ROW_GROUP = 500_000


class Shard:
    """The files of one shard below `<history>/events`; offsets count up from 1."""

    def __init__(self, history: Path, shard: int, messages: list[str]) -> None:
        self._events = history / "events"
        self._shard = shard
        self._next_offset = 1
        workers = [f"{queue.name}-{number}" for queue in QUEUES for number in range(1000)]
        groups = [f"customer-{number}" for number in range(max(queue.groups for queue in QUEUES))]
        self._words: dict[str, pa.Array] = {
            "event": pa.array(EVENT_NAMES),
            "queue": pa.array([queue.name for queue in QUEUES]),
            "name": pa.array(NAMES),
            "group": pa.array(groups),
            "worker": pa.array(workers),
            "worker_version": pa.array(VERSIONS),
            "reason": pa.array(REASONS),
            "error": pa.array(messages),
            "error_type": pa.array(ERROR_TYPES),
            "principal": pa.array(PRINCIPALS),
        }
        self._schema = arrow_schema()

    def write(self, rows: Rows) -> int:
        """Writes rows of one hour, in the order of their time; returns how many."""
        size = len(rows["at"])
        if not size:
            return 0
        order = np.argsort(rows["at"], kind="stable")
        rows = {name: column[order] for name, column in rows.items()}
        first, last = self._next_offset, self._next_offset + size - 1
        self._next_offset = last + 1
        rows["offset"] = np.arange(first, last + 1)
        rows["error_type"] = np.where(rows["error"] >= 0, rows["error"] % len(ERROR_TYPES), -1)
        table = pa.Table.from_arrays(
            [self._arrow(f.name, rows) for f in EVENTS], schema=self._typed()
        )
        moment = datetime.fromtimestamp(int(rows["at"][0]) / 1e6, UTC)
        folder = self._events / f"date={moment:%Y-%m-%d}" / f"hour={moment:%H}"
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"{self._shard}-{first}-{last}.parquet"
        temporary = path.with_suffix(".writing")
        pq.write_table(
            table,
            temporary,
            compression="zstd",
            compression_level=1,
            use_dictionary=_DICTIONARY,
            column_encoding=dict.fromkeys(_DELTA, "DELTA_BINARY_PACKED"),
            row_group_size=_ROW_GROUP,
            store_schema=False,
        )
        temporary.replace(path)
        return size

    def _typed(self) -> pa.Schema:
        """The contract, with words as dictionaries: in the file they are plain strings."""
        fields = []
        for field in self._schema:
            is_words = field.name in self._words
            kind = pa.dictionary(pa.int32(), pa.string()) if is_words else field.type
            fields.append(pa.field(field.name, kind))
        return pa.schema(fields)

    def _arrow(self, name: str, rows: Rows) -> pa.Array:
        size, kind = len(rows["at"]), self._schema.field(name).type
        if name == "shard":
            return pa.array(np.full(size, self._shard, np.int32))
        if name == "schema_version":
            return pa.array(np.full(size, SCHEMA_VERSION, np.int32))
        if name == "depends_on":
            return _two_ids(rows["depends_first"])
        if name not in rows:
            return pa.nulls(size, kind)
        column = rows[name]
        if name in self._words:
            return _as_words(column.astype(np.int32), self._words[name])
        if name == "final":
            return pa.array(column == 1, mask=column < 0)
        return pa.array(column, mask=_unknown(name, column)).cast(kind)


def _as_words(codes: NDArray[np.int32], words: pa.Array) -> pa.Array:
    """Returns words by their codes, NULL for -1; the dictionary has only what is used."""
    used = np.zeros(len(words) + 1, np.bool_)
    used[codes] = True
    used[-1] = False
    place = (np.cumsum(used) - 1).astype(np.int32)
    return pa.DictionaryArray.from_arrays(
        pa.array(place[codes], mask=codes < 0), words.filter(pa.array(used[:-1]))
    )


def _unknown(name: str, column: NDArray[Any]) -> NDArray[np.bool_] | None:
    """Returns where a column has nothing: 0 for ids, times and numbers of attempts, else -1."""
    if name in {"offset", "at", "job_id", "priority", "payload_bytes"}:
        return None
    zero = name in _TIMES or name.endswith("_id") or name in {"delivery", "attempt"}
    return column == 0 if zero else column < 0


def _two_ids(first: NDArray[np.int64]) -> pa.Array:
    """Returns lists of `first` and the id after it, NULL where `first` is 0."""
    there = first > 0
    ends = np.concatenate([[0], np.cumsum(there) * 2]).astype(np.int32)
    values = np.repeat(first[there], 2) + np.tile([0, 1], int(there.sum()))
    return pa.ListArray.from_arrays(pa.array(ends), pa.array(values), mask=pa.array(~there))
