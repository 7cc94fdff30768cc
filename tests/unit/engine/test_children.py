"""The jobs that wait for one job."""

from __future__ import annotations

import pytest

from jobline_server.engine.children import PART_BITS, Children


def test_children_come_in_the_order_of_their_pushes_over_all_parts():
    children = Children()
    ids = [1, 2, 1 << PART_BITS, (1 << PART_BITS) + 1, 5 << PART_BITS]
    for child in ids:
        children.add(child)
    assert (list(children), len(children)) == (ids, 5)
    for child in ids[1:3]:
        children.remove(child)
    assert (list(children), len(children)) == ([1, ids[3], ids[4]], 3)


def test_nothing_is_left_when_all_are_removed():
    children = Children()
    children.add(7)
    children.remove(7)
    assert not children
    assert list(children) == []
    with pytest.raises(KeyError):
        children.remove(7)
