"""The runtime as a whole: it works from `start` on, says how it is, drains, and stops."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import fields
from pathlib import Path

import pytest

from jobline_server.dispatch.frames import Open, Worker
from jobline_server.engine.commands import Leased, Pull, Push, Refused
from jobline_server.engine.payloads import Payloads
from jobline_server.engine.values import DEFAULT_OPTIONS, AckLevel, JobState
from jobline_server.runtime.clock import ManualClock
from jobline_server.runtime.health import Health
from jobline_server.runtime.loops import FAILURES_CRITICAL
from jobline_server.runtime.runtime import Runtime, RuntimeSettings
from jobline_server.storage.store import CommitUnknown, DiskFull
from tests.unit.runtime.commits.test_commits import a_moment
from tests.unit.runtime.conftest import files_in, opened, opened_on

FULL_RETRY_SECONDS = "jobline_server.runtime.commits.commits.FULL_RETRY_SECONDS"


@pytest.fixture
async def started(runtime: Runtime) -> AsyncIterator[Runtime]:
    """One at work."""
    runtime.start()
    yield runtime
    await runtime.stop()


def a_push(*, level: AckLevel | None = None, run_at_ms: int = 0) -> Push:
    payloads = Payloads.of([b"x"])
    return Push("mail", DEFAULT_OPTIONS, payloads=payloads, level=level, run_at_ms=run_at_ms)


def a_pull(*, wait_ms: int = 0) -> Pull:
    return Pull((("mail", 1),), max_jobs=10, wait_ms=wait_ms, accepts_runs=True)


def test_settings_bound_what_all_shards_hold_together() -> None:
    """Each limit is its own."""
    settings = RuntimeSettings(
        waiting_max=1,
        waiting_bytes_max=2,
        keys_max=3,
        requests_max=4,
        calls_max=5,
        groups_max=6,
        dependencies_max=7,
        batch_kept_ms=8,
        worker_limit_ms_max=9,
    )
    load = settings.load()
    limits = {field.name: getattr(load, field.name) for field in fields(load)}
    assert {name: limit for name, limit in limits.items() if limit} == {
        "waiting_max": 1,
        "waiting_bytes_max": 2,
        "keys_max": 3,
        "requests_max": 4,
        "calls_max": 5,
        "groups_max": 6,
        "dependencies_max": 7,
        "batch_kept_ms": 8,
        "worker_limit_ms_max": 9,
    }


async def test_a_runtime_that_was_not_started_closes_its_files(
    tmp_path: Path,
) -> None:
    """Given a start that failed after it was opened; then the next one finds the lock free."""
    for _ in range(2):
        runtime = await opened_on(files_in(tmp_path), ManualClock())
        await runtime.stop()


async def test_a_runtime_that_was_started_commits_and_keeps_time_by_itself(
    started: Runtime,
) -> None:
    """Pushes are answered, jobs become due, and what ended is found."""
    clock = started.core.clock
    assert isinstance(clock, ManualClock)
    async with asyncio.timeout(20):
        await started.pushes.push(a_push(run_at_ms=clock.wall_ms + 1_000))
        pull = asyncio.ensure_future(started.pulls.pull(a_pull(wait_ms=20_000)))
        clock.advance(1_000)
        started.core.timers.set()
        (run,) = (await pull).runs
        assert await started.settle_calls.ack([run.first_id], [run.delivery], {}) == []
        assert (await started.jobs.get_job(run.first_id)).state is JobState.COMPLETED


async def test_who_waits_for_a_job_finds_it_when_told(started: Runtime) -> None:
    """Those who keep what ended are notified before those who wait for it."""
    first_id = (await started.pushes.push(a_push())).first_id
    found: list[JobState] = []

    async def wait() -> None:
        async for part in started.waits.wait([first_id], 20_000):
            found.extend([(await started.jobs.get_job(job_id)).state for job_id, _ in part])

    waiting = asyncio.ensure_future(wait())
    (run,) = (await started.pulls.pull(a_pull())).runs
    await started.settle_calls.ack([run.first_id], [run.delivery], {})
    async with asyncio.timeout(20):
        await waiting
    assert found == [JobState.COMPLETED]


async def test_a_runtime_says_what_does_not_work(tmp_path: Path) -> None:
    """A lost shard is no reason to restart the server; a failed storage and loops are."""
    async with opened(tmp_path, ManualClock(), shards=2) as runtime:
        assert (runtime.failing(), runtime.broken()) == ([], [])
        slots = runtime.core.slots
        slots.close(slots[1], Health.FENCED, "another process has it")
        lost = "shard 1 is not served any more (fenced): another process has it"
        assert (runtime.failing(), runtime.broken()) == ([lost], [])
        for _ in range(FAILURES_CRITICAL):
            runtime.core.loops.record("timers").failed(LookupError())
        timers = "timers failed again and again"
        assert (runtime.failing(), runtime.broken()) == ([timers, lost], [timers])
        runtime.core.commits.fail(OSError("EIO"))
        assert isinstance(runtime.failed.exception(), OSError)
        assert runtime.broken() == ["the storage failed", timers]


async def test_a_drain_without_workers_is_over_at_once(runtime: Runtime) -> None:
    """And long polls wait for nothing from then on."""
    async with asyncio.timeout(20):
        await runtime.drain(seconds=3_600)
        assert await runtime.pulls.pull(a_pull(wait_ms=3_600_000)) == Leased()


async def test_a_drain_asks_workers_to_go_and_ends_the_streams_of_those_that_stay(
    runtime: Runtime,
) -> None:
    """It says until when."""
    stream = runtime.streams.open_stream(Open(Worker("w"), (("mail", 1),)))
    await stream.next_frame()
    draining = asyncio.ensure_future(runtime.drain(seconds=0.001))
    frame = await stream.next_frame()
    assert frame is not None
    assert frame.goaway is not None
    assert frame.goaway.close_ms == runtime.core.wall_ms() + 1
    await draining
    assert await stream.next_frame() is None


async def test_a_stop_writes_what_nobody_waited_for(tmp_path: Path) -> None:
    """Whatever was decided before is there after it."""
    # The tests share a loop, and this one's task runs in it.
    others = asyncio.all_tasks()
    async with opened(tmp_path, ManualClock()) as runtime:
        runtime.start()
        first_id = (await runtime.pushes.push(a_push(level=AckLevel.BUFFERED))).first_id
        before = asyncio.all_tasks() - others
        await runtime.stop()
        # What was cancelled may take another turn of the loop to end.
        _, left = await asyncio.wait(before, timeout=5)
        assert not left
    async with opened(tmp_path, ManualClock()) as runtime:
        assert runtime.core.slots[0].shard.state_of(first_id) is JobState.READY


async def test_a_stop_after_the_storage_failed_closes_the_files(
    runtime: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It writes nothing more: nobody knows what is on disk."""

    async def fail(*_arguments: object) -> None:
        raise CommitUnknown("EIO")

    monkeypatch.setattr(runtime.core.store, "commit", fail)
    closed, taken = noted(runtime, monkeypatch)
    runtime.start()
    with pytest.raises(Refused):
        await runtime.pushes.push(a_push())
    await runtime.stop()
    assert isinstance(runtime.failed.exception(), CommitUnknown)
    assert (closed, taken) == (["closed"], [])


async def test_files_are_closed_whatever_fails_on_the_way(
    runtime: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And the heart beats no more."""

    async def fail() -> None:
        raise LookupError("a mistake of ours")

    closed, _ = noted(runtime, monkeypatch)
    monkeypatch.setattr(runtime.checkpoints, "take_last", fail)
    runtime.start()
    with pytest.raises(LookupError):
        await runtime.stop()
    assert closed == ["closed"]
    assert not runtime.core.heartbeat.resting


async def test_a_full_disk_holds_up_no_stop(
    runtime: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A caller that waits for room is refused; nobody was told that it is stored."""
    tried = asyncio.Event()

    async def full(*_arguments: object) -> None:
        tried.set()
        raise DiskFull

    monkeypatch.setattr(runtime.core.store, "commit", full)
    monkeypatch.setattr(FULL_RETRY_SECONDS, 0)
    runtime.start()
    push = asyncio.ensure_future(runtime.pushes.push(a_push()))
    await tried.wait()
    await a_moment()
    assert not push.done()
    async with asyncio.timeout(10):
        runtime.stop_waiting()
        with pytest.raises(Refused):
            await push
        await runtime.stop()
    assert isinstance(runtime.failed.exception(), DiskFull)


def noted(runtime: Runtime, monkeypatch: pytest.MonkeyPatch) -> tuple[Sequence[str], Sequence[str]]:
    """What a stop does last, as it does it: closing the store, and taking checkpoints."""
    closed: list[str] = []
    taken: list[str] = []
    close, take = runtime.core.store.close, runtime.checkpoints.take_last

    async def closing() -> None:
        closed.append("closed")
        await close()

    async def taking() -> None:
        taken.append("taken")
        await take()

    monkeypatch.setattr(runtime.core.store, "close", closing)
    monkeypatch.setattr(runtime.checkpoints, "take_last", taking)
    return closed, taken
