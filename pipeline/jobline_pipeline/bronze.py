"""Puts exported files into bronze `events` as they are, where the tables are in a directory.

An exported file is what a file of that table would be: its columns, and rows of one day. So a whole
file is copied byte for byte and entered in the log of the table; rows are written again only of
files that are taken in part, or that hold two days. All are one commit, once per batch.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from datetime import UTC, date, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from jobline_pipeline.footers import batches_of, opened
from jobline_pipeline.history import Piece, microseconds, wanted_of
from jobline_pipeline.problems import PipelineError
from jobline_pipeline.tables import events

if TYPE_CHECKING:
    from jobline_pipeline.direct import Direct
    from jobline_pipeline.store import Batch

# Copying is waiting for disks and networks.
_COPIERS = 8
_CHUNK = 1 << 20
_DAY_US = 24 * 3_600_000_000


def add_events(direct: Direct, pieces: Sequence[Piece], batch: Batch) -> None:
    """Adds the rows of the pieces to `events`, unless the table has the batch.

    Raises PipelineError if a file has changed since it was looked at.
    """
    if direct.has(events.TABLE, batch):
        return
    folder = direct.path(events.TABLE)

    def add(numbered: tuple[int, Piece]) -> list[str]:
        number, piece = numbered
        put = _copied if _fits(piece) else _rewritten
        return list(put(piece, folder, f"part-{number:05}{ending_of(batch)}"))

    with ThreadPoolExecutor(_COPIERS) as pool:
        added = [one for some in pool.map(add, enumerate(pieces)) for one in some]
    direct.add_files(events.TABLE, added, batch)


def ending_of(batch: Batch) -> str:
    """Returns how the names of a batch's files end. One that was cut off finds its own files to
    replace, and no others.
    """
    return f"-{batch.query}-{batch.number}.parquet"


def _fits(piece: Piece) -> bool:
    """Whether a file can be in the table as it is: all of its rows, of one day."""
    first, last = piece.file.first_at_us, piece.file.last_at_us
    return piece.is_whole and (first is None or last is None or first // _DAY_US == last // _DAY_US)


def _copied(piece: Piece, folder: Path, name: str) -> Iterator[str]:
    """Copies a whole file; yields its path in the table, if it has rows."""
    file = piece.file
    if file.first_at_us is None:
        return
    path = _place(folder, file.first_at_us // _DAY_US, name)
    with opened(file.path) as source, (folder / path).open("wb") as target:
        shutil.copyfileobj(source, target, _CHUNK)
    size = (folder / path).stat().st_size
    if size != file.bytes:
        raise PipelineError(
            f"{file.path} had {file.bytes} bytes, and now has {size}: exported files never "
            "change. Was it written in place?"
        )
    yield path


def _rewritten(piece: Piece, folder: Path, name: str) -> Iterator[str]:
    """Writes the rows that are taken of a file, a file per day; yields their paths in the table."""
    with ExitStack() as stack:
        parquet = pq.ParquetFile(stack.enter_context(opened(piece.file.path)))
        writers: dict[int, pq.ParquetWriter] = {}
        for batch in batches_of(parquet):
            rows = pa.Table.from_batches([batch])
            rows = rows.filter(wanted_of(rows, piece.spans, piece.until_us))
            days = pc.divide(microseconds(rows["at"]), _DAY_US)
            for day in pc.unique(days).to_pylist():
                if day not in writers:
                    path = folder / _place(folder, day, name)
                    writer = pq.ParquetWriter(path, parquet.schema_arrow, compression="zstd")
                    writers[day] = stack.enter_context(writer)
                writers[day].write_table(rows.filter(pc.equal(days, day)))
    yield from (_place(folder, day, name) for day in sorted(writers))


def _place(folder: Path, day: int, name: str) -> str:
    """Returns the path of a file in the table, whose directory is there then."""
    partition = f"date={_date(day)}"
    (folder / partition).mkdir(parents=True, exist_ok=True)
    return f"{partition}/{name}"


def _date(day: int) -> date:
    """Returns a date from the number of days since 1970."""
    return datetime.fromtimestamp(day * _DAY_US // 1_000_000, UTC).date()
