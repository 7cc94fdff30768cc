"""Tables by id in parts: they are what a dict and a set are, whatever the parts are."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from jobline_server.engine.tables import PART_BITS, IdSet, IdTable, are_neighbours, part_of

EDGE = 1 << PART_BITS
# Around the edges of parts, where it may go wrong.
IDS = st.sampled_from([edge * EDGE + by for edge in range(1, 4) for by in range(-3, 3)])
BATCHES = st.lists(IDS, min_size=1, max_size=12, unique=True)


@given(st.lists(st.tuples(st.booleans(), BATCHES, st.booleans()), max_size=12))
def test_a_table_is_a_dict(steps: list[tuple[bool, list[int], bool]]) -> None:
    """Batches come and go, sorted or not; every way to look them up finds the same."""
    table: IdTable[str] = IdTable()
    real: dict[int, str] = {}
    for comes, ids, in_order in steps:
        batch = sorted(ids) if in_order else ids
        if comes:
            values = [str(one) for one in batch]
            table.add_many(batch, values, part_of(batch, in_order=in_order))
            real.update(zip(batch, values, strict=True))
        else:
            batch = [one for one in batch if one in real]
            if batch:
                table.remove_many(batch, part_of(batch, in_order=in_order))
            for one in batch:
                del real[one]
        check_table(table, real, ids)


def check_table(table: IdTable[str], real: dict[int, str], ids: list[int]) -> None:
    assert table == real
    assert (len(table), bool(table), sorted(table)) == (len(real), bool(real), sorted(real))
    wanted = [real.get(one) for one in ids]
    found, part = table.find_many(ids)
    assert found == wanted
    assert part is None or (all(found) and part_of(ids) in {part, None})
    assert [table.find(one) for one in ids] == wanted
    assert table.find_between(sorted(ids)) == [real.get(one) for one in sorted(ids)]
    assert [one in table for one in ids] == [one in real for one in ids]
    assert sorted(table.every()) == sorted(real.values())
    if real:
        assert table.highest() == max(real)
    for one in ids:
        assert table.part(one).get(one) == real.get(one)


@given(st.lists(st.tuples(st.booleans(), BATCHES, st.booleans()), max_size=12))
@example(
    [(True, [EDGE - 1, EDGE], True), (True, [EDGE + 1], True), (False, [EDGE - 1, EDGE], True)]
)
def test_a_set_is_a_set(steps: list[tuple[bool, list[int], bool]]) -> None:
    """Those that are not there are removed in silence."""
    ours, real = IdSet(), set[int]()
    for comes, ids, known in steps:
        part = part_of(ids) if known else None
        if comes:
            ours.add_many(ids, part)
            real.update(ids)
        else:
            ours.remove_many(ids, part)
            real.difference_update(ids)
        assert set(ours) == real
        assert (len(ours), bool(ours), sorted(ours)) == (len(real), bool(real), sorted(real))
        assert [one in ours for one in ids] == [one in real for one in ids]
    popped = [ours.pop() for _ in range(len(ours))]
    assert sorted(popped) == sorted(real)
    with pytest.raises(KeyError):
        ours.pop()


@given(BATCHES)
def test_neighbours_are_popped_together(ids: list[int]) -> None:
    """Those that differ in their last bits alone, in order."""
    left = IdSet()
    left.add_many(ids, None)
    found: list[list[int]] = []
    while left:
        found.append(left.pop_neighbours(1))
    assert sorted(one for group in found for one in group) == sorted(ids)
    assert all(group == sorted(group) and group[0] >> 1 == group[-1] >> 1 for group in found)
    assert len(found) == len({one >> 1 for one in ids})
    with pytest.raises(KeyError):
        left.pop_neighbours(1)


@given(BATCHES)
def test_neighbours_are_popped_together_with_their_values(ids: list[int]) -> None:
    """As those of a set."""
    left, same = IdTable[str](), IdSet()
    left.add_many(ids, [str(one) for one in ids], None)
    same.add_many(ids, None)
    found: list[list[tuple[int, str]]] = []
    while left:
        found.append(left.pop_neighbours(1))
    assert all(value == str(one) for group in found for one, value in group)
    alike = [same.pop_neighbours(1) for _ in found]
    assert sorted([one for one, _ in group] for group in found) == sorted(alike)
    with pytest.raises(KeyError):
        left.pop_neighbours(1)


def test_single_values_come_and_go() -> None:
    """A part goes with the last that was in it."""
    table: IdTable[str] = IdTable()
    table[5] = "a"
    table[EDGE] = "b"
    assert (table[5], table[EDGE]) == ("a", "b")
    del table[5]
    with pytest.raises(KeyError):
        del table[5]
    with pytest.raises(KeyError):
        table[5]
    assert list(table) == [EDGE]
    ids = IdSet()
    ids.add(EDGE)
    ids.discard(EDGE)
    ids.discard(EDGE)
    assert not ids


@pytest.mark.parametrize(
    ("ids", "neighbours"),
    [([7], True), ([7, 8, 9], True), ([7, 9, 8, 10], False), ([7, 9], False), ([9, 8, 7], False)],
)
def test_neighbours_are_side_by_side_in_order(ids: Sequence[int], *, neighbours: bool) -> None:
    assert are_neighbours(ids) is neighbours


@pytest.mark.parametrize(
    ("ids", "part"),
    [([], None), ([EDGE], 1), ([2 * EDGE - 1, EDGE], 1), ([EDGE, EDGE - 1], None)],
)
def test_part_of_ids_is_the_one_that_holds_them_all(ids: list[int], part: int | None) -> None:
    assert part_of(ids) == part
    assert part_of(sorted(ids), in_order=True) == part


def test_no_step_moves_all_there_is() -> None:
    """Trial C2: however many there are, what one batch moves is what its part holds."""
    table: IdTable[str] = IdTable()
    ids = IdSet()
    for first in range(0, 3 * EDGE, 1_000):
        batch = list(range(first, first + 1_000))
        table.add_many(batch, ["x"] * 1_000, part_of(batch, in_order=True))
        ids.add_many(batch, part_of(batch, in_order=True))
    assert len(table) == len(ids) == 394_000
    assert max(len(table.part(one)) for one in range(0, 3 * EDGE, EDGE)) <= EDGE
