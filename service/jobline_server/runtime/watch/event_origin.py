"""The shard and offset of events, and event runs of bounded length."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Any, NamedTuple

from jobline_server.engine.values import JobState
from jobline_server.wire.event_runs import NO_COLUMNS, Columns, EventRun, EventView, packed

# The most runs of ids in one event run; a reply to a watcher never cuts an event run.
STARTS_MAX = 2_048
_ONE = packed((1,))


class EventOrigin(NamedTuple):
    """A shard, and an offset in its journal."""

    shard: int
    offset: int

    def view(self, at_ms: int, kind: int, queue: str, **fields: Any) -> EventView:
        """Returns the fields of an event at this offset."""
        return EventView(self.shard, self.offset, at_ms, int(kind), queue, **fields)


def cut(
    view: EventView,
    starts: Sequence[int],
    counts: Sequence[int],
    columns: Columns = NO_COLUMNS,
) -> Iterator[EventRun]:
    """Yields event runs of bounded length, mostly one; none without ids."""
    for low in range(0, len(starts), STARTS_MAX):
        part = slice(low, low + STARTS_MAX)
        packed_counts = packed(counts[part])
        total = sum(packed_counts)
        yield EventRun(view, packed(starts[part]), packed_counts, _kept(columns, part), total)


def singles(
    view: EventView, ids: Sequence[int], columns: Columns = NO_COLUMNS
) -> Iterator[EventRun]:
    """Yields event runs of single jobs, whose ids need not be consecutive."""
    for low in range(0, len(ids), STARTS_MAX):
        part = slice(low, low + STARTS_MAX)
        ids_of_part = ids[part]
        starts = ids_of_part if isinstance(ids_of_part, range) else packed(ids_of_part)
        yield EventRun(view, starts, _ONE * len(starts), _kept(columns, part), len(starts))


def _kept(columns: Columns, part: slice) -> Columns:
    """Returns a part of columns, packed; most runs have no columns."""
    if columns is NO_COLUMNS:
        return NO_COLUMNS
    names, deliveries, attempts, workers, run_at_ms, rules = columns
    return Columns(
        tuple(names[part]),
        packed(deliveries[part]),
        packed(attempts[part]),
        tuple(workers[part]),
        packed(run_at_ms[part]),
        tuple(rules[part]),
    )


def by_moment(
    view: EventView,
    ids: Sequence[int],
    run_at_ms: Sequence[int],
    names: Sequence[str] = (),
) -> Iterator[EventRun]:
    """Yields events of jobs that become READY, or SCHEDULED where they have a time, in order."""
    later = replace(view, state=JobState.SCHEDULED)
    end = 0
    for waits, group in groupby(run_at_ms or [0] * len(ids), bool):
        moments = list(group)
        part = slice(end, end := end + len(moments))
        columns = Columns(names[part], run_at_ms=moments if waits else ())
        yield from singles(later if waits else view, ids[part], columns)
