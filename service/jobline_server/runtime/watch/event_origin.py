"""Where things happened, and runs of a bounded length: what facts and endings share."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from jobline_server.wire.event_runs import NO_COLUMNS, Columns, EventRun, EventView, packed

# Runs of ids in one event run, which is never cut between two answers of runs.
STARTS_MAX = 2_048
_ONE = packed((1,))


class EventOrigin(NamedTuple):
    """A shard, and an offset of its journal."""

    shard: int
    offset: int

    def view(self, at_ms: int, kind: int, queue: str, **said: Any) -> EventView:
        """What an event there says."""
        return EventView(self.shard, self.offset, at_ms, int(kind), queue, **said)


def cut(
    view: EventView,
    starts: Sequence[int],
    counts: Sequence[int],
    columns: Columns = NO_COLUMNS,
) -> Iterator[EventRun]:
    """Runs of a bounded length, most often one; none without ids."""
    for low in range(0, len(starts), STARTS_MAX):
        part = slice(low, low + STARTS_MAX)
        own = packed(counts[part])
        yield EventRun(view, packed(starts[part]), own, _kept(columns, part), sum(own))


def singles(
    view: EventView, ids: Sequence[int], columns: Columns = NO_COLUMNS
) -> Iterator[EventRun]:
    """Jobs one by one; neighbours need not be."""
    for low in range(0, len(ids), STARTS_MAX):
        part = slice(low, low + STARTS_MAX)
        ids_of_part = ids[part]
        own = ids_of_part if isinstance(ids_of_part, range) else packed(ids_of_part)
        yield EventRun(view, own, _ONE * len(own), _kept(columns, part), len(own))


def _kept(columns: Columns, part: slice) -> Columns:
    """A part of columns, as it is kept; most runs have none."""
    if columns is NO_COLUMNS:
        return NO_COLUMNS
    names, deliveries, attempts, workers, run_at_ms = columns
    return Columns(
        tuple(names[part]),
        packed(deliveries[part]),
        packed(attempts[part]),
        tuple(workers[part]),
        packed(run_at_ms[part]),
    )
