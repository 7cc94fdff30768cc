"""The jobs that wait for one job."""

from __future__ import annotations

import pytest

from jobline_server.engine.children import PART_BITS, Children, in_parts

IDS = [1, 2, 1 << PART_BITS, (1 << PART_BITS) + 1, 5 << PART_BITS]


@pytest.mark.parametrize("together", [False, True])
def test_children_come_in_the_order_of_their_pushes_over_all_parts(together):
    children = Children()
    if together:
        children.add(IDS[0])
        children.add_parts(in_parts(IDS[1:]))
    else:
        for child in IDS:
            children.add(child)
    assert (list(children), len(children)) == (IDS, 5)
    for child in IDS[1:3]:
        children.remove(child)
    assert (list(children), len(children)) == ([1, *IDS[3:]], 3)


@pytest.mark.parametrize("ids", [[7], [7, 9], [7, 7 << PART_BITS]])
def test_nothing_is_left_when_all_are_removed_and_more_may_come(ids):
    children = Children()
    for _ in range(2):
        for child in ids:
            children.add(child)
        assert list(children) == ids
        for child in ids:
            children.remove(child)
        assert not children
        assert list(children) == []
        with pytest.raises(KeyError):
            children.remove(7)


def test_the_only_one_is_told_from_others():
    children = Children()
    children.add(7)
    with pytest.raises(KeyError):
        children.remove(8)
    assert list(children) == [7]


def test_the_same_jobs_are_children_of_several_each_of_which_loses_its_own():
    parts = in_parts(IDS)
    first, second = Children(), Children()
    second.add(0)
    for children in (first, second):
        children.add_parts(parts)
    for child in IDS:
        first.remove(child)
    assert (list(first), len(first)) == ([], 0)
    assert (list(second), len(second)) == ([0, *IDS], 6)
