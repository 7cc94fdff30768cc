"""What a BLOCKED job still waits for: few parents or many, in order, taken off one by one."""

from __future__ import annotations

import pytest

from jobline_server.engine.parents_left import TUPLE_MAX, left_of, policy_about, without
from jobline_server.engine.rules import DependencyPolicy
from jobline_server.engine.states import IllegalMove
from jobline_server.engine.ties import NO_TIES, Ties


@pytest.mark.parametrize("count", [1, TUPLE_MAX, TUPLE_MAX + 1, 1_000])
def test_parents_are_taken_off_in_any_order_and_the_rest_keep_theirs(count: int) -> None:
    parents = tuple(range(count, 0, -1))
    left = left_of(parents, NO_TIES)
    assert tuple(left) == parents
    gone = parents[1::2]
    for parent in gone:
        left = without(left, parent)
    assert tuple(left) == parents[::2]
    for parent in parents[::2]:
        left = without(left, parent)
    assert not left


def test_many_are_not_copied() -> None:
    """A thousand jobs that waited for the same six hundred copied 3 GB."""
    left = left_of(range(TUPLE_MAX + 1), NO_TIES)
    assert without(left, 3) is left


@pytest.mark.parametrize("count", [2, 100])
def test_a_parent_that_is_not_waited_for_cannot_be_met(count: int) -> None:
    left = left_of(range(count), NO_TIES)
    with pytest.raises(IllegalMove, match=f"job {count} is not waited for"):
        without(left, count)
    assert len(left) == count


@pytest.mark.parametrize("count", [3, TUPLE_MAX + 5])
def test_each_has_its_own_policy_whichever_are_left(count: int) -> None:
    """Those after the last that has one have none, and a wide job searches for none."""
    parents = tuple(range(100, 100 + count))
    ties = Ties(parents=parents, on_failure=bytes([0, DependencyPolicy.IGNORE]))
    left = left_of(parents[1:], ties)
    assert policy_about(left, 101, ties) is DependencyPolicy.IGNORE
    assert policy_about(left, 102, ties) is None
    left = without(left, 102)
    assert policy_about(left, 101, ties) is DependencyPolicy.IGNORE
    assert policy_about(left_of(parents, NO_TIES), 101, NO_TIES) is None
