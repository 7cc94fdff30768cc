"""Dictionaries and sets that grow in small steps."""

from __future__ import annotations

from hashlib import blake2b

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobline_server.engine.changes import KindChanges
from jobline_server.engine.keys import KeyRecord, KeyTable
from jobline_server.engine.producers import Call, ProducerTable
from jobline_server.engine.split import PARTS, SplitDict, SplitSet

COUNT = 20_000


def a_hash(number: int) -> bytes:
    return blake2b(b"%d" % number, digest_size=16).digest()


@given(st.lists(st.tuples(st.sampled_from(["set", "delete"]), st.integers(0, 9))))
def test_it_is_a_dictionary(steps):
    split: SplitDict[int] = SplitDict()
    plain: dict[bytes, int] = {}
    for number, (step, which) in enumerate(steps):
        key = a_hash(which)
        if step == "set":
            split[key] = plain[key] = number
        elif step == "delete" and key in plain:
            del split[key], plain[key]
        assert (dict(split), len(split), bool(split)) == (plain, len(plain), bool(plain))
        assert (split.get(key), key in split) == (plain.get(key), key in plain)


@given(st.lists(st.tuples(st.sampled_from(["add", "discard", "pop"]), st.integers(0, 9))))
def test_it_is_a_set(steps):
    split, plain = SplitSet(), set[bytes]()
    for step, which in steps:
        key = a_hash(which)
        if step == "add":
            split.add(key)
            plain.add(key)
        elif step == "discard":
            split.discard(key)
            plain.discard(key)
        elif plain:
            plain.remove(split.pop())
        assert (set(split), len(split), bool(split)) == (plain, len(plain), bool(plain))
        assert (key in split) == (key in plain)


def test_nothing_can_be_taken_out_of_an_empty_set():
    with pytest.raises(KeyError):
        SplitSet().pop()


def parts_of_keys():
    table = KeyTable()
    for number in range(COUNT):
        table.add(a_hash(number), KeyRecord(number, 1, 0, 1), volatile=number % 2 == 0)
    return [*table.records.parts, *table.volatile.parts]


def parts_of_producers():
    table = ProducerTable(KindChanges(unsaved := SplitSet()))
    for number in range(COUNT):
        table.remember(Call(a_hash(number), 1, 1, 0), 1, 1, 0)
    return [*table.records.parts, *unsaved.parts]


@pytest.mark.parametrize("parts_of", [parts_of_keys, parts_of_producers])
def test_many_entries_are_never_copied_at_once(parts_of):
    """Trial C2: a table of a million was copied in one step of 67 ms. Now one that is full holds a
    hundredth at most.
    """
    sizes = [len(part) for part in parts_of()]
    assert max(sizes) < 2 * COUNT / PARTS
