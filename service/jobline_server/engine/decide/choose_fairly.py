"""Choose fairly: selects the jobs that a consumer of a fair queue gets next.

The tenant with the lowest key gives its next job, which raises its key by what that job will need,
as far as is known; and so on. A tenant that is far behind gives several at once. The keys are those
of this moment, and nothing is charged before the jobs are leased.
"""

from __future__ import annotations

from collections.abc import Iterator
from heapq import heapify, heappop, heappush, heapreplace
from itertools import chain

from jobline_server.engine import limits
from jobline_server.engine.decide.choice import Choice, LotRun, fitting, in_order
from jobline_server.engine.fair import FairShare
from jobline_server.engine.items import Item
from jobline_server.engine.lot import Lot
from jobline_server.engine.ranks import Names
from jobline_server.engine.tenant import Tenant
from jobline_server.engine.tenant_heap import TenantHeap

NEVER_NS = 1 << 80
"""Greater than every key."""


class _Turn:
    """The jobs of one tenant that a consumer may have, in order. `room` is how many more of them
    may be ACTIVE; `key_ns` rises with each that is taken.
    """

    __slots__ = ("_index", "_item", "_items", "has_more", "key_ns", "room", "step_ns")

    def __init__(self, tenant: Tenant, room: int, items: Iterator[Item]) -> None:
        self.key_ns = tenant.key_ns()
        self.step_ns = tenant.step_ns()
        self.room = room
        self.has_more = True
        self._items = items
        self._item: Item | None = None
        self._index = 0

    def take(self, chosen: Choice, limit: int) -> bool:
        """Adds up to `limit` jobs; returns whether all fitted that are there."""
        limit = min(limit, self.room)
        while limit and not chosen.is_full():
            if self._item is None:
                self._item = next(self._items, None)
                if self._item is None:
                    self.has_more = False
                    return True
                self._index = self._item.cursor if isinstance(self._item, Lot) else 0
            before = chosen.jobs_room
            fits = self._add(self._item, chosen, limit)
            taken = before - chosen.jobs_room
            limit -= taken
            self.room -= taken
            self.key_ns += taken * self.step_ns
            if not fits:
                return False
        self.has_more = self.room > 0
        return not chosen.is_full()

    def _add(self, item: Item, chosen: Choice, limit: int) -> bool:
        """Adds up to `limit` jobs of an item; returns whether as many fitted as are there."""
        slots, is_first = item.options.rules.slots or 1, chosen.is_idle and not chosen.items
        places = max(chosen.slots_room // slots, int(is_first))
        wanted, payload_bytes = 1, item.payload_bytes_max()
        if isinstance(item, Lot):
            self._index, wanted = item.waiting_run_from(
                self._index, min(limit, chosen.jobs_room, max(places, 1))
            )
            count, payload_bytes = fitting(item, self._index, min(wanted, places), chosen)
            if count:
                index = self._index
                run = LotRun(item, index, count, item.first_id + index, item.volatile)
                chosen.items.append(run)
                chosen.has_runs = True
            self._index += count
            if not wanted:
                self._item = None
        else:
            count = int(places > 0 and (payload_bytes <= chosen.bytes_room or is_first))
            if count:
                chosen.items.append(item)
                self._item = None
        if count:
            chosen.jobs_room -= count
            chosen.slots_room -= count * slots
            chosen.bytes_room -= payload_bytes
        return count == wanted


class _Heaps:
    """The heaps of several kinds, as one."""

    __slots__ = ("_firsts",)

    def __init__(self, heaps: list[TenantHeap]) -> None:
        keys = [(heap.first_ns(), number, heap) for number, heap in enumerate(heaps)]
        self._firsts = [(key, number, heap) for key, number, heap in keys if key is not None]
        heapify(self._firsts)

    def first_ns(self) -> int:
        """Returns the lowest key; `NEVER_NS` without tenants."""
        return self._firsts[0][0] if self._firsts else NEVER_NS

    def take_first(self) -> Tenant:
        """Removes and returns the tenant with that key."""
        _, number, heap = self._firsts[0]
        tenant = heap.take_first()
        first_ns = heap.first_ns()
        if first_ns is None:
            heappop(self._firsts)
        else:
            heapreplace(self._firsts, (first_ns, number, heap))
        return tenant


def choose_fairly(fair: FairShare, names: Names, committed: int, chosen: Choice) -> None:
    """Adds the next jobs of a fair queue for a consumer of `names` (None: all)."""
    if fair.reopening:
        fair.reopen_some()
    heaps = _Heaps(fair.heaps.of(names, chosen.size(), chosen.version))
    turns: list[tuple[int, int, _Turn]] = []
    examined: dict[str, tuple[Tenant, int]] = {}
    # It ends when the consumer has enough, or no tenant is left: each turn takes a job or is over.
    while True:
        next_ns = heaps.first_ns()
        if turns and turns[0][0] <= next_ns:
            if not _serve(turns, next_ns, chosen):
                break
        elif next_ns < NEVER_NS:
            tenant = heaps.take_first()
            if tenant.name not in examined:
                room = fair.room_of(tenant)
                examined[tenant.name] = tenant, room
                turn = _turn_of(fair, tenant, room, names, committed, chosen)
                heappush(turns, (turn.key_ns, len(examined), turn))
                if len(examined) == limits.TENANTS_EXAMINED_MAX:
                    # These share what is left; the next iteration of the loop goes on.
                    heaps = _Heaps([])
                    chosen.is_cut_short = True
        else:
            break
    for tenant, room in examined.values():
        if room:
            fair.heaps.note(tenant)
        else:
            fair.note_full(tenant)


def _serve(turns: list[tuple[int, int, _Turn]], next_ns: int, chosen: Choice) -> bool:
    """Takes jobs of the first turn until its key is above the next one; returns whether all fitted
    that are there.
    """
    _, number, turn = heappop(turns)
    if turns:
        next_ns = min(next_ns, turns[0][0])
    fits = turn.take(chosen, (next_ns - turn.key_ns) // turn.step_ns + 1)
    if fits and turn.has_more:
        heappush(turns, (turn.key_ns, number, turn))
    return fits


def _turn_of(  # what a consumer may have is three arguments
    fair: FairShare, tenant: Tenant, room: int, names: Names, committed: int, chosen: Choice
) -> _Turn:
    """Returns the turn of a tenant at this moment."""
    fair.charge(tenant)
    items = chain.from_iterable(in_order(tenant.open, names, committed, chosen))
    return _Turn(tenant, room, items)
