"""Columns of a lot: headers and keys of single jobs."""

from __future__ import annotations

import tracemalloc

from jobline_server.engine.columns import LotColumns
from jobline_server.engine.packed import PackedValues
from jobline_server.engine.values import JobOptions


def packed(*texts: str) -> PackedValues:
    return PackedValues.of([text.encode() for text in texts])


def test_a_value_of_a_job_goes_before_the_shared_one():
    columns = LotColumns([("b", packed("own", "")), ("a", packed("", ""))])
    shared = JobOptions(headers=(("b", "shared"), ("c", "kept")))
    assert columns.options_of(0, shared).headers == (("b", "own"), ("c", "kept"))
    assert columns.header_keys == ("b", "a")


def test_a_job_with_nothing_of_its_own_has_the_shared_options_themselves():
    """So that jobs which left their lot share them on."""
    shared = JobOptions(headers=(("b", "shared"),))
    assert LotColumns([("b", packed("own", ""))]).options_of(1, shared) is shared


def test_keys_are_texts():
    columns = LotColumns([], packed("ключ", ""))
    assert [columns.job_key_of(0), columns.job_key_of(1)] == ["ключ", ""]
    assert LotColumns([("b", packed("x"))]).job_key_of(0) == ""


def test_joined_columns_have_keys_only_where_all_have():
    headers = [LotColumns([("b", packed("1"))]), LotColumns([("b", packed("2", "3"))])]
    assert LotColumns.joined(headers) == LotColumns([("b", packed("1", "2", "3"))])
    keys = [LotColumns([], packed("k")), LotColumns([], packed("l"))]
    assert LotColumns.joined(keys) == LotColumns([], packed("k", "l"))


def test_columns_are_equal_by_content():
    one, other = LotColumns([("b", packed("1"))]), LotColumns([("b", packed("1"))])
    assert one == other
    assert hash(one) == hash(other)
    assert one != LotColumns([("b", packed("2"))])
    assert (one == "columns") is False


def test_short_values_count_as_much_as_they_take():
    """A server is full at `max_waiting_bytes`: values of 0 and 1 byte took five times theirs."""
    count, values = 1_000, [b"", b"x"] * 500
    tracemalloc.start()
    try:
        columns = LotColumns([(f"h{index}", PackedValues.of(values)) for index in range(64)])
        taken = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert 0.9 * taken < columns.bytes_of(0, count) < 1.1 * taken
