"""What operations changed is set back, unless it was changed since."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable
from pathlib import Path
from typing import Any

import pytest

from jobline_server.engine.commands import RefusalKind, Refused
from jobline_server.engine.payloads import Payloads
from jobline_server.engine.schedule import ScheduleSettings
from jobline_server.engine.values import QueueSettings
from jobline_server.runtime.clock import ManualClock
from jobline_server.runtime.runtime import Runtime
from jobline_server.runtime.views import Audit
from tests.unit.runtime.conftest import working
from tests.unit.runtime.test_durations import push

UNDO = Audit("ops", "", "UndoOperation")
DAY_MS = 86_400_000


def asked(name: str) -> Audit:
    return Audit("ops", "", "Verb", "", name)


@pytest.fixture
async def busy(tmp_path: Path) -> AsyncIterator[Runtime]:
    async with working(tmp_path, ManualClock()) as one:
        await push(one, "mail", payloads=Payloads.of([b"x"]))
        yield one


async def undo(runtime: Runtime, name: str) -> str:
    return (await runtime.undo.undo(name, dry_run=False, audit=UNDO)).operation_id


async def refused(call: Awaitable[Any]) -> RefusalKind:
    with pytest.raises(Refused) as caught:
        await call
    return caught.value.kind


async def test_an_undo_can_be_undone(busy: Runtime) -> None:
    """It is an operation as any other."""
    await busy.queues.update_queue("mail", QueueSettings(max_attempts=5), None, asked("a"))
    first = await undo(busy, "a")
    assert busy.queues.get_queue("mail").settings.max_attempts is None
    await undo(busy, first)
    assert busy.queues.get_queue("mail").settings.max_attempts == 5
    assert await refused(undo(busy, "a")) is RefusalKind.ALREADY_UNDONE


async def test_what_was_changed_since_stays(busy: Runtime) -> None:
    """Each kind of change is compared with what the operation left."""
    until_ms = busy.core.wall_ms() + DAY_MS
    await busy.queues.pause_queue("mail", asked("a"))
    await busy.queues.pause_queue("mail", Audit("others", "why"))
    await busy.queues.limit_queue("mail", until_ms, asked("b"))
    await busy.queues.limit_queue("mail", until_ms + 1, asked("c"))
    await busy.limiters.put_limiter("api", None, 5, asked("d"))
    await busy.limiters.put_limiter("api", None, 6, asked("e"))
    for name in "abd":
        assert await refused(undo(busy, name)) is RefusalKind.CHANGED_SINCE, name
    assert busy.queues.get_queue("mail").paused_by == "others"
    for name in "cbed":
        await undo(busy, name)
    assert busy.queues.get_queue("mail").limited is None
    assert await refused(undo(busy, "d")) is RefusalKind.ALREADY_UNDONE


async def test_a_limit_whose_time_has_come_does_not_come_back(busy: Runtime) -> None:
    clock = busy.core.clock
    assert isinstance(clock, ManualClock)
    await busy.limiters.put_limiter("api", None, 5, Audit())
    await busy.limiters.empty_limiter("api", busy.core.wall_ms() + 1_000, asked("a"))
    await busy.limiters.empty_limiter("api", busy.core.wall_ms() + DAY_MS, asked("b"))
    clock.advance(2_000)
    await undo(busy, "b")
    assert busy.limiters.get_limiter("api").limited is None


async def test_a_queue_that_is_gone_is_not_paused_again(busy: Runtime) -> None:
    await busy.queues.pause_queue("mail", Audit())
    await busy.queues.resume_queue("mail", asked("a"))
    await busy.queues.delete_queue("mail", force=True, dry_run=False, audit=asked("b"))
    assert await refused(undo(busy, "a")) is RefusalKind.QUEUE_NOT_FOUND
    assert await refused(undo(busy, "b")) is RefusalKind.NOT_UNDOABLE


async def test_a_limiter_comes_back_with_its_limits(busy: Runtime) -> None:
    until_ms = busy.core.wall_ms() + DAY_MS
    await busy.limiters.put_limiter("api", None, 5, asked("a"))
    await busy.limiters.empty_limiter("api", until_ms, Audit("ops", "429"))
    await busy.limiters.delete_limiter("api", asked("b"))
    assert await refused(undo(busy, "a")) is RefusalKind.CHANGED_SINCE
    await undo(busy, "b")
    view = busy.limiters.get_limiter("api")
    assert view.settings.concurrency == 5
    assert view.limited is not None
    assert (view.limited.until_ms, view.limited.reason) == (until_ms, "429")
    await undo(busy, "a")
    assert await refused(busy.limiters.delete_limiter("api")) is RefusalKind.LIMITER_NOT_FOUND


async def test_a_pause_of_a_schedule_is_undone(busy: Runtime) -> None:
    """It runs again from now; and an undo of that pauses it, by whom and why as before."""
    clock, schedules = busy.core.clock, busy.schedules
    assert isinstance(clock, ManualClock)
    settings = ScheduleSettings("mail", every_ms=DAY_MS)
    made = await schedules.create_schedule("report", settings, upsert=False, audit=asked("a"))
    pause = Audit("ops", "repairs", "PauseSchedule", "", "b")
    await schedules.pause_schedule("report", pause)
    clock.advance(3 * DAY_MS)
    resumed = await undo(busy, "b")
    view = schedules.get_schedule("report")
    assert not view.paused
    assert view.next_start_ms == made.next_start_ms + 3 * DAY_MS
    await undo(busy, resumed)
    view = schedules.get_schedule("report")
    assert (view.paused, view.paused_by, view.pause_reason) == (True, "ops", "repairs")
    assert await refused(undo(busy, "a")) is RefusalKind.NOT_UNDOABLE


async def test_a_schedule_that_was_changed_or_deleted_since_stays(busy: Runtime) -> None:
    schedules = busy.schedules
    settings = ScheduleSettings("mail", every_ms=DAY_MS)
    await schedules.create_schedule("report", settings, upsert=False)
    await schedules.pause_schedule("report", asked("a"))
    await schedules.pause_schedule("report", Audit("others", "why"))
    assert await refused(undo(busy, "a")) is RefusalKind.CHANGED_SINCE
    await schedules.delete_schedule("report", asked("b"))
    assert await refused(undo(busy, "a")) is RefusalKind.SCHEDULE_NOT_FOUND
