"""Open lanes: a few of them are what ranks of them are."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import product
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jobline_server.engine import open_lanes
from jobline_server.engine.lane import Lane
from jobline_server.engine.open_lanes import OpenLanes
from jobline_server.engine.ranked_lanes import RankedLanes
from jobline_server.engine.ranks import Names
from jobline_server.engine.rules import Needs

NEEDS = (None, Needs(min_worker_version="2"))
LANES = [Lane(*kind) for kind in product((0, 5), ("a", "b"), (0, 1), NEEDS)]
OWN = {-5: [Lane(5, "a")], -7: [Lane(7, "a")]}
ASKED: list[tuple[Names, int | None, str | None]] = [
    (None, None, None),
    (frozenset("a"), 0, "1"),
    (frozenset("b"), 1, "2"),
]


class _Item:
    """Where a job would be; none of the lanes has one."""

    order = 0

    def __init__(self, priority: int) -> None:
        self.options = type("Options", (), {"priority": priority})


def _found(lanes: OpenLanes | RankedLanes) -> list[Any]:
    """All answers; lanes of one priority are unordered, and no rank is as good as an empty one."""
    found: list[Any] = []
    for names, size, version in ASKED:
        ranks: Iterable[Iterable[Any]] = lanes.ranks(names, size)
        found.append([sorted(map(id, rank)) for rank in ranks])
        for own in ({}, OWN):
            fronts = lanes.fronts(names, size, version, own)
            found.append([sorted(map(id, front)) for front in fronts])
            some = lanes.some_fronts(names, size, version, own, seed=1)
            found.append([(priority, *sorted(map(id, front))) for priority, front in some if front])
        for priority in (0, 5):
            item: Any = _Item(priority)
            found.append(sorted(map(id, lanes.lanes_up_to(item, names))))
    return [[part for part in one if part] for one in found]


@given(st.lists(st.integers(0, len(LANES) - 1), max_size=30), st.sampled_from([0, 1, 3, 5]))
@settings(deadline=None)
def test_few_lanes_are_found_as_many_are(drawn: list[int], few: int) -> None:
    """Whatever came and went, for all names, sizes and versions."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(open_lanes, "FEW_MAX", few)
        lanes, ranked, inside = OpenLanes(), RankedLanes(), set[int]()
        for number in drawn:
            change: Callable[[OpenLanes | RankedLanes, Lane], None] = (
                _leave if number in inside else _join
            )
            change(lanes, LANES[number])
            change(ranked, LANES[number])
            inside ^= {number}
            assert _found(lanes) == _found(ranked)


def _join(lanes: OpenLanes | RankedLanes, lane: Lane) -> None:
    lanes.join(lane)


def _leave(lanes: OpenLanes | RankedLanes, lane: Lane) -> None:
    lanes.note_head(lane)
    lanes.leave(lane)


def test_ranks_are_gone_with_their_lanes() -> None:
    """What was many is few again, and costs nothing."""
    lanes = OpenLanes()
    for lane in LANES:
        lanes.join(lane)
    assert lanes._ranked
    for lane in LANES:
        lanes.leave(lane)
    assert lanes._ranked is None
