"""Batches as events, with about what they take in memory; and those that journals still hold."""

from __future__ import annotations

from dataclasses import replace

import pytest

from jobline.v1.event_pb2 import EventKind
from jobline_server.engine.effects import Applied
from jobline_server.engine.queue_entries import QueuePaused, QueueResumed
from jobline_server.engine.report_entries import JobReported
from jobline_server.engine.rules import NO_RULES, JobRules
from jobline_server.runtime.watch import kept_batches
from jobline_server.runtime.watch.kept_batches import (
    BATCH_BYTES,
    ID_BYTES,
    RULES_BYTES,
    RUN_BYTES,
    TAG_BYTES,
    KeptBatch,
    ReplayedBatches,
    bytes_of,
)
from jobline_server.wire.event_runs import Columns, EventRun, EventView

PAUSED, RESUMED = EventKind.EVENT_KIND_QUEUE_PAUSED, EventKind.EVENT_KIND_QUEUE_RESUMED
PROGRESS = EventKind.EVENT_KIND_PROGRESS


def paused(at_ms: int, *, offset: int = 1, reason: str = "") -> Applied:
    return Applied(QueuePaused(at_ms, "mail", "root", reason), offset, [])


def resumed(at_ms: int, *, offset: int = 1) -> Applied:
    return Applied(QueueResumed(at_ms, "mail"), offset, [])


def reported(at_ms: int, message: str, *, offset: int = 1) -> Applied:
    return Applied(JobReported(at_ms, "mail", 7, 0.5, message, None), offset, [])


def kinds(batch: KeptBatch) -> list[int]:
    return [run.shared.kind for run in batch.runs]


def test_a_batch_has_its_events_in_order() -> None:
    batch = KeptBatch(2, 9, [paused(5), resumed(6)])
    assert (batch.shard, batch.offset, batch.at_ms, batch.written) == (2, 9, 5, True)
    assert kinds(batch) == [PAUSED, RESUMED]
    assert {(run.shared.shard, run.shared.offset) for run in batch.runs} == {(2, 9)}


def test_events_of_written_facts_come_first() -> None:
    """Their number within the batch is the same after a restart, when the others are lost."""
    volatile, written = reported(3, "", offset=0), [paused(5), resumed(6)]
    batch = KeptBatch(0, 9, [volatile, *written])
    assert (kinds(batch), batch.at_ms) == ([PAUSED, RESUMED, PROGRESS], 5)
    assert kinds(KeptBatch(0, 9, written)) == kinds(batch)[:2]


def test_a_batch_of_what_is_never_written_is_in_no_journal() -> None:
    batch = KeptBatch(0, 9, [reported(3, "", offset=0)])
    assert (batch.written, batch.at_ms, kinds(batch)) == (False, 3, [PROGRESS])


def test_a_batch_counts_its_runs_its_ids_and_its_texts() -> None:
    size = BATCH_BYTES + RUN_BYTES
    assert KeptBatch(0, 9, [resumed(5)]).size == size
    assert KeptBatch(0, 9, [paused(5, reason="x" * 100)]).size == size + 100
    assert KeptBatch(0, 9, [reported(5, "")]).size == size + ID_BYTES
    assert KeptBatch(0, 9, [reported(5, "x" * 4_000)]).size == size + ID_BYTES + 4_000


def ended(*rules: JobRules, lot: bool = False) -> EventRun:
    view = EventView(0, 9, 5, int(EventKind.EVENT_KIND_COMPLETED), "mail")
    if lot:
        return EventRun(replace(view, rules=rules[0]), [1], [1_000], total=1_000)
    return EventRun(view, [*range(len(rules))], [1] * len(rules), Columns(rules=rules))


def test_rules_count_once_for_all_jobs_that_share_them() -> None:
    """A URL has up to two thousand characters, and a run up to two thousand jobs."""
    told = JobRules(webhook="x" * 2_000, tags=("a", "b"))
    bytes_of_told = RULES_BYTES + 2_000 + 2 * TAG_BYTES
    bare = bytes_of(ended(NO_RULES, lot=True))
    assert bare == RUN_BYTES + ID_BYTES
    assert bytes_of(ended(told, lot=True)) == bare + bytes_of_told
    assert bytes_of(ended(told, NO_RULES, told)) == bare + 2 * ID_BYTES + bytes_of_told
    other = replace(told)
    assert bytes_of(ended(told, other)) == bare + ID_BYTES + 2 * bytes_of_told


def offsets(replayed: ReplayedBatches) -> list[tuple[int, int]]:
    return [(batch.shard, batch.offset) for batch in replayed.in_order()]


def test_replayed_batches_go_about_by_time_and_within_a_shard_in_order() -> None:
    """Also where a shard's wall clock was set back."""
    replayed = ReplayedBatches(2)
    first, second = replayed.of_shard(0), replayed.of_shard(1)
    second(1, [paused(15)], 10)
    for offset, at_ms in enumerate((10, 20, 12), 1):
        first(offset, [paused(at_ms, offset=offset)], 10)
    second(2, [paused(30)], 10)
    assert offsets(replayed) == [(0, 1), (1, 1), (0, 2), (0, 3), (1, 2)]


def test_no_journal_is_no_batch() -> None:
    replayed = ReplayedBatches(3)
    replayed.of_shard(2)
    assert offsets(replayed) == []


def test_each_shard_keeps_the_last_of_its_share(monkeypatch: pytest.MonkeyPatch) -> None:
    """A busy shard takes nothing from the others."""
    monkeypatch.setattr(kept_batches, "BATCHES_KEPT_MAX", 6)
    replayed = ReplayedBatches(2)
    busy, quiet = replayed.of_shard(0), replayed.of_shard(1)
    quiet(1, [paused(1)], 10)
    for offset in range(1, 10):
        busy(offset, [paused(2, offset=offset)], 10)
    assert offsets(replayed) == [(1, 1), (0, 7), (0, 8), (0, 9)]


def test_large_rows_leave_room_for_fewer(monkeypatch: pytest.MonkeyPatch) -> None:
    """A row larger than all the room is not kept, and what comes later is."""
    monkeypatch.setattr(kept_batches, "BYTES_KEPT_MAX", 100)
    replayed = ReplayedBatches(1)
    take = replayed.of_shard(0)
    for offset, size in enumerate((40, 40, 30, 30), 1):
        take(offset, [paused(offset)], size)
    assert offsets(replayed) == [(0, 2), (0, 3), (0, 4)]
    take(5, [paused(5)], 101)
    assert offsets(replayed) == []
    take(6, [paused(6)], 100)
    assert offsets(replayed) == [(0, 6)]
