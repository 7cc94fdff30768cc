"""The heartbeat of the loop: it beats for leases and streams, and rests without them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from jobline_server.dispatch.frames import Open, Worker
from jobline_server.engine.commands import Pull, Push
from jobline_server.engine.payloads import Payloads
from jobline_server.engine.values import AckLevel, JobOptions
from jobline_server.runtime.calls import pull_dedup
from jobline_server.runtime.clock import STEP_MS_MAX, SystemClock
from jobline_server.runtime.runtime import Runtime
from tests.unit.runtime.conftest import opened
from tests.unit.runtime.machine import STANDSTILL_MS, Machine

LEASE_MS = 1_000


@pytest.fixture
async def beating(machine: Machine, tmp_path: Path) -> AsyncIterator[Runtime]:
    """A runtime on the machine's clock, whose heart rests, as it does without any work."""
    async with opened(tmp_path, SystemClock()) as runtime:
        assert rests(runtime)
        yield runtime
        runtime.core.heartbeat.stop()


def rests(runtime: Runtime) -> bool:
    """Whether the heart rests after its next beat, which is now."""
    heartbeat = runtime.core.heartbeat
    heartbeat.stop()
    heartbeat.start()
    return heartbeat.resting


async def pushed(runtime: Runtime) -> None:
    options = JobOptions(lease_ms=LEASE_MS)
    await runtime.pushes.push(
        Push("mail", options, payloads=Payloads.of([b"x"]), level=AckLevel.BUFFERED)
    )
    await runtime.core.commits.commit_once()


async def test_the_heart_beats_for_a_lease(beating: Runtime) -> None:
    await pushed(beating)
    assert rests(beating)
    leased = await beating.pulls.pull(Pull((("mail", 1),), max_jobs=1, worker="w"))
    assert not beating.core.heartbeat.resting
    assert not rests(beating)
    ((job_id, delivery),) = pull_dedup.leases_of(pull_dedup.runs_of(leased))
    beating.settles.ack([job_id], [delivery], {})
    assert rests(beating)


async def test_the_heart_beats_for_a_stream(beating: Runtime) -> None:
    stream = beating.streams.open_stream(Open(Worker("w"), (("mail", 1),)))
    assert not beating.core.heartbeat.resting
    assert not rests(beating)
    stream.disconnect()
    assert rests(beating)


@pytest.mark.parametrize("stood_still", [False, True], ids=["idle", "after a standstill"])
async def test_a_lease_given_by_a_resting_server_outlives_a_standstill(
    beating: Runtime, machine: Machine, *, stood_still: bool
) -> None:
    """Trial A8: whoever asks for the time wakes the heart first, wherever the process stands
    still.
    """
    await pushed(beating)
    machine.ms += STANDSTILL_MS if stood_still else 0
    assert rests(beating)
    machine.readings, machine.stands_still_at = 0, 2  # while the pull is decided
    await beating.pulls.pull(Pull((("mail", 1),), max_jobs=1, worker="w"))
    assert machine.readings > machine.stands_still_at
    machine.ms += STANDSTILL_MS
    beating.timer_loop.run_due()
    assert beating.core.load.active_jobs == 1
    for _ in range(2 * LEASE_MS // STEP_MS_MAX):
        machine.ms += STEP_MS_MAX
        beating.core.clock.loop_went_on()
    beating.timer_loop.run_due()
    assert beating.core.load.active_jobs == 0


async def test_who_asked_for_it_is_called_at_each_beat(beating: Runtime) -> None:
    """Cycles are looked for then: after 2,000 calls without a commit that was a step of 0.1 s."""
    beats: list[bool] = []
    beating.core.heartbeat.on_heartbeat = lambda: beats.append(True)
    assert rests(beating)
    assert rests(beating)
    assert len(beats) == 2
