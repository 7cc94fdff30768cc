"""Gate timers: when the gates of a shard's queues open, or limits of whole queues let jobs out."""

from __future__ import annotations

from heapq import heappop, heappush

from jobline_server.engine.queue import Queue


class GateTimers:
    """A heap of queues by the time of their next gate, in monotonic milliseconds. An entry may be
    too early, as gates are opened and closed meanwhile: the queue is checked when it is due.
    """

    __slots__ = ("_entries", "_first", "_heap", "_number")

    def __init__(self) -> None:
        self._heap: list[tuple[int, int, Queue]] = []
        self._number = 0
        # The entries of the heap, and the earliest time of each queue: only that entry counts.
        self._entries: set[tuple[Queue, int]] = set()
        self._first: dict[Queue, int] = {}

    def note(self, queue: Queue) -> None:
        """Schedules a queue after one of its gates was closed."""
        first_ms = queue.gates.first_ms()
        if first_ms is not None:
            self.ask_again(queue, first_ms)

    def ask_again(self, queue: Queue, first_ms: int) -> None:
        """Schedules a queue that may have jobs to dispatch at a time, in monotonic milliseconds. If
        it is due before, it is dispatched then, and that schedules it again if need be.
        """
        if first_ms >= self._first.get(queue, first_ms + 1):
            return
        self._first[queue] = first_ms
        if (queue, first_ms) not in self._entries:
            self._entries.add((queue, first_ms))
            self._number += 1
            heappush(self._heap, (first_ms, self._number, queue))

    def first_ms(self) -> int | None:
        """Returns when to call `open_due`; None if no gate opens by itself."""
        return self._heap[0][0] if self._heap else None

    def open_due(self, mono_ms: int, limit: int) -> list[Queue]:
        """Opens up to `limit` gates that are due; returns the queues that may have jobs to
        dispatch.
        """
        queues: dict[Queue, None] = {}
        while limit > 0 and self._heap and self._heap[0][0] <= mono_ms:
            first_ms, _, queue = heappop(self._heap)
            self._entries.remove((queue, first_ms))
            if self._first.get(queue) != first_ms:
                continue
            del self._first[queue]
            limit -= open_due_gates(queue, mono_ms, limit)
            queues[queue] = None
            self.note(queue)
        return list(queues)


def open_due_gates(queue: Queue, mono_ms: int, limit: int) -> int:
    """Opens up to `limit` gates of a queue that are due; returns how many."""
    for opened in range(limit):
        first_ms = queue.gates.first_ms()
        if first_ms is None or first_ms > mono_ms:
            return opened
        queue.open_gate(queue.gates.first_key())
    return limit
