"""Slices of dead jobs that are put back by themselves; `test_dead_letters.py` has when."""

from __future__ import annotations

import pytest

from jobline_server.engine.dead_letters import AutoRetry, DeadLetters
from jobline_server.engine.limits import HOUR_MS
from jobline_server.engine.values import QueueSettings
from jobline_server.runtime.ended import auto_retry
from jobline_server.runtime.ended.auto_retry import AutoRetries, RetrySlice
from jobline_server.runtime.health import Health
from jobline_server.runtime.views import Audit
from tests.unit.background.conftest import Keeping

ON = QueueSettings(dead_letters=DeadLetters(auto_retry=AutoRetry()))


@pytest.fixture
async def retries(keeping: Keeping) -> AutoRetries:
    await keeping.runtime.queues.update_queue("mail", ON, None, Audit())
    return AutoRetries(keeping.runtime.core, keeping.runtime.ended)


async def test_slice_has_a_bounded_number_of_jobs(
    keeping: Keeping, retries: AutoRetries, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(auto_retry, "SLICE_JOBS", 2)
    await keeping.die(3)
    await retries.write()
    now_ms = keeping.clock.now().wall_ms + HOUR_MS
    first = await retries.retry("mail", now_ms=now_ms)
    assert (first.retried, first.left) == (2, 0)
    assert first.after is not None
    assert await retries.retry("mail", now_ms=now_ms, after=first.after) == RetrySlice(1, 0, None)


async def test_next_time_is_that_of_the_first_job_that_is_not_due(
    keeping: Keeping, retries: AutoRetries
) -> None:
    await keeping.die()
    await keeping.runtime.ended.write()
    now_ms = keeping.clock.now().wall_ms
    assert await retries.next_ms("mail", now_ms) == now_ms + HOUR_MS
    assert await retries.next_ms("mail", now_ms + HOUR_MS) is None


async def test_queues_that_retry_are_found(keeping: Keeping, retries: AutoRetries) -> None:
    await keeping.die(1, "other")
    assert [queue async for queue in retries.queues()] == ["mail"]
    assert not retries.is_on("nowhere")


async def test_queue_of_a_lost_shard_is_skipped(keeping: Keeping, retries: AutoRetries) -> None:
    slots = keeping.runtime.core.slots
    slots.close(slots.of_queue("mail"), Health.FENCED, "another process has it")
    assert await retries.retry("mail", now_ms=1) == RetrySlice(0, 0, None)
