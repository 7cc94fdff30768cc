"""The exporter on a runtime with real files."""

from __future__ import annotations

from pathlib import Path

import pytest

from jobline_server.runtime.clock import ManualClock
from jobline_server.runtime.loops import FAILURES_CRITICAL
from tests.unit.runtime.conftest import opened
from tests.unit.runtime.exporting import exporting, push, rows_in


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


async def test_what_was_committed_is_at_the_destination_after_a_stop(
    tmp_path: Path, clock: ManualClock
) -> None:
    async with exporting(tmp_path, clock) as (runtime, exporter):
        await push(runtime, 3)
        await push(runtime, 2)
        clock.advance(2_000)
        assert exporter.lag_seconds == 2
    rows = rows_in(tmp_path / "out")
    assert [row["event"] for row in rows] == ["pushed"] * 5
    assert len({row["offset"] for row in rows}) == 5
    assert (exporter.rows_total, exporter.spool_bytes, exporter.lag_seconds) == (5, 0, 0)


async def test_a_checkpoint_stores_events_before_it_cuts_the_journal(
    tmp_path: Path, clock: ManualClock
) -> None:
    async with exporting(tmp_path, clock) as (runtime, exporter):
        await push(runtime, 3)
        assert exporter.spool_bytes == 0
        assert await runtime.checkpoints.take_due(everything=True) == 1
        assert exporter.rows_total == 3
        assert next(iter(runtime.core.slots)).position.journal_rows == 0


async def test_a_start_makes_events_again_that_were_not_stored(
    tmp_path: Path, clock: ManualClock
) -> None:
    """As after a crash: the first exporter stores nothing more."""
    async with exporting(tmp_path, clock) as (runtime, exporter):
        await push(runtime, 3)
        await exporter.finish(0)
        await push(runtime, 2)
        exporter._shards.clear()
    async with exporting(tmp_path, clock) as (runtime, exporter):
        await push(runtime, 1)
    rows = rows_in(tmp_path / "out")
    assert len(rows) == len({row["offset"] for row in rows}) == 6


async def test_a_crash_before_the_first_file_loses_nothing(
    tmp_path: Path, clock: ManualClock
) -> None:
    """An export begins when it is turned on, not when it has stored something."""
    async with exporting(tmp_path, clock) as (runtime, exporter):
        await push(runtime, 3)
        exporter._shards.clear()
    async with exporting(tmp_path, clock):
        pass
    assert len(rows_in(tmp_path / "out")) == 3


async def test_an_export_begins_when_it_is_turned_on(tmp_path: Path, clock: ManualClock) -> None:
    """Off, on, off, on: what a checkpoint took meanwhile is missing, and nothing else."""
    async with opened(tmp_path / "data", clock) as runtime:
        await push(runtime, 1)
    async with exporting(tmp_path, clock) as (runtime, _):
        await push(runtime, 2)
    async with opened(tmp_path / "data", clock) as runtime:
        await push(runtime, 4)
    async with exporting(tmp_path, clock) as (runtime, _):
        await push(runtime, 8)
    assert len(rows_in(tmp_path / "out")) == 2 + 4 + 8


async def test_a_gap_is_counted_when_a_checkpoint_took_events_without_an_export(
    tmp_path: Path, clock: ManualClock
) -> None:
    """On, off, on: only what the journal still has is made up for."""
    async with exporting(tmp_path, clock) as (runtime, _):
        await push(runtime, 1)
    async with opened(tmp_path / "data", clock) as runtime:
        await push(runtime, 2)
        await push(runtime, 2)
        assert await runtime.checkpoints.take_due(everything=True) == 1
    async with opened(tmp_path / "data", clock) as runtime:
        await push(runtime, 4)
    async with exporting(tmp_path, clock) as (runtime, exporter):
        # The two pushes, and what the checkpoint itself committed.
        assert exporter.lost_entries >= 2
        await push(runtime, 8)
    assert len(rows_in(tmp_path / "out")) == 1 + 4 + 8
    async with exporting(tmp_path, clock) as (_, exporter):
        assert exporter.lost_entries == 0


async def test_a_history_that_takes_no_commits_leaves_the_server_well(
    tmp_path: Path, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A fault of ours there is heard of, and is no reason to restart a queue that works."""
    async with exporting(tmp_path, clock) as (runtime, exporter):
        with monkeypatch.context() as broken:
            broken.setattr(exporter, "_shards", {})
            for _ in range(FAILURES_CRITICAL):
                await push(runtime, 1)
        record = runtime.core.loops.records["commit_history"]
        assert record.is_failing
        assert runtime.broken() == []
