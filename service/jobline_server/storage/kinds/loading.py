"""What the kinds share while a shard is loaded: its queues by name, its holders, and what is ready.

A queue whose own record was lost comes back paused, with default settings: its jobs must not run
under settings nobody chose.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass

from jobline.v1 import store_pb2
from jobline_server.engine.holder import Holder
from jobline_server.engine.job import Job
from jobline_server.engine.lot import Lot
from jobline_server.engine.queue import Queue
from jobline_server.engine.shard import Shard
from jobline_server.storage.segments import KeySegments

PAUSED_BY = "recovery"
PAUSE_REASON = "the queue's own record was damaged: check its settings before you resume it"


@dataclass(frozen=True, slots=True)
class SetApart:
    """Something that could not be brought back, and why. For a log line; the server goes on."""

    shard: int
    what: str
    why: str


Report = Callable[[SetApart], None]
QueueOf = Callable[[str], Queue]
HolderOf = Callable[[str, str, str], Holder]
"""The holder of a worker's session; without a session, a holder of its own each time."""


class Loading:
    """A shard that is being loaded. `ready` gathers, by queue, what goes to its lane when all
    items are there, `members` the READY jobs that wait in their groups, and `without_payloads` lots
    whose payloads are an item that is yet to come.
    """

    def __init__(self, shard: Shard, report: Report) -> None:
        self.shard = shard
        self.segments = KeySegments(shard.number)
        self.ready: dict[Queue, list[Lot | Job]] = defaultdict(list)
        self.without_payloads: dict[int, store_pb2.StoredLot] = {}
        self.members: dict[Queue, list[Job]] = defaultdict(list)
        self.report = report

    def queue_of(self, name: str) -> Queue:
        """Returns the queue with this name; a stand-in if its record was lost, which gets a number
        later and is written down again.
        """
        queue = self.shard.queues.get(name)
        if queue is not None:
            return queue
        queue = self.shard.queues[name] = Queue(name, 0, 0)
        queue.paused = True
        queue.paused_by = PAUSED_BY
        queue.pause_reason = PAUSE_REASON
        self.shard.changes.queues.to_write.add(name)
        self.report(SetApart(self.shard.number, f"the record of queue {name}", "paused instead"))
        return queue

    def holder_of(self, worker: str, session: str, version: str) -> Holder:
        """Returns the holder of a worker's session; without a session, a new one."""
        if session:
            return self.shard.clocks.holder_of(session, worker, version)
        return Holder(worker, "", version=version)
