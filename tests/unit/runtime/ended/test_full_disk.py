"""What the writer of ended jobs does on a full disk: changes are written at all costs, and what
waits is known.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from jobline_server.engine.values import JobState
from jobline_server.runtime.ended.retention import EndedRetention
from jobline_server.runtime.runtime import Runtime
from jobline_server.runtime.views import Audit, JobFilter, Selection
from jobline_server.storage.ended_buffer import EndedBuffer
from jobline_server.storage.ended_store import (
    EndedOp,
    EndedSpan,
    MarkStale,
    PutEnded,
    PutOperation,
    RemoveEnded,
    RemoveQueue,
)
from jobline_server.storage.space import NoSpace
from jobline_server.storage.store import DiskFull
from tests.storage.ended_reference import CANCELLED, put
from tests.unit.background.conftest import Keeping

Writes = list[Sequence[EndedOp]]


class Reserve(NoSpace):
    """A disk whose reserve can be given up a number of times."""

    def __init__(self, *, parts: int) -> None:
        self.parts = parts
        self.asked: list[bool] = []

    async def give_up_ballast(self, *, last: bool) -> bool:
        self.asked.append(last)
        self.parts -= 1
        return self.parts >= 0

    async def restore_ballast(self) -> bool:
        return False


class FullDisk:
    """Refuses writes that put rows, and changes beyond a number of operations."""

    def __init__(
        self, runtime: Runtime, monkeypatch: pytest.MonkeyPatch, *, parts: int = 0
    ) -> None:
        self.refused: Writes = []
        self.changed: Writes = []
        self.is_full = True
        self.changes_max = 1_000
        self.reserve = runtime.core.space = Reserve(parts=parts)
        self._write = runtime.ended.ended_store.write
        monkeypatch.setattr(runtime.ended.ended_store, "write", self.write)

    async def write(self, ops: Sequence[EndedOp]) -> None:
        puts = any(isinstance(op, PutEnded | PutOperation) for op in ops)
        if self.is_full and (puts or len(ops) > self.changes_max):
            self.refused.append(ops)
            raise DiskFull
        self.changed.append(ops)
        await self._write(ops)


async def test_what_ended_waits_and_takes_none_of_the_reserve(
    keeping: Keeping, monkeypatch: pytest.MonkeyPatch
) -> None:
    """That is for acks, which go on, and for deletes."""
    disk = FullDisk(keeping.runtime, monkeypatch, parts=1)
    await keeping.cancel()
    await keeping.runtime.ended.write()
    assert keeping.runtime.core.commits.disk_full
    assert disk.refused
    assert disk.reserve.asked == []
    disk.is_full = False


async def test_changes_that_find_no_room_take_the_last_and_then_go_one_by_one(
    keeping: Keeping, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Trial B6: a delete makes room for the next."""
    jobs = [*await keeping.cancel(1, "a"), *await keeping.cancel(3, "b")]
    ended = keeping.runtime.ended
    await ended.write()
    disk = FullDisk(keeping.runtime, monkeypatch, parts=1)
    disk.changes_max = 1
    keeping.runtime.core.commits.disk_full = True
    async with ended.changing:
        spans = [EndedSpan("a" if i == jobs[0] else "b", CANCELLED, i, 1) for i in jobs[::2]]
        assert await ended.delete(spans) == 2
    await ended.write()
    assert [len(ops) for ops in disk.refused] == [2, 2]
    assert disk.reserve.asked == [True, True]
    assert [len(ops) for ops in disk.changed] == [1, 1]
    assert list(await keeping.kept()) == [jobs[1], jobs[3]]
    disk.is_full = False


async def test_change_that_finds_no_room_alone_waits(
    keeping: Keeping, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is written with the rest, once there is room."""
    (job_id,) = await keeping.cancel()
    ended = keeping.runtime.ended
    await ended.write()
    disk = FullDisk(keeping.runtime, monkeypatch)
    disk.changes_max = 0
    keeping.runtime.core.commits.disk_full = True
    async with ended.changing:
        await ended.make_stale([EndedSpan("mail", CANCELLED, job_id, 1)])
    await ended.write()
    assert disk.changed == []
    disk.is_full = False
    await ended.writer.sync()
    assert await keeping.kept() == {job_id: JobState.STALE}


async def test_what_waits_is_found_as_it_will_be_kept(runtime: Runtime) -> None:
    """Each operation counts for those before it, and a job that is not waiting is left out."""
    writer, rows = runtime.ended.writer, [put(i, queue="ab"[i % 2], ended_ms=i) for i in range(6)]
    writer._unwritten += [
        *rows,
        MarkStale(1, 2, 77, 77),
        MarkStale(2, 1, 99, 99),
        RemoveEnded(4, 9),
        RemoveQueue("b"),
        put(3, queue="b", ended_ms=500),
        RemoveEnded(50, 1),
    ]
    found = writer.find([0, 1, 2, 3, 4, 9, 50])
    assert {
        job_id: row and (row.state, row.ended_ms, row.stale_ms) for job_id, row in found.items()
    } == {
        0: (JobState.COMPLETED, 0, 0),
        1: None,
        2: (JobState.STALE, 2, 77),
        3: (JobState.COMPLETED, 500, 0),
        4: None,
    }
    writer._unwritten.clear()


async def test_completed_jobs_that_are_not_written_are_deleted_by_a_fact(
    keeping: Keeping, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Their queue counts no more jobs than it keeps."""
    buffer = EndedBuffer(completed_max=2)
    monkeypatch.setattr(keeping.runtime.ended.writer, "_buffer", buffer)
    jobs = [(await keeping.complete())[0] for _ in range(4)]
    await keeping.runtime.ended.write()
    await keeping.runtime.core.commits.wait()
    assert list(await keeping.kept()) == jobs[2:]


async def test_write_that_fails_otherwise_stops_the_process(
    keeping: Keeping, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What reached the file is unknown; the journal has it all."""

    async def broken(_ops: Sequence[EndedOp]) -> None:
        raise OSError

    await keeping.cancel()
    monkeypatch.setattr(keeping.runtime.ended.ended_store, "write", broken)
    with pytest.raises(OSError):  # noqa: PT011  # the very one from above
        await keeping.runtime.ended.write()
    assert isinstance(keeping.runtime.failed.exception(), OSError)


async def test_what_waits_is_evicted_and_deleted_like_what_is_written(
    keeping: Keeping, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A disk was full for good where all that filled it waited for room itself."""
    runtime = keeping.runtime
    jobs = await keeping.cancel(4)
    await runtime.ended.write()
    jobs += await keeping.cancel(4)
    disk = FullDisk(runtime, monkeypatch)
    runtime.core.commits.disk_full = True
    await keeping.sets(count=3)
    evicted = [(await keeping.after(0)).get("evicted", 0) for _ in range(3)]
    assert sum(evicted) == 5
    assert [job_id for job_id in jobs if await runtime.ended.find(job_id)] == jobs[5:]
    wanted = Selection(filter=JobFilter(queue="mail", states=frozenset({JobState.CANCELLED})))
    deleted = await runtime.bulk.delete_jobs(wanted, dry_run=False, audit=Audit())
    assert deleted.count == 3
    disk.is_full = runtime.core.commits.disk_full = False
    await runtime.ended.write()
    assert await keeping.kept() == {}
    assert runtime.core.slots[0].shard.queues["mail"].kept() == {}


async def test_what_is_being_written_is_counted_once_by_retention(
    keeping: Keeping, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It waits until it is in the store; counted in both, as many more would be evicted."""
    ended, begun, goes_on = keeping.runtime.ended, asyncio.Event(), asyncio.Event()
    await keeping.sets(count=3)
    jobs = await keeping.cancel(3)
    await ended.write()
    jobs += await keeping.cancel(2)
    write = ended.ended_store.write

    async def write_slowly(ops: Sequence[EndedOp]) -> None:
        await write(ops)
        if any(isinstance(op, PutEnded) for op in ops):
            begun.set()
            await goes_on.wait()

    monkeypatch.setattr(ended.ended_store, "write", write_slowly)
    writing = asyncio.ensure_future(ended.write())
    await begun.wait()
    retention = EndedRetention(keeping.runtime.core, ended)
    # As if it had just waited for the write before.
    monkeypatch.setattr(ended, "write_changes", nothing)
    evicting = asyncio.ensure_future(
        retention.evict("mail", JobState.CANCELLED, keep_count=3, keep_bytes=1 << 20)
    )
    for _ in range(50):
        await asyncio.sleep(0)
    goes_on.set()
    await writing
    assert (await evicting).jobs == 2
    monkeypatch.undo()
    assert list(await keeping.kept()) == jobs[2:]


async def nothing() -> None:
    """Instead of a write."""
