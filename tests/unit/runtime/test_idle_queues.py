"""Queues that were empty for an hour are deleted, some at a time."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from jobline_server.engine.commands import Push
from jobline_server.engine.decide.queues import known_queue
from jobline_server.engine.limits import EMPTY_QUEUE_MS
from jobline_server.engine.payloads import Payloads
from jobline_server.engine.values import DEFAULT_OPTIONS, AckLevel, QueueSettings
from jobline_server.runtime import idle_queues
from jobline_server.runtime.clock import ManualClock
from jobline_server.runtime.health import Health
from jobline_server.runtime.idle_queues import delete_idle_queues, next_idle_ms
from jobline_server.runtime.runtime import Runtime
from tests.unit.runtime.conftest import opened


def create(runtime: Runtime, *names: str) -> None:
    for name in names:
        known_queue(runtime.core.slots.of_queue(name).shard, runtime.core.now(), name)


def names_of(runtime: Runtime) -> set[str]:
    return {name for slot in runtime.core.slots for name in slot.shard.queues}


def advance(runtime: Runtime, milliseconds: int) -> None:
    clock = runtime.core.clock
    assert isinstance(clock, ManualClock)
    clock.advance(milliseconds)


async def test_a_server_without_queues_has_none_to_delete(runtime: Runtime) -> None:
    assert await delete_idle_queues(runtime.core) == 0


async def test_a_queue_goes_when_its_hour_is_over_and_not_before(runtime: Runtime) -> None:
    """And once."""
    create(runtime, "mail")
    advance(runtime, EMPTY_QUEUE_MS)
    assert (await delete_idle_queues(runtime.core), names_of(runtime)) == (0, {"mail"})
    advance(runtime, 1)
    assert (await delete_idle_queues(runtime.core), names_of(runtime)) == (1, set())
    assert await delete_idle_queues(runtime.core) == 0


async def test_queues_with_jobs_or_settings_stay(runtime: Runtime) -> None:
    create(runtime, "plain", "set", "used")
    shard = runtime.core.slots[0].shard
    shard.queues["set"].settings = QueueSettings(max_attempts=3)
    payloads = Payloads.of([b"x"])
    await runtime.pushes.push(
        Push("used", DEFAULT_OPTIONS, payloads=payloads, level=AckLevel.BUFFERED)
    )
    advance(runtime, 2 * EMPTY_QUEUE_MS)
    assert (await delete_idle_queues(runtime.core), names_of(runtime)) == (1, {"set", "used"})


async def test_queues_of_all_shards_go_and_stay_away_after_a_restart(tmp_path: Path) -> None:
    """Each shard has its deletes written."""
    names = [f"q{number}" for number in range(8)]
    async with opened(tmp_path, ManualClock(), shards=3) as runtime:
        create(runtime, *names)
        assert all(slot.shard.queues for slot in runtime.core.slots)
        for slot in runtime.core.slots:
            runtime.core.after_decision(slot)
        await runtime.core.commits.commit_once()
        advance(runtime, 2 * EMPTY_QUEUE_MS)
        assert await delete_idle_queues(runtime.core) == len(names)
        waits = asyncio.ensure_future(runtime.core.commits.wait())
        await asyncio.sleep(0)
        assert not waits.done()
        await runtime.core.commits.commit_once()
        await waits
    async with opened(tmp_path, ManualClock(), shards=3) as runtime:
        assert names_of(runtime) == set()


async def test_empty_queues_vanish_in_slices(
    runtime: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Trial C5: a hundred thousand queues that nobody uses any more go without a step of the loop
    for all of them; one that is pushed to meanwhile stays.
    """
    monkeypatch.setattr(idle_queues, "SLICE_QUEUES", 3)
    shard = runtime.core.slots[0].shard
    for number in range(10):
        known_queue(shard, runtime.core.now(), f"q{number}")
    advance(runtime, 2 * EMPTY_QUEUE_MS)
    left = []
    task = asyncio.ensure_future(delete_idle_queues(runtime.core))
    while not task.done():
        await asyncio.sleep(0)
        left.append(len(shard.queues))
        if len(left) == 1:
            known_queue(shard, runtime.core.now(), "q9")
    assert left[:4] == [7, 4, 1, 1]
    assert (await task, list(shard.queues)) == (9, ["q9"])


async def test_a_shard_that_is_lost_meanwhile_holds_up_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was still to come of it is left to whoever has it."""
    monkeypatch.setattr(idle_queues, "SLICE_QUEUES", 1)
    async with opened(tmp_path, ManualClock(), shards=2) as runtime:
        slots = runtime.core.slots
        create(runtime, *[f"q{number}" for number in range(8)])
        lost, other = slots[0], slots[1]
        counts = len(lost.shard.queues), len(other.shard.queues)
        assert min(counts) > 1
        advance(runtime, 2 * EMPTY_QUEUE_MS)
        task = asyncio.ensure_future(delete_idle_queues(runtime.core))
        await asyncio.sleep(0)
        slots.close(lost, Health.FENCED, "another process has it")
        assert await task == 1 + counts[1]
        assert not other.shard.queues


async def test_the_next_is_due_an_hour_after_it_was_used(runtime: Runtime) -> None:
    assert next_idle_ms(runtime.core) is None
    create(runtime, "mail")
    due_ms = runtime.core.wall_ms() + EMPTY_QUEUE_MS + 1
    assert next_idle_ms(runtime.core) == due_ms
    advance(runtime, EMPTY_QUEUE_MS)
    assert await delete_idle_queues(runtime.core) == 0
    advance(runtime, 1)
    assert await delete_idle_queues(runtime.core) == 1
