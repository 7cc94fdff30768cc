"""The front of a lane, where jobs that are `lifo` go.

They do not hold up their lane while they are not on disk: with a `lifo` push in every commit
nothing else would ever be leased. So a lease may take items behind them.
"""

from __future__ import annotations

from collections import deque

from jobline_server.engine.lane import Lane, LaneItem, lane_key
from jobline_server.engine.queue import Queue
from jobline_server.engine.states import IllegalMove


def ready_lane(queue: Queue, item: LaneItem) -> Lane:
    """Returns the lane that an item is about to leave; raises `IllegalMove` if there is none."""
    lane = queue.find_lane(lane_key(item))
    if lane is None:
        raise IllegalMove(f"queue {queue.name} has nothing ready in lane {lane_key(item)}")
    return lane


def reach(lane: Lane, item: LaneItem, turned: dict[Lane, int]) -> deque[LaneItem]:
    """Makes an item the first of its lane's `items`, which it returns: drops those before it that
    are no longer READY, and rotates past those at the front that are not on disk. `turned` has by
    how much; call `turn_back` with it afterwards.
    """
    if lane in turned:
        lane.items.rotate(turned.pop(lane))
    if lane.head() is not item:
        by = lane.turn_to(item)
        if by:
            turned[lane] = by
    return lane.items


def turn_back(turned: dict[Lane, int]) -> None:
    """Rotates the items of lanes back to where they were."""
    for lane, by in turned.items():
        lane.items.rotate(by)
