"""Operations that wait for room, against a store that has them all."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from jobline_server.runtime.ended import waiting_ops
from jobline_server.runtime.ended.waiting_ops import WRITE_BYTES, WRITE_OPS
from jobline_server.storage.ended_store import (
    EndedOp,
    EndedPart,
    EndedQuery,
    EndedRow,
    MarkStale,
    PutEnded,
    RemoveEnded,
    RemoveQueue,
)
from tests.storage.ended_reference import CANCELLED, COMPLETED, put
from tests.storage.memory_ended_store import MemoryEndedStore

IDS = range(16)
FIRST_IDS = st.integers(0, 12)
COUNTS = st.integers(1, 4)
PUTS = st.builds(
    put,
    FIRST_IDS,
    COUNTS,
    queue=st.sampled_from("ab"),
    state=st.sampled_from([CANCELLED, COMPLETED]),
)
OPS = st.lists(
    st.one_of(
        PUTS,
        st.builds(RemoveEnded, FIRST_IDS, COUNTS),
        st.builds(MarkStale, FIRST_IDS, COUNTS, st.integers(6, 7), st.integers(8, 9)),
        st.builds(RemoveQueue, st.sampled_from("ab")),
    ),
    max_size=8,
)


@given(before=OPS, written=st.integers(0, 8), ops=OPS)
def test_jobs_are_counted_and_found_as_if_all_were_written(
    before: list[EndedOp], written: int, ops: list[EndedOp]
) -> None:
    """Whatever the store had, and however many of them have arrived."""
    asyncio.run(check(before, written, ops))


async def check(before: list[EndedOp], written: int, ops: list[EndedOp]) -> None:
    """Compares a store that lacks some with one that has all."""
    store, complete = MemoryEndedStore(), MemoryEndedStore()
    await store.write(before + ops[:written])
    await complete.write(before + ops)
    rest = ops[written:]
    await store.write(waiting_ops.cleared(rest))
    left = await waiting_ops.settled(rest)
    for some in (rest, left):
        assert await waiting_ops.counts_after(store, some) == await complete.counts()
        found = waiting_ops.find(some, IDS)
        assert await rows(store) | kept(found) == await rows(complete)
        in_a = [job_id for job_id, row in sorted(kept(found).items()) if row.queue == "a"]
        parts = await waiting_ops.parts(some, EndedQuery(queue="a", after_id=2, limit=5))
        assert [i for part in parts for i in ids_of_part(part)] == [i for i in in_a if i > 2][:5]
        with_one = [i for i, row in sorted(kept(found).items()) if b"1" in row.blob]
        parts = await waiting_ops.parts(some, EndedQuery(blob_parts=((b"1",),)))
        assert [i for part in parts for i in ids_of_part(part)] == with_one
    for some in one_by_one(left):
        await store.write(some)
        shown = await rows(store)
        assert shown == {i: row for i, row in (await rows(complete)).items() if i in shown}
    assert await rows(store) == await rows(complete)


def ids_of_part(part: EndedPart) -> range:
    return range(part.first_id, part.first_id + part.count)


async def rows(store: MemoryEndedStore) -> dict[int, EndedRow]:
    return (await store.get_many(IDS)).rows


def kept(found: dict[int, EndedRow | None]) -> dict[int, EndedRow]:
    return {job_id: row for job_id, row in found.items() if row is not None}


def one_by_one(ops: list[EndedOp]) -> Iterator[list[EndedOp]]:
    """The smallest writes that there may be."""
    puts = [at for at, op in enumerate(ops) if isinstance(op, PutEnded)]
    for at, end in pairwise([*puts, len(ops)]):
        yield ops[at:end]


def sizes(ops: Sequence[EndedOp]) -> list[int]:
    """How many operations each write has."""
    found = []
    while ops:
        first = waiting_ops.first_write(ops)
        found.append(len(first))
        ops = ops[len(first) :]
    return found


def test_a_write_is_bounded_and_has_what_was_changed_of_its_rows() -> None:
    large, removed = put(1, blob=b"x" * (WRITE_BYTES // 2)), RemoveEnded(1, 1)
    assert sizes([]) == []
    assert sizes([large] * 5) == [2, 2, 1]
    assert sizes([put(1, blob=b"x" * WRITE_BYTES), removed, put(2)]) == [2, 1]
    assert sizes([put(1)] * (WRITE_OPS + 1)) == [WRITE_OPS, 1]
    ops: list[EndedOp] = [put(1)]
    assert waiting_ops.first_write(ops) is not ops, "its caller deletes from the list"
    assert sizes([put(1)] * WRITE_OPS + [removed, put(2)]) == [WRITE_OPS + 1, 1]


def test_half_of_some_operations_splits_no_row_from_its_changes() -> None:
    one: list[EndedOp] = [put(1, 2), RemoveEnded(1, 1)]
    assert waiting_ops.half(one) == []
    assert waiting_ops.half([*one, put(5), put(6)]) == one
    assert waiting_ops.half([put(5), *one]) == [put(5)]


def test_changes_are_those_that_need_no_room() -> None:
    ops: list[EndedOp] = [put(1), RemoveEnded(1, 1), RemoveQueue("a"), MarkStale(1, 1, 1, 1)]
    assert waiting_ops.changes_of(ops) == ops[1:]
    assert (waiting_ops.has_rows(ops), waiting_ops.has_rows(ops[1:])) == (True, False)
    assert waiting_ops.bytes_of([put(1, blob=b"x" * 100), *ops[1:]]) == 100 + 4 * (1 << 10)
    assert waiting_ops.cleared(ops) == [RemoveEnded(1, 1), *ops[1:]]
