"""The jobs that are selected for one consumer, and the order in which lanes offer them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from heapq import merge
from operator import attrgetter
from typing import cast

from jobline_server.engine import limits
from jobline_server.engine.decide.by_age import AgedAt, by_age
from jobline_server.engine.items import Item
from jobline_server.engine.job import Job
from jobline_server.engine.lane import size_of
from jobline_server.engine.lot import Lot
from jobline_server.engine.open_lanes import OpenLanes
from jobline_server.engine.ranks import NO_LANES, Names, OwnLanes

_order = attrgetter("order")


@dataclass(slots=True)
class LotRun:
    """A run of one lot: indexes `start … start + count − 1`, never leased before."""

    lot: Lot
    start: int
    count: int
    id: int
    volatile: bool
    delivery: int = 0


class Choice:
    """The jobs selected for one consumer, in order: up to `LEASE_SLICE_ITEMS`.

    `jobs_room` and `bytes_room` count down as items are added, and so does `slots_room`, the places
    of its window, where a job may take several. A consumer that `is_idle` takes one job beyond
    `bytes_room` and `slots_room`, but none of more than `payload_bytes_max` (None: no limit), or
    for workers newer than its `version` (None: any). `session_id` is its session, "" without.
    `aged_at` (None: no) has jobs go by their age, too. `is_cut_short` says that not all was
    examined, so that others may have jobs where this one has none.
    """

    __slots__ = (
        "aged_at",
        "bytes_room",
        "has_runs",
        "is_cut_short",
        "is_idle",
        "items",
        "jobs_room",
        "payload_bytes_max",
        "session_id",
        "slots_room",
        "version",
    )

    def __init__(
        self,
        jobs_room: int,
        bytes_room: int,
        *,
        is_idle: bool,
        payload_bytes_max: int | None = None,
        slots_room: int | None = None,
        version: str | None = None,
        session_id: str = "",
    ) -> None:
        self.aged_at: AgedAt | None = None
        self.session_id = session_id
        self.jobs_room = jobs_room
        self.slots_room = jobs_room if slots_room is None else slots_room
        self.version = version
        self.bytes_room = bytes_room
        self.is_idle = is_idle
        self.payload_bytes_max = payload_bytes_max
        self.items: list[Job | LotRun] = []
        self.has_runs = False
        self.is_cut_short = False

    def size(self) -> int | None:
        """Returns the largest size of lanes that the consumer may have jobs of; None: any."""
        return None if self.payload_bytes_max is None else size_of(self.payload_bytes_max)

    def is_full(self) -> bool:
        """Returns whether no more items may be added, whatever their bytes."""
        return not self.jobs_room or len(self.items) >= limits.LEASE_SLICE_ITEMS


def in_order(
    lanes: OpenLanes, names: Names, committed: int, chosen: Choice, own: OwnLanes = NO_LANES
) -> Iterator[Iterator[Item]]:
    """Yields the items that a consumer may have in their order, for one priority after the other,
    or all at once if they age; `own` are lanes of its own beside the open ones. The lanes must not
    change meanwhile.
    """
    bytes_max, aged_at = chosen.payload_bytes_max, chosen.aged_at
    if aged_at is not None:
        ranks = lanes.some_fronts(names, chosen.size(), chosen.version, own, seed=aged_at.seed())
        yield cast("Iterator[Item]", by_age(ranks, committed, bytes_max, aged_at))
        return
    for fronts in lanes.fronts(names, chosen.size(), chosen.version, own):
        streams = [lane.durable(committed, bytes_max) for lane in fronts]
        items = streams[0] if len(streams) == 1 else merge(*streams, key=_order)
        yield cast("Iterator[Item]", items)


def fitting(lot: Lot, index: int, count: int, chosen: Choice) -> tuple[int, int]:
    """Returns how many jobs of this run fit, and their payload bytes."""
    payloads = lot.payloads
    fits = payloads.fitting(index, count, chosen.bytes_room)
    if not fits and chosen.is_idle and not chosen.items:
        fits = 1
    return fits, payloads.bytes_of(index, fits)
