"""Checkpoints as the runtime takes them."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

import pytest

from jobline_server.engine.commands import Push
from jobline_server.engine.payloads import Payloads
from jobline_server.engine.values import DEFAULT_OPTIONS, AckLevel, JobState
from jobline_server.runtime import checkpoint_pace, checkpoints
from jobline_server.runtime.clock import ManualClock
from jobline_server.runtime.ended.writer import EndedWriter
from jobline_server.runtime.runtime import Runtime
from jobline_server.storage.store import DiskFull
from tests.unit.runtime.commits.test_commits import a_moment
from tests.unit.runtime.conftest import opened, working

# More than a slice of a checkpoint.
LARGE = (bytes(1 << 20),) * 5


async def pushed(runtime: Runtime, payloads: Sequence[bytes] = (b"x",) * 3) -> None:
    push = Push("q", DEFAULT_OPTIONS, payloads=Payloads.of(payloads), level=AckLevel.BUFFERED)
    await runtime.pushes.push(push)
    await runtime.core.commits.commit_once()


@pytest.mark.parametrize("step", ["finish_checkpoint", "truncate"])
async def test_a_checkpoint_that_finds_the_disk_full_is_written_again_unless_it_was_finished(
    runtime: Runtime, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    """What could not be cut off goes with the next one."""
    (slot,) = runtime.core.slots
    shard, place = slot.shard, slot.position
    work = getattr(runtime.core.store, step)

    async def full(*_arguments: object) -> None:
        raise DiskFull

    await pushed(runtime)
    noted = set(shard.changes.lots.to_write)
    monkeypatch.setattr(runtime.core.store, step, full)
    await runtime.checkpoints.take_due(everything=True)
    is_finished = step == "truncate"
    assert runtime.core.commits.disk_full
    assert (place.generation, place.journal_rows) == ((1, 0) if is_finished else (0, 1))
    assert set(shard.changes.lots.to_write) == (set() if is_finished else noted)
    monkeypatch.setattr(runtime.core.store, step, work)
    runtime.core.commits.disk_full = False
    await pushed(runtime)
    await runtime.checkpoints.take_due(everything=True)
    assert (place.journal_rows, set(shard.changes.lots.to_write)) == (0, set())
    assert [rows async for rows in runtime.core.store.journal(0)] == []
    assert not runtime.failed.done()


async def test_a_checkpoint_under_way_does_not_rest_once_the_server_stops(
    runtime: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No commits are left to rest for, and a stop may have seconds only."""
    monkeypatch.setattr(checkpoint_pace, "rest_after", lambda *_, **_named: 3_600.0)
    written, truncate = asyncio.Event(), runtime.core.store.truncate

    async def told(shard: int, rows_max: int) -> int:
        left = await truncate(shard, rows_max)
        written.set()
        return left

    monkeypatch.setattr(runtime.core.store, "truncate", told)
    await pushed(runtime)
    taking = asyncio.ensure_future(runtime.checkpoints.take_due(everything=True))
    await written.wait()
    await a_moment()
    assert not taking.done()
    runtime.stop_waiting()
    async with asyncio.timeout(5):
        assert await taking == 1


async def test_a_stop_leaves_what_would_take_long_to_the_next_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A million jobs took longer than Kubernetes waits, and were killed in each update."""
    monkeypatch.setattr(checkpoints, "STOP_JOURNAL_BYTES", 1 << 20)
    staged: list[int] = []
    async with working(tmp_path, ManualClock()) as runtime:
        stage = runtime.core.store.stage
        for payload in LARGE:
            await pushed(runtime, [payload])
        # It begins, and its time is over after the first slice.
        monkeypatch.setattr(checkpoint_pace, "STOP_SECONDS", 3_600)
        runtime.stop_waiting()

        async def slow(shard: int, *slice_: object) -> None:
            await stage(shard, *slice_)  # type: ignore[arg-type]  # all that it was given
            staged.append(shard)
            runtime.checkpoints._hurry._ends_at = 0.0

        monkeypatch.setattr(runtime.core.store, "stage", slow)
    assert staged == [0]
    async with opened(tmp_path, ManualClock()) as again:
        (slot,) = again.core.slots
        assert (slot.position.generation, slot.position.journal_rows) == (0, len(LARGE))
        assert slot.shard.queues["q"].counts[JobState.READY] == len(LARGE)
        assert [rows async for rows in again.core.store.items(0) if rows] == []


async def test_a_stop_without_time_begins_no_checkpoint(
    runtime: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another one, of the shard before, has taken it."""
    monkeypatch.setattr(checkpoint_pace, "STOP_SECONDS", 0)
    await pushed(runtime)
    runtime.stop_waiting()
    assert await runtime.checkpoints.take_due(everything=True) == 0


class Told:
    """A history that has nothing to store, and tells when it is asked to."""

    def __init__(self, steps: list[str]) -> None:
        self._steps = steps

    def holds(self, _shard: int) -> bool:
        return False

    def give_up(self, _shard: int) -> None:
        raise AssertionError("nothing is held")

    async def prepare(self, _shard: int) -> None:
        self._steps.append("prepare")

    async def finish(self, _shard: int) -> None:
        self._steps.append("finish")


async def test_the_history_is_stored_before_what_ended_is_written_for_the_last_time_but_one(
    runtime: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It takes a while. After it, as many completed jobs as a queue keeps were written again."""
    steps: list[str] = []
    sync = EndedWriter.sync

    async def told(writer: EndedWriter) -> None:
        steps.append("sync")
        await sync(writer)

    monkeypatch.setattr(EndedWriter, "sync", told)
    runtime.checkpoints.history = Told(steps)
    await pushed(runtime)
    assert await runtime.checkpoints.take_due(everything=True) == 1
    assert steps == ["prepare", "prepare", "sync", "sync", "finish"]
