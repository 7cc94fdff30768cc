"""The task that ages, deletes and evicts ended jobs, beside one shard and a store in memory."""

from __future__ import annotations

import asyncio
from array import array
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import groupby
from types import SimpleNamespace
from typing import Any, cast

from jobline_server.background.retention import RetentionTask
from jobline_server.engine.decide.admin import decide_age_out, decide_delete_ended
from jobline_server.engine.endings import EndedChange, Ending, RunsEnded
from jobline_server.engine.shard import Shard
from jobline_server.engine.values import JobState, Now
from jobline_server.runtime.core import Core
from jobline_server.runtime.ended.ended_jobs import Decide, EndedJobs
from jobline_server.runtime.ended.retention import EndedRetention
from jobline_server.runtime.ended.retention_hints import RetentionHints
from jobline_server.storage.ended_buffer import EndedBuffer
from jobline_server.storage.ended_store import EndedSpan
from tests.storage.memory_ended_store import MemoryEndedStore
from tests.storage.memory_store import run
from tests.unit.engine.effects_of import take_endings


class RetentionBeside:
    """What has ended, as the ended store has it. Each job has a row of its own: jobs that share one
    are aged together, when the rule is about the last of them.
    """

    def __init__(self) -> None:
        self._endings: list[Ending] = []
        self._store = MemoryEndedStore()

    def add(self, endings: Sequence[Ending]) -> None:
        """Takes what has ended, or what became of it."""
        self._endings += endings

    def run_once(self, shard: Shard, now: Now) -> tuple[dict[str, int], list[Ending]]:
        """Runs the task once, as after a start; returns its counts, and what it changed."""
        beside = _EndedBeside(shard, now, self._store, self._endings)
        slots = _Slots(shard)
        core = cast("Core", SimpleNamespace(slots=slots, load=shard.load))
        retention = EndedRetention(core, cast("EndedJobs", beside))
        counts = run(RetentionTask(core, retention).run_once(now))
        return dict(counts), beside.changes


class _Slots:
    """The only shard."""

    def __init__(self, shard: Shard) -> None:
        self._shard = shard
        self.find_queue = shard.queues.get

    def __iter__(self) -> Iterator[Any]:
        yield SimpleNamespace(shard=self._shard)


class _EndedBeside:
    """Stands in for `EndedJobs`, whose changes wait for a commit."""

    def __init__(
        self, shard: Shard, now: Now, store: MemoryEndedStore, endings: list[Ending]
    ) -> None:
        self.ended_store = store
        self.hints = RetentionHints()
        self.changing = asyncio.Lock()
        self.writing = asyncio.Lock()
        self.changes: list[Ending] = []
        self._shard, self._now, self._endings = shard, now, endings

    async def write(self) -> None:
        for ending in self._endings:
            for alone in _one_by_one(ending):
                buffer = EndedBuffer()
                buffer.add([alone])
                await self.ended_store.write(buffer.take()[0])
        self._endings.clear()

    write_changes = write

    async def waiting_of(self, _queue: str, _state: JobState) -> list[EndedSpan]:
        return []

    async def make_stale(self, spans: Sequence[EndedSpan]) -> int:
        return self._change(spans, decide_age_out)

    async def delete(self, spans: Sequence[EndedSpan], why: Decide = decide_delete_ended) -> int:
        return self._change(spans, why)

    def _change(self, spans: Sequence[EndedSpan], decide: Decide) -> int:
        in_order = sorted(spans, key=lambda span: (span.queue, span.state))
        for (queue, state), alike in groupby(in_order, lambda span: (span.queue, span.state)):
            runs = [(span.first_id, span.count) for span in alike]
            decide(self._shard, self._now, queue, JobState(state), runs)
        endings = take_endings(self._shard)
        self._endings += endings
        self.changes += endings
        return sum(span.count for span in spans)


def _one_by_one(ending: Ending) -> Iterator[Ending]:
    if isinstance(ending, RunsEnded):
        for job_id in ending.ids():
            yield replace(ending, starts=array("q", (job_id,)), counts=[1])
    else:
        yield ending


def aged_out(ending: Ending) -> Iterable[int]:
    """The jobs that are STALE from now on."""
    if isinstance(ending, EndedChange) and ending.state is JobState.STALE:
        for first_id, count in zip(ending.starts, ending.counts, strict=True):
            yield from range(first_id, first_id + count)
