"""Gates: stop leases from a lane until a given time, or until further notice.

A limit closes the gate of a lane that has used it up. A lane with a closed gate is in no rank and
no heap, so it costs a lease nothing; timers open it at its time. A gate belongs to the lane's key:
it stays closed while the lane is empty.

A lane that is reserved for a session (`sticky`) has a closed gate, too; only that session reads it.

The time is monotonic, as the ends of leases are: it does not jump when the wall clock is set, and
stands still while the process does. Gates are not stored: the limits are, and close them again
after a start.
"""

from __future__ import annotations

from heapq import heapify, heappop, heappush

from jobline_server.engine.lane import Lane, LaneKey

UNTIL_NOTICE = 1 << 62
"""The time of a gate that does not open by itself."""
# Obsolete entries allowed in the heap, beyond one per closed gate.
MOMENTS_SPARE = 64


class Gates:
    """The closed gates of a queue, and when they open. `shut` counts the READY jobs behind them."""

    __slots__ = ("_heap", "_number", "closed", "own", "shut", "woken")

    def __init__(self) -> None:
        self.closed: dict[LaneKey, Lane] = {}
        self.shut = 0
        # The closed lanes that are reserved for a session.
        self.own: dict[str, dict[LaneKey, Lane]] = {}
        # Sessions that were not offered yet what was reserved for them, and when it is on disk.
        self.woken: dict[str, int] = {}
        # An entry is obsolete once its lane opens at another time.
        self._heap: list[tuple[int, int, Lane]] = []
        self._number = 0

    def close(self, lane: Lane, opens_ms: int) -> None:
        """Closes the gate of a lane until a time, or changes the time of a closed one. A lane of a
        session that is closed again is closed to this session, too.
        """
        self.closed[lane.key] = lane
        if not lane.opens_ms:
            self.shut += lane.ready
        if lane.needs is not None and lane.needs.session:
            if lane.opens_ms:
                self._disown(lane, lane.needs.session)
            else:
                self.own.setdefault(lane.needs.session, {})[lane.key] = lane
        lane.opens_ms = opens_ms
        if opens_ms == UNTIL_NOTICE:
            return
        self._number += 1
        heappush(self._heap, (opens_ms, self._number, lane))
        if len(self._heap) > 2 * len(self.closed) + MOMENTS_SPARE:
            counting = {entry[2]: entry for entry in self._heap if entry[2].opens_ms == entry[0]}
            self._heap = list(counting.values())
            heapify(self._heap)

    def open(self, lane: Lane) -> None:
        """Opens the gate of a lane."""
        del self.closed[lane.key]
        lane.opens_ms = 0
        self.shut -= lane.ready
        if lane.needs is not None and lane.needs.session:
            self._disown(lane, lane.needs.session)

    def _disown(self, lane: Lane, session: str) -> None:
        lanes = self.own.get(session, {})
        if lanes.pop(lane.key, None) is not None and not lanes:
            del self.own[session]

    def first_ms(self) -> int | None:
        """Returns when the next gate opens; None if none opens by itself."""
        heap = self._heap
        while heap and heap[0][2].opens_ms != heap[0][0]:
            heappop(heap)
        return heap[0][0] if heap else None

    def first_key(self) -> LaneKey:
        """Returns the key of the gate that opens at `first_ms`."""
        return self._heap[0][2].key
