"""Room: how many more jobs may wait, of a queue and of the server. The one rule for all that makes
jobs wait: pushes, and ended jobs that are put back.

Jobs that workers have do not wait, and take no room: what comes back of them always finds some.
Their payloads are in memory all the same, which is what the limit of bytes is for.
What is on its way to another shard waits, too.
"""

from __future__ import annotations

from collections.abc import Sequence

from jobline_server.engine.commands import RefusalKind, Refused
from jobline_server.engine.queue import Queue
from jobline_server.engine.records import JobRecord
from jobline_server.engine.state import Load
from jobline_server.engine.view import ShardView

# Consumers go on, so another try makes sense soon.
RETRY_AFTER_MS = 1_000


class Room:
    """What is left as jobs are let in one after the other, before they are counted elsewhere."""

    def __init__(self, load: Load) -> None:
        self._load = load
        self._jobs = self._bytes = 0
        self._by_queue: dict[str, int] = {}

    def refusal(self, queue: Queue | None, count: int, payload_bytes: int) -> Refused | None:
        """Lets jobs in, or says why they do not fit; a queue that is not there yet has no limit."""
        load, of_queue = self._load, count
        if queue is not None:
            of_queue += self._by_queue.get(queue.name, 0)
            most, waiting = queue.settings.max_waiting, queue.waiting()
            if most is not None and waiting + of_queue > most:
                message = f"queue {queue.name} has {waiting} of {most} waiting jobs"
                return Refused(RefusalKind.QUEUE_FULL, message, retry_after_ms=RETRY_AFTER_MS)
            self._by_queue[queue.name] = of_queue
        waiting = load.live_jobs - load.active_jobs + load.outgoing_jobs
        if waiting + self._jobs + count > load.waiting_max:
            message = f"the server has {waiting} of {load.waiting_max} waiting jobs"
            return Refused(RefusalKind.SERVER_FULL, message, retry_after_ms=RETRY_AFTER_MS)
        held_bytes = load.payload_bytes + load.outgoing_bytes
        if held_bytes + self._bytes + payload_bytes > load.waiting_bytes_max:
            message = (
                f"the server holds {held_bytes} of {load.waiting_bytes_max} payload bytes; "
                f"these jobs have {payload_bytes} more"
            )
            return Refused(RefusalKind.SERVER_FULL, message, retry_after_ms=RETRY_AFTER_MS)
        self._jobs += count
        self._bytes += payload_bytes
        return None


def fitting(
    shard: ShardView, records: Sequence[JobRecord]
) -> tuple[dict[int, None], Refused | None]:
    """The ids of those ended jobs that may wait again, in order, first come first served; and why
    the others may not, if there are any.
    """
    if _all_fit(shard, records):
        return dict.fromkeys([record.id for record in records]), None
    room = Room(shard.load)
    fits: dict[int, None] = {}
    why: Refused | None = None
    for record in records:
        refusal = room.refusal(shard.queues.get(record.queue), 1, len(record.payload))
        if refusal is None:
            fits[record.id] = None
        why = why or refusal
    return fits, why


def _all_fit(shard: ShardView, records: Sequence[JobRecord]) -> bool:
    """Whether there is room for all, which is one look a queue."""
    sizes: dict[str, list[int]] = {}
    for record in records:
        sizes.setdefault(record.queue, []).append(len(record.payload))
    room = Room(shard.load)
    refusals = (
        room.refusal(shard.queues.get(queue), len(of_queue), sum(of_queue))
        for queue, of_queue in sizes.items()
    )
    return all(refusal is None for refusal in refusals)
