"""Writers: each task pushes its rows, with a client of its own, and says how many there were.

Without keys a task that fails and runs again pushes its rows again. With keys from a column, or
from the position of a row where the frame always has the same rows in the same order, each row is
one job however often it is written, for the 24 hours in which the server knows a key. With `atomic`
nobody gets a job before the driver commits (see `held`).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from uuid import uuid4

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import (
    DataSourceArrowWriter,
    DataSourceStreamArrowWriter,
    WriterCommitMessage,
)

from jobline_pipeline.problems import PipelineError
from jobline_pipeline.source import held, threads
from jobline_pipeline.source.clients import connected
from jobline_pipeline.source.lots import Lot, Rows, lots_of
from jobline_pipeline.source.options import Server, Writing
from jobline_pipeline.source.pushing import Pusher

logger = logging.getLogger("jobline.pipeline")

# Spark's own names, of the query and the micro-batch that a task is part of.
_QUERY, _BATCH = "sql.streaming.queryId", "streaming.sql.batchId"


@dataclass
class Written(WriterCommitMessage):
    """What a task did. `run`: the write that it is part of, and `attempt` the try of that;
    `batch_id`: where its jobs are held.
    """

    run: str
    attempt: str
    created: int
    repeated: int
    batch_id: int = 0


class _Writer:
    """What both writers share."""

    def __init__(self, server: Server, how: Writing, rows: Rows) -> None:
        self._server = server
        self._how = how
        self._rows = rows
        # Of this try to write the frame; a second try has another one.
        self._try = uuid4().hex

    def write_rows(self, batches: Iterator[pa.RecordBatch]) -> Written:
        """Pushes the rows of a task."""
        return threads.run(self._write(batches))

    async def _write(self, batches: Iterator[pa.RecordBatch]) -> Written:
        run = self._run()
        async with connected(self._server, patience=self._server.timeout) as client:
            pusher = Pusher(client, self._server, self._how, self._rows)
            if not self._how.atomic:
                await pusher.push_all(self._lots(batches, run))
                return Written(run, self._try, pusher.created, pusher.repeated)
            lots = self._lots(batches, run)
            batch_id = await held.push_held(client, pusher, lots, run, self._try)
            return Written(run, self._try, pusher.created, 0, batch_id)

    def _run(self) -> str:
        """Returns the name of the write, the same when it is tried again: `runId`, or the query and
        the micro-batch. A write that is neither has one for this try alone.
        """
        if self._how.run_id:
            return self._how.run_id
        context = TaskContext.get()
        if context and (query := context.getLocalProperty(_QUERY)):
            return f"{query}/{context.getLocalProperty(_BATCH)}"
        if self._how.keys_by_position:
            raise PipelineError(
                "key=position needs a runId, the same whenever the write is repeated"
            )
        return self._try

    def _lots(self, batches: Iterator[pa.RecordBatch], run: str) -> Iterator[Lot]:
        begun = 0
        for batch in batches:
            yield from lots_of(batch, self._how, self._rows, self._keys(run, begun))
            begun += batch.num_rows

    def _keys(self, run: str, begun: int) -> Callable[[int], str] | None:
        if not self._how.keys_by_position:
            return None
        context = TaskContext.get()
        prefix = f"{run}/{context.partitionId() if context else 0}"
        return lambda index: f"{prefix}/{begun + index}"

    def _commit(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        done = [message for message in messages if isinstance(message, Written)]
        if self._how.atomic and done:
            ids = [message.batch_id for message in done if message.batch_id]
            threads.run(held.commit(self._server, done[0].run, done[0].attempt, ids))
        logger.info(
            "%d jobs pushed, %d were there",
            sum(message.created for message in done),
            sum(message.repeated for message in done),
        )

    def _abort(self, messages: Sequence[WriterCommitMessage | None], run: str) -> None:
        """Drops what is held. A task that failed left no message, so its write is found by name; a
        stream whose tasks all failed drops it when the micro-batch is tried again.
        """
        runs = {message.run for message in messages if isinstance(message, Written)} | {run} - {""}
        if self._how.atomic:
            for each in runs:
                threads.run(held.drop(self._server, each))


class BatchWriter(_Writer, DataSourceArrowWriter):
    """What `frame.write` needs."""

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        """Pushes the rows of a task."""
        return self.write_rows(iterator)

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        """Releases what is held."""
        self._commit(messages)

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        """Drops what is held."""
        self._abort(messages, self._how.run_id or self._try)


class MicroBatchWriter(_Writer, DataSourceStreamArrowWriter):
    """What `frame.writeStream` needs."""

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        """Pushes the rows of a task."""
        return self.write_rows(iterator)

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        """Releases what is held."""
        self._commit(messages)

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        """Drops what is held."""
        self._abort(messages, "")
