"""Packed values: what a list would say, of one block of bytes."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from jobline.v1 import entry_pb2, job_pb2, job_service_pb2
from jobline_server.engine.packed import FIELD, PackedValues

# Lengths around which a header becomes a byte longer.
sizes = st.one_of(
    st.integers(0, 5), st.integers(125, 131), st.integers(16_380, 16_388), st.just(1 << 21)
)
listed = st.one_of(
    st.lists(sizes.map(bytes), max_size=6),
    st.lists(st.binary(max_size=3), max_size=20),
    st.tuples(sizes, st.integers(1, 5)).map(lambda of: [bytes([7]) * of[0]] * of[1]),
)


def block_of(payloads: list[bytes]) -> bytes:
    return entry_pb2.PayloadBlock(payloads=payloads).SerializeToString()


@given(listed)
@example([b"\x22", b"\x22\x01"])
@example([b"", b"\x22\x00"])
@example([bytes(127), bytes(128)])
@example([bytes(127), bytes(128), bytes(129)])
def test_values_are_those_of_the_list_and_the_block_is_that_of_protobuf(payloads):
    found = PackedValues.of(payloads)
    assert found.block == block_of(payloads)
    assert [found.size_of(index) for index in range(len(found))] == list(map(len, payloads))
    assert list(found) == [found[index] for index in range(len(found))] == payloads
    assert found.bytes_max == max(map(len, payloads), default=0)
    assert found.is_even == (len(set(map(len, payloads))) <= 1)
    assert found == PackedValues(found.block, len(payloads), map(len, payloads))
    assert found.block_bytes_max == max((len(block_of([one])) for one in payloads), default=2)


@given(listed, st.data())
def test_a_part_is_a_slice_of_the_list(payloads, data):
    found = PackedValues.of(payloads)
    start = data.draw(st.integers(0, len(payloads)))
    count = data.draw(st.integers(0, len(payloads) - start))
    part = payloads[start : start + count]
    assert found.part(start, count) == PackedValues.of(part)
    assert found.block_of(start, count) == block_of(part)
    assert found.block_bytes_of(start, count) == len(block_of(part))
    assert found.sizes_of(start, count) == list(map(len, part))


@given(listed.filter(bool), st.data())
def test_the_rest_keeps_its_indexes(payloads, data):
    """Twice, because what a checkpoint wrote is read and written again."""
    start = data.draw(st.integers(0, len(payloads)))
    later = data.draw(st.integers(start, len(payloads)))
    rest = PackedValues.of(payloads).rest(start).rest(later)
    assert len(rest) == len(payloads)
    assert [rest[index] for index in range(later, len(payloads))] == payloads[later:]
    assert rest.block == block_of(payloads[later:])
    assert rest.block_bytes_of(later, len(payloads) - later) == len(rest.block)
    assert rest.block_of(later, len(payloads) - later) == rest.block
    for index in (later - 1, len(payloads)):
        with pytest.raises(IndexError):
            rest[index]


def test_the_field_has_one_number_wherever_a_block_goes():
    """A block is written behind other fields of these messages as it is."""
    for message in (
        job_service_pb2.PushRequest,
        entry_pb2.PayloadBlock,
        job_pb2.LeasedRun,
    ):
        assert message.DESCRIPTOR.fields_by_name["payloads"].number == FIELD
    assert job_pb2.HeaderColumn.DESCRIPTOR.fields_by_name["values"].number == FIELD


def test_lengths_are_asked_for_only_where_they_differ():
    even, never = PackedValues.of([b"ab", b"cd"]), iter([-1])
    assert list(PackedValues(even.block, 2, never).part(1, 1)) == [b"cd"]
    assert next(never) == -1
    assert hash(even) == hash(PackedValues.of([b"ab", b"cd"]))
    assert (even == [b"ab", b"cd"]) is False
    assert "2 values" in repr(even)


def test_values_are_shown_by_their_number_and_size():
    """A failed assertion does not print a megabyte."""
    assert repr(PackedValues.of([b"ab", b"c"])) == "<2 values, 7 bytes>"


def test_sums_are_the_bytes_before_each_value_where_they_differ():
    even, uneven = PackedValues.of([b"ab", b"cd"]), PackedValues.of([b"a", b"", b"bcd"])
    assert even.sums is None
    assert uneven.sums is not None
    assert list(uneven.sums) == [0, 1, 1, 4]
