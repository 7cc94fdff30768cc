"""What happened in queues is kept minute by minute, made of totals that the engine keeps anyway."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from jobline_server.engine.payloads import Payloads
from jobline_server.engine.values import QueueSettings
from jobline_server.runtime import minutes as of_minutes
from jobline_server.runtime.clock import ManualClock
from jobline_server.runtime.minutes import ALL_QUEUES, KEPT_MINUTES, Totals
from jobline_server.runtime.runtime import Runtime
from jobline_server.runtime.views import Audit
from jobline_server.telemetry.queue_minutes import QueueMinute
from tests.unit.runtime.conftest import working
from tests.unit.runtime.test_durations import push as push_jobs
from tests.unit.runtime.test_durations import settle

NOW = 29_000_000


@pytest.fixture
async def runtime(tmp_path: Path) -> AsyncIterator[Runtime]:
    async with working(tmp_path, ManualClock()) as one:
        yield one


async def push(runtime: Runtime, queue: str = "mail") -> None:
    await push_jobs(runtime, queue, payloads=Payloads.of([b"x"]))


async def minutes_of(runtime: Runtime, queue: str) -> list[QueueMinute]:
    return [*await runtime.minutes.find(queue, 0, NOW + 100)]


async def test_a_minute_has_what_happened_in_it(runtime: Runtime) -> None:
    await runtime.queues.update_queue("mail", QueueSettings(max_attempts=1), None, Audit())
    await push(runtime)
    await settle(runtime)
    for _ in range(2):
        await push(runtime)
    assert await runtime.minutes.close_minute(NOW) == 1
    await settle(runtime, ok=False)
    await push(runtime, "other")
    assert await runtime.minutes.close_minute(NOW + 1) == 2
    assert await runtime.minutes.close_minute(NOW + 2) == 0
    first, second = await minutes_of(runtime, "mail")
    assert first[:6] == ("mail", NOW, 3, 1, 0, 0)
    assert second[:6] == ("mail", NOW + 1, 0, 0, 2, 2)
    together = [row[1:6] for row in await minutes_of(runtime, ALL_QUEUES)]
    assert together == [(NOW, 3, 1, 0, 0), (NOW + 1, 1, 0, 2, 2)]


async def test_a_minute_has_how_long_jobs_waited(tmp_path: Path) -> None:
    clock = ManualClock()
    async with working(tmp_path, clock) as runtime:
        await push(runtime)
        clock.advance(4_000)
        await settle(runtime)
        await runtime.minutes.close_minute(NOW)
        await push(runtime)
        await runtime.minutes.close_minute(NOW + 1)
        first, second = await minutes_of(runtime, "mail")
    assert 2_000 <= (first.waited_p50_ms or 0) <= (first.waited_p95_ms or 0) <= 5_000
    assert (second.waited_p50_ms, second.waited_p95_ms) == (None, None)


async def test_minutes_outlive_the_process(tmp_path: Path) -> None:
    async with working(tmp_path, ManualClock()) as runtime:
        await push(runtime)
        await runtime.minutes.close_minute(NOW)
    async with working(tmp_path, ManualClock()) as runtime:
        await push(runtime)
        await runtime.minutes.close_minute(NOW + 1)
        assert [row.pushed for row in await minutes_of(runtime, "mail")] == [1, 1]


async def test_the_busiest_queues_of_a_minute_are_kept(
    runtime: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And what happened in the others is in the sum of all."""
    monkeypatch.setattr(of_minutes, "QUEUES_MAX", 1)
    monkeypatch.setattr(of_minutes, "STEP_QUEUES", 1)
    for queue in ("a", "b", "b", "c"):
        await push(runtime, queue)
    await runtime.minutes.close_minute(NOW)
    assert not await minutes_of(runtime, "a")
    assert [row.pushed for row in await minutes_of(runtime, "b")] == [2]
    assert [row.pushed for row in await minutes_of(runtime, ALL_QUEUES)] == [4]


async def test_old_minutes_are_deleted_in_slices(
    runtime: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(of_minutes, "DELETED_ROWS", 3)
    for minute in range(3):
        await push(runtime)
        await runtime.minutes.close_minute(NOW + minute)
    assert await runtime.minutes.delete_old(NOW + KEPT_MINUTES + 2) == 3
    assert await runtime.minutes.delete_old(NOW + KEPT_MINUTES + 2) == 1
    assert [row.minute for row in await minutes_of(runtime, "mail")] == [NOW + 2]


def test_totals_of_a_queue_that_was_deleted_begin_again() -> None:
    assert Totals(5, 4, 3, 1).since(Totals(2, 2, 2, 9)) == Totals(3, 2, 1, 1)
    assert Totals(1, 0, 0, 0).since(Totals(5, 4, 3, 0)) == Totals(1, 0, 0, 0)


def activity_of(runtime: Runtime, name: str = "mail") -> int:
    queue = runtime.core.slots.find_queue(name)
    assert queue is not None
    return runtime.minutes.activity(queue)


async def test_activity_is_that_of_this_minute_and_the_one_before(runtime: Runtime) -> None:
    await push(runtime)
    await settle(runtime)
    assert activity_of(runtime) == 2
    await runtime.minutes.close_minute(NOW)
    await push(runtime)
    assert activity_of(runtime) == 3
    await runtime.minutes.close_minute(NOW + 1)
    assert activity_of(runtime) == 1
    await runtime.minutes.close_minute(NOW + 2)
    assert activity_of(runtime) == 0


async def test_activity_of_a_queue_that_was_deleted_begins_again(runtime: Runtime) -> None:
    """Its totals are less than those at the end of the last minute."""
    for _ in range(3):
        await push(runtime)
    await runtime.minutes.close_minute(NOW)
    await runtime.minutes.close_minute(NOW + 1)
    await runtime.queues.delete_queue("mail", force=True, dry_run=False, audit=Audit())
    await push(runtime)
    assert activity_of(runtime) == 1


async def test_activity_is_right_while_a_minute_is_closed(
    runtime: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A queue that is not looked at yet is not as busy as in all minutes together."""
    monkeypatch.setattr(of_minutes, "STEP_QUEUES", 1)
    for queue in ("mail", "other"):
        await push(runtime, queue)
    for minute in range(2):
        await runtime.minutes.close_minute(NOW + minute)
    closing = asyncio.ensure_future(runtime.minutes.close_minute(NOW + 2))
    seen = set()
    while not closing.done():
        seen |= {activity_of(runtime), activity_of(runtime, "other")}
        await asyncio.sleep(0)
    assert seen == {0}
