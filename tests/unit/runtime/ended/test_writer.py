"""Ended jobs on their way to the ended store."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Sequence

import pytest

from jobline_server.engine.commands import Push, Refused
from jobline_server.engine.decide.admin import decide_cancel, decide_delete_ended
from jobline_server.engine.endings import Ending
from jobline_server.engine.payloads import Payloads
from jobline_server.engine.values import DEFAULT_OPTIONS, AckLevel, JobState
from jobline_server.runtime import pace
from jobline_server.runtime.ended import writer as writer_module
from jobline_server.runtime.runtime import Runtime
from jobline_server.runtime.views import Audit, Selection
from jobline_server.storage import ended_rows
from jobline_server.storage.ended_buffer import BUDGET_ITEMS
from jobline_server.storage.ended_store import EndedOp
from jobline_server.storage.store import DiskFull
from tests.pushed_rows import NewJob, rows_of
from tests.unit.runtime.calls.test_bulk import Work
from tests.unit.runtime.commits.test_commits import a_pull


async def completed(runtime: Runtime, queue: str) -> int:
    """A job that was pushed, pulled and acked; what it left is in the buffer."""
    push = Push(queue, DEFAULT_OPTIONS, payloads=Payloads.of([b"x"]), level=AckLevel.BUFFERED)
    await runtime.pushes.push(push)
    await runtime.core.commits.commit_once()
    leased = await a_pull(runtime, queue)
    (run,) = leased.runs
    ack = asyncio.ensure_future(runtime.settle_calls.ack([run.first_id], [run.delivery], {}))
    await asyncio.sleep(0)
    await runtime.core.commits.commit_once()
    await ack
    return run.first_id


async def test_what_a_full_disk_kept_out_is_written_with_what_came_later(
    runtime: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing that was taken from the buffer is lost by a write that failed."""
    write = runtime.ended.ended_store.write

    async def full(_ops: Sequence[EndedOp]) -> None:
        raise DiskFull

    first = await completed(runtime, "a")
    second = await completed(runtime, "b")
    monkeypatch.setattr(runtime.ended.ended_store, "write", full)
    with pytest.raises(DiskFull):
        await runtime.ended.writer.sync()
    monkeypatch.setattr(runtime.ended.ended_store, "write", write)
    third = await completed(runtime, "c")
    await runtime.ended.writer.sync()
    states = [(await runtime.jobs.get_job(job_id)).state for job_id in (first, second, third)]
    assert states == [JobState.COMPLETED] * 3


async def test_what_many_jobs_left_is_taken_in_steps_of_the_loop(
    runtime: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Others have their turn between them, and nobody has to write for the last to be taken."""
    monkeypatch.setattr(writer_module, "TAKEN_JOBS", 1)
    buffer = runtime.ended.writer._buffer
    jobs = [await completed(runtime, queue) for queue in ("a", "b", "c")]
    line = [*buffer._pending.values()]
    buffer._pending.clear()
    runtime.ended.writer._add(line)
    steps = []
    while len(buffer._pending) < len(jobs):
        steps.append(len(buffer._pending))
        await asyncio.sleep(0)
    assert steps == [1, 2]
    states = [(await runtime.jobs.get_job(job_id)).state for job_id in jobs]
    assert states == [JobState.COMPLETED] * 3


async def test_what_cannot_be_taken_in_a_later_step_fails_the_next_write(
    runtime: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It stays in line: no step of the loop loses it, and none ends the loop."""
    monkeypatch.setattr(writer_module, "TAKEN_JOBS", 1)
    buffer = runtime.ended.writer._buffer
    jobs = [await completed(runtime, queue) for queue in ("a", "b")]
    line = [*buffer._pending.values()]
    buffer._pending.clear()
    taken = buffer._take

    def take(_buffer: object, ending: Ending) -> int:
        if ending is line[1]:
            raise MemoryError("none left")
        return taken(ending)

    monkeypatch.setattr(type(buffer), "_take", take)
    runtime.ended.writer._add(line)
    await asyncio.sleep(0)
    with pytest.raises(MemoryError):
        await runtime.ended.write()
    monkeypatch.undo()
    states = [(await runtime.jobs.get_job(job_id)).state for job_id in jobs]
    assert states == [JobState.COMPLETED] * 2


async def test_the_rest_of_what_was_taken_follows_the_piece_that_failed(
    runtime: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The buffer hands out pieces; those behind the failed one are not forgotten."""
    slices = runtime.ended.writer._buffer.slices
    monkeypatch.setattr(type(runtime.ended.writer._buffer), "slices", lambda _buffer: slices(1))
    monkeypatch.setattr(writer_module, "WRITE_PIECES", 1)
    write, tried = runtime.ended.ended_store.write, 0

    async def full_once(ops: Sequence[EndedOp]) -> None:
        nonlocal tried
        tried += 1
        if tried == 1:
            raise DiskFull
        await write(ops)

    jobs = [await completed(runtime, queue) for queue in ("a", "b", "c")]
    monkeypatch.setattr(runtime.ended.ended_store, "write", full_once)
    with pytest.raises(DiskFull):
        await runtime.ended.writer.sync()
    await runtime.ended.writer.sync()
    assert tried == 4
    states = [(await runtime.jobs.get_job(job_id)).state for job_id in jobs]
    assert states == [JobState.COMPLETED] * 3


async def test_a_full_disk_keeps_nobody_from_stopping(
    runtime: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Trial B6: what waits for room gives up, and leaves no task behind whose failure nobody asks
    for."""
    tried = asyncio.Event()

    async def full(_ops: Sequence[EndedOp]) -> None:
        tried.set()
        raise DiskFull

    await completed(runtime, "a")
    monkeypatch.setattr(runtime.ended.ended_store, "write", full)
    monkeypatch.setattr("jobline_server.runtime.ended.writer.WRITE_SECONDS", 0)
    monkeypatch.setattr("jobline_server.runtime.commits.commits.FULL_RETRY_SECONDS", 0)
    runtime.start()
    writing = asyncio.ensure_future(runtime.ended.write())
    await tried.wait()
    gc.collect()
    unretrieved: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, said: unretrieved.append(said))
    writing.cancel()
    await asyncio.wait_for(runtime.stop(), 10)
    await asyncio.wait([writing])
    del writing
    gc.collect()
    assert not unretrieved


async def test_a_job_that_waits_for_room_is_found(
    runtime: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Trial B6: on a full disk nobody who looks at an ended job waits for room, nor is told that it
    is not there; and what is deleted of it stays deleted."""

    async def full(_ops: Sequence[EndedOp]) -> None:
        raise DiskFull

    write = runtime.ended.ended_store.write
    first, second = await completed(runtime, "a"), await completed(runtime, "b")
    monkeypatch.setattr(runtime.ended.ended_store, "write", full)
    assert (await runtime.jobs.get_job(first)).state is JobState.COMPLETED
    assert runtime.core.commits.disk_full
    deleting = asyncio.ensure_future(
        runtime.bulk.delete_jobs(Selection(ids=(first,)), dry_run=False, audit=Audit())
    )
    while not deleting.done():
        await asyncio.sleep(0)
        if runtime.core.slots[0].shard.entries:
            await runtime.core.commits.commit_once()
    assert (await deleting).count == 1
    with pytest.raises(Refused, match="no job"):
        await runtime.jobs.get_job(first)
    assert (await runtime.jobs.get_job(second)).state is JobState.COMPLETED
    monkeypatch.setattr(runtime.ended.ended_store, "write", write)
    await runtime.ended.writer.sync()
    with pytest.raises(Refused, match="no job"):
        await runtime.jobs.get_job(first)
    assert (await runtime.jobs.get_job(second)).state is JobState.COMPLETED


async def deleted(runtime: Runtime, queue: str, job_id: int) -> None:
    """A job that was deleted; what it left is in the buffer."""
    slot = runtime.core.slots.of_queue(queue)
    runs = [(job_id, 1)]
    decide_delete_ended(slot.shard, runtime.core.now(), queue, JobState.COMPLETED, runs)
    runtime.core.after_decision(slot)
    await runtime.core.commits.commit_once()


async def test_changes_are_written_without_what_has_just_ended(runtime: Runtime) -> None:
    """What a queue completes within a second and does not keep need not be written, however often
    retention looks."""
    store = runtime.ended.ended_store
    old = await completed(runtime, "a")
    await runtime.ended.write()
    new = await completed(runtime, "a")
    await deleted(runtime, "a", old)
    await runtime.ended.write_changes()
    assert not (await store.get_many([old, new])).rows
    await runtime.ended.write()
    assert list((await store.get_many([old, new])).rows) == [new]


async def test_changes_come_behind_what_waits_for_room(
    runtime: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They may be of a job that the store does not have yet."""
    write = runtime.ended.ended_store.write

    async def full(_ops: Sequence[EndedOp]) -> None:
        raise DiskFull

    job_id = await completed(runtime, "a")
    monkeypatch.setattr(runtime.ended.ended_store, "write", full)
    with pytest.raises(DiskFull):
        await runtime.ended.writer.sync()
    monkeypatch.setattr(runtime.ended.ended_store, "write", write)
    await deleted(runtime, "a", job_id)
    await runtime.ended.write_changes()
    await runtime.ended.write()
    assert not (await runtime.ended.ended_store.get_many([job_id])).rows


async def test_rows_are_made_and_written_in_slices(
    runtime: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A thousand jobs that ended one by one were made into rows in one step, up to 31 ms. Several
    slices share a write.
    """
    jobs = 1_200
    rows = rows_of(NewJob(b"x", DEFAULT_OPTIONS) for _ in range(jobs))
    push = Push("a", DEFAULT_OPTIONS, rows=rows, level=AckLevel.BUFFERED)
    first_id = (await runtime.pushes.push(push)).first_id
    slot = runtime.core.slots.of_queue("a")
    decide_cancel(slot.shard, runtime.core.now(), range(first_id, first_id + jobs))
    runtime.core.after_decision(slot)
    await runtime.core.commits.commit_once()
    monkeypatch.setattr(pace, "SLICE_SECONDS", 0.0)
    work = Work(monkeypatch, [(ended_rows, "_job_row")])
    write, written = runtime.ended.ended_store.write, list[int]()

    async def counted(ops: Sequence[EndedOp]) -> None:
        written.append(len(ops))
        await write(ops)

    monkeypatch.setattr(runtime.ended.ended_store, "write", counted)
    await work.of(runtime.ended.write())
    assert (work.total, sum(written)) == (jobs, jobs)
    assert work.most <= BUDGET_ITEMS
    assert written == [500, 500, 200]


async def test_what_a_queue_would_evict_soon_is_written_more_rarely(
    runtime: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each three seconds while it completes more than it keeps, otherwise each second."""
    writer, seconds = runtime.ended.writer, 0.0

    async def waited(_stopping: asyncio.Event, pause: float) -> bool:
        nonlocal seconds
        seconds += pause
        return False

    monkeypatch.setattr(writer_module, "is_set_by_tick", waited)
    writer._buffer._completed_max = 1
    for count, expected in ((1, 1), (3, 3), (1, 1)):
        for _ in range(count):
            await completed(runtime, "a")
        seconds = 0.0
        assert await writer.step()
        assert seconds == expected
        assert not writer._buffer.leaves_out
    assert (await runtime.ended.ended_store.totals("a", JobState.COMPLETED)).jobs == 3
