"""Choose: selects the jobs that a consumer gets next, in order. It only reads, except that it opens
gates that are due; `lease` makes a fact of the selection.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice

from jobline_server.engine import limits
from jobline_server.engine.decide.by_age import AgedAt
from jobline_server.engine.decide.choice import Choice, LotRun, fitting, in_order
from jobline_server.engine.decide.choose_fairly import choose_fairly
from jobline_server.engine.gate_timers import open_due_gates
from jobline_server.engine.items import Item
from jobline_server.engine.lot import Lot
from jobline_server.engine.queue import Queue
from jobline_server.engine.ranks import NO_LANES
from jobline_server.engine.sticky import own_fronts
from jobline_server.engine.values import Now


def choose(
    queue: Queue, names: frozenset[str] | None, now: Now, committed: int, chosen: Choice
) -> None:
    """Adds the next jobs of `queue` for a consumer of `names` (None: all), the highest priority
    first, then the oldest; where jobs age, the highest aged priority.

    A job that is not on disk yet holds up its lane; one too large for the consumer holds up only
    the lane of its size. Lanes with a closed gate are skipped; gates that are due and that the
    timers have not opened yet are opened first.
    """
    if queue.gates.closed:
        open_due_gates(queue, now.mono_ms, limits.SLICE_ITEMS)
    if queue.settings.ageing is not None:
        chosen.aged_at = AgedAt(queue.settings.ageing, now.wall_ms)
    if queue.fair is not None:
        choose_fairly(queue.fair, names, committed, chosen)
        return
    own = NO_LANES
    if queue.gates.own:
        own = own_fronts(queue, chosen.session_id, names, chosen.size(), chosen.version or "")
    take = _take_in_slots if queue.needing or own else _take
    for items in in_order(queue.open, names, committed, chosen, own):
        if not take(items, chosen):
            return


def _take(items: Iterable[Item], chosen: Choice) -> bool:
    """Adds items while they fit; returns whether all did and there is room for more."""
    taken = chosen.items
    jobs_room, bytes_room = chosen.jobs_room, chosen.bytes_room
    for item in islice(items, limits.LEASE_SLICE_ITEMS - len(taken)):
        if isinstance(item, Lot):
            chosen.jobs_room, chosen.bytes_room = jobs_room, bytes_room
            if not _take_lot(item, chosen):
                return False
            jobs_room, bytes_room = chosen.jobs_room, chosen.bytes_room
            continue
        bytes_room -= len(item.payload)
        if bytes_room < 0 and (taken or not chosen.is_idle):
            return False
        taken.append(item)
        jobs_room -= 1
        if not jobs_room:
            return False
    chosen.jobs_room, chosen.bytes_room = jobs_room, bytes_room
    return len(taken) < limits.LEASE_SLICE_ITEMS


def _take_in_slots(items: Iterable[Item], chosen: Choice) -> bool:
    """Does the same as `_take` where jobs may take several places of a window."""
    taken = chosen.items
    for item in islice(items, limits.LEASE_SLICE_ITEMS - len(taken)):
        slots, is_first = item.options.rules.slots or 1, chosen.is_idle and not taken
        room = min(chosen.jobs_room, max(chosen.slots_room // slots, int(is_first)))
        part = Choice(room, chosen.bytes_room, is_idle=is_first)
        if isinstance(item, Lot):
            waiting = item.waiting()
            _take_lot(item, part)
        else:
            waiting = 1
            part.bytes_room -= len(item.payload)
            if room and (part.bytes_room >= 0 or is_first):
                part.items.append(item)
                part.jobs_room -= 1
        if not waiting:
            continue
        count = room - part.jobs_room
        taken += part.items
        chosen.has_runs |= part.has_runs
        chosen.bytes_room = part.bytes_room
        chosen.jobs_room -= count
        chosen.slots_room -= count * slots
        if count < waiting or not chosen.jobs_room:
            return False
    return len(taken) < limits.LEASE_SLICE_ITEMS


def _take_lot(lot: Lot, chosen: Choice) -> bool:
    """Adds the runs of a lot that fit; returns whether all did and there is room for more."""
    index = lot.cursor
    while True:
        index, count = lot.waiting_run_from(index, chosen.jobs_room)
        if not count:
            return True
        fits, payload_bytes = fitting(lot, index, count, chosen)
        if fits:
            run = LotRun(lot, index, fits, lot.first_id + index, lot.volatile)
            chosen.items.append(run)
            chosen.has_runs = True
            chosen.bytes_room -= payload_bytes
            chosen.jobs_room -= fits
        if fits < count or not chosen.jobs_room or len(chosen.items) >= limits.LEASE_SLICE_ITEMS:
            return False
        index += count
