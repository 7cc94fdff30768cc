"""Encodes tables as Parquet, one open file for each shard and hour.

Files are encoded in memory, which needs little: they are compressed. So what could not be written
can be tried again, and a crash leaves no half of a file; the journal has its events. All of it
belongs in one thread.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from jobline_server.history.schema import TABLE_SCHEMA, path_of
from jobline_server.history.tables import Batch, expand, hours_of

COMPRESSION_LEVEL = 1
# Of values that mostly grow by one, differences need a twentieth of the room of a dictionary.
_IN_ORDER = {"offset": "DELTA_BINARY_PACKED", "job_id": "DELTA_BINARY_PACKED"}
_WITH_DICTIONARY = [name for name in TABLE_SCHEMA.names if name not in _IN_ORDER]
# Those by which readers skip row groups; statistics of all are a third of the time.
_WITH_STATISTICS = ["at", "event", "queue", "job_id", "offset"]


class Encoded(NamedTuple):
    """A finished file: its path below the history, its bytes, its rows, and the time of its oldest
    one in milliseconds.
    """

    path: str
    content: Any
    rows: int
    oldest_ms: int


@dataclass(slots=True)
class _Open:
    sink: Any
    writer: Any
    first: int
    last: int = 0
    rows: int = 0
    oldest_ms: int = field(default=0)


class OpenFiles:
    """The files that are being encoded."""

    def __init__(self) -> None:
        self._open: dict[tuple[int, int], _Open] = {}

    def write(self, shard: int, batches: list[Batch]) -> int:
        """Adds rows of a shard, one row group per hour; returns the bytes of all its open files."""
        tables = [expand(shard, batch) for batch in batches]
        if tables:
            self._add(shard, pa.concat_tables(tables))
        return sum([each.sink.tell() for key, each in self._open.items() if key[0] == shard])

    def _add(self, shard: int, table: Any) -> None:
        hours = hours_of(table)
        for hour in np.unique(hours).tolist():
            part = table if (hours == hour).all() else table.filter(pa.array(hours == hour))
            self._append(shard, hour, part)

    def _append(self, shard: int, hour: int, table: Any) -> None:
        offsets = table.column("offset")
        opened = self._open.get((shard, hour))
        if opened is None:
            sink = pa.BufferOutputStream()
            writer = pq.ParquetWriter(
                sink,
                TABLE_SCHEMA,
                compression="zstd",
                compression_level=COMPRESSION_LEVEL,
                use_dictionary=_WITH_DICTIONARY,
                column_encoding=_IN_ORDER,
                write_statistics=_WITH_STATISTICS,
                store_schema=False,
            )
            opened = self._open[shard, hour] = _Open(sink, writer, offsets[0].as_py())
            opened.oldest_ms = int(table.column("at")[0].value // 1_000)
        opened.writer.write_table(table, row_group_size=len(table))
        opened.last = offsets[-1].as_py()
        opened.rows += len(table)

    def close(self, shard: int) -> list[Encoded]:
        """Finishes and returns the files of a shard."""
        found: list[Encoded] = []
        for key in sorted(key for key in self._open if key[0] == shard):
            each = self._open.pop(key)
            each.writer.close()
            path = path_of(shard, key[1], each.first, each.last)
            found.append(Encoded(str(path), each.sink.getvalue(), each.rows, each.oldest_ms))
        return found

    def oldest_ms(self) -> list[int]:
        """Returns the time of the oldest row of each file."""
        return [each.oldest_ms for each in list(self._open.values())]
