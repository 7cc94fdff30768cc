"""Files before Spark reads them: new, repeated, overlapping, bad."""

from __future__ import annotations

import pyarrow as pa
import pytest

from jobline_pipeline.history import ExportedFile, look_at, merged, plan, without
from jobline_pipeline.schemas import arrow_schema
from tests.rows import at, pushed, us, write_events

NOW = us(3600)
PLACE = "date=2026-11-02/hour=12"


def exported(first, last, *, shard=0, folder=PLACE, problem=None):
    path = f"/h/{folder}/{shard}-{first}-{last}.parquet"
    return ExportedFile(
        path, folder, shard, first, last, last - first + 1, 100, us(0), us(1), problem
    )


def looked(path, **options):
    return look_at(str(path), path.stat().st_size, now_us=NOW, **options)


def test_whole_file_is_described_by_its_name_and_footer(tmp_path):
    """What the plan needs comes from the name, the folder and the footer."""
    file = looked(write_events(tmp_path, [pushed(5), pushed(7)]))
    assert (file.folder, file.shard, file.first, file.last) == (PLACE, 0, 5, 7)
    assert (file.rows, file.first_at_us, file.last_at_us) == (2, us(5), us(7))
    assert file.problem is None


@pytest.mark.parametrize("kept", [0, 3, 100, -4])
def test_truncated_file_is_bad(tmp_path, kept):
    """Wherever it is cut off, the footer is missing."""
    path = write_events(tmp_path, [pushed(5)])
    path.write_bytes(path.read_bytes()[:kept])
    assert "not whole" in looked(path).problem


def test_file_of_another_name_is_bad(tmp_path):
    """Without offsets in its name nobody knows what it repeats."""
    path = write_events(tmp_path, [pushed(5)]).rename(tmp_path / "copy.parquet")
    assert "its name is not" in looked(path).problem


@pytest.mark.parametrize("name", [{"last": 7}, {"first": 6}, {"first": 20, "last": 30}])
def test_file_with_offsets_that_its_name_does_not_say_is_bad(tmp_path, name):
    """By the name it would be no repeat of another file, and its rows would be read twice."""
    path = write_events(tmp_path, [pushed(5), pushed(9)], **name)
    assert "and it has 5 to 9" in looked(path).problem


def test_name_may_say_more_offsets(tmp_path):
    """Offsets have gaps."""
    path = write_events(tmp_path, [pushed(5), pushed(9)], first=1, last=12)
    assert looked(path).problem is None


def test_foreign_schema_is_bad(tmp_path):
    """A file without a column of every event is none of ours."""
    schema = pa.schema([("offset", pa.int64()), ("price", pa.float64())])
    path = write_events(tmp_path, [{"offset": 1, "price": 2.0}], schema=schema)
    assert looked(path).problem == "it has no column 'shard'"


def test_column_of_another_type_is_bad(tmp_path):
    """Spark would fail in the middle of a batch."""
    fields = [pa.field("job_id", pa.string()) if f.name == "job_id" else f for f in arrow_schema()]
    path = write_events(tmp_path, [pushed(5, job_id="x")], schema=pa.schema(fields))
    assert looked(path).problem == "its column 'job_id' is string, not int64"


def test_missing_optional_column_is_fine(tmp_path):
    """Columns are added in time: older files lack them."""
    fields = [f for f in arrow_schema() if f.name not in {"trace_id", "first_leased_at"}]
    assert looked(write_events(tmp_path, [pushed(5)], schema=pa.schema(fields))).problem is None


def test_rows_without_a_required_column_are_bad(tmp_path):
    """A row without a time belongs to no minute."""
    path = write_events(tmp_path, [pushed(5), pushed(6, at=None)])
    assert looked(path).problem == "1 rows have no 'at'"


def test_future_file_is_bad(tmp_path):
    """A clock that is hours ahead would make minutes that nobody has seen yet."""
    path = write_events(tmp_path, [pushed(5, at=at(3 * 3600))])
    assert looked(path).problem == "its events lie in the future"


def test_future_rows_are_counted_and_left(tmp_path):
    """The rest of such a file is fine."""
    file = looked(write_events(tmp_path, [pushed(5), pushed(6, at=at(9 * 3600))]))
    piece = plan([file], {}, NOW).read[0]
    assert (piece.rows, piece.rows_apart, piece.until_us) == (1, 1, NOW + 3_600_000_000)


def test_damaged_page_is_found_by_a_thorough_look(tmp_path):
    """The footer of such a file is fine, so only reading it shows the damage."""
    path = write_events(tmp_path, [pushed(n, name=f"n{n * 7919}") for n in range(1, 2000)])
    data = bytearray(path.read_bytes())
    data[100:4000] = bytes(3900)
    path.write_bytes(data)
    assert looked(path).problem is None
    assert looked(path, thoroughly=True).problem is not None


def test_repeated_files_are_dropped_whole():
    """A file within what others have is not read at all; the longest is read."""
    made = plan([exported(1, 5), exported(1, 9), exported(3, 9)], {}, NOW)
    assert [piece.file.last for piece in made.read] == [9]
    assert [(f.first, f.last) for f in made.repeated] == [(1, 5), (3, 9)]


def test_overlapping_file_is_read_for_what_is_missing(tmp_path):
    """Also where earlier batches have read parts of it. Offsets have gaps: rows are counted."""
    file = looked(write_events(tmp_path, [pushed(n) for n in (1, 4, 5, 9, 20)]))
    piece = plan([file], {(PLACE, 0): [(5, 8), (12, 14)]}, NOW).read[0]
    assert piece.spans == ((1, 4), (9, 11), (15, 20))
    assert (piece.rows, piece.rows_apart) == (4, 0)


def test_offsets_of_other_hours_and_shards_are_others():
    """At the end of an hour the offsets of two files may interleave."""
    other_hour = exported(1, 9, folder="date=2026-11-02/hour=13")
    made = plan([exported(1, 9), exported(1, 9, shard=1), other_hour], {}, NOW)
    assert len(made.read) == 3


def test_bad_file_covers_nothing():
    """The same rows in a good file are read."""
    made = plan([exported(1, 9, problem="bad"), exported(2, 9)], {}, NOW)
    assert (len(made.bad), len(made.read)) == (1, 1)


@pytest.mark.parametrize(
    ("span", "covered", "left"),
    [
        ((1, 9), [], [(1, 9)]),
        ((1, 9), [(1, 9)], []),
        ((1, 9), [(0, 20)], []),
        ((1, 9), [(3, 4)], [(1, 2), (5, 9)]),
        ((1, 9), [(9, 9)], [(1, 8)]),
        ((5, 9), [(1, 4), (10, 12)], [(5, 9)]),
    ],
)
def test_without_leaves_the_rest(span, covered, left):
    """Spans include both ends."""
    assert without(span, covered) == left


def test_merged_joins_neighbours():
    """Offsets are whole numbers: 1…3 and 4…6 are 1…6."""
    assert merged([(4, 6), (1, 3), (9, 9), (5, 5)]) == [(1, 6), (9, 9)]
