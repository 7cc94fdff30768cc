"""Streams events: a position is Spark's offset, a micro-batch is what lies between two of them.

Nothing is kept between micro-batches, so a batch that is repeated, after a restart of Spark or of
the server, reads the same range and has the same rows. Where queues are named, those of one shard
are a partition; the order within a shard is that of its journal.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any
from zlib import crc32

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)

from jobline_pipeline.problems import PipelineError
from jobline_pipeline.source import watching
from jobline_pipeline.source.conversions import runs_batch
from jobline_pipeline.source.options import EventsWanted, Server
from jobline_pipeline.source.positions import Position, from_offset
from jobline_pipeline.source.threads import iterate, run
from jobline_pipeline.source.watching import Chosen, EventsGone

logger = logging.getLogger("jobline.pipeline")

# How long the driver waits for a first event before it says that there is none.
WAIT_SECONDS = 0.5
# Commits without a wanted event after which an empty micro-batch moves the position on, long before
# the server forgets it.
IDLE_COMMITS = 2_000


@dataclass
class RangePartition(InputPartition):
    """The events of some queues (none: all) between two positions."""

    start: Position
    end: Position
    queues: tuple[str, ...]


class EventsReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """What `spark.readStream` needs."""

    def __init__(self, server: Server, wanted: EventsWanted, schema: pa.Schema) -> None:
        self._server = server
        self._wanted = wanted
        self._schema = schema
        self._target: Position | None = None

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802 - Spark's name
        """Returns where a new query begins: now, or at the option `startingPosition`."""
        if self._wanted.start != "latest":
            try:
                return from_offset(json.loads(self._wanted.start)).as_offset()
            except json.JSONDecodeError:
                message = 'startingPosition: must be "latest" or an offset as Spark shows it'
                raise PipelineError(message) from None
        # A wrong address is said at once; later on, a server that is away is waited for.
        return run(watching.now_of(self._server, patience=0)).as_offset()

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802 - Spark's name
        """Returns the option `maxEventsPerTrigger`; a micro-batch ends with a whole commit."""
        return ReadMaxRows(self._wanted.limit) if self._wanted.limit else ReadAllAvailable()

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802 - Spark's name
        """Has the query end at the position of this moment."""
        self._target = self._now()

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:  # noqa: N802
        """Returns where the next micro-batch ends; `start` if there is nothing to read."""
        begun = from_offset(start)
        target = self._target
        if target is not None and begun.covers(target):
            return start
        rows = limit.max_rows if isinstance(limit, ReadMaxRows) else 0
        if target is not None and not rows:
            return target.as_offset()
        try:
            found, events = run(self._reached(begun, rows or 1, target))
        except EventsGone:
            if self._wanted.fails_on_loss:
                raise
            return self._now().as_offset()
        if target is not None and found.covers(target):
            return target.as_offset()
        is_near = found.life == begun.life and found.number - begun.number < IDLE_COMMITS
        if not events and target is None and is_near:
            return start
        return (found if rows else self._now()).as_offset()

    async def _reached(
        self, begun: Position, rows: int, target: Position | None
    ) -> tuple[Position, int]:
        wait = 0.0 if target is not None else WAIT_SECONDS
        chosen = Chosen(self._wanted.queues, self._wanted.kinds)
        return await watching.position_after(self._server, chosen, begun, limit=rows, wait=wait)

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        """Returns one partition, or one for each shard that has some of the named queues."""
        begun, ended = from_offset(start), from_offset(end)
        if begun == ended:
            return []
        shards: dict[int, list[str]] = {}
        for queue in self._wanted.queues:
            shards.setdefault(crc32(queue.encode()) % len(ended.offsets), []).append(queue)
        groups = [tuple(queues) for queues in shards.values()] or [()]
        return [RangePartition(begun, ended, queues) for queues in groups]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yields the events of a range, in order."""
        if not isinstance(partition, RangePartition):
            raise TypeError(f"{partition!r} is no partition of this source")
        chosen = Chosen(partition.queues, self._wanted.kinds)
        ranges = lambda: watching.runs_between(  # noqa: E731 - a generator of runs
            self._server, chosen, partition.start, partition.end
        )
        try:
            for runs in iterate(ranges):
                yield runs_batch(runs, self._schema)
        except EventsGone:
            if self._wanted.fails_on_loss:
                raise
            logger.warning("events from %s to %s are gone", partition.start, partition.end)

    def _now(self) -> Position:
        return run(watching.now_of(self._server))
