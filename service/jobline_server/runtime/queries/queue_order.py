"""The orders in which queues are listed. In each of them a queue has a place: a tuple that sorts
there, and ends with its name. A page goes on behind the place of the last queue of the page before.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from enum import Enum

from jobline_server.engine.commands import RefusalKind, Refused
from jobline_server.engine.queue import Queue
from jobline_server.engine.values import JobState

QueuePlace = tuple[int, int, str]

FIRST: QueuePlace = (-(1 << 63), 0, "")
"""Before all queues."""

# Enum attribute access is slow before Python 3.12.
_READY, _ACTIVE = JobState.READY, JobState.ACTIVE
# Both numbers have fewer digits than what Python reads in a moment.
_CURSOR = re.compile(r"(\d{1,19})\.(\d{1,19})\.(.+)", re.ASCII)


class QueueOrder(Enum):
    """By name, or the busiest first."""

    NAME = "name"
    ACTIVITY = "activity desc"

    def place_of(self, queue: Queue, activity: Callable[[Queue], int]) -> QueuePlace:
        """Returns the place of a queue. `activity` counts what happened in it lately."""
        if self is QueueOrder.NAME:
            return (0, 0, queue.name)
        counts = queue.counts
        return (-activity(queue), -counts[_READY] - counts[_ACTIVE], queue.name)

    def cursor_of(self, place: QueuePlace) -> str:
        """Returns a place as text."""
        busy, waiting, name = place
        return name if self is QueueOrder.NAME else f"{-busy}.{-waiting}.{name}"

    def place_at(self, cursor: str) -> QueuePlace:
        """Returns the place that a text stands for; that before all queues for "". Raises `Refused`
        with INVALID_PAGE_TOKEN for one that stands for none.
        """
        if not cursor:
            return FIRST
        if self is QueueOrder.NAME:
            return (0, 0, cursor)
        found = _CURSOR.fullmatch(cursor)
        if found is None:
            message = "names no place in this order"
            raise Refused(RefusalKind.INVALID_PAGE_TOKEN, message, field="page_token")
        return (-int(found[1]), -int(found[2]), found[3])
