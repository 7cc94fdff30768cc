"""Where things happened, and runs of a bounded length: what facts and endings share."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from jobline_server.wire.event_runs import NO_COLUMNS, Columns, EventRun, EventView

# Runs of ids in one event run, which is never cut between two answers of runs.
STARTS_MAX = 2_048


class Place(NamedTuple):
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
        total = sum(counts[part])
        yield EventRun(view, starts[part], counts[part], columns.part(part), total)


def singles(
    view: EventView, ids: Sequence[int], columns: Columns = NO_COLUMNS
) -> Iterator[EventRun]:
    """Jobs one by one; neighbours need not be."""
    return cut(view, ids, (1,) * len(ids), columns)
