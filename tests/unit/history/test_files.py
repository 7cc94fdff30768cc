"""Rows as they are in the files, read with another implementation of Parquet."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from datetime import UTC, datetime
from itertools import accumulate
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobline_server.history import files as files_module
from jobline_server.history.files import OpenFiles
from jobline_server.history.parquet import ParquetFile
from jobline_server.history.rows import ROWS_PER_ENTRY, Rows, ShardRows, Sizes
from jobline_server.history.schema import SCHEMA, SCHEMA_VERSION
from tests.unit.history.expanded import expanded

AT = 1_800_000_000_000
HOUR_MS = 3_600_000


def push(at: int = AT, **columns: Any) -> Rows:
    """One job was pushed."""
    return Rows(at, {"event": "pushed", "queue": "q", **columns}, (1,))


def gathered(*entries: Sequence[Rows]) -> ShardRows:
    """Entries 1, 2 …"""
    rows = ShardRows(0)
    for number, entry in enumerate(entries, 1):
        rows.add(number, entry)
    return rows


def written(*entries: Sequence[Rows]) -> dict[str, list[dict[str, Any]]]:
    """Returns the rows of each file, by its path."""
    rows, files = gathered(*entries), OpenFiles(3)
    outcome = files.write(*rows.take())
    assert outcome.open_bytes > 0
    assert not outcome.failed
    assert (rows.rows, rows.count, rows.memory_bytes) == ([], 0, 0)
    assert rows.journal_offset == len(entries)
    found = {file.path: read(file.content, file.rows) for file in files.close().files}
    assert files.oldest_ms() == []
    return found


def read(content: Any, rows: int) -> list[dict[str, Any]]:
    table = pq.ParquetFile(pa.BufferReader(content)).read()
    assert table.schema.equals(SCHEMA)
    assert len(table) == rows
    return table.to_pylist()  # type: ignore[no-any-return]  # pyarrow has no types


def test_rows_of_many_jobs_are_one_row_for_each() -> None:
    lot = Rows(AT, {"event": "pushed", "name": "mail", "payload_bytes": 7}, (10, 20), (2, 1))
    own = Rows(AT, {"event": "completed", "final": True, "payload_bytes": [4, 6]}, (30,), (2,))
    other = Rows(AT + 1, {"event": "operation", "principal": "me"})
    ((path, rows),) = written([lot, own], [other]).items()
    first, last = ROWS_PER_ENTRY, 2 * ROWS_PER_ENTRY
    assert path == f"events/date=2027-01-15/hour=08/3-{first}-{last}.parquet"
    assert [row["job_id"] for row in rows] == [10, 11, 20, 30, 31, None]
    assert [row["offset"] for row in rows] == [*range(first, first + 5), last]
    assert [row["payload_bytes"] for row in rows] == [7, 7, 7, 4, 6, None]
    assert [row["name"] for row in rows] == ["mail"] * 3 + [None] * 3
    assert {row["shard"] for row in rows} == {3}
    assert {row["schema_version"] for row in rows} == {SCHEMA_VERSION}
    assert rows[0]["at"] == datetime.fromtimestamp(AT / 1_000, UTC)
    assert (rows[3]["final"], rows[0]["final"]) == (True, None)
    assert rows[5]["principal"] == "me"


def test_what_only_pushes_have_is_kept() -> None:
    jobs = push(depends_on=(7, 8), tags=("a", "b"), headers=(("k", "v"),))
    ((_, (row,)),) = written([jobs]).items()
    assert (row["depends_on"], row["tags"], row["headers"]) == ([7, 8], ["a", "b"], [("k", "v")])


def test_each_hour_has_files_of_its_own() -> None:
    files = written([push(), push(AT + HOUR_MS, event="leased")])
    assert [path.split("/")[2] for path in files] == ["hour=08", "hour=09"]
    assert [row["event"] for rows in files.values() for row in rows] == ["pushed", "leased"]


def test_offsets_are_never_those_of_the_next_entry() -> None:
    rows = Rows(AT, {"event": "pushed"}, (1,), (ROWS_PER_ENTRY + 1,))
    with pytest.raises(OverflowError):
        ShardRows(0).add(1, [rows])


def test_no_file_spans_an_entry_that_was_left_out() -> None:
    """A reader takes offsets between those in a file's name for known."""
    rows, files = gathered([push()]), OpenFiles(0)
    rows.skip(2)
    rows.add(3, [push()])
    files.write(*rows.take())
    names = [file.path.rpartition("/")[2] for file in files.close().files]
    unit = ROWS_PER_ENTRY
    assert names == [f"0-{unit}-{unit}.parquet", f"0-{3 * unit}-{3 * unit}.parquet"]


def test_rows_that_cannot_be_encoded_are_reported_and_no_file_spans_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(files_module, "GROUP_JOBS", 1)
    rows, files = gathered([push()], [push(delivery="none")], [push()]), OpenFiles(0)
    ((first, error),) = files.write(*rows.take()).failed
    assert first == 2 * ROWS_PER_ENTRY
    assert isinstance(error, pa.ArrowInvalid)
    found = [(file.first // ROWS_PER_ENTRY, file.rows) for file in files.close().files]
    assert found == [(1, 1), (3, 1)]


def test_a_file_that_cannot_be_finished_is_reported_and_the_others_are_finished(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    close = ParquetFile.close

    def breaking(file: ParquetFile) -> bytearray:
        if file.rows == 1:
            raise MemoryError
        return close(file)

    monkeypatch.setattr(ParquetFile, "close", breaking)
    rows, files = gathered([push()], [push(AT + HOUR_MS)] * 2), OpenFiles(0)
    files.write(*rows.take())
    found, ((first, error),) = files.close()
    assert (first, type(error)) == (ROWS_PER_ENTRY, MemoryError)
    assert [file.rows for file in found] == [2]
    rows.add(3, [push()])
    rows.skip(4)
    ((first, _),) = files.write(*rows.take()).failed
    assert first == 3 * ROWS_PER_ENTRY


def test_readers_find_the_bounds_of_columns_by_which_they_skip() -> None:
    files = OpenFiles(0)
    files.write(*gathered([push(), push(AT + 5, event="leased")], [Rows(AT, {})]).take())
    (file,) = files.close().files
    group = pq.ParquetFile(pa.BufferReader(file.content)).metadata.row_group(0)
    found = {
        column.path_in_schema: column.statistics
        for column in (group.column(index) for index in range(group.num_columns))
        if column.statistics is not None
    }
    bounds = {name: (each.min, each.max, each.null_count) for name, each in found.items()}
    moment = datetime.fromtimestamp(AT / 1_000, UTC)
    assert bounds["event"] == ("leased", "pushed", 1)
    assert bounds["job_id"] == (1, 1, 1)
    assert bounds["offset"] == (ROWS_PER_ENTRY, 2 * ROWS_PER_ENTRY, 0)
    assert bounds["at"] == (moment, moment.replace(microsecond=5_000), 0)


# What a column holds, as it is in memory and as it is read.
WORD = st.text(max_size=5) | st.sampled_from(["a", "b"])
NUMBER = st.integers(-(2**31), 2**31 - 1) | st.integers(0, 3)
LONG = st.integers(-(2**63), 2**63 - 1) | NUMBER
VALUES: dict[str, st.SearchStrategy[Any]] = {
    "event": WORD,
    "error": WORD,
    "priority": NUMBER,
    "delivery": LONG,
    "final": st.booleans(),
    "pushed_at": st.integers(0, 4_000_000_000_000),
    "depends_on": st.lists(LONG, max_size=3).map(tuple),
    "tags": st.lists(WORD, max_size=3).map(tuple),
    "headers": st.dictionaries(WORD, WORD, max_size=3).map(lambda found: tuple(found.items())),
}


@st.composite
def some_rows(draw: st.DrawFn) -> Rows:
    """Rows with any values, which jobs share or have of their own."""
    id_of = st.integers(0, 2**63 - 5_000)
    starts = draw(st.lists(id_of, max_size=4))
    counts: list[int] | None = None
    if draw(st.booleans()) and starts:
        size = st.sampled_from([1, 2, 40, 300, 1_000])
        counts = draw(st.lists(size, min_size=len(starts), max_size=len(starts)))
    total = sum(counts) if counts else max(len(starts), 1)
    columns: dict[str, Any] = {}
    for name in draw(st.sets(st.sampled_from(sorted(VALUES)))):
        value: st.SearchStrategy[Any] = st.none() | VALUES[name]
        if draw(st.booleans()):
            few = draw(st.lists(value, min_size=1, max_size=5))
            columns[name] = (few * total)[:total]
        else:
            columns[name] = draw(value)
    is_uneven: bool = draw(st.booleans())
    if starts and is_uneven:
        first, counts = starts[0], counts or [1] * len(starts)
        starts, counts = [first + 1] + [first + 3] * (len(starts) - 1), [2] * len(starts)
        sizes = array("I", accumulate(draw(st.lists(st.integers(0, 99), min_size=9, max_size=9))))
        columns = {name: each for name, each in columns.items() if type(each) is not list}
        columns["payload_bytes"] = Sizes(sizes, first, starts, counts)
    return Rows(AT + draw(st.integers(0, HOUR_MS // 2)), columns, starts, counts)


@given(st.lists(st.lists(some_rows(), max_size=5), min_size=1, max_size=4))
def test_files_have_the_rows_that_were_written(entries: list[list[Rows]]) -> None:
    """Whatever jobs share, and whatever is NULL; and the same again, between other rows."""
    entries = [*entries, [push()], *entries]
    expected = [row for entry in entries for rows in entry for row in expanded(rows)]
    found = [row for rows in written(*entries).values() for row in rows]
    offsets = [row.pop("offset") for row in found]
    assert offsets == sorted(set(offsets))
    as_read = [
        {name: shown(value) for name, value in row.items() if value is not None} for row in found
    ]
    for row in as_read:
        assert (row.pop("shard"), row.pop("schema_version")) == (3, SCHEMA_VERSION)
    assert as_read == expected


@given(
    st.lists(st.integers(0, 2**63 - 1001), min_size=1, max_size=700)
    | st.builds(
        lambda ids, step: [each * step for each in ids],
        st.permutations(range(300)),
        st.integers(1, 2**50),
    )
    | st.integers(1, 400).map(lambda count: [7] * count),
    st.sampled_from([1, 2, 8, 9]),
    st.booleans(),
)
def test_ids_that_jobs_ended_in_are_read_in_that_order(
    starts: list[int], count: int, are_alone: bool
) -> None:
    """Near each other or not, a whole block of them or not, and runs of any length."""
    ends = Rows(AT, {"event": "completed"}, starts, [count] * len(starts))
    found = completed([ends] if are_alone else [push(), ends])
    assert found == [start + more for start in starts for more in range(count)]


def test_many_ids_are_read_in_that_order() -> None:
    """They are encoded in parts, the last of which ends within a block."""
    ids = [*range(2**60, 2**60 + 40_000)]
    Random(1).shuffle(ids)
    assert completed([Rows(AT, {"event": "completed"}, ids)]) == ids


def completed(rows: list[Rows]) -> list[int]:
    """Returns the ids of completed jobs, as they are read."""
    found = [row for rows in written(rows).values() for row in rows]
    return [row["job_id"] for row in found if row["event"] == "completed"]


def shown(value: Any) -> Any:
    """Returns a value as it was before it was written."""
    if isinstance(value, datetime):
        return round(value.timestamp() * 1_000)
    return tuple(value) if isinstance(value, list) else value
