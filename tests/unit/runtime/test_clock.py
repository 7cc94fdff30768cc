"""The clocks, and time that the process stood still."""

from __future__ import annotations

import time
from collections.abc import Callable
from itertools import count
from pathlib import Path

import pytest

from jobline_server.dispatch.frames import Open, Window, Worker, WorkerFrame
from jobline_server.engine.commands import Push
from jobline_server.engine.payloads import Payloads
from jobline_server.engine.values import AckLevel, JobOptions, Now
from jobline_server.runtime.clock import HEARTBEAT_MS, STEP_MS_MAX, ManualClock, SystemClock
from jobline_server.runtime.runtime import Runtime
from tests.unit.runtime.conftest import opened
from tests.unit.runtime.machine import STANDSTILL_MS, Machine

SHARDS = 4


def test_time_goes_on_with_the_loop(machine: Machine) -> None:
    """Nothing is lost while it beats in time."""
    clock = SystemClock()
    before = clock.now().mono_ms
    for _ in range(100):
        machine.ms += HEARTBEAT_MS
        clock.loop_went_on()
    machine.ms += STEP_MS_MAX
    assert clock.now().mono_ms - before == 100 * HEARTBEAT_MS + STEP_MS_MAX


@pytest.mark.parametrize("read_first", [True, False], ids=["read before the beat", "beat first"])
def test_time_that_the_process_stood_still_does_not_count(
    machine: Machine, *, read_first: bool
) -> None:
    """Trial A6: of a standstill nobody ever reads more than a step, before its beat or after it."""
    clock = SystemClock()
    before = clock.now().mono_ms
    machine.ms += STANDSTILL_MS
    if read_first:
        assert clock.now().mono_ms - before == STEP_MS_MAX
    clock.loop_went_on()
    assert clock.now().mono_ms - before == STEP_MS_MAX
    machine.ms += 10
    assert clock.now().mono_ms - before == STEP_MS_MAX + 10


def test_while_the_heart_rests_time_goes_as_the_machine_s(machine: Machine) -> None:
    """Nothing hangs on it then; the first beat that is not free binds it to the loop again."""
    clock = SystemClock()
    before = clock.now().mono_ms
    clock.loop_went_on(free=True)
    machine.ms += STANDSTILL_MS
    assert clock.now().mono_ms - before == STANDSTILL_MS
    clock.loop_went_on()
    machine.ms += STANDSTILL_MS
    assert clock.now().mono_ms - before == STANDSTILL_MS + STEP_MS_MAX


async def worker_and_timers(runtime: Runtime, machine: Machine, milliseconds: int) -> set[int]:
    """A worker with a job of each shard, which is heard four times in a lease of one second, beside
    timers that are looked at all the time. Returns the ids that it holds in the end.
    """
    options = JobOptions(lease_ms=1_000)
    queues = {runtime.core.slots.of_queue(name).number: name for name in map(str, range(100))}
    for name in queues.values():
        push = Push(name, options, payloads=Payloads.of([b"x"]), level=AckLevel.BUFFERED)
        await runtime.pushes.push(push)
    await runtime.core.commits.commit_once()
    stream = runtime.streams.open_stream(
        Open(Worker("w"), tuple((name, 1) for name in queues.values()))
    )
    stream.receive(WorkerFrame(window=Window(SHARDS)))
    for passed_ms in range(0, milliseconds, HEARTBEAT_MS):
        machine.ms += HEARTBEAT_MS
        # What was due while it stood still comes up in any order: the timers first, at worst.
        runtime.timer_loop.run_due()
        runtime.core.clock.loop_went_on()
        if not passed_ms % 250:
            stream.receive(WorkerFrame())
    return {job_id for holder in stream.holders.values() for job_id, _ in holder.held()}


async def test_no_lease_ends_wherever_the_process_stands_still(
    machine: Machine, tmp_path: Path
) -> None:
    """Trial A6: at any reading of the clock, between two shards of a look for one."""
    async with opened(tmp_path / "0", SystemClock(), shards=SHARDS) as runtime:
        began = machine.readings
        assert len(await worker_and_timers(runtime, machine, 1_500)) == SHARDS
        readings = range(began, machine.readings)
    assert len(readings) > 60
    for reading in readings[:: len(readings) // 20]:
        machine.readings, machine.stands_still_at = 0, reading
        async with opened(tmp_path / str(reading), SystemClock(), shards=SHARDS) as runtime:
            assert len(await worker_and_timers(runtime, machine, 1_500)) == SHARDS, reading


async def test_all_shards_of_a_look_are_given_the_same_time(
    machine: Machine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Trial A6: the clock is read once a look, however many shards have timers."""
    async with opened(tmp_path, SystemClock(), shards=SHARDS) as runtime:
        await worker_and_timers(runtime, machine, 250)
        read = counted(monkeypatch, runtime)
        runtime.timer_loop.run_due()
        assert read() == 1


def counted(monkeypatch: pytest.MonkeyPatch, runtime: Runtime) -> Callable[[], int]:
    """How often the runtime reads its clock from now on."""
    readings: list[None] = []
    now = runtime.core.clock.now

    def reading() -> Now:
        readings.append(None)
        return now()

    monkeypatch.setattr(runtime.core.clock, "now", reading)
    return lambda: len(readings)


def test_a_manual_clock_moves_only_by_hand() -> None:
    """Both clocks together, or the wall clock alone."""
    clock = ManualClock(wall_ms=1_000, mono_ms=50)
    clock.advance(10)
    clock.wall_ms += 3_600_000
    clock.loop_went_on()
    now = clock.now()
    assert (now.wall_ms, now.mono_ms) == (3_601_010, 60)


def test_the_end_of_a_lease_does_not_tremble(monkeypatch: pytest.MonkeyPatch) -> None:
    """The two clocks are read one after the other; only a clock that was set moves it."""
    ticks, set_by_ns = count(0, 300_000), [0]
    monkeypatch.setattr(time, "time_ns", lambda: 10**18 + next(ticks) + set_by_ns[0])
    monkeypatch.setattr(time, "monotonic_ns", lambda: 10**15 + next(ticks))
    clock = SystemClock()
    (first,) = {clock.wall_at(5_000) for _ in range(50)}
    set_by_ns[0] = 10**9
    (later,) = {clock.wall_at(5_000) for _ in range(50)}
    assert later - first == pytest.approx(1_000, abs=1)
