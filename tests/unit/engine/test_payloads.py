"""Payloads: what a list would say, of one block of bytes."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from jobline.v1 import entry_pb2, job_pb2, job_service_pb2
from jobline_server.engine.payloads import FIELD, NO_PAYLOADS, Payloads

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
def test_payloads_are_those_of_the_list_and_the_block_is_that_of_protobuf(payloads):
    found = Payloads.of(payloads)
    assert found.block == block_of(payloads)
    assert list(found) == [found[index] for index in range(len(found))] == payloads
    assert found.bytes_max == max(map(len, payloads), default=0)
    assert found.is_even == (len(set(map(len, payloads))) <= 1)
    assert found == Payloads(found.block, len(payloads), map(len, payloads))


@given(listed, st.data())
def test_a_part_is_a_slice_of_the_list(payloads, data):
    found = Payloads.of(payloads)
    start = data.draw(st.integers(0, len(payloads)))
    count = data.draw(st.integers(0, len(payloads) - start))
    part = payloads[start : start + count]
    assert found.part(start, count) == Payloads.of(part)
    assert found.bytes_of(start, count) == sum(map(len, part))


@given(listed.filter(bool), st.data())
def test_the_rest_keeps_its_indexes(payloads, data):
    """Twice, because what a checkpoint wrote is read and written again."""
    start = data.draw(st.integers(0, len(payloads)))
    later = data.draw(st.integers(start, len(payloads)))
    rest = Payloads.of(payloads).rest(start).rest(later)
    assert len(rest) == len(payloads)
    assert [rest[index] for index in range(later, len(payloads))] == payloads[later:]
    assert rest.block == block_of(payloads[later:])
    assert rest.bytes_of(later, len(payloads) - later) == sum(map(len, payloads[later:]))
    for index in (later - 1, len(payloads)):
        with pytest.raises(IndexError):
            rest[index]


@given(listed.filter(bool), st.data())
def test_fitting_is_as_many_as_one_would_count(payloads, data):
    start = data.draw(st.integers(0, len(payloads) - 1))
    count = data.draw(st.integers(1, len(payloads) - start))
    room = data.draw(st.integers(-1, 400))
    fits = 0
    while fits < count and sum(map(len, payloads[start : start + fits + 1])) <= room:
        fits += 1
    assert Payloads.of(payloads).fitting(start, count, room) == fits


def test_the_field_has_one_number_wherever_a_block_goes():
    """A block is written behind other fields of these messages as it is."""
    for message in (
        job_service_pb2.PushRequest,
        entry_pb2.PayloadBlock,
        job_pb2.LeasedRun,
    ):
        assert message.DESCRIPTOR.fields_by_name["payloads"].number == FIELD


def test_lengths_are_asked_for_only_where_they_differ():
    even, never = Payloads.of([b"ab", b"cd"]), iter([-1])
    assert list(Payloads(even.block, 2, never).part(1, 1)) == [b"cd"]
    assert next(never) == -1
    assert len(NO_PAYLOADS) == 0
    assert hash(even) == hash(Payloads.of([b"ab", b"cd"]))
    assert (even == [b"ab", b"cd"]) is False
    assert "2 payloads" in repr(even)


def test_payloads_are_shown_by_their_number_and_size():
    """A failed assertion does not print a megabyte."""
    assert repr(Payloads.of([b"ab", b"c"])) == "<2 payloads, 7 bytes>"
