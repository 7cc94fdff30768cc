"""Warns of names that no worker handles."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import NoReturn

import pytest

from jobline_server.background import unhandled
from jobline_server.background.unhandled import UnhandledNames
from jobline_server.dispatch.frames import Handler, Open, Worker
from jobline_server.engine.commands import Pull, Push
from jobline_server.engine.payloads import Payloads
from jobline_server.engine.values import AckLevel, JobOptions
from jobline_server.runtime import pace
from jobline_server.runtime.calls import streams
from jobline_server.runtime.calls.pulls import LongPoll
from jobline_server.runtime.calls.worker_stream import WorkerStream
from jobline_server.runtime.clock import ManualClock
from jobline_server.runtime.runtime import Runtime
from tests.unit.runtime.conftest import opened


@pytest.fixture
async def runtime(tmp_path: Path) -> AsyncIterator[Runtime]:
    async with opened(tmp_path, ManualClock()) as runtime:
        yield runtime


async def push(runtime: Runtime, *names: str, queue: str = "mail") -> None:
    for name in names:
        options = JobOptions(name=name)
        payloads = Payloads.of([b"x"])
        await runtime.pushes.push(Push(queue, options, payloads=payloads, level=AckLevel.BUFFERED))
    await runtime.core.commits.commit_once()


def connect(runtime: Runtime, *names: str, queue: str = "mail") -> WorkerStream:
    handlers = tuple(Handler(queue, name) for name in names)
    return runtime.streams.open_stream(Open(Worker("w"), ((queue, 1),), handlers=handlers))


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


async def test_a_name_behind_many_that_are_handled_is_said(
    runtime: Runtime, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a queue whose workers are behind with all that they handle only the first names were
    looked at, which were always the same ones. Many names are looked at in slices."""
    monkeypatch.setattr(unhandled, "NAMES_LOOKED_AT", 10)
    monkeypatch.setattr(pace, "SLICE_SECONDS", 0.0)
    names = [f"n{number}" for number in range(unhandled.NAMES_AT_ONCE + 50)]
    connect(runtime, *names)
    await push(runtime, *names, "lost", "found")
    running = asyncio.create_task(
        UnhandledNames(runtime.core, runtime.streams.notify_unhandled).run_once(runtime.core.now())
    )
    for _ in range(4):
        await asyncio.sleep(0)
    assert not running.done()
    connect(runtime, "found")
    assert await running == {"warned": 1}
    assert "lost" in caplog.text
    assert "found" not in caplog.text


async def test_a_queue_that_goes_while_its_names_are_looked_at_is_left_out(
    runtime: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is kept of it."""
    monkeypatch.setattr(pace, "SLICE_SECONDS", 0.0)
    await push(runtime, "parcel")
    connect(runtime, "letter")
    task = UnhandledNames(runtime.core, runtime.streams.notify_unhandled)
    running = asyncio.create_task(task.run_once(runtime.core.now()))
    await asyncio.sleep(0)
    del runtime.core.slots.of_queue("mail").shard.queues["mail"]
    assert await running == {"warned": 0}
    assert not task._warned


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


async def told_by_turn(task: UnhandledNames, connected: list[WorkerStream]) -> list[int]:
    """How many workers were told in each iteration of the loop in which the task ran."""
    running, turns = asyncio.create_task(task.run_once(task.core.now())), list[int]()
    while not running.done():
        await asyncio.sleep(0)
        turns.append(sum(bool(one.session._out.unhandled) for one in connected) - sum(turns))
    return [turn for turn in turns if turn]


async def test_many_workers_are_told_over_several_turns_of_the_loop(
    runtime: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A warning to thousands of them is not one step."""
    monkeypatch.setattr(streams, "TOLD_AT_ONCE", 3)
    await push(runtime, "parcel")
    connected = [connect(runtime, "letter") for _ in range(7)]
    runtime.dispatcher.join(LongPoll(Pull((("mail", 1),), names=frozenset({"letter"}))))
    task = UnhandledNames(runtime.core, runtime.streams.notify_unhandled)
    assert await told_by_turn(task, connected) == [3, 3, 1]


async def test_many_queues_are_checked_over_several_turns_of_the_loop(
    runtime: Runtime, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Also if there is nothing to say about most of them, and if there is much about one."""
    monkeypatch.setattr(pace, "SLICE_SECONDS", 0.0)
    for number in range(4):
        await push(runtime, *["parcel", "postcard"][: number % 3], queue=f"q{number}")
        connect(runtime, "letter", queue=f"q{number}")
    task = UnhandledNames(runtime.core, runtime.streams.notify_unhandled)
    running, most, turns = asyncio.create_task(task.run_once(task.core.now())), 0, 0
    while not running.done():
        before = len(caplog.records)
        await asyncio.sleep(0)
        turns, most = turns + 1, max(most, len(caplog.records) - before)
    assert running.result() == {"warned": 3}
    assert turns >= 4
    assert most == 1


async def test_a_warning_looks_at_the_workers_of_its_queue_alone(
    runtime: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of thousands elsewhere each would be looked at for each queue."""

    class Unwalked(dict[str, WorkerStream]):
        def values(self) -> NoReturn:
            raise AssertionError

    await push(runtime, "parcel")
    stream = connect(runtime, "letter")
    monkeypatch.setattr(runtime.streams, "open", Unwalked(runtime.streams.open))
    task = UnhandledNames(runtime.core, runtime.streams.notify_unhandled)
    assert await told_by_turn(task, [stream]) == [1]
