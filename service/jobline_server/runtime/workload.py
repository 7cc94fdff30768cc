"""Workload: how much work a queue has for workers at this moment, from counts that it keeps."""

from __future__ import annotations

from itertools import islice

from jobline_server.engine.queue import Queue
from jobline_server.engine.values import JobState

# Lanes whose heads are looked at to find the job that waits longest, each a fraction of a
# microsecond. There are as many as kinds of jobs and, in a fair queue, tenants.
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


def longest_wait_ms(queue: Queue | None, wall_ms: int) -> int:
    """Returns for how long the oldest startable job has been READY, in milliseconds; 0 if there is
    none.
    """
    if queue is None or queue.paused:
        return 0
    heads = (lane.head() for lane in islice(queue.lanes(), LANES_MAX) if lane.ready)
    since = [head.waits_from_ms() for head in heads if head is not None]
    return max(wall_ms - min(since, default=wall_ms), 0)
