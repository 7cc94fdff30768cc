"""Room: how many more jobs may wait, in a queue and in the server. The same rule holds for pushes
and for retries of ended jobs.

Active jobs take no room, and jobs that workers return always have some; but their payloads are in
memory and count towards the limit of bytes. Jobs on their way to another shard count as waiting.
"""

from __future__ import annotations

from collections.abc import Sequence

from jobline_server.engine.commands import RefusalKind, Refused
from jobline_server.engine.group_room import GroupRoom
from jobline_server.engine.load import Load
from jobline_server.engine.queue import Queue
from jobline_server.engine.records import JobRecord
from jobline_server.engine.view import ShardView

# Consumers make room all the time, so a retry makes sense soon.
RETRY_AFTER_MS = 1_000


class Room:
    """The room left while jobs are admitted one after another, before the load counts them."""

    def __init__(self, load: Load) -> None:
        self._load = load
        self._jobs = self._bytes = 0
        self._by_queue: dict[str, int] = {}
        self._bytes_by_queue: dict[str, int] = {}

    def refusal(self, queue: Queue | None, count: int, payload_bytes: int) -> Refused | None:
        """Admits jobs and returns None, or returns a refusal if they do not fit. A queue that does
        not exist yet (None) has no limit.
        """
        load, of_queue = self._load, count
        if queue is not None:
            of_queue += self._by_queue.get(queue.name, 0)
            max_waiting, waiting = queue.settings.max_waiting, queue.waiting()
            if max_waiting is not None and waiting + of_queue > max_waiting:
                message = f"queue {queue.name} has {waiting} of {max_waiting} waiting jobs"
                return Refused(RefusalKind.QUEUE_FULL, message, retry_after_ms=RETRY_AFTER_MS)
            if queue.settings.max_waiting_bytes is not None:
                refusal = self._bytes_refusal(queue, payload_bytes)
                if refusal is not None:
                    return refusal
            self._by_queue[queue.name] = of_queue
        waiting = load.live_jobs - load.active_jobs + load.outgoing_jobs
        if waiting + self._jobs + count > load.waiting_max:
            message = f"the server has {waiting} of {load.waiting_max} waiting jobs"
            return Refused(RefusalKind.SERVER_FULL, message, retry_after_ms=RETRY_AFTER_MS)
        held_bytes = load.held_bytes()
        if held_bytes + self._bytes + payload_bytes > load.waiting_bytes_max:
            message = (
                f"the server holds {held_bytes} of {load.waiting_bytes_max} payload bytes; "
                f"these jobs have {payload_bytes} more"
            )
            return Refused(RefusalKind.SERVER_FULL, message, retry_after_ms=RETRY_AFTER_MS)
        self._jobs += count
        self._bytes += payload_bytes
        return None

    def _bytes_refusal(self, queue: Queue, payload_bytes: int) -> Refused | None:
        """Admits payload bytes to a queue that has a limit of them, or returns a refusal."""
        most, held = queue.settings.max_waiting_bytes or 0, queue.payload_bytes
        of_queue = payload_bytes + self._bytes_by_queue.get(queue.name, 0)
        if held + of_queue > most:
            message = (
                f"queue {queue.name} holds {held} of {most} payload bytes; "
                f"these jobs have {payload_bytes} more"
            )
            return Refused(RefusalKind.QUEUE_FULL, message, retry_after_ms=RETRY_AFTER_MS)
        self._bytes_by_queue[queue.name] = of_queue
        return None


def fitting(
    shard: ShardView, records: Sequence[JobRecord]
) -> tuple[dict[int, None], Refused | None]:
    """Returns the ids of the ended jobs that may wait again, first come first served, and the first
    refusal of the others, if any.
    """
    if _all_fit(shard, records):
        return dict.fromkeys([record.id for record in records]), None
    room, groups = Room(shard.load), GroupRoom(shard.load)
    fits: dict[int, None] = {}
    first_refusal: Refused | None = None
    for record in records:
        queue = shard.queues.get(record.queue)
        refusal = groups.refusal(queue, [record.ties.group])
        refusal = refusal or room.refusal(queue, 1, record.held_bytes())
        if refusal is None:
            fits[record.id] = None
        first_refusal = first_refusal or refusal
    return fits, first_refusal


def _all_fit(shard: ShardView, records: Sequence[JobRecord]) -> bool:
    """Returns whether there is room for all, with one check per queue."""
    sizes: dict[str, list[int]] = {}
    groups = GroupRoom(shard.load)
    for record in records:
        sizes.setdefault(record.queue, []).append(record.held_bytes())
        name = record.ties.group
        if name and groups.refusal(shard.queues.get(record.queue), [name]) is not None:
            return False
    room = Room(shard.load)
    refusals = (
        room.refusal(shard.queues.get(queue), len(of_queue), sum(of_queue))
        for queue, of_queue in sizes.items()
    )
    return all(refusal is None for refusal in refusals)
