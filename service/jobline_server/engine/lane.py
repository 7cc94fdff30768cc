"""A lane: the jobs of one priority and one name that are ready, first ready first out.

Its items are lots and single jobs. A job that stops being ready (cancelled, deleted) stays where
it is and is skipped when it comes to the front, so nothing is ever searched for.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

from jobline_server.engine.job import Job
from jobline_server.engine.lot import Lot
from jobline_server.engine.values import JobState

Item = Lot | Job

# Looking a member up on its enum is dear before Python 3.12.
_READY = JobState.READY


class Lane:
    """A FIFO. `ready` counts the jobs in it that may be handed out."""

    __slots__ = ("_skipped", "items", "name", "priority", "ready")

    def __init__(self, priority: int, name: str) -> None:
        self.priority = priority
        self.name = name
        self.items: deque[Item] = deque()
        self.ready = 0
        self._skipped = 0

    def put(self, item: Item, jobs: int) -> None:
        """Adds at the tail."""
        self.items.append(item)
        self.ready += jobs

    def put_front(self, job: Job) -> None:
        """Adds at the front."""
        self.items.appendleft(job)
        self.ready += 1

    def leave(self, jobs: int) -> None:
        """Jobs somewhere in the lane are not ready any more; they are skipped when they come up."""
        self.ready -= jobs
        self._skipped += jobs
        if self._skipped > 1_000 and self._skipped > 2 * self.ready:
            self.items = deque(item for item in self.items if item.is_ready())
            self._skipped = 0

    def head(self) -> Item | None:
        """The next item; what stopped being ready is thrown away on the way."""
        items = self.items
        while items:
            item = items[0]
            if type(item) is Lot:
                if item.gone:
                    item.skip_gone()
                if item.cursor < len(item.payloads):
                    return item
            elif item.state is _READY:  # type: ignore[union-attr]  # not a lot: a job
                return item
            items.popleft()
        return None

    def durable(self, committed: int) -> Iterator[Item]:
        """What may go out, in order, as far as it is on disk; a lot may have none left to give."""
        for item in self.items:
            if item.offset > committed:
                if item.is_ready():
                    return
            elif isinstance(item, Lot) or item.state is _READY:
                yield item
