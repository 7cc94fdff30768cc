"""Workload: how much work a queue has for workers at this moment, from counts that it keeps."""

from __future__ import annotations

from itertools import islice

from jobline_server.engine.lane import Lane, LaneItem
from jobline_server.engine.queue import Queue
from jobline_server.engine.values import JobState

# Lanes whose heads are looked at to find the job that waits longest, each a fraction of a
# microsecond. There are as many as kinds of jobs and, in a fair queue, tenants. They come in the
# order in which they got jobs, but by parts of tenants, and one that is emptied begins anew.
LANES_MAX = 1_000


def startable(queue: Queue) -> int:
    """Returns the number of READY jobs that more workers could start: none while it is paused, and
    not those that wait for others of their group.
    """
    return 0 if queue.paused else queue.counts[JobState.READY] - queue.groups.held


def workload(queue: Queue | None) -> int:
    """Returns the number of jobs that keep workers busy, or would: startable and ACTIVE ones. A
    queue that does not exist has none.
    """
    return 0 if queue is None else startable(queue) + queue.counts[JobState.ACTIVE]


def oldest_ready_ms(queue: Queue) -> int:
    """Returns since when the oldest head of the lanes is READY, in milliseconds since 1970; 0 if
    nothing is ready. With many lanes it takes a millisecond: who asks about many queues rests
    between two of them (`Pace`).
    """
    heads = [_head_of(lane) for lane in islice(queue.lanes(), LANES_MAX) if lane.ready]
    return min([head.waits_from_ms() for head in heads if head is not None], default=0)


def longest_wait_ms(queue: Queue | None, wall_ms: int) -> int:
    """Returns for how long the oldest startable job has been READY, in milliseconds; 0 if there is
    none.
    """
    since_ms = 0 if queue is None or queue.paused else oldest_ready_ms(queue)
    return max(wall_ms - since_ms, 0) if since_ms else 0


def _head_of(lane: Lane) -> LaneItem | None:
    """Returns the next READY item. Of a lot it is enough that any job is READY: all wait since the
    same moment, and the walk past those that were cancelled is left to those who lease the next.
    """
    items = lane.items
    return items[0] if items and items[0].is_ready() else lane.head()
