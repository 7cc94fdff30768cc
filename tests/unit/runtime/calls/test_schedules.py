"""Calls on schedules: names are of the whole server, changes keep what they can."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from jobline_server.engine.commands import RefusalKind, Refused
from jobline_server.engine.schedule import Overlap, ScheduleSettings, SkipReason
from jobline_server.runtime.clock import ManualClock
from jobline_server.runtime.runtime import Runtime
from jobline_server.runtime.schedule_views import ScheduleView
from jobline_server.runtime.views import Audit
from tests.unit.runtime.conftest import opened
from tests.unit.runtime.ended.test_many_ids import committed
from tests.unit.runtime.test_schedule_timer import advance

EVERY = ScheduleSettings("mail", every_ms=10_000)
DAILY = ScheduleSettings("mail", cron="0 0 * * *")


async def answer(runtime: Runtime, call: Coroutine[Any, Any, Any]) -> Any:
    """The answer of a call, which waits for its commit."""
    task = asyncio.ensure_future(call)
    await committed(runtime, task)
    return task.result()


async def create(
    runtime: Runtime, name: str = "s", settings: ScheduleSettings = EVERY, *, upsert: bool = False
) -> ScheduleView:
    made: ScheduleView = await answer(
        runtime, runtime.schedules.create_schedule(name, settings, upsert=upsert)
    )
    return made


async def test_name_is_one_in_all_shards(tmp_path: Path) -> None:
    async with opened(tmp_path, ManualClock(), shards=4) as runtime:
        queues = ("a", "b", "c", "d", "e")
        for queue in queues:
            await create(runtime, f"of-{queue}", replace(EVERY, queue=queue))
        assert len({runtime.core.slots.of_queue(queue).number for queue in queues}) > 1
        with pytest.raises(Refused) as refused:
            await create(runtime, "of-a", replace(EVERY, queue="b"), upsert=True)
        assert refused.value.kind is RefusalKind.SCHEDULE_EXISTS
        with pytest.raises(Refused):
            await create(runtime, "of-a")
        calls = runtime.schedules
        names, token = [], ""
        while True:
            views, token = await calls.list_schedules(
                page_size=2, page_token=token, prefix="of-", queue=""
            )
            names += [view.name for view in views]
            if not token:
                break
        assert names == [f"of-{queue}" for queue in queues]
        assert calls._shown("nowhere") is None


async def test_next_run_stays_unless_the_timing_changes(runtime: Runtime) -> None:
    made = await create(runtime)
    advance(runtime, 3_000)
    allowed = replace(EVERY, overlap=Overlap.ALLOW)
    assert (await create(runtime, settings=allowed, upsert=True)).next_start_ms == (
        made.next_start_ms
    )
    # Multiples go on where they were, if only an end is new.
    ends = replace(EVERY, end_ms=made.created_ms + 60_000)
    assert (await create(runtime, settings=ends, upsert=True)).next_start_ms == made.next_start_ms
    slower = replace(EVERY, every_ms=20_000)
    changed = await answer(runtime, runtime.schedules.update_schedule("s", lambda _: slower))
    assert changed.next_start_ms == made.created_ms + 23_000
    later = replace(EVERY, start_ms=made.created_ms + 5_000)
    changed = await answer(runtime, runtime.schedules.update_schedule("s", lambda _: later))
    assert changed.next_start_ms == made.created_ms + 5_000


async def test_schedule_that_is_over_stays_so_until_its_limit_rises(runtime: Runtime) -> None:
    once = replace(EVERY, limit=1, overlap=Overlap.ALLOW)
    await create(runtime, settings=once)
    advance(runtime, 10_000)
    runtime.timer_loop.run_due()
    calls = runtime.schedules
    assert calls.get_schedule("s").next_start_ms == 0
    changed = await create(runtime, settings=replace(once, end_ms=1 << 44), upsert=True)
    assert changed.next_start_ms == 0
    await answer(runtime, calls.pause_schedule("s", Audit()))
    assert (await answer(runtime, calls.resume_schedule("s"))).next_start_ms == 0
    assert (await create(runtime, settings=replace(once, limit=2), upsert=True)).next_start_ms


async def test_resume_before_the_next_run_keeps_it(runtime: Runtime) -> None:
    made = await create(runtime)
    calls = runtime.schedules
    paused = await answer(runtime, calls.pause_schedule("s", Audit("ann", "why")))
    assert (paused.paused_by, paused.pause_reason, paused.next_start_ms) == ("ann", "why", 0)
    assert (await answer(runtime, calls.resume_schedule("s"))).next_start_ms == made.next_start_ms


async def test_run_by_hand_that_waits_is_not_skipped(runtime: Runtime) -> None:
    await create(runtime, settings=replace(EVERY, overlap=Overlap.BUFFER_ONE))
    calls = runtime.schedules
    job_id, reason, view = await answer(runtime, calls.trigger_schedule("s"))
    assert (job_id, reason, view.count) == (view.last_job_id, None, 1)
    assert await answer(runtime, calls.trigger_schedule("s")) == (
        0,
        None,
        calls.get_schedule("s"),
    )
    job_id, reason, view = await answer(runtime, calls.trigger_schedule("s"))
    assert (job_id, reason, view.skipped) == (0, SkipReason.OVERLAP, 1)


async def test_schedule_is_deleted(runtime: Runtime) -> None:
    await create(runtime)
    await answer(runtime, runtime.schedules.delete_schedule("s"))
    with pytest.raises(Refused) as refused:
        runtime.schedules.get_schedule("s")
    assert refused.value.kind is RefusalKind.SCHEDULE_NOT_FOUND


async def test_preview_has_the_runs_that_come(runtime: Runtime) -> None:
    calls = runtime.schedules
    made = await create(runtime, settings=replace(EVERY, limit=3))
    runs = await calls.preview_stored("s", 0, 9)
    assert runs == [made.created_ms + number * 10_000 for number in (1, 2, 3)]
    after = await calls.preview_stored("s", made.created_ms + 10_000, 1)
    assert after == [made.created_ms + 20_000]
    assert await calls.preview(EVERY, 0, 2) == runs[:2]
    assert await calls.preview(replace(EVERY, limit=1), 0, 2) == runs[:1]
    assert await calls.preview(DAILY, 5, 250) == [day * 86_400_000 for day in range(1, 251)]
