"""What the server does by itself survives its own exceptions, and is heard of."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path

import pytest

from jobline_server.engine.commands import Push
from jobline_server.engine.decide.admin import decide_cancel
from jobline_server.engine.decide.timers import tick
from jobline_server.engine.payloads import Payloads
from jobline_server.engine.values import DEFAULT_OPTIONS, AckLevel, JobState
from jobline_server.runtime import loops, timer_loop
from jobline_server.runtime.clock import ManualClock
from jobline_server.runtime.loops import FAILURES_CRITICAL, LINES_MAX, Loops, Record
from jobline_server.runtime.runtime import Runtime
from jobline_server.serving import collect_cycles
from tests.unit.runtime.conftest import opened


def a_push(queue: str = "mail", *, run_at_ms: int = 0, level: AckLevel | None = None) -> Push:
    payloads = Payloads.of([b"x"])
    return Push(queue, DEFAULT_OPTIONS, payloads=payloads, run_at_ms=run_at_ms, level=level)


def fails(*_: object) -> None:
    raise LookupError("a mistake of ours")


class Flaky:
    """A step that fails so often, then works, and then ends its loop."""

    def __init__(self, failures: int) -> None:
        self.left = failures

    async def step(self) -> bool:
        if self.left:
            self.left -= 1
            raise LookupError("a mistake of ours")
        return False


@pytest.fixture
def no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loops, "RETRY_SECONDS_MAX", 0.0)


@pytest.mark.usefixtures("no_pause")
async def test_a_loop_is_tried_again_and_five_failures_in_a_row_are_heard_of(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Trial A4: each with its stack, the fifth as one CRITICAL line, until it works again."""
    owner, flaky = Loops(), Flaky(FAILURES_CRITICAL + 2)
    unwell: list[list[str]] = []
    owner.changed = lambda: unwell.append(owner.failing())
    await owner.keep("timers", flaky.step)
    levels = [record.levelno for record in caplog.records if "failed" in record.getMessage()]
    assert levels.count(logging.CRITICAL) == 1
    assert levels[:FAILURES_CRITICAL] == [logging.ERROR] * 4 + [logging.CRITICAL]
    assert unwell == [["timers"], []]
    record = owner.record("timers")
    assert (record.failures, record.failures_in_a_row) == (FAILURES_CRITICAL + 2, 0)


async def test_work_that_nobody_waits_for_is_heard_of_and_leaves_the_server_well(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """A restart for the sake of statistics would stop a queue that works."""
    owner = Loops()
    for name, is_vital in (("totals", False), ("timers", True)):
        record = owner.record(name, is_vital=is_vital)
        for _ in range(FAILURES_CRITICAL):
            record.failed(LookupError())
        assert record.is_failing
    assert [line.levelno for line in caplog.records].count(logging.CRITICAL) == 2
    assert owner.failing() == ["timers"]


async def test_which_work_is_vital_is_known(runtime: Runtime) -> None:
    """What callers and workers wait for is; what only counts, or collects garbage, is not."""
    collect_cycles(runtime.core)
    records = runtime.core.loops.records.values()
    beside = {record.name for record in records if not record.is_vital}
    assert beside == {"commit_minutes", "commit_spans", "commit_totals", "memory"}


def test_a_record_guards_a_step() -> None:
    """Its failure is counted and goes no further, a success ends the row, and a cancel is none."""
    record = Record("dependents")
    for _ in range(2):
        with record:
            raise LookupError("a mistake of ours")
    assert record.failures_in_a_row == 2
    with pytest.raises(asyncio.CancelledError), record:
        raise asyncio.CancelledError
    assert record.failures_in_a_row == 2
    with record:
        pass
    assert (record.failures, record.failures_in_a_row) == (2, 0)


async def test_pauses_between_tries_grow_up_to_a_limit() -> None:
    """Trial A4: what fails at once does not fill the log, and is not forgotten for hours."""
    pauses = [loops.pause_after(failures) for failures in (1, 2, 3, 100)]
    assert pauses == [0.1, 0.2, 0.4, loops.RETRY_SECONDS_MAX]


async def test_a_loop_that_failed_ends_when_the_server_stops() -> None:
    """Trial A4: its pause does not hold up the stop."""
    owner = Loops()
    owner.stop()
    await owner.keep("timers", Flaky(1_000).step)
    assert owner.record("timers").failures == 1


def test_what_fails_all_the_time_is_counted_and_logged_now_and_then(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Trial A4: a listener may fail at each of a thousand commits a second."""
    record = Record("listener", lambda: None)
    for _ in range(1_000):
        record.failed(LookupError())
        record.failed(LookupError())
        record.worked()
    assert record.failures == 2_000
    assert len(caplog.records) == LINES_MAX


async def test_a_shard_whose_timers_fail_holds_up_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Trial A4: the failure is raised after all shards had their turn."""
    clock = ManualClock()
    async with opened(tmp_path, clock, shards=2) as runtime:
        core = runtime.core
        names = {core.slots.of_queue(name).number: name for name in ("a", "b", "c", "d")}
        due_ms = clock.wall_ms + 1_000
        ids = [
            (
                await runtime.pushes.push(a_push(names[n], run_at_ms=due_ms, level=AckLevel.MEMORY))
            ).first_id
            for n in (0, 1)
        ]
        clock.advance(2_000)
        bad = core.slots[0].shard
        monkeypatch.setattr(
            timer_loop, "tick", lambda s, now: fails() if s is bad else tick(s, now)
        )
        with pytest.raises(ExceptionGroup):
            runtime.timer_loop.run_due()
        states = [core.slots[n].shard.state_of(job_id) for n, job_id in enumerate(ids)]
        assert states == [JobState.SCHEDULED, JobState.READY]


async def test_ended_jobs_that_were_not_kept_at_once_are_kept_later_and_in_order(
    runtime: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Trial A4: until then nothing that ended is read, and no checkpoint may forget it."""
    buffer = runtime.ended.writer._buffer  # where it fails
    monkeypatch.setattr(type(buffer), "_take", fails)
    ids = [await an_ended_job(runtime) for _ in range(3)]
    assert runtime.core.loops.record("commit_ended_jobs").failures == 3
    with pytest.raises(LookupError):
        await runtime.jobs.get_job(ids[0])
    with pytest.raises(LookupError):
        await runtime.ended.writer.sync()
    monkeypatch.undo()
    assert [(await runtime.jobs.get_job(job_id)).state for job_id in ids] == [
        JobState.CANCELLED
    ] * 3
    assert not runtime.failed.done()


async def an_ended_job(runtime: Runtime) -> int:
    """The id of a job whose end was just committed."""
    pushed = await runtime.pushes.push(a_push(level=AckLevel.BUFFERED))
    slot = runtime.core.slots[0]
    decide_cancel(slot.shard, runtime.core.now(), [pushed.first_id])
    runtime.core.after_decision(slot)
    await runtime.core.commits.commit_once()
    return pushed.first_id


async def test_an_exception_that_nobody_takes_is_counted(caplog: pytest.LogCaptureFixture) -> None:
    """Trial A4: of a callback, or of a task that nobody waits for."""
    record = Loops().record("stray_tasks")
    loops.log_stray_exceptions(record)
    asyncio.get_running_loop().call_soon(fails)
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert (record.failures, record.failures_in_a_row) == (1, 0)
    assert "a mistake of ours" in caplog.text
