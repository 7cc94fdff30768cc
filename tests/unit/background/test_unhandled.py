"""Warns of names that no worker handles."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from jobline_server.background import unhandled
from jobline_server.background.unhandled import UnhandledNames
from jobline_server.dispatch.frames import Handler, Open, Worker
from jobline_server.engine.commands import Push
from jobline_server.engine.payloads import Payloads
from jobline_server.engine.values import AckLevel, JobOptions
from jobline_server.runtime.calls.worker_stream import WorkerStream
from jobline_server.runtime.clock import ManualClock
from jobline_server.runtime.runtime import Runtime
from tests.unit.runtime.conftest import opened


@pytest.fixture
async def runtime(tmp_path: Path) -> AsyncIterator[Runtime]:
    async with opened(tmp_path, ManualClock()) as runtime:
        yield runtime


async def push(runtime: Runtime, *names: str) -> None:
    for name in names:
        options = JobOptions(name=name)
        payloads = Payloads.of([b"x"])
        await runtime.pushes.push(Push("mail", options, payloads=payloads, level=AckLevel.BUFFERED))
    await runtime.core.commits.commit_once()


def connect(runtime: Runtime, *names: str) -> WorkerStream:
    handlers = tuple(Handler("mail", name) for name in names)
    return runtime.streams.open_stream(Open(Worker("w"), (("mail", 1),), handlers=handlers))


async def warnings(task: UnhandledNames, caplog: pytest.LogCaptureFixture) -> int:
    """Runs the task once; returns how many warnings it logged."""
    caplog.clear()
    counts = await task.run_once(task.core.now())
    assert counts["warned"] == len(caplog.records)
    assert all(record.levelname == "WARNING" for record in caplog.records)
    return counts["warned"]


async def test_a_name_that_no_worker_of_its_queue_handles_is_said_once(
    runtime: Runtime, caplog: pytest.LogCaptureFixture
) -> None:
    """Trial B8: and again when it comes back after it was handled."""
    task = UnhandledNames(runtime.core, runtime.streams.notify_unhandled)
    await push(runtime, "letter", "parcel", "parcel")
    assert await warnings(task, caplog) == 0
    connect(runtime, "letter")
    assert await warnings(task, caplog) == 1
    assert "parcel" in caplog.text
    await push(runtime, "parcel")
    assert await warnings(task, caplog) == 0
    other = connect(runtime, "parcel")
    assert await warnings(task, caplog) == 0
    other.disconnect()
    assert await warnings(task, caplog) == 1


async def test_a_worker_of_any_name_handles_all(
    runtime: Runtime, caplog: pytest.LogCaptureFixture
) -> None:
    """Trial B8: also if other workers name the ones they handle."""
    await push(runtime, "letter", "parcel")
    connect(runtime, "letter")
    connect(runtime)
    assert (
        await warnings(UnhandledNames(runtime.core, runtime.streams.notify_unhandled), caplog) == 0
    )


async def test_no_more_names_are_said_than_are_remembered(
    runtime: Runtime, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Trial B8: a name for each job fills neither memory nor the log."""
    monkeypatch.setattr(unhandled, "NAMES_MAX", 3)
    task = UnhandledNames(runtime.core, runtime.streams.notify_unhandled)
    await push(runtime, *map(str, range(10)))
    connect(runtime, "letter")
    assert [await warnings(task, caplog) for _ in range(3)] == [3, 0, 0]
    everything = connect(runtime)
    assert await warnings(task, caplog) == 0
    everything.disconnect()
    assert await warnings(task, caplog) == 3


async def test_the_workers_of_the_queue_are_told(runtime: Runtime) -> None:
    """Trial B8: in a frame of their stream, each name once; workers of other queues are not."""
    task = UnhandledNames(runtime.core, runtime.streams.notify_unhandled)
    await push(runtime, "letter", "parcel", "parcel")
    stream = connect(runtime, "letter")
    elsewhere = runtime.streams.open_stream(Open(Worker("x"), (("numbers", 1),)))
    for each in (stream, elsewhere):
        await each.next_frame()
    await task.run_once(task.core.now())
    frame = await stream.next_frame()
    assert frame is not None
    assert frame.unhandled == {("mail", "parcel"): 2}
    assert not elsewhere.session.frame_to_send(task.core.now())
